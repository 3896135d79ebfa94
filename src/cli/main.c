/* main.c - finds the command and hands over. */
#include <fcntl.h>
#include <roost/engine/program.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/strview.h"
#include "cli/command.h"
#include "cli/output.h"

static int finish_stdout(int status)
{
    /* Help goes through stdio: a full disk must not look like success. */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    output_say("cannot write to standard output");
    return EXIT_SYSTEM;
}

static int print_help(void)
{
    puts("roost gives every worker of a distributed RL job its place.\n\n"
         "usage: roost COMMAND [options] CONFIG [key=value ...]\n\ncommands:");
    for (const struct command *const *it = commands; *it; it++)
        printf("  %-10s %s\n", (*it)->name, (*it)->summary);
    puts("\n'roost COMMAND --help' shows its options.");
    return finish_stdout(0);
}

static const struct command *find(const char *name)
{
    for (const struct command *const *it = commands; *it; it++)
        if (strcmp((*it)->name, name) == 0)
            return *it;
    return NULL;
}

static int refuse_command(const char *word)
{
    const char *names[COMMANDS_MAX + 1] = {NULL};
    for (size_t i = 0; i < COMMANDS_MAX && commands[i]; i++)
        names[i] = commands[i]->name;
    const char *near = nearest_word(sv_from(word), names);
    if (near)
        return output_usage("there is no command '%s'; did you mean '%s'?",
                            quote(sv_from(word)).text, near);
    return output_usage("there is no command '%s'; see 'roost --help'", quote(sv_from(word)).text);
}

/* A descriptor that was closed would be given to the next file that is opened, and what is reported would
 * go there. These cannot be written to, so that saying something still fails. */
static void fill_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
            return; /* nothing can be opened: nothing will be confused with it */
}

int main(int argc, char **argv)
{
    fill_standard();
    if (argc < 2)
        return output_usage("a command is missing; see 'roost --help'");
    if (strcmp(argv[1], "--guardian") == 0) /* how a run starts its own: see roost/launch.h */
        return roost_guardian_main(argc - 2, argv + 2);
    if (strcmp(argv[1], "--registry-server") ==
        0) /* how managers are started: see roost/engine/registry.h */
        return roost_registry_server_main(argc - 2, argv + 2);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "help") == 0) {
        const struct command *command = argc > 2 ? find(argv[2]) : NULL;
        if (argc > 2 && !command)
            return refuse_command(argv[2]);
        if (!command)
            return print_help();
        command_help(command);
        return finish_stdout(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("roost %s\n", roost_version());
        return finish_stdout(0);
    }
    const struct command *command = find(argv[1]);
    if (!command)
        return refuse_command(argv[1]);
    return finish_stdout(command_run(command, argc - 1, argv + 1, environ));
}
