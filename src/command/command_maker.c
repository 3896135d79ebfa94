/* command_maker.c - builds processes one after the other: words, folder, variables. Words that are the same
 * for all processes are built once. */
#include <stdlib.h>
#include <string.h>

#include "command/commands_internal.h"
#include "command/environment.h"
#include "command/expand.h"

struct command_maker {
    struct environment_maker environment;
    struct text scratch;
    struct command_words words;
    const char **last; /* [words.count]: the words of the process before */
    const char *const
        *argv; /* that all processes share, as long as the interpreter is `shared_for` */
    const char *shared_for;
    bool is_shared; /* no word differs */
    const char *cwd;
    const char *ready_what; /* of the process before */
};

/* Where the config lies, as its path was written; "" = the caller's own folder. */
static struct strview folder_of(const struct launch_options *options)
{
    if (options->config_dir)
        return sv_from(options->config_dir);
    const char *path = options->config->source.name;
    const char *slash = strrchr(path, '/');
    if (!slash)
        return SV("");
    return (struct strview){path, slash == path ? 1 : (size_t)(slash - path)};
}

static bool find_cwd(struct command_maker *maker, const struct launch_options *options,
                     const struct launch_config *launch)
{
    struct strview cwd = launch ? launch->cwd.text : SV("");
    maker->cwd = options->home;
    if (cwd.len == 0)
        return true;
    struct strview folder = cwd.at[0] == '/' ? SV("") : folder_of(options);
    maker->scratch.len = 0;
    text_put(&maker->scratch, folder);
    if (folder.len > 0 && folder.at[folder.len - 1] != '/')
        text_char(&maker->scratch, '/');
    text_put(&maker->scratch, cwd);
    const char *joined = text_string(&maker->scratch);
    maker->cwd = joined ? arena_copy(maker->environment.arena, sv_from(joined)) : NULL;
    return maker->cwd != NULL;
}

/* A word of the command as this maker's processes have it. */
static struct strview word_at(const struct command_maker *maker, int32_t index)
{
    struct word word = command_word(&maker->words, index);
    return environment_word(&maker->environment, &word);
}

struct command_maker *command_maker_new(const struct commands *commands, int32_t component,
                                        const struct run_values *values, enum words_for words,
                                        struct arena *arena)
{
    const struct component_commands *it = &commands->components[component];
    struct command_maker *maker = calloc(1, sizeof *maker);
    if (!maker)
        return NULL;
    maker->words = command_words_of(commands, it);
    maker->environment = (struct environment_maker){
        .commands = commands,
        .component = it,
        .arena = arena,
        .scratch = &maker->scratch,
        .source = {.commands = commands,
                   .cluster = commands->options.cluster,
                   .placed = it->placed,
                   .name = it->name,
                   .launch = it->launch,
                   .values = values,
                   .first_port = it->first_port,
                   .catches_failure = it->environment->catches_failure},
        .words = words,
        .seen_node = -1,
    };
    maker->is_shared = true;
    for (int32_t i = 0; i < maker->words.count; i++)
        maker->is_shared &= !percent_is_used(word_at(maker, i));
    maker->last = arena_zeroed(arena, const char *, maker->words.count + 1);
    if (maker->last && find_cwd(maker, &commands->options, it->launch))
        return maker;
    command_maker_free(maker);
    return NULL;
}

void command_maker_free(struct command_maker *maker)
{
    if (!maker)
        return;
    text_release(&maker->scratch);
    free(maker);
}

/* The text for this process; `last`, the one of the process before, when it is the same. */
static const char *expand(struct command_maker *maker, struct strview text, const char *last)
{
    struct text *scratch = &maker->scratch;
    scratch->len = 0;
    expand_text(scratch, text, &maker->environment.source);
    const char *made = text_string(scratch);
    if (!made || (last && strcmp(made, last) == 0))
        return made ? last : NULL;
    return arena_copy(maker->environment.arena, sv_from(made));
}

static bool is_python(const char *word)
{
    return strcmp(word, "python") == 0 || strcmp(word, "python3") == 0;
}

static bool make_argv(struct command_maker *maker, struct process_command *out)
{
    const char *interpreter = maker->environment.interpreter;
    if (maker->words.count == 0)
        return true;
    if (maker->is_shared && maker->argv && maker->shared_for == interpreter) {
        out->argv = maker->argv;
        return true;
    }
    const char **argv = arena_array(maker->environment.arena, const char *, maker->words.count + 1);
    for (int32_t i = 0; argv && i < maker->words.count; i++) {
        maker->last[i] = expand(maker, word_at(maker, i), maker->last[i]);
        if (!maker->last[i])
            return false;
        argv[i] = maker->last[i];
    }
    if (!argv)
        return false;
    if (interpreter && is_python(argv[0]))
        argv[0] = interpreter;
    argv[maker->words.count] = NULL;
    maker->argv = argv;
    maker->shared_for = interpreter;
    out->argv = argv;
    return true;
}

bool command_maker_make(struct command_maker *maker, int32_t rank, struct process_command *out)
{
    const struct launch_config *launch = maker->environment.component->launch;
    *out = (struct process_command){.cwd = maker->cwd};
    if (!environment_make(&maker->environment, rank, out) || !make_argv(maker, out))
        return false;
    out->interpreter = maker->environment.interpreter;
    if (!launch || (launch->ready != READY_FILE && launch->ready != READY_LINE))
        return true;
    maker->ready_what = expand(maker, launch->ready_what.text, maker->ready_what);
    out->ready_what = maker->ready_what;
    return out->ready_what != NULL;
}
