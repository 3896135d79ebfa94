/* commands_text.c - commands for people. Ranks differ in all processes, so they cannot be folded as a
 * plan is: what all processes of a component have alike is shown once, and the rest in a paragraph a
 * process. Two passes: the first finds out what is alike. */
#include <string.h>

#include "config/variables.h"
#include "render/commands_view.h"

struct view {
    struct text *out;
    int width;
    const char *bold, *dim, *off;
};

/* What the processes of a component have in common, told by the first of them. */
struct alike {
    struct process_command first;
    bool *is_alike; /* by first.env[0 .. own_count - 1] */
    bool is_argv;
};

static bool is_same_argv(const char *const *a, const char *const *b)
{
    if (!a || !b)
        return a == b;
    for (; *a && *b; a++, b++)
        if (strcmp(*a, *b) != 0)
            return false;
    return !*a && !*b;
}

static int compare_names(const char *a, const char *b)
{
    return sv_compare((struct strview){a, strcspn(a, "=")}, (struct strview){b, strcspn(b, "=")});
}

/* Both lists are sorted by name. */
static void compare_env(struct alike *alike, const struct process_command *other)
{
    int32_t at = 0;
    for (int32_t i = 0; i < alike->first.own_count; i++) {
        const char *entry = alike->first.env[i];
        while (at < other->own_count && compare_names(other->env[at], entry) < 0)
            at++;
        if (at == other->own_count || strcmp(other->env[at], entry) != 0)
            alike->is_alike[i] = false;
    }
}

static bool find_alike(struct alike *alike, const struct commands *commands, int32_t component,
                       const struct run_values *values, struct arena *arena)
{
    struct command_maker *maker =
        command_maker_new(commands, component, values, WORDS_SHOWN, arena);
    bool is_good = maker && command_maker_make(maker, 0, &alike->first);
    command_maker_free(maker);
    if (!is_good)
        return false;
    alike->is_argv = true;
    alike->is_alike = arena_array(arena, bool, alike->first.own_count);
    if (!alike->is_alike)
        return false;
    memset(alike->is_alike, true, (size_t)alike->first.own_count);
    struct command_walk walk = {.commands = commands, .values = values};
    for (int32_t p = 1; is_good && p < commands->components[component].process_count; p++) {
        struct process_command other;
        is_good = command_walk_to(&walk, component, p, &other);
        if (!is_good)
            break;
        alike->is_argv &= is_same_argv(alike->first.argv, other.argv);
        compare_env(alike, &other);
    }
    command_walk_release(&walk);
    return is_good;
}

/* --- writing --- */

static void put_argv(struct text *out, const char *const *argv)
{
    for (const char *const *word = argv; *word; word++) {
        if (word != argv)
            text_char(out, ' ');
        put_shell_word(out, sv_from(*word));
    }
}

static void put_entry(struct text *out, const char *entry)
{
    struct strview all = sv_from(entry);
    size_t equals = sv_find(all, '=', 0);
    struct strview value = sv_sub(all, equals + 1, all.len);
    text_put(out, sv_sub(all, 0, equals + 1));
    if (is_secret_name(sv_sub(all, 0, equals)))
        text_puts(out, SECRET_SHOWN);
    else if (value.len > 0)
        put_shell_word(out, value);
}

/* Characters, not bytes. */
static int width_of(const struct text *text)
{
    int width = 0;
    for (size_t i = 0; i < text->len; i++)
        width += ((unsigned char)text->bytes[i] & 0xc0) != 0x80;
    return width;
}

/* Whether all processes have the variable alike; *at goes through the first process's list. */
static bool is_told(const struct alike *alike, const char *entry, int32_t *at)
{
    while (*at < alike->first.own_count && compare_names(alike->first.env[*at], entry) < 0)
        (*at)++;
    return *at < alike->first.own_count && alike->is_alike[*at] &&
           compare_names(alike->first.env[*at], entry) == 0;
}

