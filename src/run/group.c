/* group.c - in the driver: a run of one component whose processes can be called. Events of its lives go
 * to the links (rpc/links.h), and calls go through the links.
 *
 * The run is used only under the lock of the links: by the thread that reads for all, or by one that
 * sends an order. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/call_reader.h"
#include "run/group_internal.h"
#include "run/group_room.h"

enum {
    GRACE_MS = 1000,
    CLOSE_MS = 60000 /* kills come after the grace; this is for a machine that does not answer */
};

/* --- events of the run --- */

const char *group_describe_end(const struct roost_event *end, char out[static GROUP_WHY_MAX])
{
    if (end->end == ROOST_END_LOST)
        snprintf(out, GROUP_WHY_MAX, "its process was lost with the supervisor of the run");
    else if (end->signal > 0)
        snprintf(out, GROUP_WHY_MAX, "its process was killed by signal %d (%s)%s", end->signal,
                 strsignal(end->signal), end->end == ROOST_END_KILLED ? ", sent by roost" : "");
    else
        snprintf(out, GROUP_WHY_MAX, "its process ended with code %d", end->exit_code);
    return out;
}

static void read_end(struct roost_group *group, const struct roost_event *event)
{
    char why[GROUP_WHY_MAX];
    struct member *member = &group->members[event->rank];
    member->has_ended = true;
    member->end = *event;
    links_end(group->links, event->rank, event->life, group_describe_end(event, why));
}

/* Nothing more will come from ranks that never began or were never reported. */
static void read_finish(struct roost_group *group)
{
    for (int32_t rank = 0; rank < group->size; rank++) {
        struct member *member = &group->members[rank];
        if (member->has_ended)
            continue;
        member->has_ended = true;
        member->end = (struct roost_event){.kind = ROOST_EVENT_ENDED,
                                           .rank = rank,
                                           .life = member->life,
                                           .exit_code = -1,
                                           .end = ROOST_END_LOST};
        links_end(group->links, rank, member->life,
                  group->problem.code ? group->problem.message
                  : member->pid > 0   ? "the run has ended without a word of its end"
                                      : "its process was never started");
    }
}

static void take_event(struct roost_group *group, const struct roost_event *event, int fd)
{
    bool has_rank = event->rank >= 0 && event->rank < group->size;
    if (event->kind == ROOST_EVENT_STARTED && has_rank) {
        struct member *member = &group->members[event->rank];
        *member = (struct member){.pid = event->pid, .life = event->life};
        if (!links_add(group->links, event->rank, event->life, event->pid, fd))
            links_end(group->links, event->rank, event->life, "no memory for its socket");
        return;
    }
    if (event->kind == ROOST_EVENT_ENDED && has_rank)
        read_end(group, event);
    else if (event->kind == ROOST_EVENT_PROBLEM && group->problem.code == ROOST_OK) {
        group->problem.code = event->code;
        snprintf(group->problem.message, sizeof group->problem.message, "%s", event->message);
        group->problem_rank = event->rank;
    } else if (event->kind == ROOST_EVENT_NOTE && event->component >= 0)
        snprintf(group->note, sizeof group->note, "%s", event->message);
    else if (event->kind == ROOST_EVENT_FINISHED)
        read_finish(group);
}

static void read_run(void *context)
{
    struct roost_group *group = context;
    struct roost_event event;
    int fd;
    while (run_next(group->run, 0, &event, &fd))
        take_event(group, &event, fd);
}

/* A process that sends no frames serves no calls. */
static void kill_member(void *context, int32_t rank, int32_t life, const char *why)
{
    struct roost_group *group = context;
    struct life_request request = {.rank = rank, .life = life, .signal = SIGKILL};
    (void)why;
    (void)run_signal_one(group->run, &request, NULL);
}

/* --- start and end --- */

static bool open_links(struct roost_group *group)
{
    struct links_options options = {.rank_count = group->size,
                                    .other_fd = roost_run_fd(group->run),
                                    .on_other = read_run,
                                    .on_cut = kill_member,
                                    .context = group};
    group->members = calloc((size_t)group->size + 1, sizeof *group->members);
    for (int32_t rank = 0; group->members && rank < group->size; rank++)
        group->members[rank].pid = -1;
    group->links = group->members ? links_new(&options) : NULL;
    return group->links != NULL;
}

