/* errors.c - what the library finds wrong, as exceptions and warnings.
 *
 * Places are keys where a config came as a mapping, else file:line:column. Cures that name an option
 * of the program name what Python has in its stead. */
#include <string.h>

#include "binding.h"

/* One fault, from a roost_error or from a report. */
struct fault {
    enum roost_code code;
    const char *file, *message, *hint;
    int32_t line, column;
};

/* A rank that is wrong or not there is also an IndexError, as callers of the reference expect. */
static PyObject *class_of(const struct binding *binding, enum roost_code code)
{
    return code == ROOST_ERR_FIT || code == ROOST_ERR_RANK ? binding->rank_error : binding->error;
}

/* Text of the library; what a file name or a cut has left of a character does not matter. */
static PyObject *decode(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* Takes `hint`; "--cluster 2x8" becomes "Cluster(cluster='2x8')". */
static PyObject *replace_cluster(PyObject *hint)
{
    static const char option[] = "--cluster ";
    const char *text = hint ? PyUnicode_AsUTF8AndSize(hint, NULL) : NULL;
    const char *at = text ? strstr(text, option) : NULL;
    const char *spec = at ? at + sizeof option - 1 : NULL;
    size_t len = spec ? strspn(spec, "0123456789x%d") : 0;
    if (hint && !text)
        PyErr_Clear(); /* text that is not Unicode has no option in it */
    if (!spec || len == 0)
        return hint;
    PyObject *before = PyUnicode_FromStringAndSize(text, at - text);
    PyObject *name = PyUnicode_FromStringAndSize(spec, (Py_ssize_t)len);
    PyObject *said =
        before && name ? PyUnicode_FromFormat("%UCluster(cluster='%U')%s", before, name, spec + len)
                       : NULL;
    Py_XDECREF(before);
    Py_XDECREF(name);
    Py_DECREF(hint);
    return said;
}

PyObject *python_words(PyObject *module, PyObject *hint)
{
    static const char *const words[][2] = {
        {"--mode hybrid", "HybridComponentPlacement"},
        {"write 'mode: model-parallel' (or hybrid) below 'roost:', or pass --mode",
         "plan with ModelParallelComponentPlacement"},
        {"or pass it as key=value", "or set it in the config that is passed"},
        {"pass the file as --cluster", "pass the file as cluster= to Cluster"},
        {"pass --hydra", "pass the config that Hydra has composed"},
        {"pass --cluster 2x8, a snapshot, or local",
         "pass cluster='2x8', a snapshot, or 'local' to Cluster"},
        {"drop --cluster and", "drop cluster= and"},
        {"--engine ray uses", "Cluster(engine='ray') uses"},
    };
    (void)module;
    Py_INCREF(hint);
    for (size_t i = 0; hint && i < sizeof words / sizeof *words; i++) {
        PyObject *option = PyUnicode_FromString(words[i][0]);
        PyObject *ours = PyUnicode_FromString(words[i][1]);
        PyObject *said = option && ours ? PyUnicode_Replace(hint, option, ours, -1) : NULL;
        Py_XDECREF(option);
        Py_XDECREF(ours);
        Py_DECREF(hint);
        hint = said;
    }
    return replace_cluster(hint);
}

static PyObject *hint_text(const char *hint)
{
    PyObject *text = decode(hint), *ours = text && hint[0] ? python_words(NULL, text) : NULL;
    if (!text || !hint[0])
        return text;
    Py_DECREF(text);
    return ours;
}

/* Takes `value`. */
static bool set_field(PyObject *exception, const char *name, PyObject *value)
{
    bool is_good = value && PyObject_SetAttrString(exception, name, value) == 0;
    Py_XDECREF(value);
    return is_good;
}

/* The key that was written at a line of a mapping's text, borrowed; NULL when there is none. */
static PyObject *find_key(PyObject *paths, int32_t line)
{
    return paths && line > 0 && line <= PyTuple_Size(paths) ? PyTuple_GetItem(paths, line - 1)
                                                            : NULL;
}

/* "train.yaml:4:12", "cluster.component_placement.actor", or "". */
static PyObject *place_text(const char *file, int32_t line, int32_t column, PyObject *paths)
{
    PyObject *key = find_key(paths, line);
    if (key)
        return PyObject_Str(key);
    if (paths || line < 1)
        return PyUnicode_FromString("");
    PyObject *name = PyUnicode_DecodeFSDefault(file);
    PyObject *place = name ? PyUnicode_FromFormat("%U:%d:%d", name, (int)line, (int)column) : NULL;
    Py_XDECREF(name);
    return place;
}

/* "place: message" */
static PyObject *message_text(const struct fault *fault, PyObject *paths)
{
    PyObject *place = place_text(fault->file, fault->line, fault->column, paths);
    PyObject *message = decode(fault->message), *text = NULL;
    if (place && message)
        text = PyUnicode_FromFormat("%U%s%U", place, PyUnicode_GetLength(place) > 0 ? ": " : "",
                                    message);
    Py_XDECREF(place);
    Py_XDECREF(message);
    return text;
}

/* "place: message (hint)" */
static PyObject *fault_text(const struct fault *fault, PyObject *paths)
{
    PyObject *message = message_text(fault, paths), *hint = hint_text(fault->hint), *text = NULL;
    if (message && hint) {
        bool has_hint = PyUnicode_GetLength(hint) > 0;
        text = PyUnicode_FromFormat("%U%s%U%s", message, has_hint ? " (" : "", hint,
                                    has_hint ? ")" : "");
    }
    Py_XDECREF(message);
    Py_XDECREF(hint);
    return text;
}

/* An exception with the fields of the fault; `message` is the text without the hint. Takes `text`. */
static PyObject *make_exception(struct binding *binding, const struct fault *fault, PyObject *paths,
                                PyObject *text)
{
    PyObject *class = class_of(binding, fault->code), *key = find_key(paths, fault->line);
    PyObject *exception = text ? PyObject_CallFunctionObjArgs(class, text, NULL) : NULL;
    Py_XDECREF(text);
    if (!exception)
        return NULL;
    if (!set_field(exception, "code", PyUnicode_FromString(roost_code_word(fault->code))) ||
        !set_field(exception, "file", PyUnicode_DecodeFSDefault(paths ? "" : fault->file)) ||
        !set_field(exception, "line", PyLong_FromLong(paths ? 0 : fault->line)) ||
        !set_field(exception, "column", PyLong_FromLong(paths ? 0 : fault->column)) ||
        !set_field(exception, "key", key ? PyObject_Str(key) : PyUnicode_FromString("")) ||
        !set_field(exception, "message", message_text(fault, paths)) ||
        !set_field(exception, "hint", hint_text(fault->hint)))
        Py_CLEAR(exception);
    return exception;
}

/* Exceptions of all errors of the report; *out_first is the first of them. */
static PyObject *list_faults(struct binding *binding, const struct roost_report *report,
                             PyObject *paths, struct fault *out_first)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && report && i < roost_report_count(report); i++) {
        const struct roost_diagnostic *it = roost_report_at(report, i);
        if (it->code == ROOST_OK)
            continue;
        struct fault fault = {it->code, it->file, it->message, it->hint, it->line, it->column};
        if (PyList_Size(list) == 0)
            *out_first = fault;
        binding_append(&list, make_exception(binding, &fault, paths, fault_text(&fault, paths)));
    }
    return list;
}

