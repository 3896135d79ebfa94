/* placement.c - the place of one process. Usually a row of a plan, whose fields are read when they are
 * asked for; one that Python code makes keeps a tuple of its own. The older names are views of the
 * newer ones. */
#include "binding.h"

enum field {
    RANK,
    CLUSTER_NODE_RANK,
    PLACEMENT_NODE_RANK,
    LOCAL_ACCELERATOR_RANK,
    ACCELERATOR_TYPE,
    LOCAL_RANK,
    LOCAL_WORLD_SIZE,
    VISIBLE_ACCELERATORS,
    ISOLATE_ACCELERATOR,
    LOCAL_HARDWARE_RANKS,
    NODE_GROUP_LABEL,
    FIELDS,
};

struct placement_object {
    PyObject_HEAD
    PyObject
        *owner; /* the placements it is a row of; without a component the tuple of its values */
    const struct roost_component *component;
    int32_t rank;
};

PyObject *placement_new(PyTypeObject *type, PyObject *placements,
                        const struct roost_component *component, int32_t rank)
{
    struct placement_object *self = PyObject_New(struct placement_object, type);
    if (!self)
        return NULL;
    Py_INCREF(placements);
    self->owner = placements;
    self->component = component;
    self->rank = rank;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((struct placement_object *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- rows --- */

static PyObject *visible_list(const struct roost_component *it, int32_t rank)
{
    int32_t count = row_visible_count(it, rank);
    PyObject *list = PyList_New(count);
    for (int32_t i = 0; list && i < count; i++) {
        PyObject *text = PyUnicode_FromFormat("%d", (int)row_visible(it, rank, i));
        if (!text || PyList_SetItem(list, i, text) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *accelerator_type(PyTypeObject *type, uint8_t accelerator)
{
    PyObject *member = PyTuple_GetItem(binding_of(type)->accelerator_types, accelerator);
    Py_XINCREF(member);
    return member;
}

static PyObject *read_row(const struct placement_object *self, enum field field)
{
    const struct roost_component *it = self->component;
    int32_t rank = self->rank;
    switch (field) {
    case RANK: return PyLong_FromLong(rank);
    case CLUSTER_NODE_RANK: return PyLong_FromLong(it->cluster_node_rank[rank]);
    case PLACEMENT_NODE_RANK: return PyLong_FromLong(it->placement_node_rank[rank]);
    case LOCAL_ACCELERATOR_RANK: return PyLong_FromLong(it->local_accelerator_rank[rank]);
    case ACCELERATOR_TYPE:
        return accelerator_type(Py_TYPE((PyObject *)(uintptr_t)self), it->accelerator[rank]);
    case LOCAL_RANK: return PyLong_FromLong(it->local_rank[rank]);
    case LOCAL_WORLD_SIZE: return PyLong_FromLong(it->local_world_size[rank]);
    case VISIBLE_ACCELERATORS: return visible_list(it, rank);
    case ISOLATE_ACCELERATOR: return PyBool_FromLong(it->isolate_accelerator);
    case LOCAL_HARDWARE_RANKS:
        return binding_int_list(it->hardware + it->first_hardware[rank],
                                it->first_hardware[rank + 1] - it->first_hardware[rank]);
    case NODE_GROUP_LABEL: return PyUnicode_FromString(it->node_groups[it->node_group[rank]]);
    case FIELDS: break;
    }
    return NULL;
}

/* Lists are handed out as copies, so that nobody's change is another's surprise. */
static PyObject *read_value(const struct placement_object *self, enum field field)
{
    PyObject *value = PyTuple_GetItem(self->owner, field);
    if (value && PyTuple_Check(value))
        return PySequence_List(value);
    Py_XINCREF(value);
    return value;
}

static PyObject *get_field(PyObject *self, void *closure)
{
    const struct placement_object *it = (const struct placement_object *)self;
    enum field field = (enum field)(intptr_t)closure;
    return it->component ? read_row(it, field) : read_value(it, field);
}

#define FIELD(name, field) {name, get_field, NULL, NULL, (void *)(intptr_t)(field)}

static PyGetSetDef fields[] = {
    FIELD("rank", RANK),
    FIELD("cluster_node_rank", CLUSTER_NODE_RANK),
    FIELD("placement_node_rank", PLACEMENT_NODE_RANK),
    FIELD("local_accelerator_rank", LOCAL_ACCELERATOR_RANK),
    FIELD("accelerator_type", ACCELERATOR_TYPE),
    FIELD("local_rank", LOCAL_RANK),
    FIELD("local_world_size", LOCAL_WORLD_SIZE),
    FIELD("visible_accelerators", VISIBLE_ACCELERATORS),
    FIELD("isolate_accelerator", ISOLATE_ACCELERATOR),
    FIELD("local_hardware_ranks", LOCAL_HARDWARE_RANKS),
    FIELD("node_group_label", NODE_GROUP_LABEL),
    /* the older API */
    FIELD("node_id", CLUSTER_NODE_RANK),
    FIELD("node_rank", PLACEMENT_NODE_RANK),
    FIELD("local_gpu_id", LOCAL_ACCELERATOR_RANK),
    FIELD("cuda_visible_devices", VISIBLE_ACCELERATORS),
    FIELD("isolate_gpu", ISOLATE_ACCELERATOR),
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- made by Python code --- */

/* A tuple of the items of `value`, each an int (or a str); NULL with an exception that names it. */
static PyObject *take_items(struct binding *binding, PyObject *value, const char *name,
                            bool is_text)
{
    PyObject *items = PyUnicode_Check(value) ? NULL : PySequence_Tuple(value);
    Py_ssize_t count = items ? PyTuple_Size(items) : 0;
    bool is_good = items != NULL;
    int32_t rank;
    for (Py_ssize_t i = 0; is_good && i < count; i++)
        is_good = is_text
                      ? PyUnicode_CheckExact(PyTuple_GetItem(items, i))
                      : binding_int32(PyTuple_GetItem(items, i), name, binding->rank_error, &rank);
    if (is_good)
        return items;
    if (!PyErr_Occurred() || !items)
        PyErr_Format(PyExc_TypeError, "%s must be a sequence of %s, not %R", name,
                     is_text ? "str" : "int", value);
    Py_XDECREF(items);
    return NULL;
}

/* The member of our types that equals the value. */
static PyObject *take_type(struct binding *binding, PyObject *value)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(binding->accelerator_types); i++) {
        PyObject *member = PyTuple_GetItem(binding->accelerator_types, i);
        int is_same = PyObject_RichCompareBool(member, value, Py_EQ);
        if (is_same < 0)
            return NULL;
        if (is_same) {
            Py_INCREF(member);
            return member;
        }
    }
    PyErr_Format(PyExc_TypeError, "accelerator_type must be an AcceleratorType, not %R", value);
    return NULL;
}

static PyObject *take_value(struct binding *binding, enum field field, PyObject *value)
{
    const char *name = fields[field].name;
    int32_t number;
    switch (field) {
    case ACCELERATOR_TYPE: return take_type(binding, value);
    case VISIBLE_ACCELERATORS: return take_items(binding, value, name, true);
    case LOCAL_HARDWARE_RANKS: return take_items(binding, value, name, false);
    case ISOLATE_ACCELERATOR:
        if (PyBool_Check(value)) {
            Py_INCREF(value);
            return value;
        }
        PyErr_Format(PyExc_TypeError, "%s must be a bool, not %R", name, value);
        return NULL;
    case NODE_GROUP_LABEL:
        if (PyUnicode_Check(value)) {
            Py_INCREF(value);
            return value;
        }
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", name, value);
        return NULL;
    default:
        return binding_int32(value, name, binding->rank_error, &number) ? PyLong_FromLong(number)
                                                                        : NULL;
    }
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[FIELDS + 1] = {"rank",
                                      "cluster_node_rank",
                                      "placement_node_rank",
                                      "local_accelerator_rank",
                                      "accelerator_type",
                                      "local_rank",
                                      "local_world_size",
                                      "visible_accelerators",
                                      "isolate_accelerator",
                                      "local_hardware_ranks",
                                      "node_group_label",
                                      NULL};
    PyObject *in[FIELDS];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOOOOO:Placement", words, &in[0], &in[1],
                                     &in[2], &in[3], &in[4], &in[5], &in[6], &in[7], &in[8], &in[9],
                                     &in[10]))
        return NULL;
    PyObject *values = PyTuple_New(FIELDS), *self = NULL;
    for (Py_ssize_t i = 0; values && i < FIELDS; i++) {
        PyObject *value = take_value(binding_of(type), (enum field)i, in[i]);
        if (!value || PyTuple_SetItem(values, i, value) < 0)
            Py_CLEAR(values);
    }
    if (values)
        self = placement_new(type, values, NULL, 0);
    Py_XDECREF(values);
    return self;
}

/* --- as a whole --- */

/* The eleven fields as a tuple, in their order. */
static PyObject *as_tuple(PyObject *self)
{
    PyObject *tuple = PyTuple_New(FIELDS);
    for (Py_ssize_t i = 0; tuple && i < FIELDS; i++) {
        PyObject *value = get_field(self, (void *)(intptr_t)i);
        if (!value || PyTuple_SetItem(tuple, i, value) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *repr(PyObject *self)
{
    PyObject *values = as_tuple(self), *text = PyUnicode_FromString("Placement(");
    for (Py_ssize_t i = 0; text && values && i < FIELDS; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s%s=%R", text, i ? ", " : "", fields[i].name,
                                                PyTuple_GetItem(values, i));
        Py_DECREF(text);
        text = longer;
    }
    PyObject *whole = text && values ? PyUnicode_FromFormat("%U)", text) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(values);
    return whole;
}

static PyObject *compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(self)))
        Py_RETURN_NOTIMPLEMENTED;
    const struct placement_object *a = (const struct placement_object *)self;
    const struct placement_object *b = (const struct placement_object *)other;
    if (a->component && b->component)
        return PyBool_FromLong(rows_equal(a->component, a->rank, b->component, b->rank) ==
                               (op == Py_EQ));
    PyObject *mine = as_tuple(self), *theirs = as_tuple(other);
    PyObject *result = mine && theirs ? PyObject_RichCompare(mine, theirs, op) : NULL;
    Py_XDECREF(mine);
    Py_XDECREF(theirs);
    return result;
}

static PyObject *reduce(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    PyObject *values = as_tuple(self);
    return values ? Py_BuildValue("(ON)", Py_TYPE(self), values) : NULL;
}

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "for pickle and copy"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The place of one process: its ranks, node and devices. Read-only."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {Py_tp_repr, repr},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {0, NULL},
};

PyType_Spec placement_spec = {
    .name = "roost.Placement",
    .basicsize = sizeof(struct placement_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
