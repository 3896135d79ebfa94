/* driver_signals.c - see driver_signals.h. Nothing is handled asynchronously: signals stay blocked, and
 * the driver takes each in its turn among the other events of a run. The descriptor only shows that one
 * is pending.
 *
 * Keeps: SIGTSTP is never taken. It stays pending until driver_suspend() lets it through, because the
 * kernel drops it when SIGCONT comes first. If the driver took it and then stopped itself, it could
 * stop after it was continued, and nothing would continue it again. */
#include "run/driver_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int watched[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

/* What nohup or a shell's background job made ignored stays so. */
static sigset_t watched_signals(void)
{
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        struct sigaction action;
        bool is_ignored = sigaction(watched[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN;
        if (!is_ignored)
            sigaddset(&mask, watched[i]);
    }
    return mask;
}

int driver_signals_open(void)
{
    sigset_t mask = watched_signals();
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) != 0)
        return -1;
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

enum driver_signal driver_signals_next(int32_t *out_number)
{
    sigset_t pending, taken = watched_signals();
    sigdelset(&taken, SIGTSTP);
    const struct timespec now = {0};
    int number = sigtimedwait(&taken, NULL, &now);
    if (number < 0) {
        if (sigpending(&pending) != 0 || !sigismember(&pending, SIGTSTP))
            return DRIVER_NONE;
        *out_number = SIGTSTP;
        return DRIVER_SUSPEND;
    }
    *out_number = number;
    switch (number) {
    case SIGUSR1:
    case SIGUSR2: return DRIVER_FORWARD;
    case SIGCONT: return DRIVER_RESUME;
    case SIGWINCH: return DRIVER_RESIZE;
    default: return DRIVER_END;
    }
}

void driver_suspend(void)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
}

int32_t driver_stop_signal(void)
{
    return SIGSTOP;
}

int32_t driver_continue_signal(void)
{
    return SIGCONT;
}

struct signal_word signal_word(int32_t number)
{
    struct signal_word word;
    const char *name = sigabbrev_np(number);
    if (name)
        snprintf(word.text, sizeof word.text, "SIG%s", name);
    else
        snprintf(word.text, sizeof word.text, "signal %d", number);
    return word;
}
