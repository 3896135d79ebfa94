/* bundles.c - placement groups: layouts as text, bundles in a stable order, variables of trainers. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

/* --- layouts --- */

/* A tuple of numbers from `least` on as an array that PyMem_Free frees; false with an exception. */
static bool take_numbers(PyObject *tuple, const char *what, int32_t least, int32_t **out,
                         int32_t *out_count)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0 || count > INT32_MAX)
        return false;
    *out = PyMem_Calloc((size_t)count + 1, sizeof **out);
    *out_count = (int32_t)count;
    if (!*out)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; *out && i < count; i++) {
        bool is_good = binding_int32(PyTuple_GetItem(tuple, i), what, PyExc_ValueError, &(*out)[i]);
        if (is_good && (*out)[i] >= least)
            continue;
        if (is_good)
            PyErr_Format(PyExc_ValueError, "%s cannot be less than %d: %d", what, least, (*out)[i]);
        PyMem_Free(*out);
        *out = NULL;
    }
    return *out != NULL;
}

/* The document, or the table for people, and the warnings of bundles, which are taken. */
static PyObject *render(struct roost_bundles *bundles, bool is_table,
                        const struct roost_report *report, PyObject *paths)
{
    const struct roost_text_style plain = {0};
    struct document document = {0};
    enum roost_code code;
    Py_BEGIN_ALLOW_THREADS
    code = is_table ? roost_render_bundles_text(bundles, &plain, document_keep, &document)
                    : roost_render_bundles_json(bundles, document_keep, &document);
    roost_bundles_free(bundles);
    Py_END_ALLOW_THREADS
    PyObject *text = code == ROOST_OK
                         ? PyUnicode_DecodeUTF8(document.bytes, (Py_ssize_t)document.len, NULL)
                         : PyErr_NoMemory();
    free(document.bytes);
    PyObject *warnings = text ? binding_warnings(report, paths) : NULL;
    PyObject *answer = warnings ? PyTuple_Pack(2, text, warnings) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(warnings);
    return answer;
}

/* Slots and GPUs that were found, into the options; false with an exception. */
static bool take_found(PyObject *slots, PyObject *gpus, int32_t **out_slots, int32_t **out_gpus,
                       struct roost_bundles_options *options)
{
    int64_t total = 0;
    int32_t count = 0;
    if (slots != Py_None &&
        (!binding_want(slots, &PyTuple_Type, "slots") ||
         !take_numbers(slots, "slots of a node", 0, out_slots, &options->node_count)))
        return false;
    if (gpus != Py_None && (!binding_want(gpus, &PyTuple_Type, "gpus") ||
                            !take_numbers(gpus, "the GPU of a slot", -1, out_gpus, &count)))
        return false;
    for (int32_t n = 0; *out_slots && n < options->node_count; n++)
        total += (*out_slots)[n];
    if (*out_gpus && total != count) {
        PyErr_Format(PyExc_ValueError, "there are %lld slots and %d GPUs", (long long)total, count);
        return false;
    }
    options->slots_of_node = *out_slots;
    options->gpu_of_slot = *out_gpus;
    return true;
}

PyObject *binding_groups_json(PyObject *module, PyObject *args)
{
    struct binding *binding = PyModule_GetState(module);
    PyObject *config, *cluster, *slots, *gpus;
    struct roost_bundles_options options = {0};
    int32_t *counts = NULL, *numbers = NULL;
    int sizes_only = 0, is_table = 0;
    if (!PyArg_ParseTuple(args, "OOOOp|p:groups_json", &config, &cluster, &slots, &gpus,
                          &sizes_only, &is_table) ||
        !binding_want(config, binding->config, "config") ||
        (cluster != Py_None && !binding_want(cluster, binding->cluster, "cluster")))
        return NULL;
    if (!take_found(slots, gpus, &counts, &numbers, &options)) {
        PyMem_Free(counts);
        PyMem_Free(numbers);
        return NULL;
    }
    options.sizes_only = sizes_only;
    struct roost_report *report = roost_report_new();
    struct roost_error error = {.code = ROOST_ERR_MEMORY};
    struct roost_bundles *bundles = NULL;
    if (report) {
        Py_BEGIN_ALLOW_THREADS
        bundles = roost_bundles_new(config_value(config),
                                    cluster == Py_None ? NULL : cluster_value(cluster), &options,
                                    report, &error);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(counts);
    PyMem_Free(numbers);
    PyObject *answer = bundles ? render(bundles, is_table, report, config_paths(config))
                               : binding_raise(binding, &error, report, config_paths(config));
    roost_report_free(report);
    return answer;
}

/* --- the order --- */

/* Bundles whose texts Python objects hold. */
struct probes {
    struct roost_bundle *list;
    Py_ssize_t count;
    PyObject *owner; /* a list of what was made for the call */
};

static void probes_release(struct probes *probes)
{
    PyMem_Free(probes->list);
    Py_XDECREF(probes->owner);
}

/* What a probe answered that is no answer. */
static bool refuse(struct binding *binding, PyObject *row, const char *fault)
{
    PyErr_Clear();
    PyObject *class = binding->error;
    PyObject *index = PyTuple_GetItem(row, 0), *node = PyTuple_GetItem(row, 1);
    PyObject *gpu = PyTuple_GetItem(row, 2);
    PyObject *text =
        PyUnicode_FromFormat("bundle %R on node %R with GPU id %R: %s", index, node, gpu, fault);
    PyObject *exception = text ? PyObject_CallFunctionObjArgs(class, text, NULL) : NULL;
    PyObject *code = exception ? PyUnicode_FromString("schema") : NULL;
    if (code && PyObject_SetAttrString(exception, "code", code) == 0)
        PyErr_SetObject(class, exception);
    Py_XDECREF(text);
    Py_XDECREF(exception);
    Py_XDECREF(code);
    return false;
}

/* The bytes of a str without NUL; None is NULL. */
static bool take_text(PyObject *value, const char **out)
{
    Py_ssize_t len = 0;
    *out = NULL;
    if (value == Py_None)
        return true;
    *out = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &len) : NULL;
    return *out && strlen(*out) == (size_t)len;
}

