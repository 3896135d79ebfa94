/* worker_socket.c - the worker's side of calls: a WorkerSocket.
 *
 * Waiting is done without the GIL, and ends for Python's signal handlers. */
#include <time.h>

#include "binding.h"

struct socket_object {
    PyObject_HEAD
    struct roost_worker *worker;
    bool is_taking; /* somebody is in next() */
};

static void dealloc(PyObject *self)
{
    roost_worker_free(((struct socket_object *)self)->worker);
    binding_dealloc(self);
}

/* Takes the worker, also on failure; NULL raises the error. */
static PyObject *socket_make(PyTypeObject *type, struct roost_worker *worker,
                             const struct roost_error *error)
{
    if (!worker)
        return binding_raise(binding_of(type), error, NULL, NULL);
    struct socket_object *self = binding_alloc(type);
    if (self)
        self->worker = worker;
    else
        roost_worker_free(worker);
    return (PyObject *)self;
}

static PyObject *socket_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fd", "life", NULL};
    int fd, life = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|i:WorkerSocket", names, &fd, &life))
        return NULL;
    struct roost_error error;
    struct roost_worker *worker = roost_worker_new(fd, (int32_t)life, &error);
    return socket_make(type, worker, &error);
}

static PyObject *socket_open(PyObject *class, PyObject *mapping)
{
    PyObject *owner;
    const char **env = binding_environment(mapping, "environ", &owner);
    if (!env)
        return NULL;
    struct roost_error error;
    struct roost_worker *worker = roost_worker_open(env, &error);
    PyMem_Free(env);
    Py_DECREF(owner);
    return socket_make((PyTypeObject *)class, worker, &error);
}

static enum roost_code send_ready(PyObject *self, const struct roost_bytes *bytes, size_t count,
                                  struct roost_error *err)
{
    return roost_worker_ready(((struct socket_object *)self)->worker, bytes, count, err);
}

static enum roost_code send_refusal(PyObject *self, const struct roost_bytes *bytes, size_t count,
                                    struct roost_error *err)
{
    return roost_worker_refuse(((struct socket_object *)self)->worker, bytes, count, err);
}

static PyObject *ready(PyObject *self, PyObject *pieces)
{
    return pieces_send(self, pieces, send_ready);
}

static PyObject *refuse(PyObject *self, PyObject *pieces)
{
    return pieces_send(self, pieces, send_refusal);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The next request within `wait_ms`; *out NULL when time was up or the driver has gone. */
static bool take(struct socket_object *it, int32_t wait_ms, struct roost_request **out)
{
    int64_t deadline = wait_ms < 0 ? -1 : now_ms() + wait_ms;
    for (;;) {
        struct roost_error error;
        enum roost_code code;
        bool is_over;
        /* One that came before the wait would be heard with the next request only. */
        if (PyErr_CheckSignals() < 0)
            return false;
        Py_BEGIN_ALLOW_THREADS
        code = roost_worker_next(it->worker, wait_ms, out, &error);
        is_over = roost_worker_is_over(it->worker);
        Py_END_ALLOW_THREADS
        if (code != ROOST_OK) {
            binding_raise(binding_of(Py_TYPE((PyObject *)it)), &error, NULL, NULL);
            return false;
        }
        if (*out || is_over)
            return true;
        int64_t left = deadline < 0 ? -1 : deadline - now_ms();
        if (deadline >= 0 && left <= 0)
            return PyErr_CheckSignals() == 0;
        wait_ms = (int32_t)left;
    }
}

bool socket_take(PyObject *socket, int32_t wait_ms, struct roost_request **out)
{
    struct socket_object *it = (struct socket_object *)socket;
    if (it->is_taking) {
        PyErr_SetString(PyExc_RuntimeError, "another thread is waiting for the next request");
        return false;
    }
    it->is_taking = true;
    bool is_good = take(it, wait_ms, out);
    it->is_taking = false;
    return is_good;
}

static PyObject *next(PyObject *self, PyObject *args)
{
    PyObject *timeout = Py_None;
    struct roost_request *request = NULL;
    int32_t wait_ms;
    if (!PyArg_ParseTuple(args, "|O:next", &timeout) || !binding_timeout(timeout, &wait_ms) ||
        !socket_take(self, wait_ms, &request))
        return NULL;
    if (request)
        return request_take(self, request);
    Py_RETURN_NONE;
}

static PyObject *get_is_over(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(roost_worker_is_over(((struct socket_object *)self)->worker));
}

static PyObject *get_fd(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(roost_worker_fd(((struct socket_object *)self)->worker));
}

static PyGetSetDef fields[] = {
    {"is_over", get_is_over, NULL, "the driver has closed its side", NULL},
    {"fd", get_fd, NULL, "readable when a request may be there", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"open", socket_open, METH_O | METH_CLASS, "open(environ): the socket that it names"},
    {"ready", ready, METH_O, "ready(pieces): tells the driver that requests are welcome"},
    {"refuse", refuse, METH_O, "refuse(pieces): tells the driver why there will be no worker"},
    {"next", next, METH_VARARGS, "next(timeout=None) -> Request, or None in time or at the end"},
    {"serve", socket_serve, METH_VARARGS,
     "serve(worker, set_timers, awaited, answer, finish): one call after the other, to the end"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A worker's socket to its driver: WorkerSocket(fd, life=1)."},
    {Py_tp_new, socket_new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec worker_socket_spec = {
    .name = "roost._roost.WorkerSocket",
    .basicsize = sizeof(struct socket_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
