/* request.c - what a worker is asked: a Request, whose buffer is the payload.
 *
 * The payload is the message's own memory, which is given back when the last view of it is gone. A
 * Request keeps its socket alive. */
#include <string.h>

#include "binding.h"

struct request_object {
    PyObject_HEAD
    struct roost_request *request;
    PyObject *socket;
};

PyObject *request_take(PyObject *socket, struct roost_request *request)
{
    struct request_object *self = binding_alloc(binding_of(Py_TYPE(socket))->request);
    if (!self) {
        roost_request_free(request);
        return NULL;
    }
    Py_INCREF(socket);
    self->socket = socket;
    self->request = request;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    struct request_object *it = (struct request_object *)self;
    /* The driver is told that it may write the memory again, and may be slow to read that. */
    Py_BEGIN_ALLOW_THREADS
    roost_request_free(it->request);
    Py_END_ALLOW_THREADS
    Py_XDECREF(it->socket);
    binding_dealloc(self);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct roost_bytes payload = roost_request_payload(((struct request_object *)self)->request);
    return PyBuffer_FillInfo(view, self, (void *)(uintptr_t)payload.at, (Py_ssize_t)payload.len, 1,
                             flags);
}

static PyObject *get_payload(PyObject *self, void *closure)
{
    (void)closure;
    return PyMemoryView_FromObject(self);
}

static PyObject *get_method(PyObject *self, void *closure)
{
    (void)closure;
    const char *method = roost_request_method(((struct request_object *)self)->request);
    return PyUnicode_DecodeUTF8(method, (Py_ssize_t)strlen(method), "replace");
}

static PyObject *get_id(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(roost_request_id(((struct request_object *)self)->request));
}

static enum roost_code send_reply(PyObject *self, const struct roost_bytes *bytes, size_t count,
                                  struct roost_error *err)
{
    return roost_request_reply(((struct request_object *)self)->request, bytes, count, err);
}

static enum roost_code send_failure(PyObject *self, const struct roost_bytes *bytes, size_t count,
                                    struct roost_error *err)
{
    return roost_request_fail(((struct request_object *)self)->request, bytes, count, err);
}

static PyObject *reply(PyObject *self, PyObject *pieces)
{
    return pieces_send(self, pieces, send_reply);
}

static PyObject *fail(PyObject *self, PyObject *pieces)
{
    return pieces_send(self, pieces, send_failure);
}

static PyObject *value(PyObject *self, PyObject *nothing)
{
    const struct binding *binding = binding_of(Py_TYPE(self));
    struct roost_bytes payload = roost_request_payload(((struct request_object *)self)->request);
    (void)nothing;
    return message_is_small(payload) ? message_read_small(binding, payload)
                                     : message_read(binding, self);
}

static PyObject *reply_value(PyObject *self, PyObject *object)
{
    struct message message;
    struct roost_error error;
    enum roost_code code;
    struct binding *binding = binding_of(Py_TYPE(self));
    if (!message_open(binding, &message, object))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = send_reply(self, message.bytes, message.count, &error);
    Py_END_ALLOW_THREADS
    message_close(&message);
    if (code != ROOST_OK && code != ROOST_ERR_IO)
        return binding_raise(binding, &error, NULL, NULL);
    return PyBool_FromLong(code == ROOST_OK);
}

static PyGetSetDef fields[] = {
    {"method", get_method, NULL, "what is to be called", NULL},
    {"payload", get_payload, NULL, "its bytes, read-only and never copied", NULL},
    {"id", get_id, NULL, "the driver's number of the call", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"reply", reply, METH_O, "reply(pieces): answers with a value"},
    {"fail", fail, METH_O, "fail(pieces): answers with an error"},
    {"value", value, METH_NOARGS, "The Python value that the payload is."},
    {"reply_value", reply_value, METH_O,
     "reply_value(value): answers with a Python value; False when nobody is there to read it"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What a worker is asked; its buffer is the payload."},
    {Py_tp_dealloc, dealloc},
    {Py_bf_getbuffer, get_buffer},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec request_spec = {
    .name = "roost._roost.Request",
    .basicsize = sizeof(struct request_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
