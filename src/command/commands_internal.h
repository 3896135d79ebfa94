/* commands_internal.h - the words of a component's command, shared by commands.c and command_maker.c. */
#ifndef COMMAND_COMMANDS_INTERNAL_H
#define COMMAND_COMMANDS_INTERNAL_H

#include "command/commands.h"

/* The words of a component's command: its own, those after `--`, or none. */
struct command_words {
    const struct word *own;
    const char *const *given;
    int32_t count;
};

struct command_words command_words_of(const struct commands *commands,
                                      const struct component_commands *component);
struct word command_word(const struct command_words *words, int32_t index);

#endif
