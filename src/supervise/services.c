/* services.c - components that end with the job. Runs in the supervisor that decides.
 *
 * The job is over when every worker that does not belong to a service has ended. Then the supervisor stops
 * the services, a service that comes `after` another one first: it sends SIGTERM, and kills after the grace.
 * From then on, no exit of a service counts as a failure. A run of services alone has no job, and continues
 * until it is stopped. */
#include <signal.h>

#include "supervise/clock.h"
#include "supervise/supervisor.h"

static bool is_job_over(const struct watcher *watcher)
{
    bool has_job = false, has_service = false;
    for (int32_t c = 0; c < watcher->spec.component_count; c++) {
        bool is_service = watcher->spec.components[c].is_service;
        has_service |= is_service;
        has_job |= !is_service;
        if (!is_service && watcher->components[c].left > 0)
            return false;
    }
    return has_job && has_service;
}

void services_look(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    if (supervisor->phase != PHASE_RUNNING || !is_job_over(watcher))
        return;
    supervisor->phase = PHASE_CLOSING;
    watcher->is_start_over = true;
    watcher->stop_signal = SIGTERM;
    struct roost_event event = outbox_event(ROOST_EVENT_CLOSING, NULL);
    outbox_put(&watcher->outbox, &event);
}

/* Whether a component that comes after this one has not ended. */
static bool is_needed(const struct watcher *watcher, const char *name)
{
    for (int32_t c = 0; c < watcher->spec.component_count; c++) {
        const struct spec_list *after = &watcher->spec.components[c].after;
        const char *other = after->first;
        for (uint32_t i = 0; watcher->components[c].left > 0 && i < after->count;
             i++, other = spec_next(other))
            if (strcmp(other, name) == 0)
                return true;
    }
    return false;
}

static void end_service(struct supervisor *supervisor, int32_t component, int32_t number)
{
    const struct spec_component *spec = &supervisor->watcher.spec.components[component];
    for (int32_t p = 0; p < spec->process_count; p++)
        lives_end(supervisor, &supervisor->watcher.workers[spec->first_process + p], number);
}

/* Does what is due for one service; returns as services_tick does. */
static int64_t close_service(struct supervisor *supervisor, int32_t component)
{
    struct component_run *run = &supervisor->watcher.components[component];
    int64_t grace = supervisor->watcher.setup.grace_ms, now = clock_ms();
    if (run->closing == CLOSING_NOT_YET) {
        bool is_gentle = grace >= 0;
        run->closing = is_gentle ? CLOSING_ASKED : CLOSING_KILLED;
        run->closing_deadline = now + (is_gentle ? grace : supervisor->host->kill_ms);
        end_service(supervisor, component, is_gentle ? SIGTERM : SIGKILL);
    } else if (now >= run->closing_deadline && run->closing == CLOSING_ASKED) {
        run->closing = CLOSING_KILLED;
        run->closing_deadline = now + supervisor->host->kill_ms;
        end_service(supervisor, component, SIGKILL);
    } else if (now >= run->closing_deadline) {
        lives_kill(supervisor, "a service cannot be killed"); /* which gives up on it in time */
    }
    return run->closing_deadline > now ? run->closing_deadline - now : 0;
}

int64_t services_tick(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    int64_t wait = -1;
    for (int32_t c = 0; supervisor->phase == PHASE_CLOSING && c < watcher->spec.component_count;
         c++)
        if (watcher->components[c].left > 0 &&
            (watcher->components[c].closing != CLOSING_NOT_YET ||
             !is_needed(watcher, watcher->spec.components[c].name)))
            wait = clock_sooner(wait, close_service(supervisor, c));
    return wait;
}
