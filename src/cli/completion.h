/* completion.h - shell completion of `roost`, made from the tables of the commands. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "base/text.h"
#include "cli/command.h"

/* Where a shell finds further words for an argument. */
enum completion_source {
    COMPLETE_NOTHING,
    COMPLETE_FILES,
    COMPLETE_CONFIGS, /* files too, YAML first */
    COMPLETE_RUNS,    /* ids of runs, from roost ps */
};

/* What an argument of an option or an operand is, by the word that stands for it in the help. */
struct argument_kind {
    const char *name;  /* "WHEN" */
    const char *words; /* "auto always never"; "" = none */
    enum completion_source source;
};

/* All of them; the last one has no name. */
extern const struct argument_kind argument_kinds[];

/* The kind of this name. One that is not in the list completes to nothing. */
const struct argument_kind *find_argument_kind(struct strview name);

/* The kind of a command's operand: the first word of its usage that is in the list. */
const struct argument_kind *command_operand_kind(const struct command *command);

/* Puts `text` with a backslash before every character of `specials`; a single quote becomes `quote`. */
void put_escaped(struct text *out, const char *text, const char *specials, const char *quote);

/* The scripts. */
void completion_bash(struct text *out);
void completion_fish(struct text *out);
void completion_zsh(struct text *out);

#endif