struct roost_group *roost_group_start(const struct roost_run_options *options,
                                      struct roost_report *report, struct roost_error *err)
{
    struct roost_run_options wanted = *options;
    wanted.has_sockets = true;
    wanted.keeps_going = true;
    wanted.grace_ms = wanted.grace_ms ? wanted.grace_ms : GRACE_MS;
    size_t placed =
        wanted.single.placed || !wanted.plan ? 1 : roost_plan_component_count(wanted.plan);
    if (wanted.component_count != 1 && placed != 1) {
        (void)refuse(err, ROOST_ERR_USAGE, "a group is one component, and this plan has %zu",
                     placed);
        return NULL;
    }
    if (!group_has_room(&wanted, err))
        return NULL;
    struct roost_group *group = calloc(1, sizeof *group);
    if (!group) {
        (void)refuse(err, ROOST_ERR_MEMORY, "out of memory");
        return NULL;
    }
    group->problem_rank = -1;
    if (group_name_take(&group->name, &wanted, err) &&
        (!group->name.holder || managers_have_room(&wanted, err)))
        group->run = roost_run_start(&wanted, report, err);
    if (group->run) {
        group->size = roost_run_world_size(group->run, 0);
        if (open_links(group))
            return group;
        (void)refuse(err, ROOST_ERR_MEMORY, "out of memory or descriptors for the sockets");
    }
    roost_group_free(group);
    return NULL;
}

static bool is_over(void *context)
{
    return ((const struct roost_group *)context)->run->is_finished;
}

void roost_group_end(struct roost_group *group, int32_t status)
{
    links_lock(group->links);
    enum roost_code code = run_close(group->run, status);
    (void)code; /* a supervisor that is gone has ended the run */
    links_unlock(group->links);
    (void)links_wait(group->links, CLOSE_MS, is_over, group);
    links_lock(group->links);
    struct group_name name = group->name;
    struct roost_call_reader *reader = group->reader;
    group->name.holder = NULL;
    group->reader = NULL;
    links_unlock(group->links);
    group_name_give(&name);
    if (reader)
        reader_remove(reader, group->links);
}

void roost_group_close(struct roost_group *group)
{
    roost_group_end(group, 0);
}

void roost_group_free(struct roost_group *group)
{
    if (!group)
        return;
    if (group->links)
        roost_group_close(group);
    links_free(group->links);
    group_name_give(&group->name); /* of one that could not be launched */
    roost_run_free(group->run);
    free(group->members);
    free(group);
}

/* --- what is known --- */

const char *roost_group_name(const struct roost_group *group)
{
    return roost_run_component(group->run, 0);
}

int32_t roost_group_size(const struct roost_group *group)
{
    return group->size;
}

const char *roost_group_run_id(const struct roost_group *group)
{
    return roost_run_id(group->run);
}

const char *roost_group_dir(const struct roost_group *group)
{
    return roost_run_dir(group->run);
}

int roost_group_fd(const struct roost_group *group)
{
    return links_fd(group->links);
}

void roost_group_pump(struct roost_group *group)
{
    links_pump(group->links);
}

bool roost_group_listen(struct roost_group *group, int fd)
{
    return links_listen(group->links, fd);
}

void roost_group_unlisten(struct roost_group *group, int fd)
{
    links_unlisten(group->links, fd);
}

bool roost_call_reader_add(struct roost_call_reader *reader, struct roost_group *group)
{
    if (!reader_add(reader, group->links))
        return false;
    links_lock(group->links);
    group->reader = reader;
    links_unlock(group->links);
    return true;
}

struct roost_rank_info roost_group_rank(struct roost_group *group, int32_t rank)
{
    struct roost_rank_info info = {.state = ROOST_RANK_STARTING, .pid = -1};
    if (rank < 0 || rank >= group->size)
        return info;
    links_lock(group->links);
    const struct member *member = &group->members[rank];
    enum link_state state = links_state(group->links, rank, &info.bytes);
    info.pid = member->pid;
    if (member->has_ended)
        info.end = member->end;
    if (links_refusal(group->links, rank, &info.bytes)) /* it may report that and end */
        info.state = ROOST_RANK_REFUSED;
    else if (member->has_ended)
        info.state = ROOST_RANK_ENDED;
    else if (state == LINK_READY)
        info.state = ROOST_RANK_READY;
    links_unlock(group->links);
    return info;
}

bool roost_group_note(struct roost_group *group, char out[ROOST_EVENT_MESSAGE_MAX])
{
    links_lock(group->links);
    memcpy(out, group->note, sizeof group->note);
    group->note[0] = '\0';
    links_unlock(group->links);
    return out[0] != '\0';
}

/* --- asking --- */

enum roost_code roost_group_signal(struct roost_group *group, int32_t rank, int32_t number,
                                   struct roost_error *err)
{
    if (rank < 0 || rank >= group->size)
        return refuse(err, ROOST_ERR_RANK, "'%s' has ranks 0-%d, not %d", roost_group_name(group),
                      group->size - 1, rank);
    struct life_request request = {.rank = rank, .signal = number};
    links_lock(group->links);
    enum roost_code code = run_signal_one(group->run, &request, err);
    links_unlock(group->links);
    return code;
}

struct roost_call *roost_group_call(struct roost_group *group,
                                    const struct roost_call_options *options,
                                    struct roost_error *err)
{
    return links_call(group->links, options, err);
}