/* The texts of all of them, a line each. */
static PyObject *join_texts(PyObject *errors, size_t count)
{
    PyObject *lines = PyList_New(0), *line_break = PyUnicode_FromString("\n");
    for (Py_ssize_t i = 0; lines && i < PyList_Size(errors); i++)
        binding_append(&lines, PyObject_Str(PyList_GetItem(errors, i)));
    size_t shown = (size_t)PyList_Size(errors);
    if (lines && count > shown)
        binding_append(&lines, PyUnicode_FromFormat("and %zu more", count - shown));
    PyObject *text = lines && line_break ? PyUnicode_Join(line_break, lines) : NULL;
    Py_XDECREF(lines);
    Py_XDECREF(line_break);
    return text;
}

PyObject *binding_raise(struct binding *binding, const struct roost_error *error,
                        const struct roost_report *report, PyObject *paths)
{
    if (error->code == ROOST_ERR_MEMORY)
        return PyErr_NoMemory();
    struct fault first = {error->code, error->file, error->message,
                          error->hint, error->line, error->column};
    PyObject *errors = list_faults(binding, report, paths, &first), *exception = NULL;
    if (errors && PyList_Size(errors) == 0)
        binding_append(&errors, make_exception(binding, &first, paths, fault_text(&first, paths)));
    if (errors)
        exception = make_exception(binding, &first, paths,
                                   join_texts(errors, report ? roost_report_errors(report) : 1));
    if (exception && set_field(exception, "errors", errors ? PyList_AsTuple(errors) : NULL))
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(errors);
    Py_XDECREF(exception);
    return NULL;
}

PyObject *binding_warnings(const struct roost_report *report, PyObject *paths)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < roost_report_count(report); i++) {
        const struct roost_diagnostic *it = roost_report_at(report, i);
        if (it->warning == ROOST_WARN_NONE)
            continue;
        PyObject *place = place_text(it->file, it->line, it->column, paths);
        PyObject *message = decode(it->message), *hint = hint_text(it->hint);
        binding_append(&list, place && message && hint
                                  ? Py_BuildValue("(sOOO)", roost_warning_word(it->warning), place,
                                                  message, hint)
                                  : NULL);
        Py_XDECREF(place);
        Py_XDECREF(message);
        Py_XDECREF(hint);
    }
    return list;
}
