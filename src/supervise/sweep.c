/* sweep.c - reads /proc to find the processes to end, in the guardian, the supervisor, an agent or the
 * driver. A pid is only ever signalled while it cannot have been reused: our own children until we reap
 * them, others through a pidfd that is opened first and whose owner is then checked again. */
#include "supervise/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "supervise/cgroup.h"
#include "supervise/clock.h"
#include "supervise/proc.h"

enum {
    REFUSED_MS = 500, /* for a process that may not be killed to end by itself */
    AGAIN_MS = 500,   /* until a guard that was stopped is continued again */
};

typedef void (*pid_fn)(void *ctx, pid_t pid);

static void each_process(pid_fn visit, void *ctx)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (struct dirent *entry; (entry = readdir(proc));) {
        int64_t pid;
        if (number_parse(sv_from(entry->d_name), INT32_MAX, &pid) == NUMBER_OK)
            visit(ctx, (pid_t)pid);
    }
    closedir(proc);
}

/* --- children --- */

struct child_visit {
    pid_fn visit;
    void *ctx;
};

static void visit_if_child(void *ctx, pid_t pid)
{
    const struct child_visit *wanted = ctx;
    if (pid > 1 && proc_stat(pid).parent == getpid())
        wanted->visit(wanted->ctx, pid);
}

/* The children that there are now. */
static void each_child(pid_fn visit, void *ctx)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "re");
    if (!list) { /* a kernel without this file, or no descriptor left */
        each_process(visit_if_child, &(struct child_visit){visit, ctx});
        return;
    }
    char *word = NULL;
    size_t room = 0;
    int64_t pid;
    while (getdelim(&word, &room, ' ', list) > 0) {
        word[strcspn(word, " \n")] = '\0';
        if (number_parse(sv_from(word), INT32_MAX, &pid) == NUMBER_OK && pid > 1)
            visit(ctx, (pid_t)pid);
    }
    free(word);
    fclose(list);
}

/* Counts the children that may be killed: without any there is nothing to wait for. */
static void kill_child(void *ctx, pid_t pid)
{
    int32_t *killed = ctx;
    *killed += kill(pid, SIGKILL) == 0;
}

bool sweep_descendants(int64_t timeout_ms)
{
    int64_t start = clock_ms(), useful = start;
    for (;;) {
        siginfo_t info = {0};
        int result;
        while ((result = waitid(P_ALL, 0, &info, WEXITED | WNOHANG)) == 0 && info.si_pid != 0)
            info.si_pid = 0;
        if (result != 0 && errno == ECHILD)
            return true;
        int64_t now = clock_ms();
        int32_t killed = 0;
        if (now > start + timeout_ms)
            return false;
        each_child(kill_child, &killed);
        if (killed)
            useful = now;
        else if (now > useful + REFUSED_MS)
            return false;
        clock_pause_ms(1); /* the dead leave within a tick of the scheduler */
    }
}

struct survivor_list {
    struct survivor *out;
    int32_t count, room;
};

static void add_survivor(void *ctx, pid_t pid)
{
    struct survivor_list *list = ctx;
    char state = proc_stat(pid).state;
    if (list->count < list->room && state != 'Z' && state != '?')
        list->out[list->count++] = (struct survivor){pid, state};
}

int32_t sweep_survivors(struct survivor *out, int32_t room)
{
    struct survivor_list list = {.out = out, .room = room};
    each_child(add_survivor, &list);
    return list.count;
}

void survivor_describe(const struct survivor *survivor, char *out, size_t size)
{
    snprintf(out, size,
             "process %d, started by a process of the run, cannot be killed (state %c): it is left "
             "behind",
             survivor->pid, survivor->state);
}

/* --- guards that are stopped --- */

struct stopped_search {
    const char *run_id;
    int32_t found;
};

static void note_stopped(void *ctx, pid_t pid)
{
    struct stopped_search *search = ctx;
    if (search->found == 0 && proc_is_guardian(pid, search->run_id) && proc_stat(pid).state == 'T')
        search->found = pid;
}

