/* group_ready.c - waiting until every rank of a group serves, and who does not when time is up. */
#include <stdio.h>

#include "run/group_internal.h"

enum {
    NAMED_MAX = 3,  /* ranks that are not ready, by name */
    NAMES_MAX = 320 /* for these, with the longest name of a group */
};

/* All ready, or one that never will be. */
struct readiness {
    struct roost_group *group;
    int32_t rank; /* the first that is not ready and will not be; -1 = none */
};

static bool is_settled(void *context)
{
    struct readiness *it = context;
    bool is_waiting = false;
    for (int32_t rank = 0; rank < it->group->size; rank++) {
        struct roost_bytes bytes;
        enum link_state state = links_state(it->group->links, rank, &bytes);
        if (state == LINK_REFUSED || state == LINK_ENDED) {
            it->rank = rank;
            return true;
        }
        is_waiting |= state != LINK_READY;
    }
    return !is_waiting || it->group->problem.code != ROOST_OK;
}

static enum roost_code say_not_ready(struct roost_group *group, int32_t rank,
                                     struct roost_error *err)
{
    char why[GROUP_WHY_MAX];
    const char *name = roost_group_name(group);
    struct roost_rank_info info = roost_group_rank(group, rank);
    if (info.state == ROOST_RANK_REFUSED)
        return refuse(err, ROOST_ERR_WORKER, "%s/%d refused to serve", name, rank);
    return refuse(err, ROOST_ERR_WORKER, "%s/%d ended before it was ready: %s", name, rank,
                  group_say_end(&info.end, why));
}

/* Who is not ready: a few by name, the others counted. Returns how many are; the first that is not goes to
 * *out_rank. */
static int32_t name_late(struct roost_group *group, char who[static NAMES_MAX], int32_t *out_rank)
{
    int32_t late = 0, first = -1;
    size_t len = 0;
    for (int32_t rank = 0; rank < group->size; rank++) {
        if (roost_group_rank(group, rank).state == ROOST_RANK_READY)
            continue;
        first = late == 0 ? rank : first;
        if (late++ < NAMED_MAX)
            len += (size_t)snprintf(who + len, NAMES_MAX - len, "%s%.64s/%d", len ? ", " : "",
                                    roost_group_name(group), rank);
    }
    if (late > NAMED_MAX)
        len += (size_t)snprintf(who + len, NAMES_MAX - len, " and %d more", late - NAMED_MAX);
    snprintf(who + len, NAMES_MAX - len, late == 1 ? " is not" : " are not");
    if (out_rank)
        *out_rank = first;
    return group->size - late;
}

enum roost_code roost_group_wait_ready(struct roost_group *group, int32_t timeout_ms,
                                       int32_t *out_rank, struct roost_error *err)
{
    struct readiness it = {group, -1};
    bool is_in_time = links_wait(group->links, timeout_ms, is_settled, &it);
    /* Another thread may hear the run just now. */
    links_lock(group->links);
    struct roost_error problem = group->problem;
    int32_t problem_rank = group->problem_rank;
    links_unlock(group->links);
    if (out_rank)
        *out_rank = it.rank;
    if (problem.code != ROOST_OK) {
        if (out_rank)
            *out_rank = problem_rank;
        return refuse(err, problem.code, "%s", problem.message);
    }
    if (it.rank >= 0)
        return say_not_ready(group, it.rank, err);
    if (is_in_time)
        return ROOST_OK;
    char who[NAMES_MAX];
    int32_t ready = name_late(group, who, out_rank);
    if (ready == group->size) /* at the last moment */
        return ROOST_OK;
    /* Not how long that took: who waits in slices knows, and the last slice does not. */
    return refuse(err, ROOST_ERR_TIMEOUT, "%d of %d processes of '%s' are ready; %s", ready,
                  group->size, roost_group_name(group), who);
}
