/* serve.c - one call after the other: the usual way of a request through a worker, without a line of Python
 * around the method itself.
 *
 * What is not usual is left to Python's own way, as long as nothing has run: large or strange arguments, a
 * method that is not there. What the method did that is not usual is handed to `finish`: it raised, or
 * what it gave is to be awaited or cannot be pickled. */
#include <string.h>
#include <time.h>

#include "binding.h"

struct service {
    const struct binding *binding;
    PyObject *socket, *worker;
    PyObject *set_timers; /* set_timers({}): where the worker notes what it times in this call */
    PyObject *awaited;    /* the type of values that are to be awaited */
    PyObject *answer;     /* answer(request): Python's own way */
    PyObject *finish;     /* finish(request, value, raised or None, seconds, timers) */
};

/* A call that has run. */
struct ran {
    PyObject *value;  /* NULL = it raised, and the exception is set */
    PyObject *timers; /* NULL = not even begun, for want of memory */
    double seconds;
};

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* The method that may be called by this name; NULL without an exception when there is none. */
static PyObject *find(PyObject *worker, const char *name)
{
    PyObject *key = *name == '_' ? NULL : PyUnicode_InternFromString(name);
    PyObject *method = key ? PyObject_GetAttr(worker, key) : NULL;
    Py_XDECREF(key);
    if (method && !PyCallable_Check(method))
        Py_CLEAR(method);
    PyErr_Clear();
    return method;
}

/* (args, kwargs) of a request; NULL without an exception when it is not for the usual way. */
static PyObject *read_arguments(const struct service *service, const struct roost_request *request)
{
    struct roost_bytes payload = roost_request_payload(request);
    if (!message_is_small(payload))
        return NULL;
    PyObject *pair = message_read_small(service->binding, payload);
    if (!pair || !PyTuple_Check(pair) || PyTuple_Size(pair) != 2 ||
        !PyTuple_Check(PyTuple_GetItem(pair, 0)) || !PyDict_Check(PyTuple_GetItem(pair, 1)))
        Py_CLEAR(pair);
    PyErr_Clear(); /* Python reads it again, and tells */
    return pair;
}

static struct ran run(const struct service *service, PyObject *method, PyObject *pair)
{
    struct ran ran = {.timers = PyDict_New()};
    PyObject *token =
        ran.timers ? PyObject_CallFunctionObjArgs(service->set_timers, ran.timers, NULL) : NULL;
    if (!token)
        return ran;
    Py_DECREF(token); /* the next call sets its own */
    PyObject *named = PyTuple_GetItem(pair, 1);
    double begin = now();
    ran.value = PyObject_Call(method, PyTuple_GetItem(pair, 0), PyDict_Size(named) ? named : NULL);
    ran.seconds = now() - begin;
    return ran;
}

/* Sends the value and takes the request; false, and the request is as it was, when that is not for the usual
 * way. */
static bool reply(const struct service *service, const struct ran *ran,
                  struct roost_request *request)
{
    if (!ran->value || (PyObject *)Py_TYPE(ran->value) == service->awaited)
        return false;
    struct message message;
    PyObject *answer = Py_BuildValue("(OdO)", ran->value, ran->seconds,
                                     PyDict_Size(ran->timers) ? ran->timers : Py_None);
    bool is_good = answer && message_open(service->binding, &message, answer);
    Py_XDECREF(answer);
    if (!is_good) {
        PyErr_Clear(); /* Python tries it again, and tells */
        return false;
    }
    bool is_over;
    Py_BEGIN_ALLOW_THREADS
    enum roost_code code = roost_request_reply(request, message.bytes, message.count, NULL);
    is_over = code == ROOST_OK || code == ROOST_ERR_IO; /* nobody is there */
    if (is_over)
        roost_request_free(request); /* which may wait for the driver, too */
    Py_END_ALLOW_THREADS
    message_close(&message);
    return is_over;
}

/* The exception that is set, as an object; None when there is none. */
static PyObject *take_exception(void)
{
    PyObject *type, *value, *frames;
    PyErr_Fetch(&type, &value, &frames);
    PyErr_NormalizeException(&type, &value, &frames);
    if (value && frames)
        PyException_SetTraceback(value, frames);
    Py_XDECREF(type);
    Py_XDECREF(frames);
    return value ? value : Py_NewRef(Py_None);
}

/* Takes the request, also on failure. False with an exception. */
static bool finish(const struct service *service, const struct ran *ran,
                   struct roost_request *request)
{
    PyObject *raised = take_exception();
    PyObject *object = request_take(service->socket, request);
    PyObject *done = object
                         ? PyObject_CallFunction(service->finish, "OOOdO", object,
                                                 ran->value ? ran->value : Py_None, raised,
                                                 ran->seconds, ran->timers ? ran->timers : Py_None)
                         : NULL;
    Py_XDECREF(object);
    Py_DECREF(raised);
    Py_XDECREF(done);
    return done;
}

/* Python's own way. Takes the request, also on failure. False with an exception. */
static bool leave(const struct service *service, struct roost_request *request)
{
    PyObject *object = request_take(service->socket, request);
    PyObject *done = object ? PyObject_CallFunctionObjArgs(service->answer, object, NULL) : NULL;
    Py_XDECREF(object);
    Py_XDECREF(done);
    return done;
}

/* Takes the request, also on failure. False with an exception. */
static bool handle(const struct service *service, struct roost_request *request)
{
    PyObject *method = find(service->worker, roost_request_method(request));
    PyObject *pair = method ? read_arguments(service, request) : NULL;
    if (!pair) {
        Py_XDECREF(method);
        return leave(service, request);
    }
    struct ran ran = run(service, method, pair);
    Py_DECREF(method);
    Py_DECREF(pair);
    bool is_good = reply(service, &ran, request) || finish(service, &ran, request);
    Py_XDECREF(ran.value);
    Py_XDECREF(ran.timers);
    return is_good;
}

PyObject *socket_serve(PyObject *socket, PyObject *args)
{
    struct service it = {.binding = binding_of(Py_TYPE(socket)), .socket = socket};
    if (!PyArg_ParseTuple(args, "OOOOO:serve", &it.worker, &it.set_timers, &it.awaited, &it.answer,
                          &it.finish))
        return NULL;
    for (;;) {
        struct roost_request *request = NULL;
        if (!socket_take(socket, -1, &request))
            return NULL;
        if (!request)
            Py_RETURN_NONE; /* the driver has gone */
        if (!handle(&it, request))
            return NULL;
    }
}
