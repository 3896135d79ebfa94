/* plan.c - the type Plan: made from a config and a cluster, or taken from a strategy. */
#include "binding.h"

struct plan_object {
    PyObject_HEAD
    struct roost_plan *value;
};

PyObject *plan_take(struct binding *binding, struct roost_plan *plan)
{
    struct plan_object *self = binding_alloc(binding->plan);
    if (self)
        self->value = plan;
    else
        roost_plan_free(plan);
    return (PyObject *)self;
}

static void plan_dealloc(PyObject *self)
{
    roost_plan_free(((struct plan_object *)self)->value);
    binding_dealloc(self);
}

static PyObject *plan_create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"config", "cluster", "model_parallel", "isolate", NULL};
    struct binding *binding = binding_of(type);
    PyObject *config, *cluster;
    int model_parallel = 0, isolate = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|pp:Plan", words, &config, &cluster,
                                     &model_parallel, &isolate) ||
        !binding_want(config, binding->config, "config") ||
        !binding_want(cluster, binding->cluster, "cluster"))
        return NULL;
    struct roost_plan_options options = {
        .mode = model_parallel ? ROOST_MODE_MODEL_PARALLEL : ROOST_MODE_HYBRID,
        .shares_accelerators = !isolate,
    };
    struct roost_error error;
    struct roost_report *report = roost_report_new();
    if (!report)
        return PyErr_NoMemory();
    struct roost_plan *plan;
    Py_BEGIN_ALLOW_THREADS
    plan = roost_plan_new(config_value(config), cluster_value(cluster), &options, report, &error);
    Py_END_ALLOW_THREADS
    PyObject *self = plan ? plan_take(binding, plan)
                          : binding_raise(binding, &error, report, config_paths(config));
    roost_report_free(report);
    return self;
}

/* --- what a plan knows --- */

static PyObject *plan_mode(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_plan *plan = ((struct plan_object *)self)->value;
    return PyUnicode_FromString(roost_plan_mode_word(roost_plan_mode(plan)));
}

static PyObject *plan_placements(PyObject *self, PyObject *name)
{
    const struct roost_plan *plan = ((struct plan_object *)self)->value;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const struct roost_component *component = text ? roost_plan_find(plan, text) : NULL;
    if (component)
        return placements_new(binding_of(Py_TYPE(self)), self, component);
    if (!PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, name);
    return NULL;
}

/* Where the plan itself has a column: for whoever wants to know that views are no copies. */
static PyObject *plan_address(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *column;
    struct column_entry entry;
    if (!PyArg_ParseTuple(args, "sO:address", &name, &column))
        return NULL;
    const struct roost_component *component =
        roost_plan_find(((struct plan_object *)self)->value, name);
    if (!component) {
        PyErr_Format(PyExc_KeyError, "there is no component '%s'", name);
        return NULL;
    }
    return find_column(component, column, &entry)
               ? PyLong_FromVoidPtr((void *)(uintptr_t)entry.data)
               : NULL;
}

/* {name: the component's own} where the plan finds a component by a second name. */
static PyObject *plan_other_names(PyObject *self, void *closure)
{
    (void)closure;
    static const char second[] = "actor_inference";
    const struct roost_component *it = roost_plan_find(((struct plan_object *)self)->value, second);
    PyObject *names = PyDict_New(), *own = names && it ? PyUnicode_FromString(it->name) : NULL;
    bool is_other = own && PyUnicode_CompareWithASCIIString(own, second) != 0;
    if ((it && names && !own) || (is_other && PyDict_SetItemString(names, second, own) < 0))
        Py_CLEAR(names);
    Py_XDECREF(own);
    return names;
}

static PyObject *plan_sizes(PyObject *self, void *closure)
{
    (void)closure;
    const struct roost_model_parallel *it =
        roost_plan_model_parallel(((struct plan_object *)self)->value);
    if (!it)
        Py_RETURN_NONE;
#define SIZES(role)                                                                                \
    #role "_world_size", (int)it->role##_world_size, #role "_tp_size", (int)it->role##_tp_size,    \
        #role "_pp_size", (int)it->role##_pp_size, #role "_dp_size", (int)it->role##_dp_size
    return Py_BuildValue(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:O,"
        "s:O}",
        SIZES(actor), SIZES(critic), SIZES(inference), SIZES(critic_inference), SIZES(rollout),
        "reward_world_size", (int)it->reward_world_size, "has_dedicated_inference",
        it->has_dedicated_inference ? Py_True : Py_False, "has_dedicated_critic_inference",
        it->has_dedicated_critic_inference ? Py_True : Py_False);
#undef SIZES
}

static PyGetSetDef fields[] = {
    {"mode", plan_mode, NULL, "hybrid, collocated, disaggregated or auto", NULL},
    {"other_names", plan_other_names, NULL, "second names of components, with the first", NULL},
    {"sizes", plan_sizes, NULL, "derived sizes of a model-parallel plan, or None", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"address", plan_address, METH_VARARGS, "address(component, column): in memory"},
    {"placements", plan_placements, METH_O, "the placements of a component; \"\" of a strategy"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Plan(config, cluster, model_parallel=False, isolate=True)"},
    {Py_tp_new, plan_create},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec plan_spec = {
    .name = "roost._roost.Plan",
    .basicsize = sizeof(struct plan_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
