/* lines.c - what workers write, as lines for the driver's screen: the same as the program shows. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

PyObject *binding_show_lines(PyObject *module, PyObject *args)
{
    struct roost_lines lines = {0};
    int rank, is_end, has_color, width;
    unsigned memo;
    const char *bar;
    Py_ssize_t bar_len;
    Py_buffer data;
    (void)module;
    if (!PyArg_ParseTuple(args, "ziy*Ippis#", &lines.component, &rank, &data, &memo, &is_end,
                          &has_color, &width, &bar, &bar_len))
        return NULL;
    lines.rank = rank;
    lines.width = width;
    lines.bar_len = (size_t)bar_len <= sizeof lines.bar ? (size_t)bar_len : sizeof lines.bar;
    memcpy(lines.bar, bar, lines.bar_len);
    lines.memo = memo;
    lines.is_end = is_end;
    lines.has_color = has_color;
    struct document shown = {0};
    size_t taken = 0;
    enum roost_code code =
        roost_lines_show(&lines, data.buf, (size_t)data.len, document_keep, &shown, &taken);
    PyBuffer_Release(&data);
    PyObject *text = code == ROOST_OK ? PyUnicode_DecodeUTF8(shown.len ? shown.bytes : "",
                                                             (Py_ssize_t)shown.len, "replace")
                                      : PyErr_NoMemory();
    free(shown.bytes);
    PyObject *answer = text ? Py_BuildValue("(OnIs#)", text, (Py_ssize_t)taken, lines.memo,
                                            lines.bar, (Py_ssize_t)lines.bar_len)
                            : NULL;
    Py_XDECREF(text);
    return answer;
}

PyObject *binding_color_is_on(PyObject *module, PyObject *args)
{
    int is_terminal;
    const char *no_color, *term;
    (void)module;
    if (!PyArg_ParseTuple(args, "pzz", &is_terminal, &no_color, &term))
        return NULL;
    return PyBool_FromLong(roost_color_is_on(is_terminal, no_color, term));
}
