/* forked.c - what a forked worker asks the kernel for and Python has no words for; and which process this is,
 * for what a fork must leave alone. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "binding.h"

/* The pid would say the same, but the kernel has to be asked for it, and every call asks. */
static unsigned forks;

static void count_fork(void)
{
    forks++;
}

unsigned binding_forks(void)
{
    return forks;
}

bool binding_count_forks(void)
{
    if (pthread_atfork(NULL, NULL, count_fork) == 0)
        return true;
    PyErr_NoMemory();
    return false;
}

/* Whether the parent is `pid`; from now on this process dies with it. */
PyObject *binding_follow_parent(PyObject *module, PyObject *pid)
{
    (void)module;
    long parent = PyLong_AsLong(pid);
    if (parent == -1 && PyErr_Occurred())
        return NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return PyBool_FromLong(getppid() == (pid_t)parent);
}

/* A second descriptor for the same thing, not below `least`. */
PyObject *binding_duplicate_above(PyObject *module, PyObject *args)
{
    (void)module;
    int fd, least;
    if (!PyArg_ParseTuple(args, "ii:duplicate_above", &fd, &least))
        return NULL;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, least);
    if (copy < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromLong(copy);
}
