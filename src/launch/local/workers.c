/* workers.c - a process of the spec becomes a process of the machine: its log files, its strings as
 * execve wants them, its ports let go or handed over.
 *
 * Components start together, or when all they come `after` are ready. Few at a time, so that the loop
 * keeps hearing the driver. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/local/clock.h"
#include "launch/local/spawn.h"
#include "launch/local/supervisor.h"
#include "rpc/channel.h"

enum { START_AT_ONCE = 16 };

/* --- pids --- */

static int32_t *bucket_of(struct supervisor *supervisor, int32_t pid)
{
    return &supervisor->worker_of_pid[pid & (supervisor->bucket_count - 1)];
}

struct worker *worker_find(struct supervisor *supervisor, int32_t pid)
{
    for (int32_t i = *bucket_of(supervisor, pid); i >= 0; i = supervisor->workers[i].next)
        if (supervisor->workers[i].pid == pid)
            return &supervisor->workers[i];
    return NULL;
}

static void remember_pid(struct supervisor *supervisor, struct worker *worker)
{
    int32_t *bucket = bucket_of(supervisor, worker->pid);
    worker->next = *bucket;
    *bucket = (int32_t)(worker - supervisor->workers);
}

void worker_forget_pid(struct supervisor *supervisor, struct worker *worker)
{
    int32_t index = (int32_t)(worker - supervisor->workers);
    int32_t *link = bucket_of(supervisor, worker->pid);
    while (*link >= 0 && *link != index)
        link = &supervisor->workers[*link].next;
    if (*link == index)
        *link = worker->next;
}

/* --- log files --- */

static const char *const stream_names[] = {"stdout.log", "stderr.log"};

