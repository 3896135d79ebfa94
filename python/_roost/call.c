/* call.c - the types Call, a call on its way, and Answer, what a rank sent: a buffer over the memory it
 * was read into. */
#include "binding.h"

struct call_object {
    PyObject_HEAD
    const struct binding
        *binding;    /* a class of Python's that derives from ours has no module state */
    PyObject *group; /* lives as long as its calls */
    PyObject *site;  /* what the calls of a Caller have in common; NULL = none */
    struct roost_call *call;
    unsigned
        owner; /* a fork of it would take the driver's answers, and locks that nobody there lets go */
};

PyObject *call_new(const struct binding *binding, PyTypeObject *type, PyObject *group,
                   PyObject *site, struct roost_call *call)
{
    struct call_object *self = binding_alloc(type);
    if (!self) {
        roost_call_free(call);
        return NULL;
    }
    self->binding = binding;
    self->group = Py_NewRef(group);
    self->site = Py_XNewRef(site);
    self->call = call;
    self->owner = binding_forks();
    return (PyObject *)self;
}

/* NULL with an exception in a fork of the process that made it. */
static struct roost_call *call_of(PyObject *self)
{
    const struct call_object *it = (const struct call_object *)self;
    if (it->owner == binding_forks())
        return it->call;
    PyErr_SetString(PyExc_RuntimeError,
                    "a call belongs to the process that made it, and this is a fork of it");
    return NULL;
}

static void dealloc(PyObject *self)
{
    struct call_object *it = (struct call_object *)self;
    if (it->owner == binding_forks())
        roost_call_free(it->call);
    Py_XDECREF(it->group);
    Py_XDECREF(it->site);
    binding_dealloc(self);
}

/* 1 = each rank has its outcome, 0 = time is up, -1 = with an exception. */
static int wait_done(PyObject *self, PyObject *seconds)
{
    struct roost_call *call = call_of(self);
    bool is_done;
    int32_t left;
    if (!call || !binding_timeout(seconds, &left))
        return -1;
    int32_t all = left;
    do {
        int32_t slice = binding_slice(&left);
        Py_BEGIN_ALLOW_THREADS
        is_done = roost_call_wait(call, slice);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() != 0)
            return -1;
    } while (!is_done && (all < 0 || left > 0));
    return is_done;
}

static PyObject *wait(PyObject *self, PyObject *seconds)
{
    int is_done = wait_done(self, seconds);
    return is_done < 0 ? NULL : PyBool_FromLong(is_done);
}

static PyObject *done(PyObject *self, PyObject *nothing)
{
    struct roost_call *call = call_of(self);
    bool is_done;
    (void)nothing;
    if (!call)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    is_done = roost_call_is_done(call);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(is_done);
}

/* --- answers --- */

struct answer_object {
    PyObject_HEAD
    PyObject *call; /* whose memory it is */
    struct roost_bytes bytes;
};

static PyObject *answer_new(PyObject *call, struct roost_bytes bytes)
{
    enum { COPIED_MAX = 4096 }; /* below, a copy costs less than an object that keeps the call */
    if (bytes.len <= COPIED_MAX)
        return PyBytes_FromStringAndSize(bytes.at, (Py_ssize_t)bytes.len);
    struct answer_object *self = binding_alloc(((struct call_object *)call)->binding->answer);
    if (!self)
        return NULL;
    Py_INCREF(call);
    self->call = call;
    self->bytes = bytes;
    return (PyObject *)self;
}

static void answer_dealloc(PyObject *self)
{
    Py_XDECREF(((struct answer_object *)self)->call);
    binding_dealloc(self);
}

static int answer_buffer(PyObject *self, Py_buffer *view, int flags)
{
    const struct answer_object *it = (const struct answer_object *)self;
    return PyBuffer_FillInfo(view, self, (void *)(uintptr_t)it->bytes.at, (Py_ssize_t)it->bytes.len,
                             1, flags);
}

