/* order.c - which worker the supervisor starts when.
 *
 * Components start together, or when all components that they come `after` are ready. Workers start few at a
 * time, so that the loop keeps hearing the driver. */
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/forks.h"
#include "supervise/supervisor.h"

enum { START_AT_ONCE = 16 };

bool order_start(struct supervisor *supervisor, struct worker *worker)
{
    worker->life++;
    return supervisor->host->begin(supervisor, worker);
}

static const struct component_run *find_component(const struct watcher *watcher, const char *name)
{
    for (int32_t i = 0; i < watcher->spec.component_count; i++)
        if (strcmp(watcher->spec.components[i].name, name) == 0)
            return &watcher->components[i];
    return NULL;
}

/* Whether everything that the component comes after is ready. A component that does not run is not waited
 * for. */
static bool may_start(const struct watcher *watcher, int32_t component)
{
    const struct spec_list *after = &watcher->spec.components[component].after;
    const char *name = after->first;
    for (uint32_t i = 0; i < after->count; i++, name = spec_next(name)) {
        const struct component_run *other = find_component(watcher, name);
        if (other && other->state != COMPONENT_READY)
            return false;
    }
    return true;
}

static void all_are_up(struct watcher *watcher, int32_t component)
{
    struct component_run *run = &watcher->components[component];
    const struct spec_component *spec = &watcher->spec.components[component];
    run->state = COMPONENT_UP;
    run->ready_deadline = clock_ms() + (int64_t)spec->ready_timeout * 1000;
    if (run->log_dir >= 0) { /* not needed for a while: descriptors are for sockets and pids */
        close(run->log_dir);
        run->log_dir = -1;
    }
}

bool order_start_some(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    int32_t started = 0;
    for (int32_t c = 0; c < watcher->spec.component_count; c++) {
        const struct spec_component *spec = &watcher->spec.components[c];
        struct component_run *run = &watcher->components[c];
        if (run->state == COMPONENT_BLOCKED && may_start(watcher, c))
            run->state = COMPONENT_STARTING;
        while (run->state == COMPONENT_STARTING) {
            if (watcher->is_start_over)
                return false;
            if (forks_are_busy(run))
                break; /* the loop wakes when its forker answers */
            if (started++ == START_AT_ONCE)
                return true;
            struct worker *worker = &watcher->workers[spec->first_process + run->next_rank];
            if (worker->state == WORKER_WAITING) /* else its node was lost meanwhile */
                (void)order_start(supervisor, worker);
            if (++run->next_rank == spec->process_count)
                all_are_up(watcher, c);
        }
    }
    return false;
}
