/* placements.c - the processes of a component as a sequence, and its columns as buffers.
 *
 * Nothing is copied: a Placement is made when it is looked at, a column is the plan's own memory. */
#include <string.h>

#include "binding.h"

struct placements_object {
    PyObject_HEAD
    PyObject *plan; /* keeps the columns alive */
    const struct roost_component *component;
};

PyObject *placements_new(struct binding *binding, PyObject *plan,
                         const struct roost_component *component)
{
    struct placements_object *self = binding_alloc(binding->placements);
    if (!self)
        return NULL;
    Py_INCREF(plan);
    self->plan = plan;
    self->component = component;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    Py_XDECREF(((struct placements_object *)self)->plan);
    binding_dealloc(self);
}

static const struct roost_component *component_of(PyObject *self)
{
    return ((struct placements_object *)self)->component;
}

const struct roost_component *placements_component(PyObject *placements)
{
    return component_of(placements);
}

static Py_ssize_t length(PyObject *self)
{
    return component_of(self)->world_size;
}

static PyObject *item(PyObject *self, Py_ssize_t index)
{
    const struct roost_component *component = component_of(self);
    if (index < 0 || index >= component->world_size) {
        PyErr_SetString(PyExc_IndexError, "placement index out of range");
        return NULL;
    }
    return placement_new(binding_of(Py_TYPE(self))->placement, self, component, (int32_t)index);
}

static PyObject *subscript(PyObject *self, PyObject *key)
{
    Py_ssize_t count = length(self);
    if (!PySlice_Check(key)) {
        Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (index == -1 && PyErr_Occurred())
            return NULL;
        return item(self, index < 0 ? index + count : index);
    }
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0)
        return NULL;
    Py_ssize_t taken = PySlice_AdjustIndices(count, &start, &stop, step);
    PyObject *list = PyList_New(taken);
    for (Py_ssize_t i = 0; list && i < taken; i++) {
        PyObject *one = item(self, start + i * step);
        if (!one || PyList_SetItem(list, i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Equal to any sequence with equal placements, lists among them. */
static PyObject *compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || !PySequence_Check(other) || PyUnicode_Check(other))
        Py_RETURN_NOTIMPLEMENTED;
    Py_ssize_t count = PySequence_Size(other);
    if (count < 0)
        return NULL;
    int is_equal = count == length(self);
    if (is_equal && Py_IS_TYPE(other, Py_TYPE(self))) {
        const struct roost_component *mine = component_of(self), *theirs = component_of(other);
        for (int32_t i = 0; mine != theirs && is_equal && i < mine->world_size; i++)
            is_equal = rows_equal(mine, i, theirs, i);
        count = 0; /* all are compared */
    }
    for (Py_ssize_t i = 0; is_equal && i < count; i++) {
        PyObject *mine = item(self, i), *theirs = PySequence_GetItem(other, i);
        is_equal = mine && theirs ? PyObject_RichCompareBool(mine, theirs, Py_EQ) : -1;
        Py_XDECREF(mine);
        Py_XDECREF(theirs);
        if (is_equal < 0)
            return NULL;
    }
    return PyBool_FromLong(is_equal == (op == Py_EQ));
}

enum { COLUMNS = 10 };

static void list_columns(const struct roost_component *it, struct column_entry out[COLUMNS])
{
    Py_ssize_t count = it->world_size, held = it->first_hardware[it->world_size];
    const struct column_entry columns[COLUMNS] = {
        {"cluster_node_rank", it->cluster_node_rank, count, 4},
        {"placement_node_rank", it->placement_node_rank, count, 4},
        {"local_accelerator_rank", it->local_accelerator_rank, count, 4},
        {"accelerator_type", it->accelerator, count, 1},
        {"local_rank", it->local_rank, count, 4},
        {"local_world_size", it->local_world_size, count, 4},
        {"visible_count", it->visible_count, count, 4},
        {"first_hardware", it->first_hardware, count + 1, 4},
        {"local_hardware_ranks", held ? it->hardware : it->first_hardware, held, 4},
        {"node_group", it->node_group, count, 4},
    };
    memcpy(out, columns, sizeof columns);
}

bool find_column(const struct roost_component *component, PyObject *name, struct column_entry *out)
{
    struct column_entry columns[COLUMNS];
    list_columns(component, columns);
    for (size_t i = 0; PyUnicode_Check(name) && i < COLUMNS; i++) {
        if (!columns[i].data || PyUnicode_CompareWithASCIIString(name, columns[i].name) != 0)
            continue;
        *out = columns[i];
        return true;
    }
    PyErr_Format(PyExc_KeyError, "there is no column %R", name);
    return false;
}

static PyObject *column(PyObject *self, PyObject *name)
{
    struct column_entry entry;
    return find_column(component_of(self), name, &entry)
               ? column_new(binding_of(Py_TYPE(self)), self, &entry)
               : NULL;
}

static PyObject *column_names(PyObject *self, void *closure)
{
    (void)closure;
    struct column_entry columns[COLUMNS];
    list_columns(component_of(self), columns);
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && i < COLUMNS; i++)
        if (columns[i].data)
            binding_append(&names, PyUnicode_FromString(columns[i].name));
    return names;
}

