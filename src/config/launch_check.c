/* launch_check.c - what the launch settings of several components, or the words in one of them, can
 * get wrong together: %{NAME} words and circles of `after`. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "config/percent.h"
#include "config/sections.h"

void launch_check_words(struct reader *reader, const struct launch_config *launch)
{
    for (int32_t i = 0; i < launch->command_count; i++)
        percent_check(launch, &launch->command[i], reader->diag);
    for (int32_t i = 0; i < launch->env_count; i++)
        percent_check(launch, &launch->env[i].value, reader->diag);
    if (launch->ready == READY_FILE || launch->ready == READY_LINE)
        percent_check(launch, &launch->ready_what, reader->diag);
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
