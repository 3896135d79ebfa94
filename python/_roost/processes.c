/* processes.c - the type Processes: what each process of a component is given, for an engine that
 * Python drives. The library decides; here its answers become lists and dicts. */
#include "binding.h"

#include <string.h>

struct processes_object {
    PyObject_HEAD
    struct roost_processes *value;
    /* What the value borrows from. */
    PyObject *cluster, *placements, *config, *name, *folder;
    PyObject *warnings;
    struct texts env, command, extra;
};

static void dealloc(PyObject *self)
{
    struct processes_object *it = (struct processes_object *)self;
    roost_processes_free(it->value);
    Py_XDECREF(it->cluster);
    Py_XDECREF(it->placements);
    Py_XDECREF(it->config);
    Py_XDECREF(it->name);
    Py_XDECREF(it->folder);
    Py_XDECREF(it->warnings);
    texts_close(&it->env);
    texts_close(&it->command);
    texts_close(&it->extra);
    binding_dealloc(self);
}

static PyObject *keep(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}

static bool build(struct processes_object *it, struct binding *binding)
{
    bool has_config = it->config != Py_None;
    struct roost_processes_options options = {
        .config = has_config ? config_value(it->config) : NULL,
        .cluster = cluster_value(it->cluster),
        .component = placements_component(it->placements),
        .name = binding_text(binding, it->name, "name"),
        .env = it->env.texts,
        .extra_env = it->extra.texts,
        .command = it->command.texts,
        .command_count = (size_t)it->command.count,
        .config_dir = it->folder == Py_None ? NULL : binding_text(binding, it->folder, "folder"),
    };
    if (PyErr_Occurred())
        return false;
    struct roost_error error;
    struct roost_report *report = roost_report_new();
    if (!report) {
        PyErr_NoMemory();
        return false;
    }
    Py_BEGIN_ALLOW_THREADS
    it->value = roost_processes_new(&options, report, &error);
    Py_END_ALLOW_THREADS
    PyObject *paths = has_config ? config_paths(it->config) : NULL;
    if (it->value)
        it->warnings = binding_warnings(report, paths);
    else
        binding_raise(binding, &error, report, paths);
    roost_report_free(report);
    return it->warnings != NULL;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"cluster", "placements", "name",  "config", "env",
                            "command", "folder",     "extra", NULL};
    struct binding *binding = binding_of(type);
    PyObject *cluster, *placements, *name, *config = Py_None, *env = NULL, *command = NULL;
    PyObject *folder = Py_None, *extra = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OOOOO:Processes", words, &cluster,
                                     &placements, &name, &config, &env, &command, &folder,
                                     &extra) ||
        !binding_want(cluster, binding->cluster, "cluster") ||
        !binding_want(placements, binding->placements, "placements") ||
        (config != Py_None && !binding_want(config, binding->config, "config")))
        return NULL;
    struct processes_object *self = binding_alloc(type);
    if (!self)
        return NULL;
    self->cluster = keep(cluster);
    self->placements = keep(placements);
    self->name = keep(name);
    self->config = keep(config);
    self->folder = keep(folder);
    if ((env && !texts_open(binding, &self->env, env, "env")) ||
        (command && !texts_open(binding, &self->command, command, "command")) ||
        (extra && !texts_open(binding, &self->extra, extra, "extra")) || !build(self, binding))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* --- what they want and what they are --- */

static PyObject *get_wants(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_processes *value = ((struct processes_object *)self)->value;
    struct roost_process_want want;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && roost_processes_want(value, i, &want); i++)
        binding_append(&list,
                       Py_BuildValue("(iiziO)", (int)want.rank, (int)want.node_rank, want.name,
                                     (int)want.count, want.is_handed ? Py_True : Py_False));
    return list;
}

static PyObject *text_of(const char *text)
{
    /* Words and variables may be any bytes; Python's own way to carry them is kept. */
    return text ? PyUnicode_DecodeFSDefault(text) : keep(Py_None);
}

static PyObject *words_of(const char *const *words)
{
    if (!words)
        return keep(Py_None);
    PyObject *list = PyList_New(0);
    for (; list && *words; words++)
        binding_append(&list, text_of(*words));
    return list;
}

static PyObject *variables_of(const struct roost_process *process)
{
    PyObject *dict = PyDict_New();
    for (int32_t i = 0; dict && i < process->own_count; i++) {
        const char *entry = process->env[i], *at = strchr(entry, '=');
        PyObject *name = PyUnicode_DecodeFSDefaultAndSize(entry, at ? at - entry : 0);
        PyObject *value = text_of(at ? at + 1 : "");
        if (!name || !value || PyDict_SetItem(dict, name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *process_list(const struct roost_processes *value)
{
    struct roost_process process;
    PyObject *list = PyList_New(0);
    for (int32_t rank = 0; list && roost_processes_get(value, rank, &process); rank++)
        binding_append(&list,
                       Py_BuildValue("(NNNN)", variables_of(&process), words_of(process.argv),
                                     text_of(process.cwd), text_of(process.interpreter)));
    return list;
}

static int32_t *read_ports(struct binding *binding, PyObject *tuple, size_t count)
{
    if (!PyTuple_Check(tuple) || (size_t)PyTuple_Size(tuple) != count) {
        PyErr_Format(PyExc_TypeError, "ports must be a tuple of %zu ints", count);
        return NULL;
    }
    int32_t *ports = PyMem_Calloc(count + 1, sizeof *ports);
    if (!ports)
        PyErr_NoMemory();
    for (size_t i = 0; ports && i < count; i++) {
        if (!binding_int32(PyTuple_GetItem(tuple, (Py_ssize_t)i), "ports", binding->error,
                           &ports[i])) {
            PyMem_Free(ports);
            ports = NULL;
        }
    }
    return ports;
}

static PyObject *fill(PyObject *self, PyObject *args)
{
    struct processes_object *it = (struct processes_object *)self;
    struct binding *binding = binding_of(Py_TYPE(self));
    struct roost_process_values values = {0};
    PyObject *tuple;
    if (!PyArg_ParseTuple(args, "sssO:fill", &values.run_id, &values.name_space,
                          &values.master_addr, &tuple))
        return NULL;
    int32_t *ports = read_ports(binding, tuple, roost_processes_want_count(it->value));
    if (!ports)
        return NULL;
    values.ports = ports;
    struct roost_error error;
    enum roost_code code;
    Py_BEGIN_ALLOW_THREADS
    code = roost_processes_fill(it->value, &values, &error);
    Py_END_ALLOW_THREADS
    PyObject *list =
        code == ROOST_OK ? process_list(it->value) : binding_raise(binding, &error, NULL, NULL);
    PyMem_Free(ports);
    return list;
}

static PyObject *get_warnings(PyObject *self, void *closure)
{
    (void)closure;
    return keep(((struct processes_object *)self)->warnings);
}

static PyGetSetDef fields[] = {
    {"warnings", get_warnings, NULL, "(word, place, message, hint)", NULL},
    {"wants", get_wants, NULL, "(rank, node rank, name or None, ports, is_handed); master first",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"fill", fill, METH_VARARGS,
     "fill(run_id, namespace, master_addr, ports) -> [(variables, argv, cwd, interpreter)]"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Processes(cluster, placements, name, config=None, env=(), command=(), "
                "folder=None, extra=())"},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec processes_spec = {
    .name = "roost._roost.Processes",
    .basicsize = sizeof(struct processes_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
