/* guardian.c - the process above a run's supervisor, small enough to be right.
 *
 * It does one thing: when the supervisor ends, however it ends, nothing of the run is left. It is a
 * subreaper, so that orphans of a killed supervisor become its children; it stands outside the run's
 * control group, so that it can empty it. It is told everything by the descriptors it is born with,
 * and speaks to nobody, but to say why there is no supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/channel.h"
#include "rpc/control.h"
#include "supervise/clock.h"
#include "supervise/doors.h"
#include "supervise/lost.h"
#include "supervise/oom.h"
#include "supervise/part_dir.h"
#include "supervise/spawn.h"
#include "supervise/supervisor.h"
#include "supervise/sweep.h"

enum {
    PATIENCE_MS = 700, /* for a supervisor whose driver died to end the run by itself */
    SWEEP_MS = 10000,
    AGAIN_MS = 500,
};

struct guardian {
    struct cgroup cgroup;
    pid_t supervisor;
    int supervisor_fd;
    int signals;
};

/* The one thing it ever says: why there is no supervisor to say it. */
static void refuse(const char *step, const char *cure)
{
    struct roost_error err = {.code = ROOST_ERR_ENGINE};
    snprintf(err.message, sizeof err.message, "cannot %s: %s", step, strerror(errno));
    snprintf(err.hint, sizeof err.hint, "raise the limit of %s", cure);
    (void)channel_send(GUARDIAN_CHANNEL, MSG_REFUSED, &err, sizeof err, -1);
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
    return supervisor_main(GUARDIAN_CHANNEL, GUARDIAN_RUN_DIR, GUARDIAN_RUNTIME_DIR, above,
                           &guardian->cgroup);
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
    guardian->signals = doors_open(GUARDIAN_CHANNEL, GUARDIAN_FD_COUNT);
    return guardian->signals >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

int roost_guardian_main(int argc, char **argv)
{
    struct guardian guardian = {.cgroup = {.dir = -1}};
    char score[OOM_SCORE_MAX];
    bool is_part = argc == 3 && strcmp(argv[2], "part") == 0;
    /* Whoever starts a part may kill its own children when it ends: it has none of us. */
    if (is_part && fork() != 0)
        return 0;
    if (argc != 2 && !is_part)
        return 2;
    if (!prepare(&guardian)) {
        refuse("open what the guardian of the run needs", "open files: ulimit -n");
        return 2;
    }
    oom_spare(score);
    spawn_restore_score(score);
    if (strcmp(argv[1], "cgroup") == 0)
        (void)cgroup_make(&guardian.cgroup, argv[0]);
    pid_t self = getpid();
    guardian.supervisor = fork();
    if (guardian.supervisor == 0)
        return become_supervisor(&guardian, self);
    int status = 1;
    bool is_killed = false;
    if (guardian.supervisor < 0)
        refuse("create the supervisor's process", "processes: ulimit -u, or pids.max");
    if (guardian.supervisor > 0) {
        guardian.supervisor_fd = pidfd_open(guardian.supervisor, 0);
        if (guardian.supervisor_fd < 0)
            refuse("watch the supervisor of the run", "open files: ulimit -n");
        /* The driver must see it close with the supervisor. Whoever carries a part's messages sees it
         * close when nothing of the part is left, its folder included: it may end us with itself then. */
        if (!is_part)
            close(GUARDIAN_CHANNEL);
        if (guardian.supervisor_fd < 0)
            (void)kill(guardian.supervisor, SIGKILL);
        else
            watch(&guardian);
        siginfo_t info = {0};
        (void)waitid(P_PID, (id_t)guardian.supervisor, &info, WEXITED);
        is_killed = info.si_code != CLD_EXITED;
        status = is_killed ? 1 : info.si_status;
    }
    /* What the supervisor has tried in vain is tried once more, not waited for again. */
    int64_t patience = status == GUARDIAN_NOT_EMPTY ? AGAIN_MS : SWEEP_MS;
    char name[CONTROL_NAME_MAX];
    snprintf(name, sizeof name, "%s.sock", argv[0]);
    control_remove(GUARDIAN_RUNTIME_DIR, name); /* a supervisor that was killed left it */
    cgroup_kill(&guardian.cgroup);
    bool is_empty = sweep_descendants(patience);
    is_empty = cgroup_remove(&guardian.cgroup, patience) && is_empty;
    if (is_part)
        part_dir_remove(GUARDIAN_RUN_DIR);
    else if (is_killed)
        lost_record(GUARDIAN_RUN_DIR, LOST_END_OPEN); /* the driver writes the end, if it lives */
    return !is_empty ? GUARDIAN_NOT_EMPTY : status == GUARDIAN_NOT_EMPTY ? 0 : status;
}