int32_t sweep_find_stopped(const char *run_id)
{
    struct stopped_search search = {.run_id = run_id};
    each_process(note_stopped, &search);
    return search.found;
}

/* --- whatever carries the id of the run --- */

struct run_search {
    const char *run_id;
    char variable[64];
    int32_t killed, spared;
};

static bool is_of_run(pid_t pid, const struct run_search *search)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    FILE *file =
        fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() ? fdopen(fd, "r") : NULL;
    if (!file) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    char *entry = NULL;
    size_t room = 0;
    bool is_found = false;
    while (!is_found && getdelim(&entry, &room, '\0', file) > 0)
        is_found = strcmp(entry, search->variable) == 0;
    free(entry);
    fclose(file);
    return is_found;
}

static void kill_if_of_run(void *ctx, pid_t pid)
{
    struct run_search *search = ctx;
    if (pid <= 1 || pid == getpid() || !is_of_run(pid, search))
        return;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0)
        return;
    if (is_of_run(pid, search)) {
        bool is_spared = proc_is_agent(pid, search->run_id);
        if (pidfd_send_signal(pidfd, is_spared ? SIGCONT : SIGKILL, NULL, 0) == 0)
            *(is_spared ? &search->spared : &search->killed) += 1;
    }
    close(pidfd);
}

int32_t sweep_run(const char *run_id, int64_t timeout_ms)
{
    int64_t deadline = clock_ms() + timeout_ms;
    int32_t total = 0;
    for (int quiet = 0;;) {
        struct run_search search = {.run_id = run_id};
        snprintf(search.variable, sizeof search.variable, "ROOST_RUN_ID=%s", run_id);
        each_process(kill_if_of_run, &search);
        total += search.killed;
        /* Once more after a round that found any, for what they forked meanwhile; and twice in any case:
         * a process that is between two programs shows no environment. */
        quiet = search.killed || search.spared ? 0 : quiet + 1;
        if (quiet == 2 || clock_ms() > deadline)
            return total;
        clock_pause_ms(search.killed ? 2 : 10); /* agents take longer than the killed */
    }
}

/* --- without a guardian --- */

bool sweep_leftovers(const char *run_id, const char *cgroup, int64_t timeout_ms)
{
    struct cgroup group;
    bool is_empty = true;
    if (cgroup[0] ? cgroup_open(&group, cgroup) : cgroup_find(&group, run_id)) {
        cgroup_kill(&group);
        is_empty = cgroup_remove(&group, timeout_ms);
    }
    (void)sweep_run(run_id, timeout_ms);
    return cgroup_end_agents(run_id, cgroup, timeout_ms) && is_empty;
}

bool sweep_await_guard(int pidfd, int32_t pid, int64_t deadline)
{
    struct pollfd fd = {pidfd, POLLIN, 0};
    while (pidfd >= 0) {
        proc_continue(pidfd, pid);
        int64_t left = deadline - clock_ms();
        int result = poll(&fd, 1, left < 0 ? 0 : left < AGAIN_MS ? (int)left : AGAIN_MS);
        if (result > 0)
            break;
        if (result == 0 && left <= 0)
            return false;
    }
    return true;
}

bool sweep_wake_guardian(const char *run_id, int32_t guardian, int32_t supervisor,
                         int64_t timeout_ms)
{
    int pidfd = guardian > 1 ? pidfd_open(guardian, 0) : -1;
    if (pidfd < 0)
        return false;
    bool is_ended = false;
    if (proc_is_guardian(guardian, run_id)) {
        proc_continue(pidfd, guardian);
        struct proc_stat stat = proc_stat(supervisor);
        bool is_alone = stat.parent != guardian || stat.state == 'Z';
        is_ended = is_alone && sweep_await_guard(pidfd, guardian, clock_ms() + timeout_ms);
    }
    close(pidfd);
    return is_ended;
}
