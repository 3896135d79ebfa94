/* module.c - the module roost._roost: its state, its exceptions, and what all types use. */
#include "binding.h"

#include <stdio.h>

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

PyObject *binding_refuse_pickle(PyObject *self, const char *instead)
{
    PyErr_Format(PyExc_TypeError, "cannot pickle %S, which is memory of a plan: pickle %s", self,
                 instead);
    return NULL;
}

static PyObject *set_accelerator_types(PyObject *module, PyObject *types)
{
    struct binding *binding = PyModule_GetState(module);
    if (!PyTuple_Check(types) || PyTuple_Size(types) != ROOST_ACCELERATOR_COUNT) {
        PyErr_SetString(PyExc_TypeError, "types must be a tuple with one entry a type");
        return NULL;
    }
    Py_XDECREF(binding->accelerator_types);
    Py_INCREF(types);
    binding->accelerator_types = types;
    Py_RETURN_NONE;
}

/* (type by its number, model) of "NV_GPU:A800". */
static PyObject *accelerator_model(PyObject *module, PyObject *text)
{
    struct binding *binding = PyModule_GetState(module);
    struct roost_error error;
    enum roost_accelerator type;
    const char *model, *words = binding_text(binding, text, "model");
    if (!words)
        return NULL;
    if (roost_accelerator_read(words, &type, &model, &error) != ROOST_OK)
        return binding_raise(binding, &error, NULL, NULL);
    return Py_BuildValue("(is)", (int)type, model);
}

static PyObject *new_run_id(PyObject *module, PyObject *unused)
{
    struct roost_error error;
    char id[ROOST_RUN_ID_SIZE];
    (void)unused;
    if (roost_run_id_new(id, &error) != ROOST_OK)
        return binding_raise(PyModule_GetState(module), &error, NULL, NULL);
    return PyUnicode_FromString(id);
}

static PyObject *ray_resource(PyObject *module, PyObject *args)
{
    double gpus, npus;
    (void)module;
    if (!PyArg_ParseTuple(args, "dd", &gpus, &npus))
        return NULL;
    return PyUnicode_FromString(roost_ray_resource(gpus, npus));
}

static PyMethodDef methods[] = {
    {"accelerator_model", accelerator_model, METH_O,
     "(type by its number, model) of the model that a node names, such as NV_GPU:A800"},
    {"choose_engine", binding_choose_engine, METH_VARARGS,
     "(argument, ROOST_ENGINE, config), each may be None: the name of the engine to use."},
    {"settings", binding_settings, METH_O,
     "(first port or 0, whether a control group is allowed), from an environment."},
    {"ranks_text", binding_ranks_text, METH_O, "Rising ranks as text: 0-3, 5"},
    {"readiness", binding_readiness, METH_VARARGS,
     "(group, world size, number of late ranks, [(rank, note)] of the first): which are not "
     "ready."},
    {"new_run_id", new_run_id, METH_NOARGS, "An id for a run, as the program chooses them."},
    {"ray_resource", ray_resource, METH_VARARGS,
     "(GPUs, NPUs) of a node: what Ray counts its accelerators as."},
    {"python_words", python_words, METH_O, "a cure in Python's words instead of the program's"},
    {"set_accelerator_types", set_accelerator_types, METH_O,
     "What Placement.accelerator_type answers, in the order of accelerator_types."},
    {"set_codec", binding_set_codec, METH_VARARGS,
     "(encode, decode, unpickle, marshal, version, unmarshal, large): how values become messages."},
    {"groups_json", binding_groups_json, METH_VARARGS,
     "Lays out the config's roost.groups: (JSON text, or a table, and warnings)."},
    {"order_bundles", binding_order_bundles, METH_VARARGS,
     "Sorts (index, node, gpu_id, visible): (indices, nodes, answers of the resolver)."},
    {"trainer_variables", binding_trainer_variables, METH_VARARGS,
     "(rank, world_size, master_addr, master_port, gpu_id, visible, preload, is_replaying, env, "
     "own): "
     "the variables of a trainer, and warnings."},
    {"heed_parent", binding_heed_parent, METH_O,
     "heed_parent(signal): sent by the parent it ends this process, by others it is a SIGQUIT"},
    {"die_on", binding_die_on, METH_O, "die_on(signal): the signal kills this process, by SIGKILL"},
    {"allow_tracing", binding_allow_tracing, METH_NOARGS,
     "lets the user's other processes look into this one with a debugger"},
    {"follow_parent", binding_follow_parent, METH_O,
     "Whether the parent has that pid; this process dies with it."},
    {"duplicate_above", binding_duplicate_above, METH_VARARGS,
     "(fd, least): a second descriptor for the same thing, not below `least`"},
    {"namespaces", binding_namespaces, METH_O,
     "Namespaces of this user with living managers; takes the environment as NAME=value."},
    {"check_address", binding_check_address, METH_O, "Whether a text is the address of a worker."},
    {"check_group_name", binding_check_group_name, METH_O, "Whether a text can name a group."},
    {"check_variable", binding_check_variable, METH_O, "Whether a variable can be set by hand."},
    {"show_lines", binding_show_lines, METH_VARARGS,
     "(component or None, rank, bytes, memo, is_end, has_color, width, bar): whole lines as they "
     "are "
     "shown, how many bytes are done with, the next memo, and the progress bar that goes on"},
    {"color_is_on", binding_color_is_on, METH_VARARGS,
     "(is_terminal, NO_COLOR, TERM): whether `--color auto` shows colours"},
    {"view", binding_view, METH_VARARGS,
     "A Cluster and its Config or None, as managers tell them."},
    {NULL, NULL, 0, NULL},
};

