/* request.c - what a worker is asked: a Request, whose buffer is the payload.
 *
 * The payload is the message's own memory, which is given back when the last view of it is gone. A
 * Request keeps its channel alive. */
#include <string.h>

#include "binding.h"

struct request_object {
    PyObject_HEAD
    struct roost_request *request;
    PyObject *channel;
};

PyObject *request_take(PyObject *channel, struct roost_request *request)
{
    struct request_object *self = binding_alloc(binding_of(Py_TYPE(channel))->request);
    if (!self) {
        roost_request_free(request);
        return NULL;
    }
    Py_INCREF(channel);
    self->channel = channel;
    self->request = request;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    struct request_object *it = (struct request_object *)self;
    roost_request_free(it->request);
    Py_XDECREF(it->channel);
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

typedef enum roost_code answering(struct roost_request *request, const struct roost_bytes *bytes,
                                  size_t count, struct roost_error *err);

static PyObject *answer(PyObject *self, PyObject *sequence, answering *send)
{
    struct request_object *it = (struct request_object *)self;
    struct roost_error error;
    enum roost_code code;
    struct pieces parts;
    if (!pieces_open(&parts, sequence, "parts"))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = send(it->request, parts.bytes, (size_t)parts.count, &error);
    Py_END_ALLOW_THREADS
    pieces_close(&parts);
    if (code != ROOST_OK)
        return binding_raise(binding_of(Py_TYPE(self)), &error, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *reply(PyObject *self, PyObject *parts)
{
    return answer(self, parts, roost_request_reply);
}

static PyObject *fail(PyObject *self, PyObject *parts)
{
    return answer(self, parts, roost_request_fail);
}

static PyGetSetDef fields[] = {
    {"method", get_method, NULL, "what is to be called", NULL},
    {"payload", get_payload, NULL, "its bytes, read-only and never copied", NULL},
    {"id", get_id, NULL, "the driver's number of the call", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"reply", reply, METH_O, "reply(parts): answers with a value"},
    {"fail", fail, METH_O, "fail(parts): answers with an error"},
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
