/* cluster_described.c - a Cluster from what Python objects have said of its nodes and groups. */
#include "binding.h"

/* What Python described, borrowed from it for the call. */
struct described {
    struct roost_node_description *nodes;
    struct texts *hardware; /* of each node */
    Py_ssize_t node_count;
    struct roost_node_group_description *groups;
    int32_t **node_ranks; /* of each group */
    Py_ssize_t group_count;
};

static void described_release(struct described *described)
{
    for (Py_ssize_t n = 0; described->hardware && n < described->node_count; n++)
        texts_close(&described->hardware[n]);
    for (Py_ssize_t g = 0; described->node_ranks && g < described->group_count; g++)
        PyMem_Free(described->node_ranks[g]);
    PyMem_Free(described->nodes);
    PyMem_Free(described->hardware);
    PyMem_Free(described->groups);
    PyMem_Free(described->node_ranks);
}

/* (index of the accelerator type, how many, hardware types, CPUs or 0) */
static bool read_node(struct binding *binding, PyObject *item, struct roost_node_description *out,
                      struct texts *hardware)
{
    PyObject *type, *count, *types, *cpus;
    int32_t accelerator;
    if (!PyArg_ParseTuple(item, "OOOO:node", &type, &count, &types, &cpus) ||
        !binding_int32(type, "accelerator_type", binding->error, &accelerator) ||
        !binding_int32(count, "num_accelerators", binding->error, &out->num_accelerators) ||
        !binding_int32(cpus, "num_cpus", binding->error, &out->num_cpus) ||
        !texts_open(binding, hardware, types, "hardware_resources"))
        return false;
    if (accelerator < 0 || accelerator >= ROOST_ACCELERATOR_COUNT) {
        PyErr_Format(binding->error, "accelerator_type is out of range: %R", type);
        return false;
    }
    out->accelerator = (enum roost_accelerator)accelerator;
    out->hardware_types = hardware->texts;
    out->hardware_count = (size_t)hardware->count;
    return true;
}

/* (label, hardware type or None, tuple of node ranks, whether to find the type) */
static bool read_group(struct binding *binding, PyObject *item,
                       struct roost_node_group_description *out, int32_t **ranks)
{
    PyObject *nodes;
    int finds_type;
    if (!PyArg_ParseTuple(item, "szO!p:group", &out->label, &out->hardware_type, &PyTuple_Type,
                          &nodes, &finds_type))
        return false;
    out->finds_type = finds_type;
    Py_ssize_t count = PyTuple_Size(nodes);
    *ranks = count < INT32_MAX ? PyMem_Calloc((size_t)count + 1, sizeof **ranks) : NULL;
    if (!*ranks) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!binding_int32(PyTuple_GetItem(nodes, i), "node_ranks", binding->rank_error,
                           &(*ranks)[i]))
            return false;
    out->node_ranks = *ranks;
    out->node_count = (int32_t)count;
    return true;
}

static bool described_init(struct binding *binding, struct described *described, PyObject *nodes,
                           PyObject *groups)
{
    *described =
        (struct described){.node_count = PyTuple_Size(nodes), .group_count = PyTuple_Size(groups)};
    size_t node_count = (size_t)described->node_count, group_count = (size_t)described->group_count;
    described->nodes = PyMem_Calloc(node_count + 1, sizeof *described->nodes);
    described->hardware = PyMem_Calloc(node_count + 1, sizeof *described->hardware);
    described->groups = PyMem_Calloc(group_count + 1, sizeof *described->groups);
    described->node_ranks = PyMem_Calloc(group_count + 1, sizeof *described->node_ranks);
    if (!described->nodes || !described->hardware || !described->groups || !described->node_ranks ||
        described->node_count > INT32_MAX) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t n = 0; n < described->node_count; n++)
        if (!read_node(binding, PyTuple_GetItem(nodes, n), &described->nodes[n],
                       &described->hardware[n]))
            return false;
    for (Py_ssize_t g = 0; g < described->group_count; g++)
        if (!read_group(binding, PyTuple_GetItem(groups, g), &described->groups[g],
                        &described->node_ranks[g]))
            return false;
    return true;
}

PyObject *cluster_from_description(PyObject *class, PyObject *args)
{
    PyTypeObject *type = (PyTypeObject *)class;
    PyObject *nodes, *groups, *self = NULL;
    struct described described;
    if (!PyArg_ParseTuple(args, "O!O!:from_description", &PyTuple_Type, &nodes, &PyTuple_Type,
                          &groups))
        return NULL;
    if (described_init(binding_of(type), &described, nodes, groups)) {
        struct roost_cluster_description wanted = {described.nodes, (int32_t)described.node_count,
                                                   described.groups, (size_t)described.group_count};
        struct roost_error error;
        struct roost_cluster *value;
        Py_BEGIN_ALLOW_THREADS
        value = roost_cluster_new_described(&wanted, &error);
        Py_END_ALLOW_THREADS
        self = value ? cluster_take(type, value, PyList_New(0))
                     : binding_raise(binding_of(type), &error, NULL, NULL);
    }
    described_release(&described);
    return self;
}
