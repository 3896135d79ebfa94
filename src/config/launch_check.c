/* launch_check.c - what is checked when the launch settings of all components are read: %{NAME} words,
 * which may name other components, and circles of `after`. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "config/peers.h"
#include "config/percent.h"
#include "config/sections.h"
#include "config/variables.h"

const struct launch_config *config_find_launch_of(const struct roost_config *config,
                                                  struct strview name)
{
    for (int32_t i = 0; i < config->launch_count; i++)
        if (sv_is(name, config->launches[i].component))
            return &config->launches[i];
    return NULL;
}

const struct launch_config *config_find_launch(const struct roost_config *config, const char *name)
{
    return config_find_launch_of(config, sv_from(name));
}

bool config_has_component(const struct roost_config *config, struct strview name)
{
    for (int32_t i = 0; i < config->component_count; i++)
        if (sv_is(name, config->components[i].name))
            return true;
    return false;
}

void config_say_not_placed(const struct roost_config *config, struct strview name, struct place at,
                           struct diag *diag)
{
    diag_error(diag, ROOST_ERR_REFERENCE, at, "component '%s' is not placed by this config",
               quote(name).text);
    if (!diag_wants_hint(diag))
        return; /* a list of all components for each of many thousand names would fill the memory */
    const char **names = calloc((size_t)config->component_count + 1, sizeof *names);
    for (int32_t i = 0; names && i < config->component_count; i++)
        names[i] = config->components[i].name;
    const char *near = names ? nearest_word(name, names) : NULL;
    if (near)
        diag_hint(diag, "did you mean '%s'?", near);
    else
        diag_hint(diag, "add it under cluster.component_placement");
    free(names);
}

/* --- words --- */

static bool is_shell(struct strview program)
{
    static const char *const shells[] = {"sh",  "bash", "dash", "zsh",
                                         "ksh", "ash",  "fish", "busybox"};
    size_t base = program.len;
    while (base > 0 && program.at[base - 1] != '/')
        base--;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (sv_is(sv_sub(program, base, program.len), shells[i]))
            return true;
    return false;
}

/* The name behind the first $ of the text that a shell would replace by a variable of roost. */
static struct strview find_dollar(const struct launch_config *launch, struct strview text)
{
    for (size_t at = sv_find(text, '$', 0); at < text.len; at = sv_find(text, '$', at + 1)) {
        size_t from = at + 1 + (at + 1 < text.len && text.at[at + 1] == '{'), to = from;
        while (to < text.len && (text.at[to] == '_' || (text.at[to] >= '0' && text.at[to] <= '9') ||
                                 (text.at[to] >= 'A' && text.at[to] <= 'Z')))
            to++;
        struct strview name = sv_sub(text, from, to);
        enum variable variable;
        bool is_count;
        if (variable_find(name, &variable) || percent_find_port(launch, name, &is_count) >= 0)
            return name;
    }
    return SV("");
}

/* Warns of $RANK and the like, which only a shell replaces. Behind the name of a shell it may be meant. */
static void check_dollars(const struct launch_config *launch, struct diag *diag)
{
    for (int32_t i = 0; i < launch->command_count; i++) {
        if (is_shell(launch->command[i].text))
            return;
        struct strview name = find_dollar(launch, launch->command[i].text);
        if (name.len == 0)
            continue;
        diag_warn(diag, ROOST_WARN_NO_SHELL, launch->command[i].at,
                  "'$%s' is passed on as it is written: roost runs no shell", quote(name).text);
        diag_hint(diag, "write %%{%s}", quote(name).text);
    }
}

void launch_check_words(struct reader *reader)
{
    const struct roost_config *config = reader->config;
    for (int32_t l = 0; l < config->launch_count; l++) {
        const struct launch_config *launch = &config->launches[l];
        for (int32_t i = 0; i < launch->command_count; i++)
            percent_check(config, launch, &launch->command[i], reader->diag);
        for (int32_t i = 0; i < launch->env_count; i++)
            percent_check(config, launch, &launch->env[i].value, reader->diag);
        if (launch->ready == READY_FILE || launch->ready == READY_LINE)
            percent_check(config, launch, &launch->ready_what, reader->diag);
        check_dollars(launch, reader->diag);
        peers_check_names(config, launch, reader->diag);
    }
}

/* --- the order of starts --- */

enum visit { NOT_YET, UNDER_WAY, DONE };

/* A walk along `after`. */
struct walk {
    const struct roost_config *config;
    const struct launch_config **by_name; /* sorted */
    enum visit *state;
};

static int by_component(const void *a, const void *b)
{
    const struct launch_config *const *left = a, *const *right = b;
    return strcmp((*left)->component, (*right)->component);
}

static const struct launch_config *find(const struct walk *walk, struct strview name)
{
    int32_t count = walk->config->launch_count;
    int32_t found = SEARCH(count, at, sv_compare(sv_from(walk->by_name[at]->component), name) < 0);
    return found < count && sv_is(name, walk->by_name[found]->component) ? walk->by_name[found]
                                                                         : NULL;
}

/* The first component met that waits for one whose turn has not ended, or NULL. */
static const struct launch_config *find_circle(struct walk *walk, const struct launch_config *at)
{
    size_t index = (size_t)(at - walk->config->launches);
    walk->state[index] = UNDER_WAY;
    for (int32_t i = 0; i < at->after_count; i++) {
        const struct launch_config *next = find(walk, at->after[i].text);
        if (!next)
            continue;
        size_t other = (size_t)(next - walk->config->launches);
        if (walk->state[other] == UNDER_WAY)
            return at;
        const struct launch_config *found =
            walk->state[other] == NOT_YET ? find_circle(walk, next) : NULL;
        if (found)
            return found;
    }
    walk->state[index] = DONE;
    return NULL;
}

void launch_check_order(struct reader *reader)
{
    const struct roost_config *config = reader->config;
    size_t count = (size_t)config->launch_count;
    struct walk walk = {.config = config};
    walk.by_name = read_array(reader, const struct launch_config *, count);
    walk.state = read_array(reader, enum visit, count);
    if (!walk.by_name || !walk.state)
        return;
    for (size_t i = 0; i < count; i++)
        walk.by_name[i] = &config->launches[i];
    qsort(walk.by_name, count, sizeof *walk.by_name, by_component);
    const struct launch_config *found = NULL;
    for (size_t i = 0; i < count && !found; i++)
        if (walk.state[i] == NOT_YET)
            found = find_circle(&walk, &config->launches[i]);
    if (!found)
        return;
    diag_error(reader->diag, ROOST_ERR_REFERENCE, found->after[0].at,
               "component '%s' would wait for itself: 'after' goes in a circle", found->component);
    diag_hint(reader->diag, "take one of the names in the circle out of its 'after'");
}
