/* guardian.c - the process above a supervisor or an agent, small enough to be right.
 *
 * It does one thing: when the process below it ends, however it ends, nothing of it is left. It is a
 * subreaper, so that orphans of a killed supervisor become its children. It stands outside the run's control
 * group, so that it can empty it. It sends nothing, except the reason when there is no process below it. */
#include "supervise/guardian.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cure.h"
#include "rpc/control_socket.h"
#include "rpc/socket_pair.h"
#include "supervise/clock.h"
#include "supervise/oom.h"
#include "supervise/spawn.h"
#include "supervise/sweep.h"
#include "supervise/watcher.h"

enum {
    PATIENCE_MS = 700, /* for a supervisor whose driver died to end the run by itself */
    SWEEP_MS = 10000,
    AGAIN_MS = 500,
};

struct guardian {
    const struct guarded *guarded;
    struct cgroup cgroup;
    pid_t supervisor; /* or the agent */
    int supervisor_fd;
    int signals;
};

/* The only message of a guardian: why there is no supervisor to send one. */
static void refuse(const char *step, const char *cure)
{
    struct roost_error err = {.code = ROOST_ERR_ENGINE};
    snprintf(err.message, sizeof err.message, "cannot %s: %s", step, strerror(errno));
    snprintf(err.hint, sizeof err.hint, "raise the limit of %s", cure);
    (void)socket_pair_send(GUARDIAN_SOCKET, MSG_REFUSED, &err, sizeof err, -1);
}

/* In the child: becomes the supervisor. */
static int become_supervisor(struct guardian *guardian, pid_t parent)
{
    close(guardian->signals);
    int above = pidfd_open(parent, 0);
    if (above < 0)
        refuse("watch the guardian of the run", "open files: ulimit -n");
    if (above < 0 || getppid() != parent)
        return 1;
    if (guardian->cgroup.dir >= 0 && !cgroup_join(&guardian->cgroup)) {
        /* It could be made but not entered (a threaded group, a half-delegated one): do without. The
         * guardian removes it in the end. */
        close(guardian->cgroup.dir);
        guardian->cgroup.dir = -1;
    }
    return guardian->guarded->main(above, &guardian->cgroup);
}

static void pass_signals(const struct guardian *guardian)
{
    struct signalfd_siginfo info;
    while (read(guardian->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            (void)pidfd_send_signal(guardian->supervisor_fd, (int)info.ssi_signo, NULL, 0);
}

/* Until the supervisor has ended. One whose driver is gone has a moment to end the run itself. */
static void watch(const struct guardian *guardian)
{
    int64_t deadline = -1;
    for (;;) {
        struct pollfd fds[3] = {{guardian->supervisor_fd, POLLIN, 0},
                                {guardian->signals, POLLIN, 0},
                                {deadline < 0 ? GUARDIAN_DRIVER : -1, POLLIN, 0}};
        int64_t left = deadline < 0 ? -1 : deadline - clock_ms();
        if (deadline >= 0 && left <= 0) {
            (void)pidfd_send_signal(guardian->supervisor_fd, SIGKILL, NULL, 0);
            left = 100;
        }
        if (poll(fds, 3, (int)left) < 0 && errno != EINTR)
            clock_pause_ms(10); /* no memory for poll: look again, never spin */
        if (fds[0].revents)
            return;
        if (fds[1].revents)
            pass_signals(guardian);
        if (fds[2].revents)
            deadline = clock_ms() + PATIENCE_MS;
    }
}

static bool prepare(struct guardian *guardian)
{
    guardian->signals = watcher_block_signals(GUARDIAN_SOCKET, GUARDIAN_FD_COUNT, false);
    return guardian->signals >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* Watches the supervisor to its end and reaps it. Its exit status; 1 with *is_killed when it has none. */
static int await_supervisor(struct guardian *guardian, bool *is_killed)
{
    guardian->supervisor_fd = pidfd_open(guardian->supervisor, 0);
    if (guardian->supervisor_fd < 0)
        refuse("watch the supervisor of the run", "open files: ulimit -n");
    if (!guardian->guarded->keeps_socket)
        close(GUARDIAN_SOCKET);
    if (guardian->supervisor_fd < 0)
        (void)kill(guardian->supervisor, SIGKILL);
    else
        watch(guardian);
    siginfo_t info = {0};
    (void)waitid(P_PID, (id_t)guardian->supervisor, &info, WEXITED);
    *is_killed = info.si_code != CLD_EXITED;
    return *is_killed ? 1 : info.si_status;
}

/* Ends what is left of the run; false when some of it cannot be ended. */
static bool empty(struct guardian *guardian, const char *run_id, int64_t patience)
{
    char name[CONTROL_NAME_MAX];
    snprintf(name, sizeof name, "%s.sock", run_id);
    control_remove(GUARDIAN_RUNTIME_DIR, name); /* a supervisor that was killed left it */
    cgroup_kill(&guardian->cgroup);
    bool is_empty = sweep_descendants(patience);
    return cgroup_remove(&guardian->cgroup, patience) && is_empty;
}

int guardian_run(const struct guarded *guarded, const char *name, bool wants_cgroup)
{
    struct guardian guardian = {.guarded = guarded, .cgroup = {.dir = -1}};
    char score[OOM_SCORE_MAX];
    if (guarded->is_detached && fork() != 0)
        return 0;
    if (!prepare(&guardian)) {
        refuse("open what the guardian of the run needs", "open files: ulimit -n");
        return 2;
    }
    oom_spare(score);
    spawn_restore_score(score);
    if (wants_cgroup)
        (void)cgroup_make(&guardian.cgroup, name);
    pid_t self = getpid();
    guardian.supervisor = fork();
    if (guardian.supervisor == 0)
        return become_supervisor(&guardian, self);
    int status = 1;
    bool is_killed = false;
    if (guardian.supervisor < 0)
        refuse("create the supervisor's process", "processes: ulimit -u, or pids.max");
    else
        status = await_supervisor(&guardian, &is_killed);
    /* What the supervisor has tried in vain is tried once more, not waited for again. */
    bool is_empty = empty(&guardian, name, status == GUARDIAN_NOT_EMPTY ? AGAIN_MS : SWEEP_MS);
    guarded->clean(is_killed);
    return !is_empty ? GUARDIAN_NOT_EMPTY : status == GUARDIAN_NOT_EMPTY ? 0 : status;
}

/* --- for the process that starts a guardian --- */

void guardian_report_start(struct diag *diag, const char *program, const struct spawned *spawned,
                           const char *cure)
{
    if (spawned->failed == SPAWN_EXEC) {
        diag_error(diag, ROOST_ERR_ENGINE, (struct place){0},
                   "cannot run the program '%s' as the guardian of the run: %s",
                   quote(sv_from(program)).text, strerror(spawned->error));
        diag_hint(diag, "%s", cure);
        return;
    }
    diag_error(diag, ROOST_ERR_ENGINE, (struct place){0},
               "cannot start the guardian of the run: cannot %s: %s",
               spawn_step_word(spawned->failed), strerror(spawned->error));
    if (spawned->failed == SPAWN_CLONE)
        diag_hint(diag, "raise the limit of processes: ulimit -u, or pids.max");
    else
        diag_hint(diag, "%s", cure_of_descriptor(spawned->error).text);
}
