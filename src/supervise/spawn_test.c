/* spawn_test.c - each step between clone and exec, when it works and when it fails; and the sweep of what
 * was left behind. */
#include "supervise/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/cgroup.h"
#include "supervise/sweep.h"
#include "tests/unit.h"

static char *const no_env[] = {NULL};

/* Runs a shell line with its output on a pipe; returns what it printed. */
static void run_shell(struct spawn *spawn, const char *line, char *out, size_t size)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    spawn->paths = (const char *const[]){"/bin/sh", NULL};
    spawn->argv = (char *const[]){"sh", "-c", (char *)(uintptr_t)line, NULL};
    spawn->env = spawn->env ? spawn->env : no_env;
    spawn->fd[0] = null;
    spawn->fd[1] = spawn->fd[2] = ends[1];
    struct spawned spawned = spawn_process(spawn);
    close(ends[1]);
    close(null);
    assert_int_equal(spawned.failed, SPAWN_OK);
    size_t len = 0;
    ssize_t got;
    while ((got = read(ends[0], out + len, size - 1 - len)) > 0)
        len += (size_t)got;
    out[len] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(spawned.pid, &status, 0), spawned.pid);
    assert_true(fcntl(spawned.pidfd, F_GETFD) >= 0);
    close(spawned.pidfd);
}

static struct spawned spawn_plain(struct spawn spawn)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *argv[] = {"true", NULL};
    spawn.argv = argv;
    spawn.env = no_env;
    spawn.fd[0] = spawn.fd[1] = spawn.fd[2] = null;
    struct spawned spawned = spawn_process(&spawn);
    close(null);
    return spawned;
}

TEST(a_step_that_fails_is_named_with_its_reason)
{
    static const char *const program[] = {"/bin/true", NULL}, *const none[] = {"/no/such", NULL},
                             *const forbidden[] = {"/no/such", "/etc/passwd", "/nor/this", NULL};
    static const struct rlimit wrong = {100, 10};
    static const int handed[] = {9999};
    const struct {
        struct spawn spawn;
        enum spawn_step step;
        int error;
    } rows[] = {
        {{.paths = none}, SPAWN_EXEC, ENOENT},
        {{.paths = forbidden}, SPAWN_EXEC, EACCES},
        {{.paths = program, .cwd = "/no/such"}, SPAWN_CHDIR, ENOENT},
        {{.paths = program, .nofile = &wrong}, SPAWN_LIMIT, EINVAL},
        {{.paths = program, .handed = handed, .handed_count = 1}, SPAWN_DESCRIPTORS, EBADF},
        {{.paths = program, .handed = handed, .handed_count = SPAWN_HANDED_MAX + 1},
         SPAWN_DESCRIPTORS,
         E2BIG},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct spawned spawned = spawn_plain(rows[i].spawn);
        assert_int_equal(spawned.failed, rows[i].step);
        assert_int_equal(spawned.error, rows[i].error);
        assert_int_equal(spawned.pid, -1);
        assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* nothing to reap */
        assert_true(strlen(spawn_step_word(rows[i].step)) > 3);
    }
}

TEST(a_child_has_its_three_descriptors_and_those_handed_over)
{
    int extra = open("/dev/null", O_RDONLY); /* not even close-on-exec */
    int handed[] = {open("/dev/zero", O_RDONLY | O_CLOEXEC), open("/dev/full", O_WRONLY)};
    struct spawn spawn = {.handed = handed, .handed_count = 2};
    char out[512];
    run_shell(&spawn, "for i in /proc/$$/fd/*; do readlink $i; done | grep -c .", out, sizeof out);
    assert_string_equal(out, "5\n");
    run_shell(&spawn, "readlink /proc/$$/fd/3 /proc/$$/fd/4", out, sizeof out);
    assert_string_equal(out, "/dev/zero\n/dev/full\n");
    close(extra);
    close(handed[0]);
    close(handed[1]);
}

/* The kernel lets the parent go on before it closes what closes at exec: by then nothing of the
 * parent's may be open in the child, or a port that is released next is taken for a while longer. */
TEST(a_child_has_let_go_of_its_parents_descriptors_when_the_parent_goes_on)
{
    static const char *const program[] = {"/bin/true", NULL};
    for (int i = 0; i < 500; i++) {
        int ends[2];
        char byte;
        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        struct spawned spawned = spawn_plain((struct spawn){.paths = program});
        close(ends[1]);
        assert_int_equal(spawned.failed, SPAWN_OK);
        assert_int_equal(read(ends[0], &byte, 1), 0); /* an end, not "try again" */
        close(ends[0]);
        assert_int_equal(waitpid(spawned.pid, NULL, 0), spawned.pid);
        close(spawned.pidfd);
    }
}