/* An address, or a pair of a node's id and its address. */
static bool take_node(PyObject *node, struct roost_bundle *out)
{
    if (!PyTuple_Check(node))
        return take_text(node, &out->address);
    return PyTuple_Size(node) == 2 && take_text(PyTuple_GetItem(node, 0), &out->node_id) &&
           take_text(PyTuple_GetItem(node, 1), &out->address);
}

/* Ray tells GPU ids as ints or as text. */
static bool take_gpu(PyObject *gpu, PyObject *owner, struct roost_bundle *out)
{
    if (PyUnicode_Check(gpu))
        return take_text(gpu, &out->gpu_id);
    PyObject *number = PyBool_Check(gpu) ? NULL : PyNumber_Index(gpu); /* numpy's too */
    PyObject *text = number ? PyObject_Str(number) : NULL;
    Py_XDECREF(number);
    bool is_good = text && PyList_Append(owner, text) == 0 && take_text(text, &out->gpu_id);
    Py_XDECREF(text);
    return is_good;
}

/* (index, node, gpu_id, visible) */
static bool take_row(struct binding *binding, PyObject *row, PyObject *owner,
                     struct roost_bundle *out)
{
    if (!PyTuple_Check(row) || PyTuple_Size(row) != 4) {
        PyErr_Format(PyExc_TypeError, "a bundle must be (index, node, gpu_id), not %R", row);
        return false;
    }
    if (!binding_int32(PyTuple_GetItem(row, 0), "the index of a bundle", binding->error,
                       &out->index))
        return false;
    if (!take_node(PyTuple_GetItem(row, 1), out))
        return refuse(binding, row, "a node is an address or a pair of its id and its address");
    if (!take_gpu(PyTuple_GetItem(row, 2), owner, out))
        return refuse(binding, row, "a GPU id is a number or a text");
    if (!take_text(PyTuple_GetItem(row, 3), &out->visible))
        return refuse(binding, row, "visible devices are a text such as 'GPU-a,GPU-b'");
    return true;
}

static bool take_rows(struct binding *binding, PyObject *rows, struct probes *out)
{
    out->count = PyList_Size(rows);
    out->list = PyMem_Calloc((size_t)out->count + 1, sizeof *out->list);
    out->owner = PyList_New(0);
    if (!out->list || !out->owner) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < out->count; i++)
        if (!take_row(binding, PyList_GetItem(rows, i), out->owner, &out->list[i]))
            return false;
    return true;
}

/* Asks a callable; what it raises is raised again when the order is made. */
static bool ask_callable(void *ctx, const char *name, char *out, size_t size)
{
    const char *text = NULL;
    PyObject *answer = PyErr_Occurred() ? NULL : PyObject_CallFunction(ctx, "s", name);
    if (answer && !take_text(answer, &text))
        PyErr_Format(PyExc_TypeError, "resolve must answer a str or None, not %R", answer);
    bool is_good = text && strlen(text) < size;
    if (is_good)
        memcpy(out, text, strlen(text) + 1);
    Py_XDECREF(answer);
    return is_good;
}

