/* strategy.c - the type Strategy: the numbers of one placement strategy, copied and checked once,
 * placed as often as there are clusters. */
#include <stdio.h>
#include <string.h>

#include "binding.h"

struct strategy_object {
    PyObject_HEAD
    enum roost_strategy kind;
    struct texts labels;
    struct roost_packed packed;
    int32_t *first, *ranks; /* flexible: lists; node: ranks alone */
    int32_t count;          /* processes */
};

static void dealloc(PyObject *self)
{
    struct strategy_object *it = (struct strategy_object *)self;
    texts_close(&it->labels);
    PyMem_Free(it->first);
    PyMem_Free(it->ranks);
    binding_dealloc(self);
}

static struct strategy_object *start(PyTypeObject *type, enum roost_strategy kind, PyObject *labels)
{
    const char *name = kind == ROOST_STRATEGY_PACKED ? "node_group" : "node_group_label";
    struct strategy_object *self = binding_alloc(type);
    if (!self)
        return NULL;
    self->kind = kind;
    if (!texts_open(binding_of(type), &self->labels, labels, name))
        Py_CLEAR(self);
    return self;
}

/* The object when the library finds nothing wrong with it. */
static PyObject *finish(struct strategy_object *self, enum roost_code code,
                        const struct roost_error *error)
{
    if (code == ROOST_OK)
        return (PyObject *)self;
    binding_raise(binding_of(Py_TYPE((PyObject *)self)), error, NULL, NULL);
    Py_DECREF(self);
    return NULL;
}

static PyObject *packed(PyObject *class, PyObject *args)
{
    static const char *const names[] = {"start_hardware_rank", "end_hardware_rank",
                                        "num_hardware_per_process", "stride"};
    PyObject *labels, *values[4], *rank_error = binding_of((PyTypeObject *)class)->rank_error;
    int32_t numbers[4];
    if (!PyArg_ParseTuple(args, "OOOOO:packed", &values[0], &values[1], &values[2], &values[3],
                          &labels))
        return NULL;
    for (int i = 0; i < 4; i++)
        if (!binding_int32(values[i], names[i], rank_error, &numbers[i]))
            return NULL;
    struct strategy_object *self = start((PyTypeObject *)class, ROOST_STRATEGY_PACKED, labels);
    if (!self)
        return NULL;
    struct roost_error error;
    self->packed = (struct roost_packed){numbers[0], numbers[1], numbers[2], numbers[3]};
    return finish(self, roost_packed_check(&self->packed, &error), &error);
}

/* Ranks with room for more. */
struct ranks {
    int32_t *values;
    size_t count, room;
};

static bool make_room(struct ranks *ranks, size_t count)
{
    size_t needed = ranks->count + count;
    if (needed <= ranks->room)
        return true;
    size_t room = needed > 2 * ranks->room ? needed : 2 * ranks->room;
    int32_t *grown =
        needed <= INT32_MAX ? PyMem_Realloc(ranks->values, room * sizeof *grown) : NULL;
    if (!grown) {
        PyErr_NoMemory();
        return false;
    }
    ranks->values = grown;
    ranks->room = room;
    return true;
}

/* Appends the ranks of a Python sequence; the exception names the one that is wrong. */
static bool add_ranks(struct ranks *ranks, PyObject *sequence, const char *what,
                      PyObject *rank_error)
{
    char name[64];
    PyObject *items = PySequence_Tuple(sequence);
    if (!items) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must be a sequence of int, not %R", what, sequence);
        return false;
    }
    size_t count = (size_t)PyTuple_Size(items);
    bool is_good = make_room(ranks, count);
    for (size_t i = 0; is_good && i < count; i++) {
        PyObject *item = PyTuple_GetItem(items, (Py_ssize_t)i);
        int overflow = 0;
        long long wide =
            PyLong_CheckExact(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : -1;
        if (wide >= 0 && wide <= INT32_MAX && !overflow) {
            ranks->values[ranks->count++] = (int32_t)wide; /* nearly all of them */
            continue;
        }
        snprintf(name, sizeof name, "%s[%zu]", what, i);
        is_good = binding_int32(item, name, rank_error, &ranks->values[ranks->count++]);
    }
    Py_DECREF(items);
    return is_good;
}

