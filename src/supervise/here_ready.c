/* here_ready.c - whether a worker of this machine is ready: it has opened a port, made a file or printed a
 * line.
 *
 * All three are polled at short intervals. Ports and files have no event that is reliable on every file
 * system and address family, and roost waits for a component only while it starts. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "port/port_socket.h"
#include "supervise/clock.h"
#include "supervise/here.h"

enum { PROBE_MS = 1000, READ_SIZE = 64 * 1024 };

/* --- a port --- */

/* One connection is tried for a while: each new one would take a place in the queue of a server that does
 * not accept yet, and fill it. But not for ever: of its two addresses one may never answer, while a server
 * has begun to listen on the other, which refused long ago. */
static bool has_port(struct worker *worker, int32_t port)
{
    if (worker->is_probing && clock_ms() >= worker->probe_deadline) {
        port_probe_end(&worker->probe);
        worker->is_probing = false;
    }
    if (!worker->is_probing)
        worker->probe_deadline = clock_ms() + PROBE_MS;
    enum port_answer answer = worker->is_probing ? port_probe_check(&worker->probe)
                                                 : port_probe_start(&worker->probe, port);
    worker->is_probing = answer == PORT_WAITING;
    if (!worker->is_probing)
        port_probe_end(&worker->probe);
    return answer == PORT_OPEN;
}

/* --- a file --- */

static bool find_file(const struct spec_process *process, struct stat *out)
{
    if (*process->ready_what == '/' || !*process->cwd)
        return stat(process->ready_what, out) == 0;
    int dir = open(process->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return false;
    bool is_there = fstatat(dir, process->ready_what, out, 0) == 0;
    close(dir);
    return is_there;
}

static int64_t changed_at(const struct stat *info)
{
    return (int64_t)info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec;
}

void here_mark_ready(struct here *here, struct worker *worker)
{
    struct stat info;
    if (worker_component(here->watcher, worker)->ready != SPEC_READY_FILE)
        return;
    worker->had_file = find_file(worker_process(here->watcher, worker), &info);
    worker->file_inode = worker->had_file ? (uint64_t)info.st_ino : 0;
    worker->file_changed = worker->had_file ? changed_at(&info) : 0;
}

/* Made, or made again, since the life began. No clock is compared: that of a file server may differ. */
static bool has_file(const struct watcher *watcher, const struct worker *worker)
{
    struct stat info;
    if (!find_file(worker_process(watcher, worker), &info))
        return false;
    return !worker->had_file || worker->file_inode != (uint64_t)info.st_ino ||
           worker->file_changed != changed_at(&info);
}

/* --- a line --- */

/* Searches what was appended to one stream since the last look. The last bytes of the earlier search are
 * searched again, as the line may have come in two pieces. */
static bool has_line(struct watcher *watcher, struct worker *worker, int stream)
{
    struct strview wanted = sv_from(worker_process(watcher, worker)->ready_what);
    int fd = worker_open_log(watcher, worker, stream, O_RDONLY);
    char *bytes = fd >= 0 ? malloc(READ_SIZE + wanted.len) : NULL;
    bool is_found = false;
    while (bytes && !is_found) {
        int64_t back = worker->line_seen[stream] < (int64_t)wanted.len ? worker->line_seen[stream]
                                                                       : (int64_t)wanted.len;
        int64_t from = worker->line_seen[stream] - back;
        ssize_t got = file_read_at(fd, bytes, READ_SIZE + wanted.len, from);
        if (got <= back)
            break;
        is_found = memmem(bytes, (size_t)got, wanted.at, wanted.len) != NULL;
        worker->line_seen[stream] = from + got;
    }
    free(bytes);
    if (fd >= 0)
        close(fd);
    return is_found;
}

bool here_is_ready(struct here *here, struct worker *worker)
{
    struct watcher *watcher = here->watcher;
    switch (worker_component(watcher, worker)->ready) {
    case SPEC_READY_PORT: return has_port(worker, worker_process(watcher, worker)->ready_port);
    case SPEC_READY_FILE: return has_file(watcher, worker);
    case SPEC_READY_LINE: return has_line(watcher, worker, 0) || has_line(watcher, worker, 1);
    case SPEC_READY_AT_ONCE: break;
    }
    return true;
}