/* The directory DIR/<run>/<component>, made when its first process starts. */
static int component_dir(struct supervisor *supervisor, int32_t component)
{
    struct component_run *run = &supervisor->components[component];
    const char *name = supervisor->spec.components[component].name;
    if (run->log_dir >= 0)
        return run->log_dir;
    if (mkdirat(supervisor->run_dir, name, 0700) != 0 && errno != EEXIST)
        return -1;
    run->log_dir =
        openat(supervisor->run_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

int worker_open_log(struct supervisor *supervisor, const struct worker *worker, int stream,
                    int flags)
{
    int dir = component_dir(supervisor, worker->component);
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

static bool open_logs(struct supervisor *supervisor, const struct worker *worker, int out[2])
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY;
    if (worker->life == 1) {
        char rank[16];
        int dir = component_dir(supervisor, worker->component);
        snprintf(rank, sizeof rank, "%d", worker->rank);
        if (dir < 0 || (mkdirat(dir, rank, 0700) != 0 && errno != EEXIST))
            return false;
        flags |= O_EXCL;
    }
    out[0] = worker_open_log(supervisor, worker, 0, flags);
    if (out[0] < 0)
        return false;
    out[1] = worker_open_log(supervisor, worker, 1, flags);
    if (out[1] >= 0)
        return true;
    close(out[0]);
    return false;
}

/* --- argv, environment, program --- */

enum { OWN_VARIABLES = 3 }; /* LISTEN_PID, LISTEN_FDS, ROOST_CHANNEL */

/* Memory of one start: pointers into the spec, and the few strings that are made here. */
struct start {
    char **strings; /* argv, NULL, environment, NULL, paths, NULL */
    char **env;
    const char **paths;
    char *path_text;
    char listen_pid[sizeof "LISTEN_PID=" + SPAWN_PID_DIGITS];
    char listen_fds[32];
    char channel[48];
    int ends[2]; /* of the channel: the driver's and the process's; -1 = none */
    int handed[SPAWN_HANDED_MAX];
    int32_t handed_count;
};

static char **put_list(char **at, const struct spec_list *list)
{
    const char *string = list->first;
    for (uint32_t i = 0; i < list->count; i++, string = spec_next(string))
        *at++ = (char *)(uintptr_t)string;
    return at;
}

static const char *find_path(char *const *env)
{
    const char *path = NULL;
    for (; *env; env++) /* the last one counts: a process's own stand behind what it inherits */
        if (strncmp(*env, "PATH=", 5) == 0)
            path = *env + 5;
    return path ? path : "/usr/local/bin:/usr/bin:/bin";
}

static char *join_path(char *out, const char *folder, size_t folder_len, const char *program)
{
    if (folder_len == 0) { /* an empty entry of PATH is the current directory */
        *out++ = '.';
    } else {
        memcpy(out, folder, folder_len);
        out += folder_len;
    }
    *out++ = '/';
    size_t len = strlen(program) + 1;
    memcpy(out, program, len);
    return out + len;
}

/* The files to try for `program`: itself with a '/', else one in each directory of PATH. */
static bool find_program(struct start *start, const char *program)
{
    const char *path = strchr(program, '/') ? NULL : find_path(start->env);
    size_t count = 1, len = strlen(program);
    for (const char *at = path; at && *at; at++)
        count += *at == ':';
    start->paths = calloc(count + 1, sizeof *start->paths);
    if (!start->paths)
        return false;
    if (!path) {
        start->paths[0] = program;
        return true;
    }
    start->path_text = malloc(strlen(path) + count * (len + 3) + 1);
    if (!start->path_text)
        return false;
    char *out = start->path_text;
    for (size_t i = 0; i < count; i++) {
        size_t part = strcspn(path, ":");
        start->paths[i] = out;
        out = join_path(out, path, part, program);
        path += part + (path[part] == ':');
    }
    return true;
}

static void start_release(struct start *start)
{
    for (int i = 0; i < 2; i++)
        if (start->ends[i] >= 0)
            close(start->ends[i]);
    free(start->strings);
    free(start->paths);
    free(start->path_text);
}

/* LISTEN_FDS and LISTEN_PID, as servers made for socket activation read them. */
static char **put_listen(struct start *start, char **at)
{
    memcpy(start->listen_pid, "LISTEN_PID=", sizeof "LISTEN_PID=" - 1);
    start->listen_pid[sizeof start->listen_pid - 1] = '\0';
    snprintf(start->listen_fds, sizeof start->listen_fds, "LISTEN_FDS=%d", start->handed_count);
    *at++ = start->listen_pid;
    *at++ = start->listen_fds;
    return at;
}

/* The process's end of a channel to the driver comes behind the sockets that are handed over. */
static char **put_channel(struct start *start, char **at, int32_t life)
{
    int place = start->handed_count++;
    if (place < SPAWN_HANDED_MAX)
        start->handed[place] = start->ends[1];
    snprintf(start->channel, sizeof start->channel, "ROOST_CHANNEL=%d:%d", 3 + place, life);
    *at++ = start->channel;
    return at;
}

static void take_ports(struct supervisor *supervisor, const struct spec_process *process,
                       struct start *start)
{
    for (int32_t w = process->first_want; w < process->first_want + process->want_count; w++) {
        size_t want = (size_t)w;
        if (!supervisor->wants[want].is_handed) {
            roost_leases_release(supervisor->leases, want);
            continue;
        }
        for (int32_t i = 0; i < supervisor->wants[want].count; i++)
            if (start->handed_count++ < SPAWN_HANDED_MAX) /* more is refused by spawn_process */
                start->handed[start->handed_count - 1] =
                    roost_leases_fd(supervisor->leases, want, i);
    }
}

static bool start_fill(struct start *start, struct supervisor *supervisor,
                       const struct worker *worker)
{
    const struct spec_component *component = worker_component(supervisor, worker);
    const struct spec_process *process = worker_process(supervisor, worker);
    size_t count = (size_t)process->argv.count + component->base_env.count + process->env.count;
    start->strings = calloc(count + OWN_VARIABLES + 2, sizeof *start->strings);
    if (!start->strings)
        return false;
    take_ports(supervisor, process, start);
    start->env = put_list(start->strings, &process->argv) + 1;
    char **at = put_list(start->env, &component->base_env);
    at = put_list(at, &process->env);
    if (start->handed_count)
        at = put_listen(start, at);
    if (start->ends[1] >= 0)
        put_channel(start, at, worker->life);
    return find_program(start, process->argv.first);
}

/* --- a life --- */

static void say_failed(struct supervisor *supervisor, const struct worker *worker,
                       const struct spawned *spawned)
{
    const struct spec_process *process = worker_process(supervisor, worker);
    const char *what = spawned->failed == SPAWN_CHDIR  ? process->cwd
                       : spawned->failed == SPAWN_EXEC ? process->argv.first
                                                       : NULL;
    lives_fail(supervisor, worker, ROOST_ERR_ENGINE, "cannot %s%s%s%s: %s",
               spawn_step_word(spawned->failed), what ? " '" : "",
               what ? quote(sv_from(what)).text : "", what ? "'" : "", strerror(spawned->error));
}

static void life_begins(struct supervisor *supervisor, struct worker *worker,
                        const struct spawned *spawned, struct start *start)
{
    worker->pid = spawned->pid;
    worker->pidfd = spawned->pidfd;
    worker->state = WORKER_RUNNING;
    worker->was_told = false;
    supervisor->alive++;
    remember_pid(supervisor, worker);
    ready_reset(supervisor, worker);
    struct roost_event event = outbox_event(ROOST_EVENT_STARTED, worker);
    if (start->ends[0] < 0) {
        outbox_put(supervisor, &event);
        return;
    }
    outbox_put_with(supervisor, &event, start->ends[0]);
    start->ends[0] = -1;
}

bool worker_start(struct supervisor *supervisor, struct worker *worker)
{
    struct start start = {.ends = {-1, -1}};
    int logs[2];
    worker->life++;
    if (supervisor->setup.has_channels && !channel_stream(start.ends)) {
        lives_fail(supervisor, worker, ROOST_ERR_ENGINE, "cannot make its channel: %s",
                   strerror(errno));
        return false;
    }
    if (!open_logs(supervisor, worker, logs)) {
        lives_fail(supervisor, worker, ROOST_ERR_IO, "cannot open its log files in '%s/%d': %s",
                   worker_component(supervisor, worker)->name, worker->rank, strerror(errno));
        start_release(&start);
        return false;
    }
    bool is_started = false;
    if (!start_fill(&start, supervisor, worker)) {
        lives_fail(supervisor, worker, ROOST_ERR_MEMORY, "no memory to start it");
    } else {
        const struct spec_process *process = worker_process(supervisor, worker);
        struct spawn spawn = {
            .paths = start.paths,
            .argv = start.strings,
            .env = start.env,
            .cwd = *process->cwd ? process->cwd : NULL,
            .fd = {supervisor->null, logs[0], logs[1]},
            .handed = start.handed,
            .handed_count = start.handed_count,
            .listen_pid = *start.listen_pid ? start.listen_pid + sizeof "LISTEN_PID=" - 1 : NULL,
            .nofile = &supervisor->nofile,
        };
        worker->started_at = clock_read(CLOCK_REALTIME);
        worker->started = clock_read(CLOCK_MONOTONIC);
        ready_mark(supervisor, worker);
        struct spawned spawned = spawn_process(&spawn);
        is_started = spawned.failed == SPAWN_OK;
        if (is_started)
            life_begins(supervisor, worker, &spawned, &start);
        else
            say_failed(supervisor, worker, &spawned);
    }
    close(logs[0]);
    close(logs[1]);
    start_release(&start);
    return is_started;
}

/* --- order --- */

static const struct component_run *find_component(const struct supervisor *supervisor,
                                                  const char *name)
{
    for (int32_t i = 0; i < supervisor->spec.component_count; i++)
        if (strcmp(supervisor->spec.components[i].name, name) == 0)
            return &supervisor->components[i];
    return NULL;
}

/* Whether everything that the component comes after is ready. What does not run is not waited for. */
static bool may_start(const struct supervisor *supervisor, int32_t component)
{
    const struct spec_list *after = &supervisor->spec.components[component].after;
    const char *name = after->first;
    for (uint32_t i = 0; i < after->count; i++, name = spec_next(name)) {
        const struct component_run *other = find_component(supervisor, name);
        if (other && other->state != COMPONENT_READY)
            return false;
    }
    return true;
}

static void all_are_up(struct supervisor *supervisor, int32_t component)
{
    struct component_run *run = &supervisor->components[component];
    const struct spec_component *spec = &supervisor->spec.components[component];
    run->state = COMPONENT_UP;
    run->ready_deadline = clock_ms() + (int64_t)spec->ready_timeout * 1000;
    if (run->log_dir >= 0) { /* not needed for a while: descriptors are for sockets and pids */
        close(run->log_dir);
        run->log_dir = -1;
    }
}

bool workers_start_some(struct supervisor *supervisor)
{
    int32_t started = 0;
    for (int32_t c = 0; c < supervisor->spec.component_count; c++) {
        const struct spec_component *spec = &supervisor->spec.components[c];
        struct component_run *run = &supervisor->components[c];
        if (run->state == COMPONENT_BLOCKED && may_start(supervisor, c))
            run->state = COMPONENT_STARTING;
        while (run->state == COMPONENT_STARTING) {
            if (supervisor->is_start_over)
                return false;
            if (started++ == START_AT_ONCE)
                return true;
            worker_start(supervisor, &supervisor->workers[spec->first_process + run->next_rank]);
            if (++run->next_rank == spec->process_count)
                all_are_up(supervisor, c);
        }
    }
    return false;
}
