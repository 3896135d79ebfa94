/* group_ready.c - in the driver: waits until every rank of a worker group serves, and names the ranks
 * that do not when time is up. */
#include <roost/engine/driver.h>

#include "run/group_internal.h"

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

static enum roost_code report_not_ready(struct roost_group *group, int32_t rank,
                                        struct roost_error *err)
{
    char why[GROUP_WHY_MAX];
    const char *name = roost_group_name(group);
    struct roost_rank_info info = roost_group_rank(group, rank);
    if (info.state == ROOST_RANK_REFUSED)
        return refuse(err, ROOST_ERR_WORKER, "%s/%d refused to serve", name, rank);
    return refuse(err, ROOST_ERR_WORKER, "%s/%d ended before it was ready: %s", name, rank,
                  group_describe_end(&info.end, why));
}

/* The first ranks that are not ready, and how many there are in all. */
static int32_t find_late(struct roost_group *group, struct roost_late late[static ROOST_LATE_NAMED])
{
    int32_t count = 0;
    for (int32_t rank = 0; rank < group->size; rank++) {
        if (roost_group_rank(group, rank).state == ROOST_RANK_READY)
            continue;
        if (count < ROOST_LATE_NAMED)
            late[count] = (struct roost_late){.rank = rank};
        count++;
    }
    return count;
}

enum roost_code roost_group_wait_ready(struct roost_group *group, int32_t timeout_ms,
                                       int32_t *out_rank, struct roost_error *err)
{
    struct readiness it = {group, -1};
    bool is_in_time = links_wait(group->links, timeout_ms, is_settled, &it);
    /* Another thread may read events of the run just now. */
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
        return report_not_ready(group, it.rank, err);
    if (is_in_time)
        return ROOST_OK;
    struct roost_late late[ROOST_LATE_NAMED];
    int32_t late_count = find_late(group, late);
    if (late_count == 0) /* at the last moment */
        return ROOST_OK;
    if (out_rank)
        *out_rank = late[0].rank;
    char words[sizeof err->message];
    roost_readiness_text(roost_group_name(group), group->size, late, late_count, words,
                         sizeof words);
    /* The message does not say how long that took: a caller that waits in slices knows, and the last
     * slice does not. */
    return refuse(err, ROOST_ERR_TIMEOUT, "%s", words);
}