/* The variables that not all processes have alike, as many on a line as fit. */
static void put_own(struct view *view, const struct alike *alike,
                    const struct process_command *process)
{
    enum { INDENT = 4 };
    struct text piece = TEXT_INIT;
    int at = 0;
    int32_t first_at = 0;
    for (int32_t i = 0; i < process->own_count; i++) {
        if (is_told(alike, process->env[i], &first_at))
            continue;
        piece.len = 0;
        put_entry(&piece, process->env[i]);
        int width = width_of(&piece);
        bool is_next = at > 0 && at + 1 + width <= view->width;
        if (is_next) {
            text_char(view->out, ' ');
        } else {
            text_char(view->out, '\n');
            text_repeat(view->out, ' ', INDENT);
            at = INDENT - 1;
        }
        text_append(view->out, piece.bytes, piece.len);
        at += 1 + width;
    }
    view->out->has_failed |= piece.has_failed;
    text_release(&piece);
    text_char(view->out, '\n');
}

static void put_common(struct view *view, const struct component_commands *component,
                       const struct alike *alike)
{
    struct text *out = view->out;
    text_printf(out, "%s%s%s: %d process%s\n", view->bold, component->name, view->off,
                (int)component->process_count, component->process_count == 1 ? "" : "es");
    if (!alike->first.argv)
        text_puts(out, "  (no command)\n");
    if (alike->first.argv && alike->is_argv) {
        text_puts(out, "  ");
        put_argv(out, alike->first.argv);
        text_char(out, '\n');
    }
    if (alike->first.cwd) {
        text_printf(out, "  %sin%s ", view->dim, view->off);
        put_shell_word(out, sv_from(alike->first.cwd));
        text_char(out, '\n');
    }
    if (component->process_count > 1)
        text_printf(out, "  %severy process%s\n", view->dim, view->off);
    for (int32_t i = 0; i < alike->first.own_count; i++) {
        if (!alike->is_alike[i])
            continue;
        text_puts(out, "    ");
        put_entry(out, alike->first.env[i]);
        text_char(out, '\n');
    }
}

static void put_process(struct view *view, const struct component_commands *component, int32_t rank,
                        const struct alike *alike, const struct process_command *process)
{
    text_printf(view->out, "  %s%s/%d%s", view->bold, component->name, (int)rank, view->off);
    if (process->argv && !alike->is_argv) {
        text_puts(view->out, "  ");
        put_argv(view->out, process->argv);
    }
    put_own(view, alike, process);
}

static void put_component(struct view *view, const struct commands *commands, int32_t index,
                          const struct run_values *values)
{
    const struct component_commands *component = &commands->components[index];
    struct arena arena = ARENA_INIT;
    struct alike alike = {0};
    bool is_good = find_alike(&alike, commands, index, values, &arena);
    if (is_good)
        put_common(view, component, &alike);
    struct command_walk walk = {.commands = commands, .values = values};
    /* A single process is all told already. */
    for (int32_t p = 0; is_good && component->process_count > 1 && p < component->process_count;
         p++) {
        struct process_command process;
        is_good = command_walk_to(&walk, index, p, &process);
        if (is_good)
            put_process(view, component, p, &alike, &process);
    }
    command_walk_release(&walk);
    arena_release(&arena);
    if (!is_good)
        view->out->has_failed = true;
}

void commands_put_text(struct text *out, const struct commands *commands,
                       const struct run_values *values, int width, bool has_color)
{
    struct view view = {.out = out,
                        .width = width,
                        .bold = has_color ? "\033[1m" : "",
                        .dim = has_color ? "\033[2m" : "",
                        .off = has_color ? "\033[0m" : ""};
    for (int32_t c = 0; c < commands->component_count && !out->has_failed; c++) {
        if (c)
            text_char(out, '\n');
        put_component(&view, commands, c, values);
    }
    text_printf(
        out,
        "\n%sVariables that processes inherit are not shown; what stands in <> is decided by\n"
        "the run.%s\n",
        view.dim, view.off);
}
