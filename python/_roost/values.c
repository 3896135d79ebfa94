/* values.c - Python values as messages. Small plain ones are pickled and read here, at once; all others by
 * roost._codec, which says what a message is. */
#include "binding.h"

enum {
    PLAIN_COUNT = 64,      /* values looked at: what has more is worth the codec's own look */
    PLAIN_DEPTH = 4,       /* of containers in each other */
    COPIED_MAX = 16 << 10, /* of a message: below, a copy costs less than an object that holds it */
    PLAIN = 0,             /* the first byte of a message that is a pickle and nothing else */
};

PyObject *binding_set_codec(PyObject *module, PyObject *args)
{
    struct binding *binding = PyModule_GetState(module);
    PyObject *encode, *decode, *dumps, *loads, *protocol;
    Py_ssize_t large;
    if (!PyArg_ParseTuple(args, "OOOOOn:set_codec", &encode, &decode, &dumps, &loads, &protocol,
                          &large))
        return NULL;
    PyObject *old = binding->codec;
    Py_INCREF(args);
    binding->codec = args;
    binding->encode = encode;
    binding->decode = decode;
    binding->dumps = dumps;
    binding->loads = loads;
    binding->protocol = protocol;
    binding->large = large;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static bool has_codec(const struct binding *binding)
{
    if (!binding->codec)
        PyErr_SetString(PyExc_RuntimeError, "import roost._codec before values are sent");
    return binding->codec;
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

/* Whether a pickle of it names no class and lends no memory, so that any unpickler reads it. */
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

static bool pickle_plain(const struct binding *binding, struct message *out, PyObject *value)
{
    static const char first = PLAIN;
    char *at;
    Py_ssize_t len;
    out->pickle = PyObject_CallFunctionObjArgs(binding->dumps, value, binding->protocol, NULL);
    if (!out->pickle || PyBytes_AsStringAndSize(out->pickle, &at, &len) < 0) {
        Py_CLEAR(out->pickle);
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
    struct look look = {binding->large, PLAIN_COUNT};
    *out = (struct message){0};
    if (!has_codec(binding))
        return false;
    if (is_plain(&look, value, PLAIN_DEPTH))
        return pickle_plain(binding, out, value);
    PyObject *parts = PyObject_CallFunctionObjArgs(binding->encode, value, NULL);
    bool is_good = parts && pieces_open(&out->pieces, parts, "parts");
    Py_XDECREF(parts);
    out->bytes = out->pieces.bytes;
    out->count = (size_t)out->pieces.count;
    return is_good;
}

void message_close(struct message *message)
{
    Py_CLEAR(message->pickle);
    pieces_close(&message->pieces);
}

/* --- reading --- */

bool message_is_small(struct roost_bytes message)
{
    return message.len > 0 && message.len <= COPIED_MAX && *(const char *)message.at == PLAIN;
}

PyObject *message_read_small(const struct binding *binding, struct roost_bytes message)
{
    if (!has_codec(binding))
        return NULL;
    PyObject *pickle =
        PyBytes_FromStringAndSize((const char *)message.at + 1, (Py_ssize_t)message.len - 1);
    PyObject *value = pickle ? PyObject_CallFunctionObjArgs(binding->loads, pickle, NULL) : NULL;
    Py_XDECREF(pickle);
    return value;
}

PyObject *message_read(const struct binding *binding, PyObject *owner)
{
    PyObject *view = has_codec(binding) ? PyMemoryView_FromObject(owner) : NULL;
    PyObject *value = view ? PyObject_CallFunctionObjArgs(binding->decode, view, NULL) : NULL;
    Py_XDECREF(view);
    return value;
}
