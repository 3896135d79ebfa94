/* cluster.c - the type Cluster: found by the library, or described by Python objects
 * (cluster_described.c). */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

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

PyObject *cluster_take(PyTypeObject *type, struct roost_cluster *value, PyObject *warnings)
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
    static char *words[] = {"text", "config", "num_nodes", "snapshot", NULL};
    struct binding *binding = binding_of(type);
    PyObject *text, *config = Py_None, *num_nodes = NULL;
    struct roost_cluster_options options = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOz:Cluster", words, &text, &config,
                                     &num_nodes, &options.snapshot) ||
        (config != Py_None && !binding_want(config, binding->config, "config")) ||
        (num_nodes && !binding_int32(num_nodes, "num_nodes", binding->error, &options.num_nodes)))
        return NULL;
    /* A path is bytes, whatever they spell. */
    options.text = text == Py_None ? NULL : PyBytes_AsString(text);
    if (text != Py_None && !options.text)
        return NULL;
    PyObject *paths = config == Py_None ? NULL : config_paths(config);
    options.config = config == Py_None ? NULL : config_value(config);
    struct roost_error error;
    struct roost_report *report = roost_report_new();
    if (!report)
        return PyErr_NoMemory();
    struct roost_cluster *value;
    Py_BEGIN_ALLOW_THREADS
    value = roost_cluster_new(&options, report, &error);
    Py_END_ALLOW_THREADS
    PyObject *self = value ? cluster_take(type, value, binding_warnings(report, paths))
                           : binding_raise(binding, &error, report, paths);
    roost_report_free(report);
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

