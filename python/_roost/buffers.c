/* buffers.c - bytes-like objects of the caller, lent to the library for one call. */
#include "binding.h"

void buffers_close(struct buffers *buffers)
{
    for (Py_ssize_t i = 0; i < buffers->count; i++)
        PyBuffer_Release(&buffers->views[i]);
    PyMem_Free(buffers->views);
    PyMem_Free(buffers->bytes);
}

bool buffers_open(struct buffers *out, PyObject *sequence)
{
    PyObject *list = PySequence_Tuple(sequence);
    Py_ssize_t count = list ? PyTuple_Size(list) : 0;
    *out = (struct buffers){.views = PyMem_Calloc((size_t)count + 1, sizeof *out->views),
                            .bytes = PyMem_Calloc((size_t)count + 1, sizeof *out->bytes)};
    bool is_good = list && out->views && out->bytes;
    if (list && !is_good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; is_good && i < count; i++) {
        Py_buffer *view = &out->views[i];
        is_good = PyObject_GetBuffer(PyTuple_GetItem(list, i), view, PyBUF_SIMPLE) == 0;
        if (is_good) {
            out->bytes[i] = (struct roost_bytes){view->buf, (size_t)view->len};
            out->count++;
        }
    }
    Py_XDECREF(list); /* the views hold the objects */
    if (!is_good)
        buffers_close(out);
    return is_good;
}
