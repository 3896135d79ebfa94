/* command.h - a subcommand: a table of its texts and options, and one function. main() only looks it up. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <roost/roost.h>
#include <stdbool.h>

#include "base/rankset.h"

struct invocation;

enum { EXIT_USAGE = 2, EXIT_SYSTEM = 5 };

/* One option. The same table serves the parser, the help, the man page and shell completion. */
struct cli_option {
    const char *name;     /* without "--" */
    const char *argument; /* "SPEC", NULL = a switch; completion.c knows its values */
    const char *help;
};

/* The short form of an option. */
struct option_letter {
    char letter;
    const char *name;
};

struct command {
    const char *name;
    const char *summary;              /* one line, no full stop */
    const char *usage;                /* after "roost NAME" */
    const char *details;              /* paragraphs for --help and the man page */
    const char *exits;                /* its exit statuses, lines; NULL = those of any command */
    const char *examples;             /* command lines, one per line; NULL = none */
    const struct cli_option *options; /* ends with a NULL name */
    int (*run)(const struct invocation *invocation);
    const struct option_letter *letters; /* ends with a 0; NULL = none */
    bool takes_ended_runs;               /* RUN may be one that has ended */
    bool takes_trailing;                 /* what follows "--" is the command line of a process */
};

/* A parsed command line. Its texts are borrowed from argv. */
struct invocation {
    const struct command *command;
    const char *const *values; /* by option: its argument, "" for a switch that is on, NULL = off */
    const char *const *operands;
    size_t operand_count;
    const char *const *trailing; /* the arguments after "--" */
    size_t trailing_count;
    bool has_trailing; /* "--" was there */
    char *const *env;
};

/* The argument of an option ("" for a switch). NULL when it was not given. */
const char *option_value(const struct invocation *invocation, const char *name);
bool option_is_on(const struct invocation *invocation, const char *name);

/* Reads an option that is a number of seconds, with a fraction or without, into *out_ms; -1 when it was
 * not given. Returns 0; or, after it printed what is wrong, an exit status. */
int option_seconds(const struct invocation *invocation, const char *name, int32_t *out_ms);

/* Reads --ranks into *out, in memory of the arena, and points *out_ranks there; NULL when it was not
 * given. Returns as option_seconds. */
int option_ranks(const struct invocation *invocation, struct arena *arena, struct rankset *out,
                 const struct rankset **out_ranks);

/* The names in "a,b,c", NULL-terminated in memory that the caller frees; NULL without memory. */
char **split_names(const char *text, size_t *out_count);

/* The short form of an option, 0 = none. */
char option_letter(const struct command *command, const struct cli_option *option);

/* A variable of the environment. NULL when it is not set, or empty. */
const char *invocation_env(const struct invocation *invocation, const char *name);

/* Parses everything after the command's name and runs it. Returns the exit status. */
int command_run(const struct command *command, int argc, char **argv, char *const *env);

void command_help(const struct command *command);

enum { COMMANDS_MAX = 32 };

/* All commands, NULL-terminated, in the order of the help. */
extern const struct command *const commands[];
extern const struct command cmd_check, cmd_completion, cmd_groups, cmd_logs, cmd_plan, cmd_probe,
    cmd_prune, cmd_ps, cmd_run, cmd_stop, cmd_version;

/* The exit statuses of commands that read a config. */
#define PLANNING_EXITS                                                                             \
    "0 done, 2 wrong usage, 3 the config is invalid, 4 it does not fit the cluster,\n"             \
    "5 the system failed"

#endif