/* Appends the ranks of every list; first[i] says where those of process i begin. */
static bool add_lists(struct ranks *ranks, PyObject *lists, int32_t *first, PyObject *rank_error)
{
    char name[64];
    for (Py_ssize_t i = 0; i < PyTuple_Size(lists); i++) {
        snprintf(name, sizeof name, "hardware_ranks_list[%zd]", i);
        if (!add_ranks(ranks, PyTuple_GetItem(lists, i), name, rank_error))
            return false;
        first[i + 1] = (int32_t)ranks->count;
    }
    return true;
}

static PyObject *flexible(PyObject *class, PyObject *args)
{
    PyObject *lists, *labels;
    if (!PyArg_ParseTuple(args, "OO:flexible", &lists, &labels))
        return NULL;
    PyObject *outer = PySequence_Tuple(lists);
    if (!outer) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError,
                         "hardware_ranks_list must be a sequence of sequences of int, not %R",
                         lists);
        return NULL;
    }
    struct strategy_object *self = start((PyTypeObject *)class, ROOST_STRATEGY_FLEXIBLE, labels);
    size_t count = (size_t)PyTuple_Size(outer);
    struct ranks ranks = {0};
    bool is_good = self && count < INT32_MAX;
    if (is_good) {
        self->first = PyMem_Calloc(count + 1, sizeof *self->first);
        is_good = self->first != NULL;
    }
    if (self && !is_good)
        PyErr_NoMemory();
    is_good = is_good &&
              add_lists(&ranks, outer, self->first, binding_of((PyTypeObject *)class)->rank_error);
    Py_DECREF(outer);
    if (!is_good) {
        PyMem_Free(ranks.values);
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    struct roost_error error;
    self->ranks = ranks.values;
    self->count = (int32_t)count;
    return finish(self, roost_flexible_check(self->first, self->ranks, self->count, &error),
                  &error);
}

