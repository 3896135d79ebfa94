/* man.c - prints the manual page roost(1) in scdoc, from the same tables that parse and help. */
#include <stdio.h>

#include "cli/command.h"

static void put_command(const struct command *command)
{
    printf("## roost %s %s\n\n%s\n\n", command->name, command->usage, command->details);
    for (const struct option_spec *it = command->options; it->name; it++)
        printf("*--%s*%s%s%s\n\t%s\n\n", it->name, it->argument ? " _" : "",
               it->argument ? it->argument : "", it->argument ? "_" : "", it->help);
}

int main(void)
{
    puts("roost(1)\n\n# NAME\n\nroost - place the workers of distributed RL jobs\n\n"
         "# SYNOPSIS\n\n*roost* _COMMAND_ [options] _CONFIG_ [key=value ...]\n\n"
         "# DESCRIPTION\n\n"
         "roost gives every worker of a distributed RL job its place: a few lines of YAML say "
         "which\n"
         "component sits on which accelerators, robots or nodes; roost checks and shows that plan "
         "in\n"
         "milliseconds, with no cluster at hand.\n\n# COMMANDS\n");
    for (const struct command *const *it = commands; *it; it++)
        put_command(*it);
    puts("# EXIT STATUS\n\n"
         "*0* done, *2* wrong usage, *3* the config is invalid, *4* it does not fit the cluster, "
         "*5* the\n"
         "system failed.\n\n"
         "# ENVIRONMENT\n\n"
         "*ROOST_CLUSTER*\n\tThe cluster to plan against when --cluster is not given.\n\n"
         "*NO_COLOR*\n\tWhen not empty, no colours are used.");
    return ferror(stdout) != 0;
}
