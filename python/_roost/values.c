/* values.c - Python values as messages: plain ones are written here, and small ones read, with what
 * roost._work.codec hands over; all others are written and read there. It also says what a message is. */
#include "binding.h"

enum {
    PLAIN_COUNT = 64,      /* values looked at: what has more is worth the codec's own look */
    PLAIN_DEPTH = 4,       /* of containers in each other */
    COPIED_MAX = 16 << 10, /* of a message: below, a copy costs less than an object that holds it */
};

/* The first byte of a message. */
enum { WITH_MEMORY = 1, PLAIN = 2 };

PyObject *binding_set_codec(PyObject *module, PyObject *args)
{
    struct binding *binding = PyModule_GetState(module);
    struct codec codec = {.all = args};
    if (!PyArg_ParseTuple(args, "OOOOOOn:set_codec", &codec.encode, &codec.decode, &codec.unpickle,
                          &codec.marshal, &codec.version, &codec.unmarshal, &codec.large))
        return NULL;
    PyObject *old = binding->codec.all;
    Py_INCREF(args);
    binding->codec = codec;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static bool has_codec(const struct binding *binding)
{
    if (!binding->codec.all)
        PyErr_SetString(PyExc_RuntimeError, "import roost._work.codec before values are sent");
    return binding->codec.all;
}

/* --- writing --- */

/* A look at a value. */
struct look {
    Py_ssize_t large; /* bytes from this length on are not plain */
    int left;         /* values that may still be looked at */
};

static bool is_plain(struct look *look, PyObject *value, int depth);

static bool are_plain(struct look *look, PyObject *row, Py_ssize_t count,
                      PyObject *(*get)(PyObject *, Py_ssize_t), int depth)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_plain(look, get(row, i), depth))
            return false;
    return true;
}

/* Whether it is made of the types that marshal writes alike in every version of Python, of exactly these, and
 * has nothing that is worth a look by the codec. */
static bool is_plain(struct look *look, PyObject *value, int depth)
{
    if (--look->left < 0)
        return false;
    if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
        PyFloat_CheckExact(value) || PyUnicode_CheckExact(value))
        return true;
    if (PyBytes_CheckExact(value))
        return PyBytes_Size(value) < look->large;
    if (depth-- == 0)
        return false;
    if (PyTuple_CheckExact(value))
        return are_plain(look, value, PyTuple_Size(value), PyTuple_GetItem, depth);
    if (PyList_CheckExact(value))
        return are_plain(look, value, PyList_Size(value), PyList_GetItem, depth);
    if (!PyDict_CheckExact(value))
        return false;
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item);)
        if (!is_plain(look, key, depth) || !is_plain(look, item, depth))
            return false;
    return true;
}

static bool write_plain(const struct binding *binding, struct message *out, PyObject *value)
{
    static const char first = PLAIN;
    char *at;
    Py_ssize_t len;
    out->data =
        PyObject_CallFunctionObjArgs(binding->codec.marshal, value, binding->codec.version, NULL);
    if (!out->data || PyBytes_AsStringAndSize(out->data, &at, &len) < 0) {
        Py_CLEAR(out->data);
        return false;
    }
    out->plain[0] = (struct roost_bytes){&first, 1};
    out->plain[1] = (struct roost_bytes){at, (size_t)len};
    out->bytes = out->plain;
    out->count = 2;
    return true;
}

bool message_open(const struct binding *binding, struct message *out, PyObject *value)
{
    struct look look = {binding->codec.large, PLAIN_COUNT};
    *out = (struct message){0};
    if (!has_codec(binding))
        return false;
    if (is_plain(&look, value, PLAIN_DEPTH))
        return write_plain(binding, out, value);
    PyObject *pieces = PyObject_CallFunctionObjArgs(binding->codec.encode, value, NULL);
    bool is_good = pieces && pieces_open(&out->pieces, pieces, "pieces");
    Py_XDECREF(pieces);
    out->bytes = out->pieces.bytes;
    out->count = (size_t)out->pieces.count;
    return is_good;
}

void message_close(struct message *message)
{
    Py_CLEAR(message->data);
    pieces_close(&message->pieces);
}

/* --- reading --- */

bool message_is_small(struct roost_bytes message)
{
    return message.len > 0 && message.len <= COPIED_MAX && *(const char *)message.at != WITH_MEMORY;
}

PyObject *message_read_small(const struct binding *binding, struct roost_bytes message)
{
    const char *at = message.at;
    if (!has_codec(binding))
        return NULL;
    PyObject *read = *at == PLAIN ? binding->codec.unmarshal : binding->codec.unpickle;
    PyObject *data = PyBytes_FromStringAndSize(at + 1, (Py_ssize_t)message.len - 1);
    PyObject *value = data ? PyObject_CallFunctionObjArgs(read, data, NULL) : NULL;
    Py_XDECREF(data);
    return value;
}

PyObject *message_read(const struct binding *binding, PyObject *owner)
{
    PyObject *view = has_codec(binding) ? PyMemoryView_FromObject(owner) : NULL;
    PyObject *value = view ? PyObject_CallFunctionObjArgs(binding->codec.decode, view, NULL) : NULL;
    Py_XDECREF(view);
    return value;
}