static PyObject *node(PyObject *class, PyObject *args)
{
    PyObject *sequence, *labels;
    struct ranks ranks = {0};
    if (!PyArg_ParseTuple(args, "OO:node", &sequence, &labels))
        return NULL;
    struct strategy_object *self = start((PyTypeObject *)class, ROOST_STRATEGY_NODE, labels);
    if (!self ||
        !add_ranks(&ranks, sequence, "node_ranks", binding_of((PyTypeObject *)class)->rank_error)) {
        PyMem_Free(ranks.values);
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    struct roost_error error;
    self->ranks = ranks.values;
    self->count = (int32_t)ranks.count;
    return finish(self, roost_node_check(self->ranks, self->count, &error), &error);
}

/* The numbers behind a component that was planned on the cluster. */
static bool take_component(struct strategy_object *self, const struct roost_component *it,
                           const struct roost_cluster *cluster)
{
    self->packed = it->packed;
    if (it->strategy == ROOST_STRATEGY_PACKED)
        return true;
    bool is_node = it->strategy == ROOST_STRATEGY_NODE;
    size_t count = (size_t)it->world_size;
    size_t held = is_node ? count : (size_t)it->first_hardware[count];
    self->count = it->world_size;
    self->ranks = PyMem_Calloc(held + 1, sizeof *self->ranks);
    self->first = is_node ? NULL : PyMem_Calloc(count + 1, sizeof *self->first);
    if (!self->ranks || (!is_node && !self->first)) {
        PyErr_NoMemory();
        return false;
    }
    if (!is_node)
        memcpy(self->first, it->first_hardware, (count + 1) * sizeof *self->first);
    if (roost_component_ranks(it, cluster, self->ranks))
        return true;
    PyErr_SetString(PyExc_ValueError, "the placements were planned on another cluster");
    return false;
}

static PyObject *of(PyObject *class, PyObject *args)
{
    PyTypeObject *type = (PyTypeObject *)class;
    struct binding *binding = binding_of(type);
    PyObject *placements, *cluster;
    if (!PyArg_ParseTuple(args, "OO:of", &placements, &cluster) ||
        !binding_want(placements, binding->placements, "placements") ||
        !binding_want(cluster, binding->cluster, "cluster"))
        return NULL;
    const struct roost_component *it = placements_component(placements);
    PyObject *labels = PyObject_GetAttrString(placements, "node_groups");
    struct strategy_object *self = labels ? start(type, it->strategy, labels) : NULL;
    Py_XDECREF(labels);
    if (self && !take_component(self, it, cluster_value(cluster)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static struct roost_plan *make_plan(const struct strategy_object *it,
                                    const struct roost_cluster *cluster,
                                    const struct roost_scope *scope, struct roost_error *error)
{
    switch (it->kind) {
    case ROOST_STRATEGY_PACKED: return roost_plan_new_packed(cluster, scope, &it->packed, error);
    case ROOST_STRATEGY_FLEXIBLE:
        return roost_plan_new_flexible(cluster, scope, it->first, it->ranks, it->count, error);
    case ROOST_STRATEGY_NODE:
        return roost_plan_new_node(cluster, scope, it->ranks, it->count, error);
    }
    return NULL;
}

static PyObject *place(PyObject *self, PyObject *args)
{
    const struct strategy_object *it = (const struct strategy_object *)self;
    struct binding *binding = binding_of(Py_TYPE(self));
    PyObject *cluster;
    int isolate;
    if (!PyArg_ParseTuple(args, "Op:place", &cluster, &isolate) ||
        !binding_want(cluster, binding->cluster, "cluster"))
        return NULL;
    struct roost_scope scope = {.labels = it->labels.texts,
                                .label_count = (size_t)it->labels.count,
                                .shares_accelerators = !isolate};
    struct roost_error error;
    struct roost_plan *plan;
    Py_BEGIN_ALLOW_THREADS
    plan = make_plan(it, cluster_value(cluster), &scope, &error);
    Py_END_ALLOW_THREADS
    if (!plan)
        return binding_raise(binding, &error, NULL, NULL);
    const struct roost_component *component = roost_plan_component(plan, 0);
    PyObject *owner = plan_take(binding, plan);
    PyObject *placements = owner ? placements_new(binding, owner, component) : NULL;
    Py_XDECREF(owner);
    return placements;
}

static PyObject *get_labels(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *labels = ((struct strategy_object *)self)->labels.owner;
    Py_INCREF(labels);
    return labels;
}

static PyObject *get_last_rank(PyObject *self, void *closure)
{
    (void)closure;
    const struct strategy_object *it = (const struct strategy_object *)self;
    int32_t total = it->kind == ROOST_STRATEGY_FLEXIBLE ? it->first[it->count] : it->count;
    int32_t last = it->packed.end;
    for (int32_t i = 0; i < total; i++)
        last = it->ranks[i] > last ? it->ranks[i] : last;
    return PyLong_FromLong(last);
}

static PyObject *get_kind(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(roost_strategy_word(((struct strategy_object *)self)->kind));
}

static PyObject *rank_lists(const struct strategy_object *it)
{
    PyObject *lists = PyList_New(0);
    for (int32_t p = 0; lists && p < it->count; p++)
        binding_append(&lists,
                       binding_int_list(it->ranks + it->first[p], it->first[p + 1] - it->first[p]));
    return lists;
}

/* What the class method of its kind takes. */
static PyObject *get_arguments(PyObject *self, void *closure)
{
    (void)closure;
    const struct strategy_object *it = (const struct strategy_object *)self;
    const struct roost_packed *packed = &it->packed;
    if (it->kind == ROOST_STRATEGY_PACKED)
        return Py_BuildValue("(iiiiO)", (int)packed->start, (int)packed->end,
                             (int)packed->per_process, (int)packed->stride, it->labels.owner);
    PyObject *ranks = it->kind == ROOST_STRATEGY_FLEXIBLE ? rank_lists(it)
                                                          : binding_int_list(it->ranks, it->count);
    return ranks ? Py_BuildValue("(NO)", ranks, it->labels.owner) : NULL;
}

static PyGetSetDef fields[] = {
    {"kind", get_kind, NULL, "packed, flexible or node", NULL},
    {"arguments", get_arguments, NULL, "what the class method of its kind takes", NULL},
    {"labels", get_labels, NULL, "node groups, in order; none = cluster", NULL},
    {"last_rank", get_last_rank, NULL, "the highest rank it names", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"packed", packed, METH_VARARGS | METH_CLASS,
     "packed(start, end, per_process, stride, labels)"},
    {"flexible", flexible, METH_VARARGS | METH_CLASS, "flexible(lists, labels)"},
    {"of", of, METH_VARARGS | METH_CLASS, "of(placements, cluster): what they were placed with"},
    {"node", node, METH_VARARGS | METH_CLASS, "node(node_ranks, labels)"},
    {"place", place, METH_VARARGS, "place(cluster, isolate) -> Placements"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The numbers of one placement strategy."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec strategy_spec = {
    .name = "roost._roost.Strategy",
    .basicsize = sizeof(struct strategy_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
