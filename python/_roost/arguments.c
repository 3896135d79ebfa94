/* arguments.c - values from Python: a wrong type is a TypeError, a value that cannot be is a
 * roost.Error, and both name the argument. */
#include <string.h>

#include "binding.h"

/* UTF-8 of a str that is one; NULL with an exception otherwise. */
const char *binding_text(struct binding *binding, PyObject *value, const char *what)
{
    Py_ssize_t len = 0;
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", what, value);
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(value, &len);
    if (!text && PyErr_ExceptionMatches(PyExc_UnicodeError))
        PyErr_Format(binding->error, "%s must be text that UTF-8 can hold, not %A", what, value);
    if (text && strlen(text) != (size_t)len) {
        PyErr_Format(binding->error, "%s must be text without NUL, not %A", what, value);
        return NULL;
    }
    return text;
}

bool texts_open(struct binding *binding, struct texts *out, PyObject *sequence, const char *what)
{
    *out = (struct texts){0};
    /* A set has no order, and a str would come apart into letters. */
    if (PySequence_Check(sequence) && !PyUnicode_Check(sequence))
        out->owner = PySequence_Tuple(sequence);
    if (!out->owner) {
        if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must be a sequence of str, not %R", what, sequence);
        return false;
    }
    out->count = PyTuple_Size(out->owner);
    out->texts = PyMem_Calloc((size_t)out->count + 1, sizeof *out->texts);
    bool is_good = out->texts != NULL;
    if (!is_good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; is_good && i < out->count; i++) {
        PyObject *item = PyTuple_GetItem(out->owner, i);
        if (PyUnicode_Check(item))
            out->texts[i] = binding_text(binding, item, what);
        else
            PyErr_Format(PyExc_TypeError, "%s must be a sequence of str, not %R", what, sequence);
        is_good = out->texts[i] != NULL;
    }
    if (!is_good)
        texts_close(out);
    return is_good;
}

void texts_close(struct texts *texts)
{
    PyMem_Free(texts->texts);
    Py_XDECREF(texts->owner);
    *texts = (struct texts){0};
}

bool binding_int32(PyObject *value, const char *what, PyObject *range_error, int32_t *out)
{
    /* True and False are ints to Python, but nobody means them as ranks. */
    PyObject *number = PyBool_Check(value) ? NULL : PyNumber_Index(value);
    if (!number) {
        if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", what, value);
        return false;
    }
    int overflow = 0;
    long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow || wide < INT32_MIN || wide > INT32_MAX) {
        bool is_large = overflow ? overflow > 0 : wide > 0;
        PyErr_Format(range_error, "%s is out of range: it is %s %d", what,
                     is_large ? "larger than" : "less than", is_large ? INT32_MAX : INT32_MIN);
        return false;
    }
    *out = (int32_t)wide;
    return true;
}

bool binding_want(PyObject *value, PyTypeObject *type, const char *what)
{
    if (Py_IS_TYPE(value, type))
        return true;
    PyErr_Format(PyExc_TypeError, "%s has the wrong type: %R", what, value);
    return false;
}

bool rank_list_open(struct binding *binding, struct rank_list *out, PyObject *sequence)
{
    *out = (struct rank_list){0};
    if (sequence == Py_None)
        return true;
    PyObject *items = PySequence_Tuple(sequence);
    if (!items)
        return false;
    Py_ssize_t count = PyTuple_Size(items);
    out->count = (size_t)count;
    out->numbers = PyMem_Calloc((size_t)count + 1, sizeof *out->numbers);
    bool is_good = out->numbers;
    if (!is_good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; is_good && i < count; i++)
        is_good =
            binding_int32(PyTuple_GetItem(items, i), "rank", binding->rank_error, &out->numbers[i]);
    Py_DECREF(items);
    if (!is_good)
        rank_list_close(out);
    return is_good;
}

void rank_list_close(struct rank_list *ranks)
{
    PyMem_Free(ranks->numbers);
    *ranks = (struct rank_list){0};
}