TEST(a_child_may_have_fewer_files_than_its_parent_holds)
{
    int fds[64];
    for (size_t i = 0; i < ROWS(fds); i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit few = {16, 64};
    struct spawn spawn = {.nofile = &few};
    char out[64];
    run_shell(&spawn, "ulimit -Sn; ulimit -Hn", out, sizeof out);
    assert_string_equal(out, "16\n64\n");
    for (size_t i = 0; i < ROWS(fds); i++)
        close(fds[i]);
}

TEST(a_child_leads_its_session_and_ignores_nothing)
{
    struct spawn spawn = {.cwd = "/"};
    char out[256];
    (void)signal(SIGUSR2, SIG_IGN);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
    /* The shell itself becomes grep: while it starts another program it blocks signals. */
    run_shell(&spawn, "pwd; exec grep -E 'Sig(Blk|Ign)' /proc/self/status", out, sizeof out);
    (void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
    (void)signal(SIGUSR2, SIG_DFL);
    assert_string_equal(out, "/\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    run_shell(&spawn, "set -- $(cat /proc/$$/stat); test $1 = $5 -a $1 = $6 && echo leads", out,
              sizeof out);
    assert_string_equal(out, "leads\n");
}

TEST(the_pid_is_written_without_leading_zeros)
{
    char listen[] = "LISTEN_PID=##########";
    char *env[] = {listen, NULL};
    struct spawn spawn = {.env = env, .listen_pid = listen + sizeof "LISTEN_PID=" - 1};
    char out[64];
    run_shell(&spawn, "test $LISTEN_PID = $$ && echo \"same${LISTEN_PID%%[1-9]*}\"", out,
              sizeof out);
    assert_string_equal(out, "same\n");
}

/* A child that leaves a grandchild in a session of its own, which ignores what it can. */
static void leave_daemon(void)
{
    if (fork() == 0) {
        setsid();
        (void)signal(SIGTERM, SIG_IGN);
        if (fork() == 0)
            for (;;)
                pause();
        _exit(0);
    }
}

TEST(a_sweep_leaves_no_descendant)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (int i = 0; i < 8; i++)
        leave_daemon();
    close(ends[1]);
    assert_true(sweep_descendants(10000));
    assert_int_equal(read(ends[0], &byte, 1), 0); /* nobody holds the pipe any more */
    assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    assert_true(sweep_descendants(0)); /* nothing is as good as swept */
    close(ends[0]);
}

/* Until a child has said that it runs: the parent goes on before the child's environment is its own. */
static void wait_up(int fd)
{
    char word[3];
    assert_int_equal(read(fd, word, sizeof word), sizeof word);
}

TEST(a_sweep_by_run_id_finds_those_who_carry_it_and_no_others)
{
    char id[32], token[64];
    snprintf(id, sizeof id, "test-%d", (int)getpid());
    snprintf(token, sizeof token, "ROOST_RUN_ID=%s", id);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), up[2];
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    char *argv[] = {"sh", "-c", "echo up; exec sleep 1000", NULL};
    char *with[] = {"A=b", token, NULL}, *without[] = {"A=b", "ROOST_RUN_ID=other", NULL};
    struct spawn spawn = {
        .paths = (const char *const[]){"/bin/sh", NULL}, .argv = argv, .fd = {null, up[1], null}};
    spawn.env = with;
    struct spawned first = spawn_process(&spawn);
    wait_up(up[0]);
    spawn.env = without;
    struct spawned second = spawn_process(&spawn);
    assert_true(first.failed == SPAWN_OK && second.failed == SPAWN_OK);
    assert_true(sweep_run(id, 1000) >= 1);
    int status;
    assert_int_equal(waitpid(first.pid, &status, 0), first.pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(waitpid(second.pid, &status, WNOHANG), 0);
    assert_int_equal(sweep_run(id, 1000), 0);
    assert_int_equal(kill(second.pid, SIGKILL), 0);
    assert_int_equal(waitpid(second.pid, &status, 0), second.pid);
    close(first.pidfd);
    close(second.pidfd);
    close(null);
    close(up[0]);
    close(up[1]);
}

TEST(a_control_group_that_is_not_there_is_no_trouble)
{
    struct cgroup cgroup;
    assert_false(cgroup_open(&cgroup, "/no/such/group"));
    assert_false(cgroup_find(&cgroup, "no-such-run"));
    assert_false(cgroup_join(&cgroup));
    assert_false(cgroup_leave(&cgroup));
    cgroup_kill(&cgroup);
    assert_true(cgroup_remove(&cgroup, 0));
}

TEST(a_control_group_ends_what_is_in_it)
{
    struct cgroup cgroup;
    char id[32];
    snprintf(id, sizeof id, "test-%d", (int)getpid());
    if (!cgroup_make(&cgroup, id))
        return; /* not for this user on this machine: the engine does without too */
    int ends[2], status;
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        byte = cgroup_join(&cgroup) ? 'y' : 'n';
        if (write(ends[1], &byte, 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    cgroup_kill(&cgroup);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(cgroup_remove(&cgroup, 10000));
    assert_false(cgroup_find(&cgroup, id));
    close(ends[0]);
    close(ends[1]);
}

RUN_TESTS(cmocka_unit_test(a_step_that_fails_is_named_with_its_reason),
          cmocka_unit_test(a_child_has_its_three_descriptors_and_those_handed_over),
          cmocka_unit_test(a_child_has_let_go_of_its_parents_descriptors_when_the_parent_goes_on),
          cmocka_unit_test(a_child_may_have_fewer_files_than_its_parent_holds),
          cmocka_unit_test(a_child_leads_its_session_and_ignores_nothing),
          cmocka_unit_test(the_pid_is_written_without_leading_zeros),
          cmocka_unit_test(a_sweep_leaves_no_descendant),
          cmocka_unit_test(a_sweep_by_run_id_finds_those_who_carry_it_and_no_others),
          cmocka_unit_test(a_control_group_that_is_not_there_is_no_trouble),
          cmocka_unit_test(a_control_group_ends_what_is_in_it))