static PyObject *hardware_ranges(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_component *it = component_of(self);
    PyObject *list = PyList_New(0);
    for (int32_t r = 0; list && r < it->hardware_range_count; r++)
        binding_append(&list, Py_BuildValue("(ii)", (int)it->hardware_ranges[r].first,
                                            (int)it->hardware_ranges[r].last));
    return list;
}

static PyObject *hardware_ranks(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_component *it = component_of(self);
    PyObject *list = PyList_New(0);
    for (int32_t r = 0; list && r < it->hardware_range_count; r++) {
        for (int64_t rank = it->hardware_ranges[r].first;
             list && rank <= it->hardware_ranges[r].last; rank++) {
            binding_append(&list, PyLong_FromLongLong(rank));
        }
    }
    return list;
}

static PyObject *strategy(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(roost_strategy_word(component_of(self)->strategy));
}

static PyObject *node_groups(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_component *it = component_of(self);
    PyObject *labels = PyList_New(it->node_group_count);
    for (int32_t g = 0; labels && g < it->node_group_count; g++) {
        PyObject *label = PyUnicode_FromString(it->node_groups[g]);
        if (!label || PyList_SetItem(labels, g, label) < 0)
            Py_CLEAR(labels);
    }
    return labels;
}

static PyObject *isolates(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(component_of(self)->isolate_accelerator);
}

static PyObject *repr(PyObject *self)
{
    const struct roost_component *it = component_of(self);
    return PyUnicode_FromFormat("<roost.Placements: %d processes, %s>", (int)it->world_size,
                                roost_strategy_word(it->strategy));
}

static PyGetSetDef fields[] = {
    {"columns", column_names, NULL, "names for column()", NULL},
    {"isolate_accelerator", isolates, NULL, "whether a process sees its own accelerators only",
     NULL},
    {"hardware_ranges", hardware_ranges, NULL, "the same as (first, last)", NULL},
    {"hardware_ranks", hardware_ranks, NULL, "resource ranks in the node groups", NULL},
    {"strategy", strategy, NULL, "flexible, packed or node", NULL},
    {"node_groups", node_groups, NULL, "labels; the column node_group indexes them", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *index_of(PyObject *self, PyObject *value)
{
    Py_ssize_t index = PySequence_Index(self, value);
    return index < 0 ? NULL : PyLong_FromSsize_t(index);
}

static PyObject *count_of(PyObject *self, PyObject *value)
{
    Py_ssize_t count = PySequence_Count(self, value);
    return count < 0 ? NULL : PyLong_FromSsize_t(count);
}

static PyObject *reduce(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return binding_refuse_pickle(self, "the strategy that made them, or list(placements)");
}

static PyObject *held_accelerators(PyObject *self, PyObject *cluster)
{
    const struct roost_component *it = component_of(self);
    if (!binding_want(cluster, binding_of(Py_TYPE(self))->cluster, "cluster"))
        return NULL;
    PyObject *list = PyList_New(0);
    for (int32_t rank = 0; list && rank < it->world_size; rank++) {
        if (!roost_component_holds_accelerators(it, cluster_value(cluster), rank))
            continue;
        for (int32_t i = it->first_hardware[rank]; list && i < it->first_hardware[rank + 1]; i++) {
            PyObject *pair = Py_BuildValue("(ii)", it->cluster_node_rank[rank], it->hardware[i]);
            if (!pair || PyList_Append(list, pair) < 0)
                Py_CLEAR(list);
            Py_XDECREF(pair);
        }
    }
    return list;
}

static PyMethodDef methods[] = {
    {"held_accelerators", held_accelerators, METH_O,
     "held_accelerators(cluster): node rank and number there of each that a process holds"},
    {"__reduce__", reduce, METH_NOARGS, "says what to pickle instead"},
    {"index", index_of, METH_O, "the rank of an equal placement; ValueError when there is none"},
    {"count", count_of, METH_O, "how many placements are equal to this one"},
    {"column", column, METH_O, "a column of the plan, as a read-only buffer over its own memory"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The placements of a component: a sequence that makes them when looked at."},
    {Py_tp_dealloc, dealloc},
    {Py_sq_length, length},
    {Py_sq_item, item},
    {Py_mp_length, length},
    {Py_mp_subscript, subscript},
    {Py_tp_richcompare, compare},
    {Py_tp_repr, repr},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec placements_spec = {
    .name = "roost.Placements",
    .basicsize = sizeof(struct placements_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
