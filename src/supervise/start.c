/* start.c - a process of the spec as execve wants it: its strings, the files that may be its program,
 * and the sockets it gets; and, before the first start, the values that are too long for an environment. */
#include "supervise/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cure.h"
#include "base/file.h"

enum { OWN_VARIABLES = 3 }; /* LISTEN_PID, LISTEN_FDS, ROOST_CALL_SOCKET */

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
    for (; *env;
         env++) /* the last one counts: a process's own variables come after what it inherits */
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
        size_t folder_len = strcspn(path, ":");
        start->paths[i] = out;
        out = join_path(out, path, folder_len, program);
        path += folder_len + (path[folder_len] == ':');
    }
    return true;
}

void start_release(struct start *start)
{
    for (int i = 0; i < 2; i++)
        if (start->ends[i] >= 0)
            close(start->ends[i]);
    free(start->strings);
    free(start->paths);
    free(start->path_text);
    free(start->pwd);
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

/* The process's end of its socket to the driver comes after the sockets that are handed over. */
static char **put_socket(struct start *start, char **at, int32_t life)
{
    int place = start->handed_count++;
    if (place < SPAWN_HANDED_MAX)
        start->handed[place] = start->ends[1];
    snprintf(start->socket, sizeof start->socket, "ROOST_CALL_SOCKET=%d:%d", 3 + place, life);
    *at++ = start->socket;
    return at;
}

static void take_ports(const struct here *here, const struct spec_process *process,
                       struct start *start)
{
    for (int32_t w = process->first_want; w < process->first_want + process->want_count; w++) {
        size_t want = (size_t)w;
        if (!here->wants[want].is_handed) {
            roost_leases_release(here->leases, want);
            continue;
        }
        for (int32_t i = 0; i < here->wants[want].count; i++)
            if (start->handed_count++ < SPAWN_HANDED_MAX) /* more is refused by spawn_process */
                start->handed[start->handed_count - 1] = roost_leases_fd(here->leases, want, i);
    }
}

/* A PWD that is inherited names the caller's directory. Programs that trust it would be led astray. */
static bool put_pwd(struct start *start, const char *cwd)
{
    char **at = start->env;
    while (*at && strncmp(*at, "PWD=", 4) != 0)
        at++;
    char *path = *cwd && *at ? realpath(cwd, NULL) : NULL;
    if (!path)
        return true; /* it stays, is not there, or does not exist: then chdir reports it */
    size_t size = strlen(path) + sizeof "PWD=";
    start->pwd = malloc(size);
    if (start->pwd) {
        snprintf(start->pwd, size, "PWD=%s", path);
        *at = start->pwd;
    }
    free(path);
    return start->pwd != NULL;
}

bool start_fill(struct start *start, const struct here *here, const struct worker *worker)
{
    const struct spec_component *component = worker_component(here->watcher, worker);
    const struct spec_process *process = worker_process(here->watcher, worker);
    const struct component_run *run = &here->watcher->components[worker->component];
    size_t count = (size_t)process->argv.count + component->base_env.count + process->env.count +
                   (size_t)run->file_env_count;
    start->strings = calloc(count + OWN_VARIABLES + 2, sizeof *start->strings);
    if (!start->strings)
        return false;
    take_ports(here, process, start);
    start->env = put_list(start->strings, &process->argv) + 1;
    char **at = put_list(start->env, &component->base_env);
    if (!put_pwd(start, process->cwd))
        return false;
    at = put_list(at, &process->env);
    for (int32_t i = 0; i < run->file_env_count; i++)
        *at++ = run->file_env[i];
    if (start->handed_count)
        at = put_listen(start, at);
    if (start->ends[1] >= 0)
        put_socket(start, at, worker->life);
    return find_program(start, process->argv.first);
}

/* --- values that are too long for an environment --- */

static const char values_folder[] =
    ".values"; /* no component is called so: names start with no dot */

static bool has_any(const struct spec *spec)
{
    for (int32_t c = 0; c < spec->component_count; c++)
        if (spec->components[c].long_env.count > 0)
            return true;
    return false;
}

/* False with errno. */
static bool write_value(int dir, const char *name, const char *value)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool is_good = fd >= 0 && file_write(fd, value, strlen(value));
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && is_good) {
        error = errno;
        is_good = false;
    }
    errno = error;
    return is_good;
}

/* False with errno. */
static bool write_entry(struct watcher *watcher, int dir, const char *path, const char *entry,
                        char **out)
{
    const char *equals = strchr(entry, '=');
    char name[256];
    if (!equals || (size_t)(equals - entry) >= sizeof name) {
        errno = ENAMETOOLONG;
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - entry), entry);
    size_t size = strlen(name) + sizeof "_FILE=" + strlen(path) + 1 + strlen(name);
    *out = arena_array(&watcher->arena, char, size);
    if (!*out) {
        errno = ENOMEM;
        return false;
    }
    snprintf(*out, size, "%s_FILE=%s/%s", name, path, name);
    return write_value(dir, name, equals + 1);
}

static bool write_component(struct watcher *watcher, int32_t index, int dir, const char *path)
{
    const struct spec_list *list = &watcher->spec.components[index].long_env;
    struct component_run *run = &watcher->components[index];
    run->file_env = arena_zeroed(&watcher->arena, char *, (int64_t)list->count + 1);
    errno = ENOMEM;
    const char *entry = list->first;
    for (uint32_t i = 0; run->file_env && i < list->count; i++, entry = spec_next(entry)) {
        if (!write_entry(watcher, dir, path, entry, &run->file_env[i]))
            return false;
        run->file_env_count++;
    }
    return run->file_env != NULL;
}

/* The path of a descriptor; false with errno. */
static bool path_of(int fd, char out[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, out, PATH_MAX - 1);
    if (len >= 0)
        out[len] = '\0';
    return len >= 0;
}

int start_write_long_values(struct watcher *watcher)
{
    char path[PATH_MAX];
    if (!has_any(&watcher->spec))
        return 0;
    bool is_good = mkdirat(watcher->run_dir, values_folder, 0700) == 0 || errno == EEXIST;
    int dir = is_good ? openat(watcher->run_dir, values_folder,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                      : -1;
    is_good = dir >= 0 && path_of(dir, path);
    for (int32_t c = 0; is_good && c < watcher->spec.component_count; c++)
        is_good = write_component(watcher, c, dir, path);
    int error = errno;
    if (dir >= 0)
        close(dir);
    if (is_good)
        return 0;
    char message[160];
    snprintf(message, sizeof message,
             "cannot write the addresses of other components to a file: %s", strerror(error));
    return watcher_refuse_with(watcher, ROOST_ERR_IO, message,
                               cure_of_place(error, "choose another roost.logs.dir").text);
}
