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

PyObject *binding_die_on(PyObject *module, PyObject *number)
{
    (void)module;
    long wanted = PyLong_AsLong(number);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    struct sigaction action = {.sa_handler = die};
    sigemptyset(&action.sa_mask);
    if (wanted < 1 || wanted > SIGRTMAX || sigaction((int)wanted, &action, NULL) < 0) {
        PyErr_Format(PyExc_ValueError, "signal %ld cannot be caught", wanted);
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *binding_allow_tracing(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    /* Fails where the kernel has no such restriction, and then there is nothing to allow. */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    Py_RETURN_NONE;
}
