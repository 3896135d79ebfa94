/* driver_signals.c - see driver_signals.h. Nothing is handled asynchronously: a signal is a record to
 * read, in its turn among the other events of a run. */
#include "launch/driver_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int watched[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

int driver_signals_open(void)
{
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        struct sigaction action;
        /* What nohup or a shell's background job made ignored stays so. */
        bool is_ignored = sigaction(watched[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN;
        if (!is_ignored)
            sigaddset(&mask, watched[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) != 0)
        return -1;
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

enum driver_signal driver_signals_next(int fd, int32_t *out_number)
{
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        return DRIVER_NONE;
    *out_number = (int32_t)info.ssi_signo;
    switch (*out_number) {
    case SIGUSR1:
    case SIGUSR2: return DRIVER_FORWARD;
    case SIGTSTP: return DRIVER_SUSPEND;
    case SIGCONT: return DRIVER_RESUME;
    case SIGWINCH: return DRIVER_RESIZE;
    default: return DRIVER_END;
    }
}

void driver_suspend(void)
{
    (void)raise(SIGSTOP);
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
