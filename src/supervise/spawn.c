/* spawn.c - the code between clone and exec, in every process that starts others. The parent waits meanwhile.
 * The child shares the parent's memory and stores there which step failed. So nothing here allocates, locks
 * or calls exit(). */
#include "supervise/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cure.h"

const char *spawn_step_word(enum spawn_step step)
{
    static const char *const words[] = {
        [SPAWN_OK] = "start",
        [SPAWN_CLONE] = "create a process",
        [SPAWN_SESSION] = "make a session",
        [SPAWN_LIMIT] = "set the limit of open files",
        [SPAWN_CHDIR] = "enter the directory",
        [SPAWN_DESCRIPTORS] = "set up its descriptors",
        [SPAWN_EXEC] = "run the program",
    };
    return words[step];
}

/* Of the whole program: the kernel kills a guardian and its supervisor last, but not the processes they
 * start. */
static const char *score_at_start;
static size_t score_len;

void spawn_restore_score(const char *score)
{
    score_at_start = score;
    score_len = strlen(score);
}

struct child {
    const struct spawn *spawn;
    sigset_t mask; /* empty: the child's own */
    pid_t parent;
    volatile enum spawn_step failed;
    volatile int error;
};

/* Without leading zeros: a reader of LISTEN_PID takes such a number for octal. */
static void write_pid(char *out, pid_t pid)
{
    int len = 1;
    for (pid_t rest = pid; rest >= 10; rest /= 10)
        len++;
    out[len] = '\0';
    for (; len > 0; pid /= 10)
        out[--len] = (char)('0' + pid % 10);
}

/* Ignored signals stay ignored over exec; caught ones do not, and nothing else is inherited. */
static void reset_signals(const sigset_t *mask)
{
    /* Not by sigaction(): the C library keeps two signals to itself, and a caller may have been
     * started with them ignored. What may not be set is refused, and is as it should be. */
    static const char by_default[64]; /* the kernel's struct, all zero */
    for (int number = 1; number < NSIG; number++)
        (void)syscall(SYS_rt_sigaction, number, by_default, NULL, (NSIG - 1) / 8);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Everything above 2 is closed, but for what is handed over. Closed, not marked to close at exec: the
 * parent goes on before the kernel comes to that, and a port that it releases for the next process
 * would still be held by this one. Sources are first moved above all targets: a source may stand where
 * another one goes. */
static bool arrange(const struct spawn *spawn)
{
    int moved[SPAWN_HANDED_MAX];
    int above = 3 + spawn->handed_count;
    for (int i = 0; i < spawn->handed_count; i++)
        if ((moved[i] = fcntl(spawn->handed[i], F_DUPFD, above)) < 0)
            return false;
    int standard[3];
    for (int i = 0; i < 3; i++)
        if ((standard[i] = fcntl(spawn->fd[i], F_DUPFD, above)) < 0)
            return false;
    for (int i = 0; i < 3; i++)
        if (dup2(standard[i], i) < 0)
            return false;
    for (int i = 0; i < spawn->handed_count; i++)
        if (dup2(moved[i], 3 + i) < 0)
            return false;
    return close_range((unsigned)above, ~0U, 0) == 0;
}

/* The child runs on a stack that the sanitizer does not know. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

UNCHECKED static int give_up(struct child *child, enum spawn_step step, int error)
{
    child->error = error;
    child->failed = step;
    _exit(127);
}

UNCHECKED static void run_program(struct child *child)
{
    const struct spawn *spawn = child->spawn;
    int error = ENOENT;
    for (const char *const *path = spawn->paths; *path; path++) {
        execve(*path, spawn->argv, spawn->env);
        /* As execvp: when one directory of PATH lacks the program and another one refuses it, the
         * refusal is the reason to report. */
        if (errno != ENOENT && errno != ENOTDIR)
            error = errno;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            break;
    }
    (void)give_up(child, SPAWN_EXEC, error);
}

/* Without it the process is killed later than it should: no reason not to start it. */
UNCHECKED static void restore_score(void)
{
    int fd = score_len ? open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    (void)!write(fd, score_at_start, score_len);
    close(fd);
}

UNCHECKED static int start(void *argument)
{
    struct child *child = argument;
    const struct spawn *spawn = child->spawn;
    if (!spawn->outlives_parent) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != child->parent)
            _exit(127); /* it died before the line above could count */
    }
    reset_signals(&child->mask);
    if (setsid() < 0)
        return give_up(child, SPAWN_SESSION, errno);
    if (spawn->cwd && chdir(spawn->cwd) != 0)
        return give_up(child, SPAWN_CHDIR, errno);
    if (!arrange(spawn))
        return give_up(child, SPAWN_DESCRIPTORS, errno);
    restore_score();
    /* Last of all: the parent may hold more descriptors than the child is to have. */
    if (spawn->nofile && setrlimit(RLIMIT_NOFILE, spawn->nofile) != 0)
        return give_up(child, SPAWN_LIMIT, errno);
    if (spawn->listen_pid)
        write_pid(spawn->listen_pid, getpid());
    run_program(child);
    return 127;
}

/* The call itself, on a stack of the child's own: the parent's frames must stay as they are. */
static pid_t clone_child(struct child *child, int *out_pidfd)
{
    enum { STACK_SIZE = 64 * 1024 };
    char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -1;
    pid_t pid = clone(start, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
                      child, out_pidfd);
    int error = errno;
    munmap(stack, STACK_SIZE);
    errno = error;
    return pid;
}

struct spawned spawn_process(const struct spawn *spawn)
{
    struct child child = {.spawn = spawn, .parent = getpid(), .failed = SPAWN_OK};
    struct spawned out = {.pid = -1, .pidfd = -1};
    sigset_t all, old;
    if (spawn->handed_count > SPAWN_HANDED_MAX)
        return (struct spawned){-1, -1, SPAWN_DESCRIPTORS, E2BIG};
    sigemptyset(&child.mask);
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &old); /* no handler may run in the child on our memory */
    out.pid = clone_child(&child, &out.pidfd);
    int error = errno;
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    if (out.pid < 0)
        return (struct spawned){-1, -1, SPAWN_CLONE, error};
    if (child.failed != SPAWN_OK) {
        (void)waitpid(out.pid, NULL, 0);
        if (out.pidfd >= 0)
            close(out.pidfd);
        return (struct spawned){-1, -1, child.failed, child.error};
    }
    return out;
}

int spawn_null(struct diag *diag)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), error = errno;
    if (null >= 0)
        return null;
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "cannot open /dev/null: %s", strerror(error));
    diag_hint(diag, "%s", cure_of_null(error).text);
    return -1;
}
