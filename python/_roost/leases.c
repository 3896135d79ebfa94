/* leases.c - the type Leases: ports of this machine, held as long as the object. */
#include "binding.h"

struct leases_object {
    PyObject_HEAD
    struct roost_leases *value;
    Py_ssize_t count;
};

static void dealloc(PyObject *self)
{
    roost_leases_free(((struct leases_object *)self)->value);
    binding_dealloc(self);
}

static struct roost_port_want *read_wants(struct binding *binding, PyObject *counts)
{
    Py_ssize_t count = PyTuple_Size(counts);
    struct roost_port_want *wants = PyMem_Calloc((size_t)count + 1, sizeof *wants);
    if (!wants)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; wants && i < count; i++) {
        if (!binding_int32(PyTuple_GetItem(counts, i), "counts", binding->error, &wants[i].count)) {
            PyMem_Free(wants);
            wants = NULL;
        }
    }
    return wants;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"counts", "owner", "env", "base", NULL};
    struct binding *binding = binding_of(type);
    PyObject *counts, *env;
    const char *owner;
    int base = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!zO|i:Leases", words, &PyTuple_Type, &counts,
                                     &owner, &env, &base))
        return NULL;
    struct texts texts = {0};
    struct roost_port_want *wants = NULL;
    struct leases_object *self = binding_alloc(type);
    if (self && texts_open(binding, &texts, env, "env"))
        wants = read_wants(binding, counts);
    if (wants) {
        struct roost_port_options options = {.env = texts.texts, .owner = owner, .base = base};
        struct roost_error error;
        self->count = PyTuple_Size(counts);
        Py_BEGIN_ALLOW_THREADS
        self->value = roost_leases_new(&options, wants, (size_t)self->count, &error);
        Py_END_ALLOW_THREADS
        if (!self->value)
            binding_raise(binding, &error, NULL, NULL);
    }
    PyMem_Free(wants);
    texts_close(&texts);
    if (self && !self->value)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *get_ports(PyObject *self, void *closure)
{
    (void)closure;
    const struct leases_object *it = (const struct leases_object *)self;
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < it->count; i++)
        binding_append(&list, PyLong_FromLong(roost_leases_port(it->value, (size_t)i)));
    return list;
}

/* Still leased, but whoever they are for can bind them now. */
static PyObject *release(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct leases_object *it = (const struct leases_object *)self;
    for (Py_ssize_t i = 0; i < it->count; i++)
        roost_leases_release(it->value, (size_t)i);
    Py_RETURN_NONE;
}

static PyGetSetDef fields[] = {
    {"ports", get_ports, NULL, "the first port of each block", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"release", release, METH_NOARGS, "closes the sockets and keeps the leases"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Leases(counts, owner, env, base=0): blocks of ports of this machine"},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec leases_spec = {
    .name = "roost._roost.Leases",
    .basicsize = sizeof(struct leases_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
