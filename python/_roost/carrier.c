/* carrier.c - the type Carrier: messages to and from a part of a run, or its supervisor, as bytes. */
#include "binding.h"

struct carrier_object {
    PyObject_HEAD
    struct roost_carrier *value;
};

static void dealloc(PyObject *self)
{
    roost_carrier_free(((struct carrier_object *)self)->value);
    binding_dealloc(self);
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"fd", NULL};
    int fd;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i:Carrier", words, &fd))
        return NULL;
    struct carrier_object *self = binding_alloc(type);
    if (self && !(self->value = roost_carrier_new(fd))) {
        Py_CLEAR(self);
        PyErr_NoMemory();
    }
    return (PyObject *)self;
}

/* start_part(program, run_id, node_rank, folder, env): a guardian on this machine, and the way to it. */
static PyObject *start_part(PyObject *class, PyObject *args)
{
    struct binding *binding = binding_of((PyTypeObject *)class);
    PyObject *env;
    struct roost_part_options options = {0};
    if (!PyArg_ParseTuple(args, "ssisO:start_part", &options.program, &options.run_id,
                          &options.node_rank, &options.folder, &env))
        return NULL;
    struct texts texts = {0};
    struct carrier_object *self = binding_alloc((PyTypeObject *)class);
    if (self && texts_open(binding, &texts, env, "env")) {
        struct roost_error error;
        options.env = texts.texts;
        Py_BEGIN_ALLOW_THREADS
        self->value = roost_part_start(&options, &error);
        Py_END_ALLOW_THREADS
        if (!self->value)
            binding_raise(binding, &error, NULL, NULL);
    }
    texts_close(&texts);
    if (self && !self->value)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static struct roost_carrier *value_of(PyObject *self)
{
    return ((struct carrier_object *)self)->value;
}

static PyObject *get_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(roost_carrier_fd(value_of(self)));
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
    struct roost_parcel parcel = {.type = (uint16_t)type,
                                  .body = body.buf,
                                  .len = (size_t)body.len,
                                  .file = file.obj ? (file.buf ? file.buf : "") : NULL,
                                  .file_len = (size_t)file.len};
    enum roost_carried carried = roost_carrier_send(value_of(self), &parcel);
    PyBuffer_Release(&body);
    if (file.obj)
        PyBuffer_Release(&file);
    return carried == ROOST_CARRIED_CLOSED ? be_closed()
                                           : PyBool_FromLong(carried == ROOST_CARRIED_DONE);
}

/* receive(): (type, body, file or None), None when nothing is there now. */
static PyObject *receive_one(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct roost_parcel parcel;
    enum roost_carried carried = roost_carrier_receive(value_of(self), &parcel);
    if (carried == ROOST_CARRIED_CLOSED)
        return be_closed();
    if (carried == ROOST_CARRIED_LATER)
        Py_RETURN_NONE;
    return Py_BuildValue("(iy#y#)", (int)parcel.type, parcel.body, (Py_ssize_t)parcel.len,
                         parcel.file, (Py_ssize_t)parcel.file_len);
}

/* The other side sees it. */
static PyObject *close_it(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct carrier_object *it = (struct carrier_object *)self;
    struct roost_carrier *closed = roost_carrier_new(-1);
    if (!closed)
        return PyErr_NoMemory();
    roost_carrier_free(it->value);
    it->value = closed;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start_part", start_part, METH_VARARGS | METH_CLASS,
     "start_part(program, run_id, node_rank, folder, env): a part of a run on this machine"},
    {"fileno", get_fileno, METH_NOARGS, "the descriptor, -1 when it is closed"},
    {"send", send_one, METH_VARARGS,
     "send(type, body, file=None): False when there is no room now"},
    {"receive", receive_one, METH_NOARGS, "(type, body, file or None), or None for nothing now"},
    {"close", close_it, METH_NOARGS, "lets the other side see that this one is gone"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Carrier(fd): messages of a run on several nodes; EOFError when the other side is "
                "gone"},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec carrier_spec = {
    .name = "roost._roost.Carrier",
    .basicsize = sizeof(struct carrier_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

bool carrier_add_words(PyObject *module)
{
    static const struct {
        const char *name;
        int value;
    } words[] = {{"PART_JOIN", ROOST_PART_JOIN},       {"PART_JOINED", ROOST_PART_JOINED},
                 {"PART_REFUSED", ROOST_PART_REFUSED}, {"PART_GONE", ROOST_PART_GONE},
                 {"PART_CLOSE", ROOST_PART_CLOSE},     {"PART_MESSAGE", ROOST_PART_MESSAGE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (PyModule_AddIntConstant(module, words[i].name, words[i].value) < 0)
            return false;
    return true;
}
