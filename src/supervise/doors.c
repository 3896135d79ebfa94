/* doors.c - see doors.h. */
#include "supervise/doors.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

int doors_open(int first, int count)
{
    sigset_t mask;
    sigfillset(&mask);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    for (int fd = first; fd < first + count; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            return -1;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGQUIT);
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}
