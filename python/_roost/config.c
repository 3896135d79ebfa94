/* config.c - the type Config: a config that the library has read, from a file or from text. */
#include "binding.h"

struct config_object {
    PyObject_HEAD
    struct roost_config *value;
    PyObject *paths; /* keys by line for a mapping, or NULL */
    PyObject *warnings;
};

const struct roost_config *config_value(PyObject *config)
{
    return ((struct config_object *)config)->value;
}

PyObject *config_paths(PyObject *config)
{
    return ((struct config_object *)config)->paths;
}

static void dealloc(PyObject *self)
{
    struct config_object *it = (struct config_object *)self;
    roost_config_free(it->value);
    Py_XDECREF(it->paths);
    Py_XDECREF(it->warnings);
    binding_dealloc(self);
}

static PyObject *load(PyTypeObject *type, const struct roost_config_options *options,
                      PyObject *paths)
{
    struct roost_error error;
    struct roost_report *report = roost_report_new();
    if (!report)
        return PyErr_NoMemory();
    struct roost_config *value;
    Py_BEGIN_ALLOW_THREADS
    value = roost_config_load(options, report, &error);
    Py_END_ALLOW_THREADS
    struct config_object *self = NULL;
    if (!value)
        binding_raise(binding_of(type), &error, report, paths);
    else
        self = binding_alloc(type);
    if (self) {
        Py_XINCREF(paths);
        self->paths = paths;
        self->value = value;
        self->warnings = binding_warnings(report, paths);
        if (!self->warnings)
            Py_CLEAR(self);
    } else {
        roost_config_free(value);
    }
    roost_report_free(report);
    return (PyObject *)self;
}

/* Text of a mapping, with the key that stands at each line. */
static bool take_text(PyObject *text, PyObject *paths, struct roost_config_options *options)
{
    Py_ssize_t len = 0;
    if (!PyUnicode_Check(text) || !PyTuple_Check(paths)) {
        PyErr_SetString(PyExc_TypeError, "text must be a str, paths a tuple");
        return false;
    }
    options->text = PyUnicode_AsUTF8AndSize(text, &len);
    options->text_len = (size_t)len;
    options->is_composed = true;
    return options->text != NULL;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"path", "text", "paths", "env", "model", "groups", NULL};
    const char *path;
    PyObject *text = Py_None, *paths = NULL, *env = NULL;
    int model = 0, groups = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y|OO!Opp:Config", words, &path, &text,
                                     &PyTuple_Type, &paths, &env, &model, &groups))
        return NULL;
    struct roost_config_options options = {
        .path = path, .reads_model = model, .takes_placement_groups_alone = groups};
    if (text != Py_None && !take_text(text, paths ? paths : Py_None, &options))
        return NULL;
    struct texts variables = {0}, keys = {0};
    PyObject *self = NULL;
    if ((!env || texts_open(binding_of(type), &variables, env, "env")) &&
        (text == Py_None || texts_open(binding_of(type), &keys, paths, "paths"))) {
        options.env = variables.texts;
        options.line_keys = keys.texts;
        options.line_key_count = (size_t)keys.count;
        self = load(type, &options, text == Py_None ? NULL : paths);
    }
    texts_close(&variables);
    texts_close(&keys);
    return self;
}

/* {name: rule}, in config order; names of one rule share a strategy. */
static PyObject *get_components(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_config *config = config_value(self);
    PyObject *rules = PyDict_New();
    for (size_t i = 0; rules && i < roost_config_component_count(config); i++) {
        PyObject *rule = PyLong_FromSize_t(roost_config_component_rule(config, i));
        if (!rule || PyDict_SetItemString(rules, roost_config_component(config, i), rule) < 0)
            Py_CLEAR(rules);
        Py_XDECREF(rule);
    }
    return rules;
}

static PyObject *get_labels(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_config *config = config_value(self);
    PyObject *labels = PyList_New(0);
    for (size_t i = 0; labels && i < roost_config_label_count(config); i++)
        binding_append(&labels, PyUnicode_FromString(roost_config_label(config, i)));
    return labels;
}

typedef int32_t (*next_node_fn)(const struct roost_config *config, size_t group, size_t env,
                                int32_t from);

static int32_t next_group_node(const struct roost_config *config, size_t group, size_t env,
                               int32_t from)
{
    (void)env;
    return roost_config_node_group_node(config, group, from);
}

static PyObject *node_list(const struct roost_config *config, size_t group, size_t env,
                           next_node_fn next)
{
    PyObject *list = PyList_New(0);
    for (int32_t n = next(config, group, env, 0); list && n >= 0;
         n = next(config, group, env, n + 1))
        binding_append(&list, PyLong_FromLong(n));
    return list;
}

