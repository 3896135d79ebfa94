/* workers.c - the table of workers that supervisor and agent keep: finding a worker, the states that a life
 * goes through, and the log files of a worker.
 *
 * Workers own their log directories and may plant anything there: links are not followed, and only plain
 * files are opened. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/search.h"
#include "supervise/lost.h"
#include "supervise/watcher.h"

struct worker *worker_at(struct watcher *watcher, int32_t component, int32_t rank)
{
    if (component < 0 || component >= watcher->spec.component_count)
        return NULL;
    const struct spec_component *spec = &watcher->spec.components[component];
    struct worker *first = &watcher->workers[spec->first_process];
    int32_t found = SEARCH(spec->process_count, at, first[at].rank < rank); /* in rank order */
    return found < spec->process_count && first[found].rank == rank ? &first[found] : NULL;
}

static void stop_probing(struct worker *worker)
{
    if (worker->is_probing)
        port_probe_end(&worker->probe);
    worker->is_probing = false;
}

/* Notes from now on when its lines are written. For a first life that is before its process begins: the file of
 * times is there before its first line. */
static void record_logs(struct watcher *watcher, const struct worker *worker)
{
    log_recorder_begin(watcher->recorder, (int32_t)(worker - watcher->workers),
                       worker_component(watcher, worker)->name, worker->rank);
}

void worker_begin(struct watcher *watcher, struct worker *worker, int32_t pid, int pidfd)
{
    if (worker->has_logs)
        record_logs(watcher, worker);
    worker->pid = pid;
    worker->pidfd = pidfd;
    worker->state = WORKER_RUNNING;
    worker->is_ready = false;
    stop_probing(worker);
    watcher->alive++;
}

void worker_close(struct watcher *watcher, struct worker *worker)
{
    log_recorder_end(watcher->recorder, (int32_t)(worker - watcher->workers));
    stop_probing(worker);
    if (worker->pidfd >= 0)
        close(worker->pidfd);
    worker->pidfd = -1;
    worker->pid = 0;
    watcher->alive--;
}

void worker_end(struct watcher *watcher, struct worker *worker)
{
    worker->state = WORKER_ENDED;
    watcher->left--;
    watcher->components[worker->component].left--;
}

/* Written before the process begins, as a process runs before its parent knows its number; and again after,
 * with the number. */
void worker_note_life(struct watcher *watcher, const struct worker *worker, int32_t life)
{
    struct roost_event event = outbox_event(ROOST_EVENT_STARTED, worker);
    event.life = life;
    lost_note(watcher->lives, (int32_t)(worker - watcher->workers),
              worker_component(watcher, worker)->name, &event);
}

/* --- logs --- */

static const char *const stream_names[] = {"stdout.log", "stderr.log"};

/* The directory DIR/<run>/<component>, made when its first process starts. */
static int component_dir(struct watcher *watcher, int32_t component)
{
    struct component_run *run = &watcher->components[component];
    const char *name = watcher->spec.components[component].name;
    if (run->log_dir >= 0)
        return run->log_dir;
    if (mkdirat(watcher->run_dir, name, 0700) != 0 && errno != EEXIST)
        return -1;
    run->log_dir = openat(watcher->run_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return run->log_dir;
}

/* A file that was there before may have become a pipe or a device by its worker's doing. */
static int only_regular(int fd, int flags)
{
    struct stat info;
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && fcntl(fd, F_SETFL, flags) == 0)
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

int worker_open_log(struct watcher *watcher, const struct worker *worker, int stream, int flags)
{
    int dir = component_dir(watcher, worker->component);
    if (dir < 0)
        return -1;
    char path[32];
    snprintf(path, sizeof path, "%d/%s", worker->rank, stream_names[stream]);
    /* Workers own their directories and may plant links there: none is followed. */
    if (!(flags & O_EXCL))
        flags |= O_NONBLOCK; /* to open a pipe would wait for its other end */
    struct open_how how = {.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
                           .mode = flags & O_CREAT ? 0600 : 0,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* an old kernel, or a sandbox's filter */
        fd = openat(dir, path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    return flags & O_EXCL ? fd : only_regular(fd, flags & ~O_NONBLOCK);
}

bool worker_open_logs(struct watcher *watcher, struct worker *worker, int out[2])
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY;
    if (!worker->has_logs) {
        char rank[16];
        int dir = component_dir(watcher, worker->component);
        snprintf(rank, sizeof rank, "%d", worker->rank);
        if (dir < 0 || (mkdirat(dir, rank, 0700) != 0 && errno != EEXIST))
            return false;
        flags |= O_EXCL;
    }
    out[0] = worker_open_log(watcher, worker, 0, flags);
    if (out[0] < 0)
        return false;
    out[1] = worker_open_log(watcher, worker, 1, flags);
    if (out[1] >= 0) {
        worker->has_logs = true;
        record_logs(watcher, worker);
        return true;
    }
    close(out[0]);
    return false;
}

/* The log that has more: what does not fit is most likely of that one. Both, when neither has. */
static const char *longer_log(struct watcher *watcher, const struct worker *worker)
{
    int64_t size[2] = {0, 0};
    int dir = component_dir(watcher, worker->component);
    for (int stream = 0; dir >= 0 && stream < 2; stream++) {
        char path[32];
        struct stat info;
        snprintf(path, sizeof path, "%d/%s", worker->rank, stream_names[stream]);
        if (fstatat(dir, path, &info, AT_SYMLINK_NOFOLLOW) == 0)
            size[stream] = info.st_size;
    }
    return size[0] == size[1] ? "*.log" : stream_names[size[1] > size[0]];
}

void worker_look_at_disk(struct watcher *watcher, struct worker *worker)
{
    struct statvfs disk;
    if (worker->has_reported_cut || fstatvfs(watcher->run_dir, &disk) != 0 ||
        (geteuid() == 0 ? disk.f_bfree : disk.f_bavail) > 0) /* some of it may be root's alone */
        return;
    worker->has_reported_cut = true;
    outbox_report(&watcher->outbox, ROOST_EVENT_PROBLEM, worker, ROOST_ERR_IO,
                  "it ended while the disk of the logs was full: '%s/%d/%s' may be cut",
                  worker_component(watcher, worker)->name, worker->rank,
                  longer_log(watcher, worker));
}
