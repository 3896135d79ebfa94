/* group_internal.h - a group, shared by group.c (its life) and group_ready.c (waiting for it). */
#ifndef RUN_GROUP_INTERNAL_H
#define RUN_GROUP_INTERNAL_H

#include <roost/group.h>

#include "rpc/links.h"
#include "run/group_name.h"
#include "run/run_internal.h"

enum { GROUP_WHY_MAX = 128 };

/* A rank, by the last event of its run. */
struct member {
    int32_t pid; /* -1 = not started yet */
    int32_t life;
    bool has_ended;
    struct roost_event end;
};

struct roost_group {
    struct roost_run *run;
    struct links *links;
    struct group_name name;           /* until it is closed */
    struct roost_call_reader *reader; /* until it is closed; NULL = none */
    struct member *members;
    int32_t size;
    struct roost_error problem; /* what the run could not do; code ROOST_OK = nothing */
    int32_t problem_rank;
    char note
        [ROOST_EVENT_MESSAGE_MAX]; /* the first note of its component; "" = none, or it was shown */
};

/* How a rank ended, into `out`: "its process was killed by signal 9 (Killed)". */
const char *group_describe_end(const struct roost_event *end, char out[static GROUP_WHY_MAX]);

#endif
