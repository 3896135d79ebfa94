/* process.c - what a process of a worker asks the kernel for and Python has no words for. */
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "binding.h"

static void die(int signal_number)
{
    (void)signal_number;
    kill(getpid(), SIGKILL);
}

/* The parent, the supervisor of the run, ends its processes so: there is nothing to tell. */
static void heed_parent(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool is_parent = info->si_code == SI_USER && info->si_pid == getppid();
    if (is_parent)
        (void)signal(number, SIG_DFL);
    (void)raise(is_parent ? number : SIGQUIT);
}

static PyObject *take(long number, const struct sigaction *action)
{
    if (number == -1 && PyErr_Occurred())
        return NULL;
    if (number < 1 || number > SIGRTMAX || sigaction((int)number, action, NULL) < 0) {
        PyErr_Format(PyExc_ValueError, "signal %ld cannot be caught", number);
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *binding_die_on(PyObject *module, PyObject *number)
{
    (void)module;
    return take(PyLong_AsLong(number), &(struct sigaction){.sa_handler = die});
}

PyObject *binding_heed_parent(PyObject *module, PyObject *number)
{
    (void)module;
    return take(PyLong_AsLong(number),
                &(struct sigaction){.sa_sigaction = heed_parent, .sa_flags = SA_SIGINFO});
}

PyObject *binding_allow_tracing(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    /* Fails where the kernel has no such restriction, and then there is nothing to allow. */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    Py_RETURN_NONE;
}
