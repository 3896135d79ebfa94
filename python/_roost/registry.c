/* registry.c - the types RegistryServer (starts the managers' process) and RegistryClient (asks it), and what is
 * said of namespaces and addresses. */
#include "binding.h"

/* The roost_error of a call as an exception. */
static PyObject *raise(PyObject *self, const struct roost_error *err)
{
    return binding_raise(binding_of(Py_TYPE(self)), err, NULL, NULL);
}

/* --- RegistryServer --- */

struct registry_server_object {
    PyObject_HEAD
    struct roost_registry_server *value; /* NULL = closed */
    PyObject *name_space;
    int32_t pid;
};

static PyObject *registry_server_create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"env",       "program", "namespace", "view", "leases_master_port",
                            "port_base", NULL};
    struct binding *binding = binding_of(type);
    PyObject *env;
    struct roost_registry_server_options options = {0};
    Py_ssize_t view_len = 0;
    int leases = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|zzz#pi:RegistryServer", words, &env,
                                     &options.program, &options.name_space, &options.view,
                                     &view_len, &leases, &options.port_base))
        return NULL;
    struct texts variables = {0};
    if (!texts_open(binding, &variables, env, "env"))
        return NULL;
    struct registry_server_object *self = binding_alloc(type);
    options.env = variables.texts;
    options.view_len = (size_t)view_len;
    options.leases_master_port = leases;
    struct roost_error err = {0};
    if (self) {
        Py_BEGIN_ALLOW_THREADS
        self->value = roost_registry_server_start(&options, &err);
        Py_END_ALLOW_THREADS
        if (!self->value)
            raise((PyObject *)self, &err);
        else {
            self->name_space = PyUnicode_FromString(roost_registry_server_namespace(self->value));
            self->pid = roost_registry_server_pid(self->value);
        }
        if (!self->name_space)
            Py_CLEAR(self);
    }
    texts_close(&variables);
    return (PyObject *)self;
}

static PyObject *registry_server_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct registry_server_object *it = (struct registry_server_object *)self;
    struct roost_registry_server *value = it->value;
    it->value = NULL;
    Py_BEGIN_ALLOW_THREADS
    roost_registry_server_free(value);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static void registry_server_dealloc(PyObject *self)
{
    struct registry_server_object *it = (struct registry_server_object *)self;
    roost_registry_server_free(it->value);
    Py_XDECREF(it->name_space);
    binding_dealloc(self);
}

static PyObject *registry_server_namespace(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *name = ((struct registry_server_object *)self)->name_space;
    Py_INCREF(name);
    return name;
}

static PyObject *registry_server_pid(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((struct registry_server_object *)self)->pid);
}