static PyObject *env_dict(const struct roost_config *config, size_t group, size_t env,
                          size_t var_count)
{
    PyObject *vars = PyDict_New();
    for (size_t v = 0; vars && v < var_count; v++) {
        struct roost_env_var var;
        roost_config_env_var(config, group, env, v, &var);
        PyObject *name = PyUnicode_DecodeUTF8(var.name, (Py_ssize_t)var.name_len, NULL);
        PyObject *value = PyUnicode_DecodeUTF8(var.value, (Py_ssize_t)var.value_len, NULL);
        if (!name || !value || PyDict_SetItem(vars, name, value) < 0)
            Py_CLEAR(vars);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return vars;
}

/* (node_ranks, env_vars, python_interpreter_path) of every entry of env_configs. */
static PyObject *env_list(const struct roost_config *config, size_t group, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t e = 0; list && e < count; e++) {
        struct roost_env_config env;
        roost_config_env_config(config, group, e, &env);
        PyObject *nodes = node_list(config, group, e, roost_config_env_node);
        PyObject *vars = env_dict(config, group, e, env.var_count);
        binding_append(
            &list, nodes && vars ? Py_BuildValue("(OOz#)", nodes, vars, env.python_interpreter_path,
                                                 (Py_ssize_t)env.python_interpreter_path_len)
                                 : NULL);
        Py_XDECREF(nodes);
        Py_XDECREF(vars);
    }
    return list;
}

/* Names of variables in env_configs whose values are not to be shown. */
static PyObject *get_secret_variables(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_config *config = config_value(self);
    PyObject *names = PyList_New(0);
    struct roost_node_group_config group;
    for (size_t g = 0; roost_config_node_group(config, g, &group); g++) {
        struct roost_env_var var;
        for (size_t e = 0; e < group.env_count; e++)
            for (size_t v = 0; names && roost_config_env_var(config, g, e, v, &var); v++)
                if (var.is_secret)
                    binding_append(&names,
                                   PyUnicode_DecodeUTF8(var.name, (Py_ssize_t)var.name_len, NULL));
    }
    return names;
}

/* (label, node_ranks, hardware_type, ignore_hardware, env_configs) of every group. */
static PyObject *get_groups(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_config *config = config_value(self);
    PyObject *list = PyList_New(0);
    for (size_t g = 0; list && g < roost_config_node_group_count(config); g++) {
        struct roost_node_group_config group;
        roost_config_node_group(config, g, &group);
        PyObject *nodes = node_list(config, g, 0, next_group_node);
        PyObject *envs = env_list(config, g, group.env_count);
        binding_append(&list,
                       nodes && envs
                           ? Py_BuildValue("(sOz#OO)", group.label, nodes, group.hardware_type,
                                           (Py_ssize_t)group.hardware_type_len,
                                           group.ignores_hardware ? Py_True : Py_False, envs)
                           : NULL);
        Py_XDECREF(nodes);
        Py_XDECREF(envs);
    }
    return list;
}

static PyObject *get_num_nodes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(roost_config_num_nodes(config_value(self)));
}

static PyObject *get_cluster(PyObject *self, void *closure)
{
    (void)closure;
    return Py_BuildValue("z", roost_config_cluster(config_value(self)));
}

static PyObject *get_engine(PyObject *self, void *closure)
{
    (void)closure;
    return Py_BuildValue("z", roost_config_engine(config_value(self)));
}

static PyObject *get_ray_address(PyObject *self, void *closure)
{
    (void)closure;
    return Py_BuildValue("z", roost_config_ray_address(config_value(self)));
}

static PyObject *get_ray_reserves(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(roost_config_ray_reserves(config_value(self)));
}

static PyObject *get_warnings(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *warnings = ((struct config_object *)self)->warnings;
    Py_INCREF(warnings);
    return warnings;
}

static PyObject *get_text(PyObject *self, void *closure)
{
    (void)closure;
    size_t len;
    const char *text = roost_config_text(config_value(self), &len);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, NULL);
}

static PyObject *get_paths(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *paths = config_paths(self);
    return Py_NewRef(paths ? paths : Py_None);
}

static PyGetSetDef fields[] = {
    {"text", get_text, NULL, "what it was read from", NULL},
    {"paths", get_paths, NULL, "the key of every line of a mapping; None for a file", NULL},
    {"components", get_components, NULL, "placed components in config order, each with its rule",
     NULL},
    {"labels", get_labels, NULL, "node groups that components name", NULL},
    {"groups", get_groups, NULL, "node groups as declared", NULL},
    {"secret_variables", get_secret_variables, NULL,
     "names of variables whose values are not shown", NULL},
    {"num_nodes", get_num_nodes, NULL, "cluster.num_nodes", NULL},
    {"cluster", get_cluster, NULL, "roost.cluster, or None", NULL},
    {"engine", get_engine, NULL, "roost.engine, or None", NULL},
    {"ray_address", get_ray_address, NULL, "roost.ray.address, or None", NULL},
    {"ray_reserves", get_ray_reserves, NULL, "roost.ray.reserve", NULL},
    {"warnings", get_warnings, NULL, "(word, place, message, hint)", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Config(path, text=None, paths=(), env=(), model=False, groups=False)"},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, fields},
    {0, NULL},
};

PyType_Spec config_spec = {
    .name = "roost._roost.Config",
    .basicsize = sizeof(struct config_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