static int by_rank(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

static bool has_node(const struct roost_node_group *group, int32_t node_rank)
{
    return group->node_count > 0 && bsearch(&node_rank, group->node_ranks,
                                            (size_t)group->node_count, sizeof node_rank, by_rank);
}

/* Labels of the groups that hold the node. */
static PyObject *label_list(const struct roost_cluster *cluster, int32_t node_rank)
{
    struct roost_node_group group;
    PyObject *labels = PyList_New(0);
    for (size_t g = 0; labels && roost_cluster_node_group(cluster, g, &group); g++)
        if (has_node(&group, node_rank))
            binding_append(&labels, PyUnicode_FromString(group.label));
    return labels;
}

static PyObject *get_node(PyObject *self, PyObject *rank)
{
    struct binding *binding = binding_of(Py_TYPE(self));
    const struct roost_cluster *cluster = cluster_value(self);
    struct roost_node node;
    int32_t node_rank;
    if (!binding_int32(rank, "node_rank", binding->rank_error, &node_rank))
        return NULL;
    if (!roost_cluster_node(cluster, node_rank, &node)) {
        int count = (int)roost_cluster_node_count(cluster);
        PyErr_Format(binding->rank_error, "node_rank %d is out of range: there %s %d node%s",
                     (int)node_rank, count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
        return NULL;
    }
    PyObject *labels = label_list(cluster, node_rank),
             *hardware = hardware_list(cluster, node_rank);
    PyObject *dict = NULL;
    if (labels && hardware)
        dict = Py_BuildValue("{s:i,s:O,s:z,s:z,s:i,s:s,s:z,s:i,s:O}", "node_rank",
                             (int)node.node_rank, "labels", labels, "id", node.id, "address",
                             node.address, "num_cpus", (int)node.num_cpus, "accelerator_type",
                             roost_accelerator_type(node.accelerator), "accelerator_model",
                             node.accelerator_model, "num_accelerators", (int)node.num_accelerators,
                             "hardware", hardware);
    Py_XDECREF(labels);
    Py_XDECREF(hardware);
    return dict;
}

/* (node rank, unit of the node) of a rank of a group. */
static PyObject *locate(PyObject *self, PyObject *args)
{
    struct binding *binding = binding_of(Py_TYPE(self));
    Py_ssize_t group;
    PyObject *rank;
    int32_t hardware_rank, node_rank, local_rank;
    if (!PyArg_ParseTuple(args, "nO:locate", &group, &rank) ||
        !binding_int32(rank, "hardware_rank", binding->rank_error, &hardware_rank))
        return NULL;
    if (roost_cluster_locate(cluster_value(self), (size_t)group, hardware_rank, &node_rank,
                             &local_rank))
        return Py_BuildValue("(ii)", (int)node_rank, (int)local_rank);
    struct roost_node_group it = {.label = ""};
    roost_cluster_node_group(cluster_value(self), (size_t)group, &it);
    PyErr_Format(binding->rank_error,
                 "hardware_rank %d is out of range: node group '%s' has %lld ranks",
                 (int)hardware_rank, it.label, (long long)it.resource_count);
    return NULL;
}

/* How many accelerators nodes have, each number once. */
static PyObject *get_counts(PyObject *self, void *closure)
{
    (void)closure;
    struct roost_node node;
    int32_t before = -1;
    PyObject *counts = PySet_New(NULL);
    for (int32_t n = 0; counts && roost_cluster_node(cluster_value(self), n, &node); n++) {
        if (node.num_accelerators == before)
            continue;
        before = node.num_accelerators;
        PyObject *count = PyLong_FromLong(before);
        if (!count || PySet_Add(counts, count) < 0)
            Py_CLEAR(counts);
        Py_XDECREF(count);
    }
    return counts;
}

static PyObject *get_groups(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_cluster *cluster = cluster_value(self);
    PyObject *groups = PyList_New(0);
    for (size_t g = 0; groups && g < roost_cluster_node_group_count(cluster); g++) {
        struct roost_node_group group;
        roost_cluster_node_group(cluster, g, &group);
        PyObject *ranks = binding_int_list(group.node_ranks, group.node_count);
        binding_append(&groups, ranks ? Py_BuildValue("(szOL)", group.label, group.hardware_type,
                                                      ranks, (long long)group.resource_count)
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

PyObject *binding_view(PyObject *module, PyObject *args)
{
    struct binding *binding = PyModule_GetState(module);
    PyObject *cluster, *config;
    if (!PyArg_ParseTuple(args, "OO:view", &cluster, &config) ||
        !binding_want(cluster, binding->cluster, "cluster") ||
        (config != Py_None && !binding_want(config, binding->config, "config")))
        return NULL;
    struct document document = {0};
    const struct roost_config *written = config == Py_None ? NULL : config_value(config);
    enum roost_code code;
    Py_BEGIN_ALLOW_THREADS
    code = roost_render_cluster_view(cluster_value(cluster), written, document_keep, &document);
    Py_END_ALLOW_THREADS
    PyObject *bytes = code == ROOST_OK
                          ? PyBytes_FromStringAndSize(document.bytes, (Py_ssize_t)document.len)
                          : PyErr_NoMemory();
    free(document.bytes);
    return bytes;
}

static PyObject *get_simulated(PyObject *self, void *closure)
{
    char text[ROOST_SIMULATED_MAX];
    bool is_simulated;
    (void)closure;
    Py_BEGIN_ALLOW_THREADS;
    is_simulated = roost_simulated_text(cluster_value(self), text);
    Py_END_ALLOW_THREADS;
    return is_simulated ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static PyGetSetDef fields[] = {
    {"simulated", get_simulated, NULL, "what of it this machine does not have, or None", NULL},
    {"groups", get_groups, NULL, "(label, hardware type or None, node ranks, how many ranks)",
     NULL},
    {"accelerator_counts", get_counts, NULL, "accelerators of a node, each number once", NULL},
    {"num_nodes", get_num_nodes, NULL, "nodes", NULL},
    {"num_accelerators", get_accelerators, NULL, "accelerators in all", NULL},
    {"warnings", get_warnings, NULL, "(word, place, message, hint)", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"node", get_node, METH_O, "a node as a dict"},
    {"locate", locate, METH_VARARGS, "locate(group index, rank) -> (node rank, local rank)"},
    {"from_description", cluster_from_description, METH_VARARGS | METH_CLASS,
     "from_description(nodes, groups)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Cluster(text, config=None, num_nodes=0, snapshot=None)"},
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