/* Names of the accelerator types in the order of the enum. */
static PyObject *type_names(void)
{
    PyObject *names = PyTuple_New(ROOST_ACCELERATOR_COUNT);
    for (int i = 0; names && i < ROOST_ACCELERATOR_COUNT; i++) {
        PyObject *name =
            PyUnicode_InternFromString(roost_accelerator_type((enum roost_accelerator)i));
        if (!name || PyTuple_SetItem(names, i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

/* class `name`(bases), added to the module. */
static PyObject *add_exception(PyObject *module, const char *name, const char *code,
                               PyObject *first, PyObject *second, const char *doc)
{
    char full[64];
    snprintf(full, sizeof full, "roost.%s", name);
    PyObject *bases = PyTuple_Pack(2, first, second);
    /* Defaults for errors that Python code raises itself. */
    PyObject *fields =
        Py_BuildValue("{s:s,s:s,s:i,s:i,s:s,s:s,s:s,s:()}", "code", code, "file", "", "line", 0,
                      "column", 0, "key", "", "message", "", "hint", "", "errors");
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
    it->error = add_exception(
        module, "Error", "usage", PyExc_ValueError, PyExc_AssertionError,
        "What roost found wrong: code, file, line, column, key, message, hint, errors.");
    it->rank_error = it->error
                         ? add_exception(module, "RankError", "rank", it->error, PyExc_IndexError,
                                         "A rank that is wrong or not there.")
                         : NULL;
    it->accelerator_types = type_names();
    if (!it->rank_error || !it->accelerator_types || !binding_count_forks())
        return -1;
    it->config = add_type(module, &config_spec);
    it->cluster = it->config ? add_type(module, &cluster_spec) : NULL;
    it->plan = it->cluster ? add_type(module, &plan_spec) : NULL;
    it->strategy = it->plan ? add_type(module, &strategy_spec) : NULL;
    it->placements = it->strategy ? add_type(module, &placements_spec) : NULL;
    it->placement = it->placements ? add_type(module, &placement_spec) : NULL;
    it->column = it->placement ? add_type(module, &column_spec) : NULL;
    it->worker_socket = it->column ? add_type(module, &worker_socket_spec) : NULL;
    it->request = it->worker_socket ? add_type(module, &request_spec) : NULL;
    it->group = it->request ? add_type(module, &group_spec) : NULL;
    it->caller = it->group ? add_type(module, &caller_spec) : NULL;
    it->call = it->caller ? add_type(module, &call_spec) : NULL;
    it->answer = it->call ? add_type(module, &answer_spec) : NULL;
    it->reader = it->answer ? add_type(module, &reader_spec) : NULL;
    it->server = it->reader ? add_type(module, &registry_server_spec) : NULL;
    it->client = it->server ? add_type(module, &client_spec) : NULL;
    it->managers = it->client ? add_type(module, &managers_spec) : NULL;
    it->processes = it->managers ? add_type(module, &processes_spec) : NULL;
    it->leases = it->processes ? add_type(module, &leases_spec) : NULL;
    it->link = it->leases ? add_type(module, &agent_link_spec) : NULL;
    if (!it->link || !agent_link_add_words(module) || !driver_add_words(module) ||
        PyModule_AddObjectRef(module, "accelerator_types", it->accelerator_types) < 0)
        return -1;
    if (PyModule_AddStringConstant(module, "accelerator_hardware", "Accelerator") < 0)
        return -1;
    return PyModule_AddStringConstant(module, "version", roost_version());
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct binding *it = PyModule_GetState(module);
    Py_VISIT(it->error);
    Py_VISIT(it->rank_error);
    Py_VISIT(it->accelerator_types);
    Py_VISIT(it->codec.all);
    Py_VISIT(it->config);
    Py_VISIT(it->cluster);
    Py_VISIT(it->plan);
    Py_VISIT(it->strategy);
    Py_VISIT(it->placements);
    Py_VISIT(it->placement);
    Py_VISIT(it->column);
    Py_VISIT(it->processes);
    Py_VISIT(it->leases);
    Py_VISIT(it->link);
    Py_VISIT(it->worker_socket);
    Py_VISIT(it->request);
    Py_VISIT(it->group);
    Py_VISIT(it->caller);
    Py_VISIT(it->call);
    Py_VISIT(it->answer);
    Py_VISIT(it->reader);
    Py_VISIT(it->server);
    Py_VISIT(it->client);
    Py_VISIT(it->managers);
    return 0;
}

static int clear(PyObject *module)
{
    struct binding *it = PyModule_GetState(module);
    Py_CLEAR(it->error);
    Py_CLEAR(it->rank_error);
    Py_CLEAR(it->accelerator_types);
    Py_CLEAR(it->codec.all);
    Py_CLEAR(it->config);
    Py_CLEAR(it->cluster);
    Py_CLEAR(it->plan);
    Py_CLEAR(it->strategy);
    Py_CLEAR(it->placements);
    Py_CLEAR(it->placement);
    Py_CLEAR(it->column);
    Py_CLEAR(it->processes);
    Py_CLEAR(it->leases);
    Py_CLEAR(it->link);
    Py_CLEAR(it->worker_socket);
    Py_CLEAR(it->request);
    Py_CLEAR(it->group);
    Py_CLEAR(it->caller);
    Py_CLEAR(it->call);
    Py_CLEAR(it->answer);
    Py_CLEAR(it->reader);
    Py_CLEAR(it->server);
    Py_CLEAR(it->client);
    Py_CLEAR(it->managers);
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
