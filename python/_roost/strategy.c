/* strategy.c - the type Strategy: the numbers of one placement strategy, copied and checked once,
 * placed as often as there are clusters. */
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
    struct strategy_object *self = binding_alloc(type);
    if (!self)
        return NULL;
    self->kind = kind;
    if (!texts_open(&self->labels, labels, "node group labels"))
        Py_CLEAR(self);
    return self;
}

/* The object when the library finds nothing wrong with it. */
static PyObject *finish(struct strategy_object *self, enum roost_code code,
                        const struct roost_error *error)
{
    if (code == ROOST_OK)
        return (PyObject *)self;
    binding_raise(binding_of(Py_TYPE((PyObject *)self)), error, NULL);
    Py_DECREF(self);
    return NULL;
}

static PyObject *packed(PyObject *class, PyObject *args)
{
    static const char *const names[] = {"start_hardware_rank", "end_hardware_rank",
                                        "num_hardware_per_process", "stride"};
    PyObject *labels, *values[4];
    int32_t numbers[4];
    if (!PyArg_ParseTuple(args, "OOOOO:packed", &values[0], &values[1], &values[2], &values[3],
                          &labels))
        return NULL;
    for (int i = 0; i < 4; i++)
        if (!binding_int32(values[i], names[i], &numbers[i]))
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

/* Appends the ranks of a Python sequence. */
static bool add_ranks(struct ranks *ranks, PyObject *sequence, const char *what)
{
    PyObject *items = PySequence_Tuple(sequence);
    if (!items) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must hold a sequence of int, not %R", what, sequence);
        return false;
    }
    size_t count = (size_t)PyTuple_Size(items), needed = ranks->count + count;
    bool is_good = needed <= INT32_MAX;
    if (is_good && needed > ranks->room) {
        size_t room = needed > 2 * ranks->room ? needed : 2 * ranks->room;
        int32_t *grown = PyMem_Realloc(ranks->values, room * sizeof *grown);
        is_good = grown != NULL;
        if (grown) {
            ranks->values = grown;
            ranks->room = room;
        }
    }
    if (!is_good)
        PyErr_NoMemory();
    for (size_t i = 0; is_good && i < count; i++)
        is_good = binding_int32(PyTuple_GetItem(items, (Py_ssize_t)i), what,
                                &ranks->values[ranks->count++]);
    Py_DECREF(items);
    return is_good;
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
    for (size_t i = 0; is_good && i < count; i++) {
        is_good = add_ranks(&ranks, PyTuple_GetItem(outer, (Py_ssize_t)i), "hardware_ranks_list");
        self->first[i + 1] = (int32_t)ranks.count;
    }
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
    if (!self || !add_ranks(&ranks, sequence, "node_ranks")) {
        PyMem_Free(ranks.values);
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    struct roost_error error;
    self->ranks = ranks.values;
    self->count = (int32_t)ranks.count;
    return finish(self, roost_node_check(self->ranks, self->count, &error), &error);
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
        return binding_raise(binding, &error, NULL);
    const struct roost_component *component = roost_plan_component(plan, 0);
    PyObject *owner = plan_take(binding, plan);
    PyObject *placements = owner ? placements_new(binding, owner, component) : NULL;
    Py_XDECREF(owner);
    return placements;
}

static PyObject *get_labels(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *labels = ((struct strategy_object *)self)->labels.keeper;
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

static PyGetSetDef fields[] = {
    {"labels", get_labels, NULL, "node groups, in order; none = cluster", NULL},
    {"last_rank", get_last_rank, NULL, "the highest rank it names", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"packed", packed, METH_VARARGS | METH_CLASS,
     "packed(start, end, per_process, stride, labels)"},
    {"flexible", flexible, METH_VARARGS | METH_CLASS, "flexible(lists, labels)"},
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
