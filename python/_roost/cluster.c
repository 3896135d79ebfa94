/* cluster.c - the type Cluster: found by the library, or described by Python objects. */
#include "binding.h"

struct cluster_object {
    PyObject_HEAD
    struct roost_cluster *value;
    PyObject *warnings;
};

const struct roost_cluster *cluster_value(PyObject *cluster)
{
    return ((struct cluster_object *)cluster)->value;
}

static void dealloc(PyObject *self)
{
    struct cluster_object *it = (struct cluster_object *)self;
    roost_cluster_free(it->value);
    Py_XDECREF(it->warnings);
    binding_dealloc(self);
}

/* Takes the value, also on failure, and the list of warnings. */
static PyObject *take(PyTypeObject *type, struct roost_cluster *value, PyObject *warnings)
{
    struct cluster_object *self = warnings ? binding_alloc(type) : NULL;
    if (!self) {
        roost_cluster_free(value);
        Py_XDECREF(warnings);
        return NULL;
    }
    self->value = value;
    self->warnings = warnings;
    return (PyObject *)self;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"text", "config", "num_nodes", NULL};
    struct binding *binding = binding_of(type);
    const char *text = NULL;
    PyObject *config = Py_None, *num_nodes = NULL;
    struct roost_cluster_options options = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "z|OO:Cluster", words, &text, &config,
                                     &num_nodes) ||
        (config != Py_None && !binding_want(config, binding->config, "config")) ||
        (num_nodes && !binding_int32(num_nodes, "num_nodes", &options.num_nodes)))
        return NULL;
    PyObject *paths = config == Py_None ? NULL : config_paths(config);
    options.text = text;
    options.config = config == Py_None ? NULL : config_value(config);
    struct roost_error error;
    struct roost_report *report = roost_report_new();
    if (!report)
        return PyErr_NoMemory();
    struct roost_cluster *value;
    Py_BEGIN_ALLOW_THREADS
    value = roost_cluster_new(&options, report, &error);
    Py_END_ALLOW_THREADS
    PyObject *self = value ? take(type, value, binding_warnings(report, paths))
                           : binding_raise(binding, &error, paths);
    roost_report_free(report);
    return self;
}

/* --- from parts --- */

/* What Python described, borrowed from it for the call. */
struct parts {
    struct roost_node_part *nodes;
    struct texts *hardware; /* of each node */
    Py_ssize_t node_count;
    struct roost_group_part *groups;
    int32_t **node_ranks; /* of each group */
    Py_ssize_t group_count;
};

static void parts_release(struct parts *parts)
{
    for (Py_ssize_t n = 0; parts->hardware && n < parts->node_count; n++)
        texts_close(&parts->hardware[n]);
    for (Py_ssize_t g = 0; parts->node_ranks && g < parts->group_count; g++)
        PyMem_Free(parts->node_ranks[g]);
    PyMem_Free(parts->nodes);
    PyMem_Free(parts->hardware);
    PyMem_Free(parts->groups);
    PyMem_Free(parts->node_ranks);
}

/* (index of the accelerator type, how many, hardware types) */
static bool read_node(PyObject *item, struct roost_node_part *out, struct texts *hardware)
{
    PyObject *type, *count, *types;
    int32_t accelerator;
    if (!PyArg_ParseTuple(item, "OOO:node", &type, &count, &types) ||
        !binding_int32(type, "accelerator_type", &accelerator) ||
        !binding_int32(count, "num_accelerators", &out->num_accelerators) ||
        !texts_open(hardware, types, "hardware types"))
        return false;
    if (accelerator < 0 || accelerator > ROOST_ACCELERATOR_KUNLUN) {
        PyErr_Format(PyExc_ValueError, "accelerator_type is out of range: %R", type);
        return false;
    }
    out->accelerator = (enum roost_accelerator)accelerator;
    out->hardware_types = hardware->texts;
    out->hardware_count = (size_t)hardware->count;
    return true;
}

/* (label, hardware type or None, tuple of node ranks) */
static bool read_group(PyObject *item, struct roost_group_part *out, int32_t **ranks)
{
    PyObject *nodes;
    if (!PyArg_ParseTuple(item, "szO!:group", &out->label, &out->hardware_type, &PyTuple_Type,
                          &nodes))
        return false;
    Py_ssize_t count = PyTuple_Size(nodes);
    *ranks = count < INT32_MAX ? PyMem_Calloc((size_t)count + 1, sizeof **ranks) : NULL;
    if (!*ranks) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!binding_int32(PyTuple_GetItem(nodes, i), "node_ranks", &(*ranks)[i]))
            return false;
    out->node_ranks = *ranks;
    out->node_count = (int32_t)count;
    return true;
}

