/* managers.c - the type Registry: the managers' memory in this process. */
#include "binding.h"

struct managers_object {
    PyObject_HEAD
    struct roost_registry *value;
    PyObject *later; /* a list of (owner, answer) */
    bool has_failed; /* one of them did not fit into memory */
};

/* Puts (owner, bytes) at the end of a list; false with an exception. */
static bool keep_pair(void *list, uint64_t owner, const char *bytes, size_t len)
{
    PyObject *entry = Py_BuildValue("(Ky#)", (unsigned long long)owner, bytes, (Py_ssize_t)len);
    bool is_kept = entry && PyList_Append(list, entry) == 0;
    Py_XDECREF(entry);
    return is_kept;
}

static void keep_later(void *context, uint64_t owner, const char *answer, size_t len)
{
    struct managers_object *it = context;
    if (!keep_pair(it->later, owner, answer, len))
        it->has_failed = true;
}

static PyObject *managers_create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"view", NULL};
    const char *view = NULL;
    Py_ssize_t len = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z#:Registry", words, &view, &len))
        return NULL;
    struct managers_object *self = binding_alloc(type);
    if (!self)
        return NULL;
    struct roost_error err = {0};
    self->later = PyList_New(0);
    self->value =
        self->later ? roost_registry_new(view, (size_t)len, keep_later, self, &err) : NULL;
    if (self->later && !self->value)
        binding_raise(binding_of(type), &err, NULL, NULL);
    if (!self->value)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* The exception of an answer that could not be kept, or `result`. */
static PyObject *checked(struct managers_object *it, PyObject *result)
{
    if (!it->has_failed)
        return result;
    it->has_failed = false;
    Py_XDECREF(result);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

static PyObject *managers_answer(PyObject *self, PyObject *args)
{
    struct managers_object *it = (struct managers_object *)self;
    unsigned long long owner;
    const char *request;
    Py_ssize_t len;
    if (!PyArg_ParseTuple(args, "Ky#:answer", &owner, &request, &len))
        return NULL;
    struct roost_error err = {0};
    char *answer = NULL;
    if (roost_registry_answer(it->value, owner, request, (size_t)len, &answer, &err) != ROOST_OK)
        return binding_raise(binding_of(Py_TYPE(self)), &err, NULL, NULL);
    PyObject *result = answer ? PyBytes_FromString(answer) : Py_NewRef(Py_None);
    roost_answer_free(answer);
    return checked(it, result);
}

static PyObject *managers_owner_gone(PyObject *self, PyObject *owner)
{
    unsigned long long number = PyLong_AsUnsignedLongLong(owner);
    if (PyErr_Occurred())
        return NULL;
    roost_registry_owner_gone(((struct managers_object *)self)->value, number);
    return checked((struct managers_object *)self, Py_NewRef(Py_None));
}

static PyObject *managers_requests(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct managers_object *it = (const struct managers_object *)self;
    struct roost_error err = {0};
    PyObject *told = PyList_New(0);
    if (told && roost_registry_tell(it->value, keep_pair, told, &err) != ROOST_OK) {
        Py_CLEAR(told);
        if (!PyErr_Occurred())
            binding_raise(binding_of(Py_TYPE(self)), &err, NULL, NULL);
    }
    return told;
}

static PyObject *managers_changes(PyObject *self, void *closure)
{
    (void)closure;
    const struct managers_object *it = (const struct managers_object *)self;
    return PyLong_FromUnsignedLongLong(roost_registry_changes(it->value));
}

static PyObject *managers_later(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct managers_object *it = (struct managers_object *)self;
    PyObject *fresh = PyList_New(0), *told = it->later;
    if (!fresh)
        return NULL;
    it->later = fresh;
    return told;
}

static void managers_dealloc(PyObject *self)
{
    struct managers_object *it = (struct managers_object *)self;
    roost_registry_free(it->value);
    Py_XDECREF(it->later);
    binding_dealloc(self);
}

static PyMethodDef managers_methods[] = {
    {"answer", managers_answer, METH_VARARGS,
     "answer(owner, request) -> answer, or None when it comes later"},
    {"owner_gone", managers_owner_gone, METH_O, "what that owner had is free"},
    {"later", managers_later, METH_NOARGS, "takes the answers that have come: (owner, answer)"},
    {"requests", managers_requests, METH_NOARGS,
     "what is remembered, as requests that make it again: (owner, request)"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef managers_fields[] = {
    {"changes", managers_changes, NULL, "grows with everything registered, locked or freed", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot managers_slots[] = {
    {Py_tp_doc, "Registry(view=None)"}, {Py_tp_new, managers_create},
    {Py_tp_dealloc, managers_dealloc},  {Py_tp_methods, managers_methods},
    {Py_tp_getset, managers_fields},    {0, NULL},
};

PyType_Spec managers_spec = {
    .name = "roost._roost.Registry",
    .basicsize = sizeof(struct managers_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = managers_slots,
};
