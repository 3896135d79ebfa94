/* launch_check.c - what the launch settings of several components, or the words in one of them, can
 * get wrong together: %{NAME} words and circles of `after`. */
#include <stdlib.h>
#include <string.h>

#include "config/sections.h"
#include "config/variables.h"

/* Whether `name` is ROOST_PORT_<PORT> or ROOST_PORT_<PORT>_COUNT of a port that is asked for. */
static bool is_own_port(const struct launch_config *launch, struct strview name)
{
    name = sv_sub(name, strlen("ROOST_PORT_"), name.len);
    for (int32_t i = 0; i < launch->port_count; i++) {
        struct strview port = sv_from(launch->ports[i].name);
        bool is_same = name.len >= port.len;
        for (size_t k = 0; is_same && k < port.len; k++)
            is_same =
                name.at[k] == port.at[k] - (port.at[k] >= 'a' && port.at[k] <= 'z' ? 'a' - 'A' : 0);
        struct strview rest = is_same ? sv_sub(name, port.len, name.len) : SV("?");
        if (rest.len == 0 || sv_is(rest, "_COUNT"))
            return true;
    }
    return false;
}

static void check_name(struct reader *reader, const struct launch_config *launch,
                       struct strview name, struct place at)
{
    if (sv_starts(name, "ROOST_PORT_") && !is_own_port(launch, name)) {
        diag_error(reader->diag, ROOST_ERR_REFERENCE, at,
                   "'%%{%s}' names a port that is not among 'ports'", quote(name).text);
        diag_hint(reader->diag, "add the port: ports: {name: 1} gives ROOST_PORT_NAME");
    } else if (!is_roost_variable(name)) {
        diag_error(reader->diag, ROOST_ERR_REFERENCE, at,
                   "'%%{%s}' is not a variable that roost sets", quote(name).text);
        diag_hint(reader->diag,
                  "RANK, WORLD_SIZE and LOCAL_RANK are some that are; a percent sign is "
                  "%%%%");
    }
}

/* Every "%{NAME}" of a word; "%%" is a percent sign. */
static void check_word(struct reader *reader, const struct launch_config *launch,
                       const struct word *word)
{
    struct strview text = word->text;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.at[i] != '%')
            continue;
        if (text.at[i + 1] == '{') {
            size_t close = sv_find(text, '}', i);
            if (close == text.len) {
                diag_error(reader->diag, ROOST_ERR_SYNTAX, word->at,
                           "'%s' has a '%%{' without its '}'", quote(text).text);
                diag_hint(reader->diag, "write %%{NAME}, or %%%%{ for the characters themselves");
                return;
            }
            check_name(reader, launch, sv_sub(text, i + 2, close), word->at);
        }
        i++;
    }
}

void launch_check_words(struct reader *reader, const struct launch_config *launch)
{
    for (int32_t i = 0; i < launch->command_count; i++)
        check_word(reader, launch, &launch->command[i]);
    for (int32_t i = 0; i < launch->env_count; i++)
        check_word(reader, launch, &launch->env[i].value);
}

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
    size_t low = 0, high = (size_t)walk->config->launch_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = sv_compare(name, sv_from(walk->by_name[middle]->component));
        if (order == 0)
            return walk->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
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
