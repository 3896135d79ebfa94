/* commands_view.h - commands as people and programs read them. Only what the config and roost set is
 * shown, not what is inherited. What comes from a secret variable, and the values of variables that are
 * secret by their own name, are shown as ***. */
#ifndef RENDER_COMMANDS_VIEW_H
#define RENDER_COMMANDS_VIEW_H

#include "command/commands.h"
#include "json/json_writer.h"

/* A word as a shell would take it: quoted where it must be, control bytes as $'\x1b'. */
void put_shell_word(struct text *out, struct strview word);

/* Every component: its command and folder, the variables that all its processes have alike, then what
 * differs, process by process. What cannot be built without memory fails the text. */
void commands_put_text(struct text *out, const struct commands *commands,
                       const struct run_values *values, int width, bool has_color);

/* Goes through processes in the order of their ranks, keeping a few of them at a time. Starts with
 * the first two set and ends with command_walk_release. */
struct command_walk {
    const struct commands *commands;
    const struct run_values *values;
    struct arena arena;
    struct command_maker *maker;
    int32_t component, made;
};

/* The process, good until the next call; false without memory. */
bool command_walk_to(struct command_walk *walk, int32_t component, int32_t rank,
                     struct process_command *out);
void command_walk_release(struct command_walk *walk);

/* "command": [...], "env": {...}, "cwd": ...: further members of a process's object. */
void command_put_json(struct json_writer *json, const struct process_command *process);

#endif
