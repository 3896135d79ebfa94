/* driver_signals_test.c - the order of stopping and being continued, in a process of its own: a driver that
 * stops when it should not would take the tests with it. */
#include "run/driver_signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit.h"

enum { WRONG = 1, WATCHDOG_S = 60 };

/* A child in a process group of its own, whose parent can continue it: only there Ctrl-Z stops anything. */
static pid_t start(int (*body)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setpgid(0, 0);
        for (int number = 1; number < 32; number++)
            (void)signal(number, SIG_DFL); /* a shell may have started us deaf */
        (void)alarm(WATCHDOG_S);
        _exit(driver_signals_open() < 0 ? WRONG : body());
    }
    setpgid(child, child);
    return child;
}

static bool is_next(enum driver_signal kind, int number)
{
    int32_t got = 0;
    return driver_signals_next(&got) == kind && (kind == DRIVER_NONE || got == number);
}

static int stop_once(void)
{
    (void)raise(SIGTSTP);
    if (!is_next(DRIVER_SUSPEND, SIGTSTP) || !is_next(DRIVER_SUSPEND, SIGTSTP))
        return WRONG;
    driver_suspend();
    return is_next(DRIVER_RESUME, SIGCONT) && is_next(DRIVER_NONE, 0) ? 0 : WRONG;
}

TEST(a_driver_that_is_asked_to_stop_stops_until_it_is_continued)
{
    int status;
    pid_t child = start(stop_once);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(WSTOPSIG(status), SIGTSTP); /* the shell says "Stopped", as of any program */
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int stop_late(void)
{
    (void)raise(SIGTSTP);
    if (!is_next(DRIVER_SUSPEND, SIGTSTP))
        return WRONG;
    (void)raise(SIGCONT); /* while it tells its processes to stop */
    (void)raise(SIGTERM);
    driver_suspend();
    return is_next(DRIVER_END, SIGTERM) && is_next(DRIVER_RESUME, SIGCONT) &&
                   is_next(DRIVER_NONE, 0)
               ? 0
               : WRONG;
}

TEST(a_driver_that_was_continued_before_it_stopped_does_not_stop)
{
    int status;
    pid_t child = start(stop_late);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    if (WIFSTOPPED(status)) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

RUN_TESTS(cmocka_unit_test(a_driver_that_is_asked_to_stop_stops_until_it_is_continued),
          cmocka_unit_test(a_driver_that_was_continued_before_it_stopped_does_not_stop))
