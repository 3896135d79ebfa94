/* module.c - the module roost._roost: its state, its exceptions, and what all types use. */
#include "binding.h"

#include <stdio.h>
#include <string.h>

struct binding *binding_of(PyTypeObject *type)
{
    return PyType_GetModuleState(type);
}

void *binding_alloc(PyTypeObject *type)
{
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

void binding_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* A rank that is wrong or not there is also an IndexError, as callers of the reference expect. */
static PyObject *class_of(const struct binding *binding, enum roost_code code)
{
    return code == ROOST_ERR_FIT || code == ROOST_ERR_RANK ? binding->rank_error : binding->error;
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
    return paths || line < 1 ? PyUnicode_FromString("")
                             : PyUnicode_FromFormat("%s:%d:%d", file, (int)line, (int)column);
}

static PyObject *error_text(const struct roost_error *error, PyObject *paths)
{
    PyObject *place = place_text(error->file, error->line, error->column, paths);
    if (!place)
        return NULL;
    bool has_place = PyUnicode_GetLength(place) > 0, has_hint = error->hint[0];
    PyObject *text =
        PyUnicode_FromFormat("%U%s%s%s%s%s", place, has_place ? ": " : "", error->message,
                             has_hint ? " (" : "", error->hint, has_hint ? ")" : "");
    Py_DECREF(place);
    return text;
}

PyObject *binding_raise(struct binding *binding, const struct roost_error *error, PyObject *paths)
{
    if (error->code == ROOST_ERR_MEMORY)
        return PyErr_NoMemory();
    PyObject *class = class_of(binding, error->code);
    PyObject *text = error_text(error, paths);
    PyObject *exception = text ? PyObject_CallFunctionObjArgs(class, text, NULL) : NULL;
    Py_XDECREF(text);
    if (!exception)
        return NULL;
    PyObject *key = find_key(paths, error->line);
    if (set_field(exception, "code", PyUnicode_FromString(roost_code_word(error->code))) &&
        set_field(exception, "file", PyUnicode_FromString(paths ? "" : error->file)) &&
        set_field(exception, "line", PyLong_FromLong(paths ? 0 : error->line)) &&
        set_field(exception, "column", PyLong_FromLong(paths ? 0 : error->column)) &&
        set_field(exception, "key", key ? PyObject_Str(key) : PyUnicode_FromString("")) &&
        set_field(exception, "hint", PyUnicode_FromString(error->hint)))
        PyErr_SetObject(class, exception);
    Py_DECREF(exception);
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
        binding_append(&list, place ? Py_BuildValue("(sNss)", roost_warning_word(it->warning),
                                                    place, it->message, it->hint)
                                    : NULL);
    }
    return list;
}

bool texts_open(struct texts *out, PyObject *sequence, const char *what)
{
    *out = (struct texts){.keeper = PyUnicode_Check(sequence) ? NULL : PySequence_Tuple(sequence)};
    bool is_good = out->keeper != NULL;
    if (is_good) {
        out->count = PyTuple_Size(out->keeper);
        out->texts = PyMem_Calloc((size_t)out->count + 1, sizeof *out->texts);
        if (!out->texts) {
            PyErr_NoMemory();
            texts_close(out);
            return false;
        }
    }
    for (Py_ssize_t i = 0; is_good && i < out->count; i++) {
        PyObject *item = PyTuple_GetItem(out->keeper, i);
        Py_ssize_t len = 0;
        out->texts[i] = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, &len) : NULL;
        is_good = out->texts[i] && strlen(out->texts[i]) == (size_t)len;
    }
    if (is_good)
        return true;
    texts_close(out);
    if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s must be a sequence of str without NUL, not %R", what,
                     sequence);
    return false;
}

void texts_close(struct texts *texts)
{
    PyMem_Free(texts->texts);
    Py_XDECREF(texts->keeper);
    *texts = (struct texts){0};
}

bool binding_int32(PyObject *value, const char *what, int32_t *out)
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
        PyErr_Format(PyExc_ValueError, "%s is out of range: %R", what, value);
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

