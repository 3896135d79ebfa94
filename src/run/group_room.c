/* group_room.c - counts the descriptors that a group needs in its driver and in its managers, before anything
 * starts. */
#include "run/group_room.h"

#include <inttypes.h>
#include <sys/resource.h>

#include "base/diag.h"
#include "supervise/proc.h"

enum {
    OWN_DESCRIPTORS = 16,      /* of a run and its links, beside the sockets */
    MANAGERS_DESCRIPTORS = 16, /* of a registry server, and of its driver's connections to it */
};

static const struct roost_component *placed_of(const struct roost_run_options *options)
{
    if (options->single.placed || !options->plan)
        return options->single.placed;
    return options->component_count ? roost_plan_find(options->plan, options->components[0])
                                    : roost_plan_component(options->plan, 0);
}

static bool fits(int64_t needed, rlim_t limit)
{
    return limit == RLIM_INFINITY || needed <= (int64_t)limit;
}

bool group_has_room(const struct roost_run_options *options, struct roost_error *err)
{
    const struct roost_component *placed = placed_of(options);
    struct rlimit limit;
    int32_t open = proc_open_files();
    if (!placed || open < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return true; /* what is wrong is reported further on */
    int64_t needed = (int64_t)open + OWN_DESCRIPTORS + placed->world_size;
    if (fits(needed, limit.rlim_cur))
        return true;
    struct diag diag = {.err = err};
    diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE,
               "a group of %d processes needs %" PRId64
               " open files here (one for each, and %d are "
               "open), but this process may have %" PRId64,
               placed->world_size, needed, open, (int64_t)limit.rlim_cur);
    diag_hint(&diag, "raise the limit before it starts: ulimit -Sn %" PRId64, needed);
    return false;
}

bool managers_have_room(const struct roost_run_options *options, struct roost_error *err)
{
    const struct roost_component *placed = placed_of(options);
    struct rlimit limit;
    if (!placed || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return true;
    int64_t needed = 2 * (int64_t)placed->world_size + MANAGERS_DESCRIPTORS;
    if (fits(needed, limit.rlim_max))
        return true;
    struct diag diag = {.err = err};
    diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE,
               "a group of %d processes needs %" PRId64
               " open files in its managers (two for each), but they may have %" PRId64,
               placed->world_size, needed, (int64_t)limit.rlim_max);
    diag_hint(&diag, "raise the hard limit before this process starts: ulimit -Hn %" PRId64,
              needed);
    return false;
}