static PyObject *endings(PyObject *self, PyObject *nothing)
{
    struct roost_call *call = call_of(self);
    PyObject *list = call ? PyList_New(0) : NULL;
    size_t count = call ? roost_call_count(call) : 0;
    (void)nothing;
    for (size_t i = 0; list && i < count; i++) {
        struct roost_outcome outcome = roost_call_outcome(call, i);
        PyObject *answer = answer_new(self, outcome.bytes);
        binding_append(&list,
                       answer ? Py_BuildValue("(isNs)", outcome.rank,
                                              roost_outcome_word(outcome.kind), answer, outcome.why)
                              : NULL);
    }
    return list;
}

/* The tuple that a rank answered with, whose first member is the value; NULL = it has none, or with the
 * exception that reading it raised. */
static PyObject *read_answer(PyObject *self, struct roost_outcome outcome)
{
    const struct binding *binding = ((struct call_object *)self)->binding;
    PyObject *answer = NULL, *owner = NULL;
    if (outcome.kind != ROOST_OUTCOME_VALUE)
        return NULL;
    if (message_is_small(outcome.bytes))
        answer = message_read_small(binding, outcome.bytes);
    else if ((owner = answer_new(self, outcome.bytes)))
        answer = message_read(binding, owner);
    Py_XDECREF(owner);
    if (answer && (!PyTuple_Check(answer) || PyTuple_Size(answer) == 0))
        Py_CLEAR(answer);
    return answer;
}

/* ([value], [answer]) of all ranks. They are not kept here: arrays among them hold this object, and their
 * memory with it. */
static PyObject *read_answers(PyObject *self)
{
    struct roost_call *call = ((struct call_object *)self)->call;
    Py_ssize_t count = (Py_ssize_t)roost_call_count(call);
    PyObject *values = PyList_New(count), *answers = PyList_New(count);
    bool is_good = values && answers;
    for (Py_ssize_t i = 0; is_good && i < count; i++) {
        PyObject *answer = read_answer(self, roost_call_outcome(call, (size_t)i));
        is_good = answer;
        if (answer) {
            PyList_SetItem(values, i, Py_NewRef(PyTuple_GetItem(answer, 0)));
            PyList_SetItem(answers, i, answer);
        }
    }
    PyObject *both = is_good ? PyTuple_Pack(2, values, answers) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(answers);
    return both;
}

static PyObject *values(PyObject *self, PyObject *seconds)
{
    int is_done = wait_done(self, seconds);
    if (is_done < 0)
        return NULL;
    PyObject *both = is_done ? read_answers(self) : NULL;
    if (both || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)))
        return both;
    PyErr_Clear(); /* outcomes tell */
    Py_RETURN_NONE;
}

/* --- the types --- */

static PyMethodDef methods[] = {
    {"wait", wait, METH_O, "Until each rank has its outcome; False after so many seconds."},
    {"done", done, METH_NOARGS, "Whether each rank has its outcome."},
    {"endings", endings, METH_NOARGS, "[(rank, kind, answer, why)] in the order of the ranks"},
    {"values", values, METH_O,
     "Waits so many seconds: ([value], [answer]) of all ranks, or None when not all have one."},
    {NULL, NULL, 0, NULL},
};

static PyObject *get_site(PyObject *self, void *closure)
{
    PyObject *site = ((struct call_object *)self)->site;
    (void)closure;
    return Py_NewRef(site ? site : Py_None);
}

static PyGetSetDef fields[] = {
    {"site", get_site, NULL, "what the calls of its Caller have in common", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A call on its way to the ranks of a group."},
    {Py_tp_getset, fields},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec call_spec = {
    .name = "roost.Call",
    .basicsize = sizeof(struct call_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static PyType_Slot answer_slots[] = {
    {Py_tp_doc, "What a rank sent: read-only memory."},
    {Py_tp_dealloc, answer_dealloc},
    {Py_bf_getbuffer, answer_buffer},
    {0, NULL},
};

PyType_Spec answer_spec = {
    .name = "roost.Answer",
    .basicsize = sizeof(struct answer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = answer_slots,
};
