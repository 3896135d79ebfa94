/* call_reader.c - the type Reader: what a thread runs to read for groups on which nobody waits. */
#include "binding.h"

struct reader_object {
    PyObject_HEAD
    struct roost_call_reader *reader;
    unsigned owner; /* a fork of it has no thread that runs it, and shares its descriptors */
};

static void dealloc(PyObject *self)
{
    struct reader_object *it = (struct reader_object *)self;
    if (it->owner == binding_forks())
        roost_call_reader_free(it->reader);
    binding_dealloc(self);
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *words)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, words, ":Reader", names))
        return NULL;
    struct reader_object *self = binding_alloc(type);
    if (!self)
        return NULL;
    self->owner = binding_forks();
    self->reader = roost_call_reader_new();
    if (self->reader)
        return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

static PyObject *add(PyObject *self, PyObject *group)
{
    if (!binding_want(group, binding_of(Py_TYPE(self))->group, "group") ||
        !group_read_by(group, self, ((struct reader_object *)self)->reader))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *run(PyObject *self, PyObject *nothing)
{
    struct roost_call_reader *reader = ((struct reader_object *)self)->reader;
    (void)nothing;
    Py_BEGIN_ALLOW_THREADS
    roost_call_reader_run(reader);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *get_has_groups(PyObject *self, void *closure)
{
    struct roost_call_reader *reader = ((struct reader_object *)self)->reader;
    bool has_some;
    (void)closure;
    Py_BEGIN_ALLOW_THREADS
    has_some = roost_call_reader_has_groups(reader);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(has_some);
}

static PyMethodDef methods[] = {
    {"add", add, METH_O, "The group is read for until it is closed."},
    {"run", run, METH_NOARGS, "Reads until the last group is closed."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef fields[] = {
    {"has_groups", get_has_groups, NULL, "whether any of them is not closed yet", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Reads for groups on which nobody waits, in the thread that runs it."},
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};

PyType_Spec reader_spec = {
    .name = "roost._roost.Reader",
    .basicsize = sizeof(struct reader_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