/* {name: address or None} */
static PyObject *resolved_dict(const struct roost_order *order)
{
    PyObject *dict = PyDict_New();
    struct roost_resolved it;
    for (size_t i = 0; dict && roost_order_resolved(order, i, &it); i++) {
        PyObject *address = Py_BuildValue("z", it.address);
        if (!address || PyDict_SetItemString(dict, it.name, address) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(address);
    }
    return dict;
}

static PyObject *order_answer(const struct roost_order *order)
{
    int32_t count = (int32_t)roost_order_count(order);
    PyObject *indices = binding_int_list(roost_order_indices(order), count);
    PyObject *nodes = indices ? binding_int_list(roost_order_nodes(order), count) : NULL;
    PyObject *resolved = nodes ? resolved_dict(order) : NULL;
    PyObject *gpus = resolved ? binding_int_list(roost_order_gpus(order), count) : NULL;
    PyObject *answer = gpus ? PyTuple_Pack(4, indices, nodes, resolved, gpus) : NULL;
    Py_XDECREF(indices);
    Py_XDECREF(nodes);
    Py_XDECREF(resolved);
    Py_XDECREF(gpus);
    return answer;
}

PyObject *binding_order_bundles(PyObject *module, PyObject *args)
{
    struct binding *binding = PyModule_GetState(module);
    PyObject *rows, *resolve;
    struct probes probes = {0};
    struct roost_order *order = NULL;
    struct roost_error error;
    if (!PyArg_ParseTuple(args, "O!O:order_bundles", &PyList_Type, &rows, &resolve))
        return NULL;
    bool is_callable = PyCallable_Check(resolve), is_system = resolve == Py_True;
    struct roost_order_options options = {
        .resolve = is_callable ? ask_callable
                   : is_system ? roost_resolve_system
                               : NULL,
        .resolve_ctx = resolve,
    };
    if (!take_rows(binding, rows, &probes)) {
        probes_release(&probes);
        return NULL;
    }
    if (is_callable) {
        order = roost_order_new(probes.list, (size_t)probes.count, &options, &error);
    } else {
        Py_BEGIN_ALLOW_THREADS
        order = roost_order_new(probes.list, (size_t)probes.count, &options, &error);
        Py_END_ALLOW_THREADS
    }
    PyObject *answer = NULL;
    if (PyErr_Occurred())
        answer = NULL;
    else if (!order)
        binding_raise(binding, &error, NULL, NULL);
    else
        answer = order_answer(order);
    roost_order_free(order);
    probes_release(&probes);
    return answer;
}

/* --- trainers --- */

static bool take_variable(void *dict, const char *name, const char *value)
{
    PyObject *text = PyUnicode_DecodeFSDefault(value);
    bool is_taken = text && PyDict_SetItemString(dict, name, text) == 0;
    Py_XDECREF(text);
    return is_taken;
}

/* Fills the rest of `trainer` and asks for its variables; NULL with an exception. */
static PyObject *variables_of(struct binding *binding, const struct roost_trainer *trainer)
{
    PyObject *dict = PyDict_New(), *warnings = NULL, *answer = NULL;
    struct roost_report *report = dict ? roost_report_new() : NULL;
    struct roost_error error = {.code = ROOST_ERR_MEMORY};
    bool is_good =
        report && roost_trainer_variables(trainer, take_variable, dict, report, &error) == ROOST_OK;
    if (is_good)
        warnings = binding_warnings(report, NULL);
    else if (!PyErr_Occurred())
        binding_raise(binding, &error, report, NULL);
    if (warnings)
        answer = PyTuple_Pack(2, dict, warnings);
    roost_report_free(report);
    Py_XDECREF(warnings);
    Py_XDECREF(dict);
    return answer;
}

PyObject *binding_trainer_variables(PyObject *module, PyObject *args)
{
    struct binding *binding = PyModule_GetState(module);
    struct roost_trainer trainer = {0};
    struct texts env = {0}, own = {0};
    PyObject *env_list, *own_list, *answer = NULL;
    int is_replaying = 0;
    if (!PyArg_ParseTuple(args, "iizizzzpOO:trainer_variables", &trainer.rank, &trainer.world_size,
                          &trainer.master_addr, &trainer.master_port, &trainer.gpu_id,
                          &trainer.visible, &trainer.preload, &is_replaying, &env_list, &own_list))
        return NULL;
    trainer.is_replaying = is_replaying;
    if (texts_open(binding, &env, env_list, "env") &&
        texts_open(binding, &own, own_list, "train_env_vars")) {
        trainer.env = env.texts;
        trainer.own = own.texts;
        answer = variables_of(binding, &trainer);
    }
    texts_close(&env);
    texts_close(&own);
    return answer;
}
