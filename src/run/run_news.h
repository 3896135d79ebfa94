/* run_news.h - in the driver: reports the processes of a run and their states to its managers, as requests of
 * WorkerManager (registry/registry.h), one per line. On this machine they go to the registry server. On Ray
 * they go through the supervisor to the bridge. */
#ifndef RUN_RUN_NEWS_H
#define RUN_RUN_NEWS_H

#include "run/run_start.h"

/* Changes that were not sent yet, by process. */
struct run_news {
    uint8_t *state_of_process; /* NULL = the run has no managers of its own, or they are gone */
    int32_t first, end;        /* the processes with unsent changes are in first .. end - 1 */
    bool is_waiting;           /* until the other end reads */
};

/* Requests that name every process, for managers that have not begun. False without memory, after
 * reporting it. */
bool run_news_put_processes(const struct run_start *start, struct text *out);

/* From now on run_news_note keeps changes for the managers. False without memory, after reporting it. */
bool run_news_open(struct run_start *start);

/* A process has begun or ended. */
void run_news_note(struct roost_run *run, int32_t process, const struct roost_event *event);

/* Sends the noted changes, as far as the other end takes them without waiting. The rest waits for the next
 * call; roost_run_fd is readable when there is room. */
void run_news_flush(struct roost_run *run);

/* What run_news_flush waits for; its fd is -1 = nothing. */
struct pollfd run_news_poll(const struct roost_run *run);

#endif
