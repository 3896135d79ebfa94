/* man.c - prints the manual page roost(1) in scdoc, from the same tables that parse and help. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static void put_option(const struct command *command, const struct cli_option *option)
{
    char letter = option_letter(command, option);
    if (letter)
        printf("*-%c*, ", letter);
    printf("*--%s*%s%s%s\n\t%s\n\n", option->name, option->argument ? " _" : "",
           option->argument ? option->argument : "", option->argument ? "_" : "", option->help);
}

static void put_command(const struct command *command)
{
    printf("## roost %s %s\n\n%s\n\n", command->name, command->usage, command->details);
    for (const struct cli_option *it = command->options; it->name; it++)
        put_option(command, it);
    if (command->exits)
        printf("Exit status: %s.\n\n", command->exits);
    for (const char *line = command->examples; line && *line;) {
        int len = (int)strcspn(line, "\n");
        printf("%s\t%.*s\n", line == command->examples ? "```\n" : "", len, line);
        line += len + (line[len] == '\n');
    }
    if (command->examples)
        puts("```\n");
}

int main(void)
{
    puts("roost(1)\n\n# NAME\n\nroost - place the workers of distributed RL jobs\n\n"
         "# SYNOPSIS\n\n*roost* _COMMAND_ [options] _CONFIG_ [key=value ...]\n\n"
         "# DESCRIPTION\n\n"
         "roost gives every worker of a distributed RL job its place. A few lines of YAML say "
         "which\n"
         "component uses which accelerators, robots or nodes. roost checks and shows that plan in\n"
         "milliseconds, without a cluster.\n\n# COMMANDS\n");
    for (const struct command *const *it = commands; *it; it++)
        put_command(*it);
    puts(
        "# EXIT STATUS\n\n"
        "*0* done, *1* a process of a run failed with a code above 127, *2* wrong usage, *3* the "
        "config\n"
        "is invalid, *4* it does not fit the cluster, *5* the system or the engine failed. *run* "
        "ends "
        "with\n"
        "the code of the process that failed first, or 128 and the number of the signal that ended "
        "it.\n\n"
        "# ENVIRONMENT\n\n"
        "*ROOST_CLUSTER*\n\tThe cluster to plan against when --cluster is not given.\n\n"
        "*ROOST_CGROUP*\n\t*never*: *run* makes no control group.\n\n"
        "*ROOST_ENGINE*\n\t*local* or *ray*: the engine of *run* and of Python's Cluster, unless "
        "an "
        "option or\n\tan argument names one. It replaces the config's *roost.engine*.\n\n"
        "*ROOST_NAMESPACE*\n\troost sets it for every process of a run: the namespace by which "
        "programs\n\tfind the managers of the run.\n\n"
        "*ROOST_PORT_BASE*\n\tThe first port that *run* tries to lease; 20000.\n\n"
        "*ROOST_PYTHON*\n\tThe Python, with roost and ray, through which roost asks Ray. The "
        "default "
        "is the\n\tone beside the program.\n\n"
        "*XDG_STATE_HOME*, *XDG_RUNTIME_DIR*, *HOME*\n\tWhere runs keep their logs, and their "
        "sockets and leases.\n\n"
        "*NO_COLOR*\n\tIf it is not empty, roost uses no colours.\n\n"
        "# FILES\n\n"
        "_$XDG_STATE_HOME/roost/runs_\n\tLogs and records of runs, if the config has no "
        "*roost.logs.dir*; _~/.local/state_ stands for\n\tan unset *XDG_STATE_HOME*.\n\n"
        "_$XDG_RUNTIME_DIR/roost_\n\tSockets of living runs, and leases of ports.\n\n"
        "# SEE ALSO\n\n"
        "*ray*(1), *torchrun*(1), *srun*(1)");
    return ferror(stdout) != 0;
}
