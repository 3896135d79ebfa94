/* start.c - a process of the spec as execve wants it: its strings, where its program may be, the sockets
 * it is handed, its channel. */
#include "supervise/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OWN_VARIABLES = 3 }; /* LISTEN_PID, LISTEN_FDS, ROOST_CHANNEL */

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

/* A PWD that is inherited names the caller's directory. Programs that trust it would be led astray. */
static bool put_pwd(struct start *start, const char *cwd)
{
    char **at = start->env;
    while (*at && strncmp(*at, "PWD=", 4) != 0)
        at++;
    char *path = *cwd && *at ? realpath(cwd, NULL) : NULL;
    if (!path)
        return true; /* it stays, is not there, or cannot be: then chdir will say so */
    size_t size = strlen(path) + sizeof "PWD=";
    start->pwd = malloc(size);
    if (start->pwd) {
        snprintf(start->pwd, size, "PWD=%s", path);
        *at = start->pwd;
    }
    free(path);
    return start->pwd != NULL;
}

bool start_fill(struct start *start, struct supervisor *supervisor, const struct worker *worker)
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
    if (!put_pwd(start, process->cwd))
        return false;
    at = put_list(at, &process->env);
    if (start->handed_count)
        at = put_listen(start, at);
    if (start->ends[1] >= 0)
        put_channel(start, at, worker->life);
    return find_program(start, process->argv.first);
}