static PyMethodDef registry_server_methods[] = {
    {"close", registry_server_close, METH_NOARGS,
     "ends the registry server and waits until it is gone"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef registry_server_fields[] = {
    {"namespace", registry_server_namespace, NULL, "its name", NULL},
    {"pid", registry_server_pid, NULL, "its process", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot registry_server_slots[] = {
    {Py_tp_doc,
     "RegistryServer(env, program=None, namespace=None, view=None, leases_master_port=False, "
     "port_base=0)"},
    {Py_tp_new, registry_server_create},
    {Py_tp_dealloc, registry_server_dealloc},
    {Py_tp_methods, registry_server_methods},
    {Py_tp_getset, registry_server_fields},
    {0, NULL},
};

PyType_Spec registry_server_spec = {
    .name = "roost._roost.RegistryServer",
    .basicsize = sizeof(struct registry_server_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = registry_server_slots,
};

/* --- RegistryClient --- */

struct client_object {
    PyObject_HEAD
    struct roost_registry_client *value; /* NULL = closed */
    Py_ssize_t users; /* calls under way: it is closed when the last of them ends */
};

static PyObject *client_create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"env", "namespace", NULL};
    PyObject *env;
    const char *name_space;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os:RegistryClient", words, &env, &name_space))
        return NULL;
    struct texts variables = {0};
    if (!texts_open(binding_of(type), &variables, env, "env"))
        return NULL;
    struct client_object *self = binding_alloc(type);
    if (self) {
        struct roost_error err = {0};
        Py_BEGIN_ALLOW_THREADS
        self->value = roost_registry_client_open(variables.texts, name_space, &err);
        Py_END_ALLOW_THREADS
        if (!self->value) {
            raise((PyObject *)self, &err);
            Py_CLEAR(self);
        }
    }
    texts_close(&variables);
    return (PyObject *)self;
}

/* Waits a little at a time, so that Ctrl-C ends a wait; the request is then taken back, and what it was granted
 * all the same is given back: who raises has nothing. */
static enum roost_code await(struct roost_registry_client *registry, int64_t ticket, double timeout,
                             char **answer, bool *is_interrupted, struct roost_error *err)
{
    enum { STEP_MS = 100 };
    enum roost_code code = ROOST_ERR_TIMEOUT;
    double left = timeout * 1000;
    for (bool is_first = true; code == ROOST_ERR_TIMEOUT; is_first = false) {
        if (timeout >= 0 && left <= 0 && !is_first)
            break;
        int32_t step = timeout >= 0 && left < STEP_MS ? (int32_t)(left + 0.999) : STEP_MS;
        Py_BEGIN_ALLOW_THREADS
        code = roost_registry_client_wait(registry, ticket, step, answer, err);
        Py_END_ALLOW_THREADS
        left -= step;
        *is_interrupted = PyErr_CheckSignals() < 0;
        if (*is_interrupted)
            break;
    }
    Py_BEGIN_ALLOW_THREADS
    if (code == ROOST_ERR_TIMEOUT)
        code = roost_registry_client_cancel(registry, ticket, answer, err);
    if (code == ROOST_OK && *is_interrupted)
        code = roost_registry_client_undo(registry, ticket, err);
    Py_END_ALLOW_THREADS
    return code;
}

static PyObject *client_call(PyObject *self, PyObject *args)
{
    struct client_object *it = (struct client_object *)self;
    const char *request;
    Py_ssize_t len;
    PyObject *timeout = Py_None;
    if (!PyArg_ParseTuple(args, "y#|O:call", &request, &len, &timeout))
        return NULL;
    double seconds = timeout == Py_None ? -1 : PyFloat_AsDouble(timeout);
    if (timeout != Py_None && PyErr_Occurred())
        return NULL;
    if (!it->value) {
        PyErr_SetString(PyExc_ValueError, "the connection is closed");
        return NULL;
    }
    struct roost_error err = {0};
    int64_t ticket;
    char *answer = NULL;
    bool is_interrupted = false;
    enum roost_code code;
    it->users++;
    Py_BEGIN_ALLOW_THREADS
    code = roost_registry_client_ask(it->value, request, (size_t)len, &ticket, &err);
    Py_END_ALLOW_THREADS
    if (code == ROOST_OK)
        code = await(it->value, ticket, seconds, &answer, &is_interrupted, &err);
    it->users--;
    PyObject *result = NULL;
    if (!is_interrupted)
        result = code == ROOST_OK ? PyBytes_FromString(answer) : raise(self, &err);
    roost_answer_free(answer);
    return result;
}

static PyObject *client_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct client_object *it = (struct client_object *)self;
    if (it->users) {
        PyErr_SetString(PyExc_ValueError, "another thread waits for an answer");
        return NULL;
    }
    roost_registry_client_close(it->value);
    it->value = NULL;
    Py_RETURN_NONE;
}

static void client_dealloc(PyObject *self)
{
    roost_registry_client_close(((struct client_object *)self)->value);
    binding_dealloc(self);
}

static PyMethodDef client_methods[] = {
    {"call", client_call, METH_VARARGS,
     "call(request, timeout=None) -> answer, both JSON in bytes"},
    {"close", client_close, METH_NOARGS, "gives back what this connection has"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot client_slots[] = {
    {Py_tp_doc, "RegistryClient(env, namespace)"},
    {Py_tp_new, client_create},
    {Py_tp_dealloc, client_dealloc},
    {Py_tp_methods, client_methods},
    {0, NULL},
};

PyType_Spec client_spec = {
    .name = "roost._roost.RegistryClient",
    .basicsize = sizeof(struct client_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = client_slots,
};

/* --- functions --- */

PyObject *binding_namespaces(PyObject *module, PyObject *env)
{
    enum { MOST = 64 };
    struct roost_namespace names[MOST];
    struct texts variables = {0};
    if (!texts_open(PyModule_GetState(module), &variables, env, "env"))
        return NULL;
    size_t count = roost_namespace_list(variables.texts, names, MOST);
    texts_close(&variables);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count && i < MOST; i++)
        binding_append(&list, PyUnicode_FromString(names[i].name));
    return list;
}

static PyObject *check(PyObject *module, PyObject *text, const char *what,
                       enum roost_code (*run)(const char *, struct roost_error *))
{
    struct binding *binding = PyModule_GetState(module);
    struct roost_error err;
    const char *words = binding_text(binding, text, what);
    if (!words)
        return NULL;
    if (run(words, &err) != ROOST_OK)
        return binding_raise(binding, &err, NULL, NULL);
    Py_RETURN_NONE;
}

PyObject *binding_check_address(PyObject *module, PyObject *text)
{
    return check(module, text, "address", roost_address_check);
}

PyObject *binding_check_variable(PyObject *module, PyObject *text)
{
    return check(module, text, "a name in env_vars", roost_variable_check);
}

PyObject *binding_check_group_name(PyObject *module, PyObject *text)
{
    return check(module, text, "group name", roost_group_name_check);
}