PyObject *binding_int_list(const int32_t *values, int32_t count)
{
    PyObject *list = PyList_New(count);
    for (int32_t i = 0; list && i < count; i++) {
        PyObject *item = PyLong_FromLong(values[i]);
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

void binding_append(PyObject **list, PyObject *item)
{
    if (*list && (!item || PyList_Append(*list, item) < 0))
        Py_CLEAR(*list);
    Py_XDECREF(item);
}

static PyObject *set_accelerator_types(PyObject *module, PyObject *types)
{
    struct binding *binding = PyModule_GetState(module);
    if (!PyTuple_Check(types) || PyTuple_Size(types) != ROOST_ACCELERATOR_KUNLUN + 1) {
        PyErr_SetString(PyExc_TypeError, "types must be a tuple with one entry a type");
        return NULL;
    }
    Py_XDECREF(binding->accelerator_types);
    Py_INCREF(types);
    binding->accelerator_types = types;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_accelerator_types", set_accelerator_types, METH_O,
     "What Placement.accelerator_type answers, in the order of accelerator_types."},
    {NULL, NULL, 0, NULL},
};

/* Names of the accelerator types in the order of the enum. */
static PyObject *type_names(void)
{
    PyObject *names = PyTuple_New(ROOST_ACCELERATOR_KUNLUN + 1);
    for (int i = 0; names && i <= ROOST_ACCELERATOR_KUNLUN; i++) {
        PyObject *name =
            PyUnicode_InternFromString(roost_accelerator_type((enum roost_accelerator)i));
        if (!name || PyTuple_SetItem(names, i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

/* class `name`(bases), added to the module. */
static PyObject *add_exception(PyObject *module, const char *name, PyObject *first,
                               PyObject *second, const char *doc)
{
    char full[64];
    snprintf(full, sizeof full, "roost.%s", name);
    PyObject *bases = PyTuple_Pack(2, first, second);
    /* Defaults for errors that Python code raises itself. */
    PyObject *fields = Py_BuildValue("{s:s,s:s,s:i,s:i,s:s,s:s}", "code", "usage", "file", "",
                                     "line", 0, "column", 0, "key", "", "hint", "");
    PyObject *class = bases && fields ? PyErr_NewExceptionWithDoc(full, doc, bases, fields) : NULL;
    Py_XDECREF(bases);
    Py_XDECREF(fields);
    if (class && PyModule_AddObjectRef(module, name, class) < 0)
        Py_CLEAR(class);
    return class;
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int execute(PyObject *module)
{
    struct binding *it = PyModule_GetState(module);
    it->error = add_exception(module, "Error", PyExc_ValueError, PyExc_AssertionError,
                              "What roost found wrong: code, file, line, column, key, hint.");
    it->rank_error = it->error ? add_exception(module, "RankError", it->error, PyExc_IndexError,
                                               "A rank that is wrong or not there.")
                               : NULL;
    it->accelerator_types = type_names();
    if (!it->rank_error || !it->accelerator_types)
        return -1;
    it->config = add_type(module, &config_spec);
    it->cluster = it->config ? add_type(module, &cluster_spec) : NULL;
    it->plan = it->cluster ? add_type(module, &plan_spec) : NULL;
    it->strategy = it->plan ? add_type(module, &strategy_spec) : NULL;
    it->placements = it->strategy ? add_type(module, &placements_spec) : NULL;
    it->placement = it->placements ? add_type(module, &placement_spec) : NULL;
    it->column = it->placement ? add_type(module, &column_spec) : NULL;
    if (!it->column ||
        PyModule_AddObjectRef(module, "accelerator_types", it->accelerator_types) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "version", roost_version());
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct binding *it = PyModule_GetState(module);
    Py_VISIT(it->error);
    Py_VISIT(it->rank_error);
    Py_VISIT(it->accelerator_types);
    Py_VISIT(it->config);
    Py_VISIT(it->cluster);
    Py_VISIT(it->plan);
    Py_VISIT(it->strategy);
    Py_VISIT(it->placements);
    Py_VISIT(it->placement);
    Py_VISIT(it->column);
    return 0;
}

static int clear(PyObject *module)
{
    struct binding *it = PyModule_GetState(module);
    Py_CLEAR(it->error);
    Py_CLEAR(it->rank_error);
    Py_CLEAR(it->accelerator_types);
    Py_CLEAR(it->config);
    Py_CLEAR(it->cluster);
    Py_CLEAR(it->plan);
    Py_CLEAR(it->strategy);
    Py_CLEAR(it->placements);
    Py_CLEAR(it->placement);
    Py_CLEAR(it->column);
    return 0;
}

static void free_module(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "roost._roost",
    .m_doc = "The C planner; use the package roost instead.",
    .m_size = sizeof(struct binding),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__roost(void);

PyMODINIT_FUNC PyInit__roost(void)
{
    return PyModuleDef_Init(&definition);
}
