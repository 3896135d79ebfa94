/* ready.c - decides when a component is ready: when all its workers have started or, with `ready`, when each
 * of them has shown that it is ready. The host checks the workers; the supervisor decides. */
#include <stdio.h>
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/supervisor.h"

enum { LOOK_EVERY_MS = 25 };

struct missing {
    char text[192];
};

static struct missing what_is_missing(const struct watcher *watcher, const struct worker *worker)
{
    static const char *const words[][2] = {
        [SPEC_READY_AT_ONCE] = {"", ""},
        [SPEC_READY_PORT] = {"its port", "is not open"},
        [SPEC_READY_FILE] = {"its file", "is not there"},
        [SPEC_READY_LINE] = {"its line", "has not been printed"},
    };
    enum spec_ready kind = worker_component(watcher, worker)->ready;
    const struct spec_process *process = worker_process(watcher, worker);
    struct missing out;
    if (kind == SPEC_READY_PORT && process->ready_port)
        snprintf(out.text, sizeof out.text, "%s %d %s", words[kind][0], process->ready_port,
                 words[kind][1]);
    else if (process->ready_what[0])
        snprintf(out.text, sizeof out.text, "%s '%s' %s", words[kind][0],
                 quote(sv_from(process->ready_what)).text, words[kind][1]);
    else /* which one, only its agent knows */
        snprintf(out.text, sizeof out.text, "%s %s", words[kind][0], words[kind][1]);
    return out;
}

static void be_ready(struct supervisor *supervisor, int32_t component)
{
    struct component_run *run = &supervisor->watcher.components[component];
    run->state = COMPONENT_READY;
    struct roost_event event = outbox_event(ROOST_EVENT_READY, NULL);
    event.component = component;
    outbox_put(&supervisor->watcher.outbox, &event);
    if (run->log_dir >= 0) {
        close(run->log_dir);
        run->log_dir = -1;
    }
}

void ready_ended(struct supervisor *supervisor, struct worker *worker)
{
    struct watcher *watcher = &supervisor->watcher;
    const struct spec_component *component = worker_component(watcher, worker);
    const struct component_run *run = &watcher->components[worker->component];
    if (component->ready == SPEC_READY_AT_ONCE || run->state == COMPONENT_READY ||
        worker->is_ready || supervisor->phase != PHASE_RUNNING)
        return;
    if (component->ready != SPEC_READY_PORT && supervisor->host->is_ready(supervisor, worker))
        worker->is_ready = true;
    else
        lives_fail(supervisor, worker, ROOST_ERR_WORKER, "it ended before it was ready: %s",
                   what_is_missing(watcher, worker).text);
}

/* Looks at every worker that is not ready yet. When time is up, the first of them is reported. */
static void look(struct supervisor *supervisor, int32_t index)
{
    struct watcher *watcher = &supervisor->watcher;
    const struct spec_component *component = &watcher->spec.components[index];
    const struct worker *missing = NULL;
    for (int32_t p = 0; p < component->process_count; p++) {
        struct worker *worker = &watcher->workers[component->first_process + p];
        if (worker->is_ready)
            continue;
        if (worker->state == WORKER_RUNNING && supervisor->host->is_ready(supervisor, worker))
            worker->is_ready = true;
        else if (!missing)
            missing = worker;
    }
    if (!missing)
        be_ready(supervisor, index);
    else if (clock_ms() >= watcher->components[index].ready_deadline)
        lives_fail(supervisor, missing, ROOST_ERR_TIMEOUT, "not ready after %d seconds: %s",
                   component->ready_timeout, what_is_missing(watcher, missing).text);
}

int64_t ready_tick(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    int64_t wait = -1;
    if (supervisor->phase != PHASE_RUNNING)
        return wait;
    for (int32_t c = 0; c < watcher->spec.component_count; c++) {
        const struct component_run *run = &watcher->components[c];
        if (run->state != COMPONENT_UP || run->asked > 0)
            continue;
        if (watcher->spec.components[c].ready == SPEC_READY_AT_ONCE)
            be_ready(supervisor, c);
        else
            look(supervisor, c);
        wait = run->state == COMPONENT_READY ? 0 : wait < 0 ? LOOK_EVERY_MS : wait;
    }
    return wait;
}
