/* column.c - a column of a plan as a buffer over the plan's own memory. */
#include "binding.h"

struct column_object {
    PyObject_HEAD
    PyObject *owner; /* keeps the memory alive */
    const char *name;
    const void *data;
    Py_ssize_t count, item_size;
};

PyObject *column_new(struct binding *binding, PyObject *owner, const struct column_entry *entry)
{
    struct column_object *self = binding_alloc(binding->column);
    if (!self)
        return NULL;
    Py_INCREF(owner);
    self->owner = owner;
    self->name = entry->name;
    self->data = entry->data;
    self->count = entry->count;
    self->item_size = entry->item_size;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    Py_XDECREF(((struct column_object *)self)->owner);
    binding_dealloc(self);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct column_object *it = (struct column_object *)self;
    if (flags & PyBUF_WRITABLE) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "a plan is read-only");
        return -1;
    }
    *view = (Py_buffer){
        .buf = (void *)(uintptr_t)it->data, /* read-only, as the view says */
        .obj = self,
        .len = it->count * it->item_size,
        .itemsize = it->item_size,
        .readonly = 1,
        .ndim = 1,
        .format = flags & PyBUF_FORMAT ? (it->item_size == 4 ? "i" : "B") : NULL,
        .shape = (flags & PyBUF_ND) == PyBUF_ND ? &it->count : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &it->item_size : NULL,
    };
    Py_INCREF(self);
    return 0;
}

static Py_ssize_t length(PyObject *self)
{
    return ((struct column_object *)self)->count;
}

static PyObject *item(PyObject *self, Py_ssize_t index)
{
    const struct column_object *it = (const struct column_object *)self;
    if (index < 0 || index >= it->count) {
        PyErr_SetString(PyExc_IndexError, "column index out of range");
        return NULL;
    }
    return PyLong_FromLong(it->item_size == 4 ? ((const int32_t *)it->data)[index]
                                              : ((const uint8_t *)it->data)[index]);
}

static PyObject *repr(PyObject *self)
{
    const struct column_object *it = (const struct column_object *)self;
    return PyUnicode_FromFormat("<roost.Column %s: %zd x %s>", it->name, it->count,
                                it->item_size == 4 ? "int32" : "uint8");
}

static PyObject *reduce(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return binding_refuse_pickle(self, "list(column) or numpy.array(column)");
}

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "says what to pickle instead"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A column of a plan: read-only memory for memoryview and numpy.asarray."},
    {Py_tp_dealloc, dealloc},
    {Py_bf_getbuffer, get_buffer},
    {Py_sq_length, length},
    {Py_sq_item, item},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec column_spec = {
    .name = "roost.Column",
    .basicsize = sizeof(struct column_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
