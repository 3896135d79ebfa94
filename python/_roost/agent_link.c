/* agent_link.c - the type AgentLink: messages to and from an agent of a run, or its supervisor, as bytes. */
#include "binding.h"

struct agent_link_object {
    PyObject_HEAD
    struct roost_agent_link *value;
};

static void dealloc(PyObject *self)
{
    roost_agent_link_free(((struct agent_link_object *)self)->value);
    binding_dealloc(self);
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"fd", NULL};
    int fd;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i:AgentLink", words, &fd))
        return NULL;
    struct agent_link_object *self = binding_alloc(type);
    if (self && !(self->value = roost_agent_link_new(fd))) {
        Py_CLEAR(self);
        PyErr_NoMemory();
    }
    return (PyObject *)self;
}

/* start_agent(program, run_id, node_rank, folder, env): a guardian on this machine, and the way to it. */
static PyObject *start_agent(PyObject *class, PyObject *args)
{
    struct binding *binding = binding_of((PyTypeObject *)class);
    PyObject *env;
    struct roost_agent_options options = {0};
    if (!PyArg_ParseTuple(args, "ssisO:start_agent", &options.program, &options.run_id,
                          &options.node_rank, &options.folder, &env))
        return NULL;
    struct texts texts = {0};
    struct agent_link_object *self = binding_alloc((PyTypeObject *)class);
    if (self && texts_open(binding, &texts, env, "env")) {
        struct roost_error error;
        options.env = texts.texts;
        Py_BEGIN_ALLOW_THREADS
        self->value = roost_agent_start(&options, &error);
        Py_END_ALLOW_THREADS
        if (!self->value)
            binding_raise(binding, &error, NULL, NULL);
    }
    texts_close(&texts);
    if (self && !self->value)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static struct roost_agent_link *value_of(PyObject *self)
{
    return ((struct agent_link_object *)self)->value;
}

static PyObject *get_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(roost_agent_link_fd(value_of(self)));
}

static PyObject *be_closed(void)
{
    PyErr_SetString(PyExc_EOFError, "the other side is gone");
    return NULL;
}

/* send(type, body, file=None): whether there was room. */
static PyObject *send_one(PyObject *self, PyObject *args)
{
    Py_buffer body, file = {0};
    int type;
    if (!PyArg_ParseTuple(args, "iy*|z*:send", &type, &body, &file))
        return NULL;
    struct roost_agent_message message = {.type = (uint16_t)type,
                                          .body = body.buf,
                                          .len = (size_t)body.len,
                                          .file = file.obj ? (file.buf ? file.buf : "") : NULL,
                                          .file_len = (size_t)file.len};
    enum roost_link_result carried = roost_agent_link_send(value_of(self), &message);
    PyBuffer_Release(&body);
    if (file.obj)
        PyBuffer_Release(&file);
    return carried == ROOST_LINK_CLOSED ? be_closed() : PyBool_FromLong(carried == ROOST_LINK_DONE);
}

/* receive(): (type, body, file or None), None when nothing is there now. */
static PyObject *receive_one(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct roost_agent_message message;
    enum roost_link_result carried = roost_agent_link_receive(value_of(self), &message);
    if (carried == ROOST_LINK_CLOSED)
        return be_closed();
    if (carried == ROOST_LINK_LATER)
        Py_RETURN_NONE;
    return Py_BuildValue("(iy#y#)", (int)message.type, message.body, (Py_ssize_t)message.len,
                         message.file, (Py_ssize_t)message.file_len);
}

/* The other side sees it. */
static PyObject *close_it(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct agent_link_object *it = (struct agent_link_object *)self;
    struct roost_agent_link *closed = roost_agent_link_new(-1);
    if (!closed)
        return PyErr_NoMemory();
    roost_agent_link_free(it->value);
    it->value = closed;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start_agent", start_agent, METH_VARARGS | METH_CLASS,
     "start_agent(program, run_id, node_rank, folder, env): an agent of a run on this machine"},
    {"fileno", get_fileno, METH_NOARGS, "the descriptor, -1 when it is closed"},
    {"send", send_one, METH_VARARGS,
     "send(type, body, file=None): False when there is no room now"},
    {"receive", receive_one, METH_NOARGS, "(type, body, file or None), or None for nothing now"},
    {"close", close_it, METH_NOARGS, "lets the other side see that this one is gone"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "AgentLink(fd): messages of a run on several nodes; EOFError when the other side is "
     "gone"},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec agent_link_spec = {
    .name = "roost._roost.AgentLink",
    .basicsize = sizeof(struct agent_link_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

bool agent_link_add_words(PyObject *module)
{
    static const struct {
        const char *name;
        int value;
    } words[] = {{"AGENT_JOIN", ROOST_AGENT_JOIN},       {"AGENT_JOINED", ROOST_AGENT_JOINED},
                 {"AGENT_REFUSED", ROOST_AGENT_REFUSED}, {"AGENT_GONE", ROOST_AGENT_GONE},
                 {"AGENT_CLOSE", ROOST_AGENT_CLOSE},     {"AGENT_TELL", ROOST_AGENT_TELL},
                 {"AGENT_MESSAGE", ROOST_AGENT_MESSAGE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (PyModule_AddIntConstant(module, words[i].name, words[i].value) < 0)
            return false;
    return true;
}
