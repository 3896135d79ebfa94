/* binding.h - what the files of the extension share: the module's state, errors, and the types.
 *
 * Everything that is decided is decided in the C library; here values are carried over. There are no
 * globals: types and exceptions live in the module's state. The GIL is released around every call
 * into the library that may take time. */
#ifndef ROOST_BINDING_H
#define ROOST_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <roost/roost.h>

struct binding {
    PyObject *error, *rank_error; /* exception classes */
    PyTypeObject *config, *cluster, *plan, *strategy, *placements, *placement, *column;
    PyObject *accelerator_types; /* a tuple, by enum roost_accelerator */
};

/* The state of the module that `type`, one of ours, belongs to. */
struct binding *binding_of(PyTypeObject *type);

/* A zeroed object of one of our types. */
void *binding_alloc(PyTypeObject *type);

/* Gives the object's memory and its hold on the type back; what it owns is gone already. */
void binding_dealloc(PyObject *self);

/* Raises roost.Error (or RankError) with code, file, line, column, key and hint; returns NULL. `paths`
 * is a tuple of keys by line for a config that came as a mapping, or NULL: then lines are lines. */
PyObject *binding_raise(struct binding *binding, const struct roost_error *error, PyObject *paths);

/* Tuples (word, place, message, hint) of the report's warnings. */
PyObject *binding_warnings(const struct roost_report *report, PyObject *paths);

/* Texts borrowed from a Python sequence, NULL-terminated, and what keeps them alive. */
struct texts {
    const char **texts;
    Py_ssize_t count;
    PyObject *keeper;
};

/* Fills *out from a sequence of str; false with an exception that names `what`. */
bool texts_open(struct texts *out, PyObject *sequence, const char *what);
void texts_close(struct texts *texts);

/* An int from a Python object, within int32_t; an error names the argument. */
bool binding_int32(PyObject *value, const char *what, int32_t *out);

/* Whether `value` is of our type; an error names the argument. */
bool binding_want(PyObject *value, PyTypeObject *type, const char *what);

PyObject *binding_int_list(const int32_t *values, int32_t count);

/* Appends and takes `item`, which may be NULL; on failure *list is cleared. */
void binding_append(PyObject **list, PyObject *item);

/* The library's values behind objects of our types. */
const struct roost_config *config_value(PyObject *config);
PyObject *config_paths(PyObject *config); /* borrowed; NULL for a file */
const struct roost_cluster *cluster_value(PyObject *cluster);

/* Takes the plan, also on failure. */
PyObject *plan_take(struct binding *binding, struct roost_plan *plan);

/* Placements of one component of a plan object; holds a reference to it. */
PyObject *placements_new(struct binding *binding, PyObject *plan,
                         const struct roost_component *component);

/* One process of placements; the attributes are read when asked for. */
PyObject *placement_new(PyTypeObject *type, PyObject *placements,
                        const struct roost_component *component, int32_t rank);

/* Read-only memory of the plan as a buffer: int32_t, or uint8_t when item_size is 1. */
PyObject *column_new(struct binding *binding, PyObject *owner, const void *data, Py_ssize_t count,
                     Py_ssize_t item_size);

extern PyType_Spec config_spec, cluster_spec, plan_spec, strategy_spec, placements_spec,
    placement_spec, column_spec;

#endif