static bool parts_init(struct parts *parts, PyObject *nodes, PyObject *groups)
{
    *parts = (struct parts){.node_count = PyTuple_Size(nodes), .group_count = PyTuple_Size(groups)};
    size_t node_count = (size_t)parts->node_count, group_count = (size_t)parts->group_count;
    parts->nodes = PyMem_Calloc(node_count + 1, sizeof *parts->nodes);
    parts->hardware = PyMem_Calloc(node_count + 1, sizeof *parts->hardware);
    parts->groups = PyMem_Calloc(group_count + 1, sizeof *parts->groups);
    parts->node_ranks = PyMem_Calloc(group_count + 1, sizeof *parts->node_ranks);
    if (!parts->nodes || !parts->hardware || !parts->groups || !parts->node_ranks ||
        parts->node_count > INT32_MAX) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t n = 0; n < parts->node_count; n++)
        if (!read_node(PyTuple_GetItem(nodes, n), &parts->nodes[n], &parts->hardware[n]))
            return false;
    for (Py_ssize_t g = 0; g < parts->group_count; g++)
        if (!read_group(PyTuple_GetItem(groups, g), &parts->groups[g], &parts->node_ranks[g]))
            return false;
    return true;
}

static PyObject *from_parts(PyObject *class, PyObject *args)
{
    PyTypeObject *type = (PyTypeObject *)class;
    PyObject *nodes, *groups, *self = NULL;
    struct parts parts;
    if (!PyArg_ParseTuple(args, "O!O!:from_parts", &PyTuple_Type, &nodes, &PyTuple_Type, &groups))
        return NULL;
    if (parts_init(&parts, nodes, groups)) {
        struct roost_cluster_parts wanted = {parts.nodes, (int32_t)parts.node_count, parts.groups,
                                             (size_t)parts.group_count};
        struct roost_error error;
        struct roost_cluster *value;
        Py_BEGIN_ALLOW_THREADS
        value = roost_cluster_new_parts(&wanted, &error);
        Py_END_ALLOW_THREADS
        self = value ? take(type, value, PyList_New(0))
                     : binding_raise(binding_of(type), &error, NULL);
    }
    parts_release(&parts);
    return self;
}

/* --- what a cluster knows --- */

/* (type, fields as JSON text) of every robot and the like. */
static PyObject *hardware_list(const struct roost_cluster *cluster, int32_t node_rank)
{
    struct roost_hardware unit;
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list && roost_cluster_hardware(cluster, node_rank, i, &unit); i++)
        binding_append(&list, Py_BuildValue("(ss)", unit.type, unit.config));
    return list;
}

static PyObject *get_nodes(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_cluster *cluster = cluster_value(self);
    int32_t count = roost_cluster_node_count(cluster);
    PyObject *nodes = PyList_New(0);
    for (int32_t n = 0; nodes && n < count; n++) {
        struct roost_node node;
        roost_cluster_node(cluster, n, &node);
        PyObject *hardware = hardware_list(cluster, n);
        binding_append(
            &nodes,
            hardware ? Py_BuildValue("{s:i,s:z,s:z,s:i,s:s,s:z,s:i,s:O}", "node_rank",
                                     (int)node.node_rank, "id", node.id, "address", node.address,
                                     "num_cpus", (int)node.num_cpus, "accelerator_type",
                                     roost_accelerator_type(node.accelerator), "accelerator_model",
                                     node.accelerator_model, "num_accelerators",
                                     (int)node.num_accelerators, "hardware", hardware)
                     : NULL);
        Py_XDECREF(hardware);
    }
    return nodes;
}

static PyObject *get_groups(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_cluster *cluster = cluster_value(self);
    PyObject *groups = PyList_New(0);
    for (size_t g = 0; groups && g < roost_cluster_group_count(cluster); g++) {
        struct roost_node_group group;
        roost_cluster_group(cluster, g, &group);
        PyObject *ranks = binding_int_list(group.node_ranks, group.node_count);
        binding_append(&groups,
                       ranks ? Py_BuildValue("(szO)", group.label, group.hardware_type, ranks)
                             : NULL);
        Py_XDECREF(ranks);
    }
    return groups;
}

static PyObject *get_num_nodes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(roost_cluster_node_count(cluster_value(self)));
}

static PyObject *get_accelerators(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(roost_cluster_accelerator_count(cluster_value(self)));
}

static PyObject *get_warnings(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *warnings = ((struct cluster_object *)self)->warnings;
    Py_INCREF(warnings);
    return warnings;
}

static PyGetSetDef fields[] = {
    {"nodes", get_nodes, NULL, "a dict a node, in node order", NULL},
    {"groups", get_groups, NULL, "(label, hardware type or None, node ranks)", NULL},
    {"num_nodes", get_num_nodes, NULL, "nodes", NULL},
    {"num_accelerators", get_accelerators, NULL, "accelerators in all", NULL},
    {"warnings", get_warnings, NULL, "(word, place, message, hint)", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"from_parts", from_parts, METH_VARARGS | METH_CLASS, "from_parts(nodes, groups)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Cluster(text, config=None, num_nodes=0)"},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec cluster_spec = {
    .name = "roost._roost.Cluster",
    .basicsize = sizeof(struct cluster_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
