/* part.c - a supervisor on one of several nodes: what it is told beside what every supervisor is.
 *
 * It starts a life when it is told to and says how it ended; whether another follows, and whether the run
 * goes on, is decided where the driver is. It counts as one more worker that has not ended, so that it
 * stays when it has nothing to do. */
#include "rpc/channel.h"
#include "supervise/part_logs.h"
#include "supervise/supervisor.h"

bool part_prepare(struct supervisor *supervisor)
{
    int64_t count = 2 * (int64_t)supervisor->spec.process_count;
    supervisor->shipped = arena_zeroed(&supervisor->arena, struct shipped, count + 1);
    for (int64_t i = 0; supervisor->shipped && i < count; i++)
        supervisor->shipped[i].fd = -1;
    supervisor->left++;
    return supervisor->shipped != NULL;
}

void part_be_over(struct supervisor *supervisor)
{
    if (supervisor->is_over)
        return;
    supervisor->is_over = true;
    for (int32_t i = 0; i < supervisor->spec.process_count; i++)
        if (supervisor->workers[i].state == WORKER_WAITING) {
            supervisor->workers[i].state = WORKER_ENDED;
            supervisor->left--;
        }
    supervisor->left--;
}

static void begin(struct supervisor *supervisor, const struct tell *tell)
{
    struct worker *worker = worker_at(supervisor, tell->component, tell->rank);
    if (!worker || supervisor->is_over || tell->life <= worker->life ||
        (worker->state != WORKER_WAITING && worker->state != WORKER_ENDED))
        return;
    if (worker->state == WORKER_ENDED)
        supervisor->left++;
    worker->state = WORKER_WAITING;
    worker->life = tell->life - 1;
    (void)worker_start(supervisor, worker);
}

bool part_obey(struct supervisor *supervisor, const struct message *message)
{
    struct tell tell;
    if (message->type == MSG_END) {
        if (supervisor->alive > 0)
            lives_kill(supervisor, "the run has ended");
        part_be_over(supervisor);
        return true;
    }
    if (message->type != MSG_BEGIN || message->len != sizeof tell)
        return false;
    memcpy(&tell, message->body, sizeof tell);
    begin(supervisor, &tell);
    return true;
}
