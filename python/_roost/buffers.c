/* buffers.c - Python's memory as pieces of a payload, its mappings as an environment, its seconds as
 * milliseconds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

bool pieces_open(struct pieces *out, PyObject *sequence, const char *what)
{
    *out = (struct pieces){0};
    PyObject *items = PySequence_Tuple(sequence);
    Py_ssize_t count = items ? PyTuple_Size(items) : 0;
    if (!items)
        return false;
    out->views = PyMem_Calloc((size_t)count + 1, sizeof *out->views);
    out->bytes = PyMem_Calloc((size_t)count + 1, sizeof *out->bytes);
    bool is_good = out->views && out->bytes;
    if (!is_good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; is_good && i < count; i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        is_good = PyObject_GetBuffer(item, &out->views[i], PyBUF_SIMPLE) == 0;
        if (!is_good) {
            if (PyErr_ExceptionMatches(PyExc_TypeError))
                PyErr_Format(PyExc_TypeError, "%s[%zd] must be bytes or the like, not %R", what, i,
                             (PyObject *)Py_TYPE(item));
            break;
        }
        out->bytes[i] = (struct roost_bytes){out->views[i].buf, (size_t)out->views[i].len};
        out->count++;
    }
    Py_DECREF(items); /* the views hold what they show */
    if (!is_good)
        pieces_close(out);
    return is_good;
}

void pieces_close(struct pieces *pieces)
{
    for (Py_ssize_t i = 0; i < pieces->count; i++)
        PyBuffer_Release(&pieces->views[i]);
    PyMem_Free(pieces->views);
    PyMem_Free(pieces->bytes);
    *pieces = (struct pieces){0};
}

PyObject *pieces_send(PyObject *self, PyObject *sequence, sending *send)
{
    struct roost_error error;
    enum roost_code code;
    struct pieces pieces;
    if (!pieces_open(&pieces, sequence, "pieces"))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = send(self, pieces.bytes, (size_t)pieces.count, &error);
    Py_END_ALLOW_THREADS
    pieces_close(&pieces);
    if (code != ROOST_OK)
        return binding_raise(binding_of(Py_TYPE(self)), &error, NULL, NULL);
    Py_RETURN_NONE;
}

/* b"NAME=value" of one item of a mapping, or NULL with an exception. */
static PyObject *entry_of(PyObject *pair, const char *what)
{
    PyObject *name = PyTuple_GetItem(pair, 0), *value = PyTuple_GetItem(pair, 1), *bytes = NULL;
    if (!name || !value || !PyUnicode_Check(name) || !PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must map str to str, not %R", what, pair);
        return NULL;
    }
    PyObject *text = PyUnicode_FromFormat("%U=%U", name, value);
    if (text && !PyUnicode_FSConverter(text, &bytes))
        bytes = NULL;
    Py_XDECREF(text);
    return bytes;
}

const char **binding_environment(PyObject *mapping, const char *what, PyObject **out_owner)
{
    PyObject *items = PyMapping_Items(mapping);
    Py_ssize_t count = items ? PyList_Size(items) : 0;
    PyObject *owner = items ? PyList_New(0) : NULL;
    const char **texts = owner ? PyMem_Calloc((size_t)count + 1, sizeof *texts) : NULL;
    bool is_good = texts != NULL;
    for (Py_ssize_t i = 0; is_good && i < count; i++) {
        PyObject *entry = entry_of(PyList_GetItem(items, i), what);
        is_good = entry && PyList_Append(owner, entry) == 0;
        if (is_good)
            texts[i] = PyBytes_AsString(entry);
        Py_XDECREF(entry);
    }
    Py_XDECREF(items);
    if (is_good) {
        *out_owner = owner;
        return texts;
    }
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    PyMem_Free(texts);
    Py_XDECREF(owner);
    return NULL;
}

bool binding_timeout(PyObject *seconds, int32_t *out_ms)
{
    *out_ms = -1;
    if (seconds == Py_None)
        return true;
    double value = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred())
        return false;
    if (isnan(value) || value < 0) {
        PyErr_Format(PyExc_ValueError, "timeout must be seconds from 0 on, not %R", seconds);
        return false;
    }
    /* Rounded up: who asks for a little must not be told that nothing came without a look. */
    *out_ms = value * 1000 >= INT32_MAX ? -1 : (int32_t)ceil(value * 1000);
    return true;
}

int32_t binding_slice(int32_t *left_ms)
{
    enum { SLICE_MS = 200 };
    if (*left_ms < 0)
        return SLICE_MS;
    int32_t slice = *left_ms < SLICE_MS ? *left_ms : SLICE_MS;
    *left_ms -= slice;
    return slice;
}

bool document_keep(void *ctx, const char *bytes, size_t len)
{
    struct document *out = ctx;
    if (out->room - out->len < len) {
        size_t room = (out->len + len) * 2;
        char *grown = realloc(out->bytes, room);
        if (!grown)
            return false;
        out->bytes = grown;
        out->room = room;
    }
    memcpy(out->bytes + out->len, bytes, len);
    out->len += len;
    return true;
}
