/* caller.c - the type Caller: a method of a group's workers, as a callable that sends its arguments. */
#include "binding.h"

struct caller_object {
    PyObject_HEAD
    PyObject *group;
    PyObject *method; /* its name */
    PyObject *site;   /* what the calls have in common, for `make` */
    PyObject *make;   /* make(site, call): what a call answers with */
    PyObject *type;   /* of the call: Call, or a class that derives from it */
    const char *name; /* memory of `method` */
    struct rank_list ranks;
};

/* There is no clear, as a tuple has none: what is in a cycle with it can be cleared, and it can be called to
 * its end. */
static int traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct caller_object *it = (const struct caller_object *)self;
    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT(it->group);
    Py_VISIT(it->site);
    Py_VISIT(it->make);
    Py_VISIT(it->type);
    return 0;
}

static void dealloc(PyObject *self)
{
    struct caller_object *it = (struct caller_object *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(it->site);
    Py_XDECREF(it->make);
    Py_XDECREF(it->type);
    Py_XDECREF(it->group);
    Py_XDECREF(it->method);
    rank_list_close(&it->ranks);
    binding_dealloc(self);
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *words)
{
    static char *names[] = {"group", "method", "ranks", "make", "site", "type", NULL};
    struct binding *binding = binding_of(type);
    PyObject *group, *method, *ranks, *make, *site, *call_type;
    if (!PyArg_ParseTupleAndKeywords(args, words, "OUOOOO:Caller", names, &group, &method, &ranks,
                                     &make, &site, &call_type) ||
        !binding_want(group, binding->group, "group"))
        return NULL;
    if (!PyType_Check(call_type) || !PyType_IsSubtype((PyTypeObject *)call_type, binding->call)) {
        PyErr_Format(PyExc_TypeError, "type must derive from Call, not %R", call_type);
        return NULL;
    }
    const char *name = binding_text(binding, method, "method");
    struct caller_object *self = name ? binding_alloc(type) : NULL;
    if (!self)
        return NULL;
    self->group = Py_NewRef(group);
    self->method = Py_NewRef(method);
    self->site = Py_NewRef(site);
    self->make = Py_NewRef(make);
    self->type = Py_NewRef(call_type);
    self->name = name;
    if (rank_list_open(binding, &self->ranks, ranks))
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

/* The message of the arguments, sent. */
static PyObject *send_arguments(const struct caller_object *it, const struct binding *binding,
                                PyObject *args, PyObject *words)
{
    struct message message;
    PyObject *named = words ? Py_NewRef(words) : PyDict_New();
    PyObject *pair = named ? PyTuple_Pack(2, args, named) : NULL;
    bool is_good = pair && message_open(binding, &message, pair);
    Py_XDECREF(named);
    Py_XDECREF(pair);
    if (!is_good)
        return NULL;
    struct roost_call_options options = {.method = it->name,
                                         .bytes = message.bytes,
                                         .byte_count = message.count,
                                         .ranks = it->ranks.numbers,
                                         .rank_count = it->ranks.count};
    PyObject *call = group_call(it->group, &options, (PyTypeObject *)it->type, it->site);
    message_close(&message);
    return call;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *words)
{
    const struct caller_object *it = (const struct caller_object *)self;
    if (group_is_closed(it->group))
        return PyObject_CallMethod(it->site, "refuse", NULL);
    PyObject *sent = send_arguments(it, binding_of(Py_TYPE(self)), args, words);
    PyObject *made = sent ? PyObject_CallFunctionObjArgs(it->make, it->site, sent, NULL) : NULL;
    Py_XDECREF(sent);
    return made;
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(((struct caller_object *)self)->method);
}

static PyObject *get_doc(PyObject *self, void *closure)
{
    (void)closure;
    return PyObject_GetAttrString(((struct caller_object *)self)->site, "doc");
}

static PyGetSetDef fields[] = {
    {"__name__", get_name, NULL, "of the method", NULL},
    {"__doc__", get_doc, NULL, "of the method", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new},   {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse},
    {Py_tp_call, call}, {Py_tp_getset, fields},   {0, NULL},
};

PyType_Spec caller_spec = {
    .name = "roost._roost.Caller",
    .basicsize = sizeof(struct caller_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
