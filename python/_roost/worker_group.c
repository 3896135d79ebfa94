/* worker_group.c - the type Group: the processes of one launch, as the driver holds them. */
#include <string.h>

#include "binding.h"

struct group_object {
    PyObject_HEAD
    struct roost_group *group;
    PyObject *placements; /* its memory is the plan's */
    PyObject *warnings;
    PyObject *reader; /* lives as long as it reads for this; NULL = none does */
    unsigned owner;   /* a child that the driver forks must not end the driver's processes */
    bool is_closed;   /* by close() */
};

static void dealloc(PyObject *self)
{
    struct group_object *it = (struct group_object *)self;
    struct roost_group *group = it->owner == binding_forks() ? it->group : NULL;
    if (group) {
        Py_BEGIN_ALLOW_THREADS
        roost_group_free(group);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(it->placements);
    Py_XDECREF(it->warnings);
    Py_XDECREF(it->reader);
    binding_dealloc(self);
}

static struct roost_group *group_of(PyObject *self)
{
    const struct group_object *it = (const struct group_object *)self;
    if (it->owner == binding_forks())
        return it->group;
    PyErr_SetString(PyExc_RuntimeError,
                    "a group belongs to the process that launched it, and this is a fork of it");
    return NULL;
}

/* --- launching --- */

struct wanted {
    struct texts command, forker;
    const char **env, **extra;
    PyObject *env_owner, *extra_owner;
};

static void wanted_close(struct wanted *wanted)
{
    texts_close(&wanted->command);
    texts_close(&wanted->forker);
    PyMem_Free(wanted->env);
    PyMem_Free(wanted->extra);
    Py_XDECREF(wanted->env_owner);
    Py_XDECREF(wanted->extra_owner);
}

static bool wanted_open(struct binding *binding, struct wanted *out, PyObject *command,
                        PyObject *env, PyObject *extra, PyObject *forker)
{
    *out = (struct wanted){0};
    if (!texts_open(binding, &out->command, command, "command"))
        return false;
    if (forker != Py_None && !texts_open(binding, &out->forker, forker, "forker")) {
        texts_close(&out->command);
        return false;
    }
    out->env = binding_environment(env, "env", &out->env_owner);
    out->extra = out->env ? binding_environment(extra, "extra", &out->extra_owner) : NULL;
    if (out->extra)
        return true;
    wanted_close(out);
    return false;
}

static PyObject *launch(struct group_object *self, const struct roost_run_options *options)
{
    struct binding *binding = binding_of(Py_TYPE((PyObject *)self));
    struct roost_error error;
    struct roost_report *report = roost_report_new();
    struct roost_group *group = NULL;
    Py_BEGIN_ALLOW_THREADS
    if (report)
        group = roost_group_start(options, report, &error);
    Py_END_ALLOW_THREADS
    if (!report)
        PyErr_NoMemory();
    else if (!group)
        binding_raise(binding, &error, report, NULL);
    else
        self->warnings = binding_warnings(report, NULL);
    roost_report_free(report);
    self->group = group;
    if (self->warnings)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *words)
{
    static char *names[] = {"config",    "cluster", "placements", "name",       "command",  "env",
                            "extra",     "program", "namespace",  "has_cgroup", "logs_dir", "grace",
                            "port_base", "forker",  "title",      NULL};
    struct binding *binding = binding_of(type);
    struct roost_run_options options = {0};
    PyObject *config, *cluster, *placements, *command, *env, *extra, *forker = Py_None;
    int has_cgroup = 1;
    double grace = 0;
    if (!PyArg_ParseTupleAndKeywords(
            args, words, "OOOsOOO|zzpzdiOz:Group", names, &config, &cluster, &placements,
            &options.single.name, &command, &env, &extra, &options.program, &options.name_space,
            &has_cgroup, &options.logs_dir, &grace, &options.port_base, &forker, &options.title) ||
        !binding_want(cluster, binding->cluster, "cluster") ||
        !binding_want(placements, binding->placements, "placements") ||
        (config != Py_None && !binding_want(config, binding->config, "config")))
        return NULL;
    struct wanted wanted;
    struct group_object *self = binding_alloc(type);
    if (!self)
        return NULL;
    self->owner = binding_forks();
    if (!wanted_open(binding, &wanted, command, env, extra, forker)) {
        Py_DECREF(self);
        return NULL;
    }
    Py_INCREF(placements);
    self->placements = placements;
    options.config = config == Py_None ? NULL : config_value(config);
    options.cluster = cluster_value(cluster);
    options.single.placed = placements_component(placements);
    options.command = wanted.command.texts;
    options.command_count = (size_t)wanted.command.count;
    options.single.forker = wanted.forker.texts;
    options.env = wanted.env;
    options.single.extra_env = wanted.extra;
    options.has_no_cgroup = !has_cgroup;
    options.grace_ms = (int32_t)(grace * 1000);
    PyObject *made = launch(self, &options);
    wanted_close(&wanted);
    return made;
}

/* --- what is known --- */

PyObject *binding_end(const struct roost_event *end)
{
    return Py_BuildValue("{s:i,s:i,s:i,s:s,s:i,s:i,s:d}", "rank", end->rank, "life", end->life,
                         "pid", end->pid, "end", roost_end_word(end->end), "exit_code",
                         end->exit_code, "signal", end->signal, "seconds",
                         (double)end->lasted / 1e9);
}

static PyObject *rank(PyObject *self, PyObject *value)
{
    static const char *const words[] = {[ROOST_RANK_STARTING] = "starting",
                                        [ROOST_RANK_READY] = "ready",
                                        [ROOST_RANK_REFUSED] = "refused",
                                        [ROOST_RANK_ENDED] = "ended"};
    struct binding *binding = binding_of(Py_TYPE(self));
    struct roost_group *group = group_of(self);
    int32_t number;
    if (!group || !binding_int32(value, "rank", binding->rank_error, &number))
        return NULL;
    struct roost_rank_info info;
    Py_BEGIN_ALLOW_THREADS
    info = roost_group_rank(group, number);
    Py_END_ALLOW_THREADS
    PyObject *end =
        info.end.kind == ROOST_EVENT_ENDED ? binding_end(&info.end) : Py_NewRef(Py_None);
    if (!end)
        return NULL;
    return Py_BuildValue("{s:s,s:i,s:y#,s:N}", "state", words[info.state], "pid", info.pid, "bytes",
                         info.bytes.at ? info.bytes.at : "", (Py_ssize_t)info.bytes.len, "end",
                         end);
}

/* What was noted since the last time, or None. */
static PyObject *note(PyObject *self, PyObject *nothing)
{
    struct roost_group *group = group_of(self);
    char text[ROOST_EVENT_MESSAGE_MAX];
    bool is_there;
    (void)nothing;
    if (!group)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    is_there = roost_group_note(group, text);
    Py_END_ALLOW_THREADS
    return is_there ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
                    : Py_NewRef(Py_None);
}

/* None when all are ready; else (code, message, rank). */
static PyObject *wait_ready(PyObject *self, PyObject *seconds)
{
    struct roost_group *group = group_of(self);
    struct roost_error error;
    enum roost_code code;
    int32_t left, at;
    if (!group || !binding_timeout(seconds, &left))
        return NULL;
    int32_t all = left;
    do {
        int32_t slice = binding_slice(&left);
        Py_BEGIN_ALLOW_THREADS
        code = roost_group_wait_ready(group, slice, &at, &error);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() != 0)
            return NULL;
    } while (code == ROOST_ERR_TIMEOUT && (all < 0 || left > 0));
    if (code == ROOST_OK)
        Py_RETURN_NONE;
    return Py_BuildValue("(ssi)", roost_code_word(code), error.message, at);
}

static PyObject *send_signal(PyObject *self, PyObject *args)
{
    struct roost_group *group = group_of(self);
    int at, number;
    struct roost_error error;
    enum roost_code code;
    if (!group || !PyArg_ParseTuple(args, "ii:signal", &at, &number))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = roost_group_signal(group, at, number, &error);
    Py_END_ALLOW_THREADS
    if (code != ROOST_OK)
        return binding_raise(binding_of(Py_TYPE(self)), &error, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *pump(PyObject *self, PyObject *nothing)
{
    struct roost_group *group = group_of(self);
    (void)nothing;
    if (!group)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    roost_group_pump(group);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* --- reading --- */

bool group_read_by(PyObject *self, PyObject *reader, struct roost_call_reader *value)
{
    struct group_object *it = (struct group_object *)self;
    struct roost_group *group = group_of(self);
    bool is_good;
    if (!group)
        return false;
    Py_BEGIN_ALLOW_THREADS
    is_good = roost_call_reader_add(value, group);
    Py_END_ALLOW_THREADS
    if (is_good)
        it->reader = Py_NewRef(reader);
    else
        PyErr_NoMemory();
    return is_good;
}

static PyObject *listen_to(PyObject *self, PyObject *number)
{
    struct roost_group *group = group_of(self);
    int fd = (int)PyLong_AsLong(number);
    bool is_good;
    if (!group || (fd == -1 && PyErr_Occurred()))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    is_good = roost_group_listen(group, fd);
    Py_END_ALLOW_THREADS
    if (!is_good)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *unlisten_to(PyObject *self, PyObject *number)
{
    const struct group_object *it = (const struct group_object *)self;
    int fd = (int)PyLong_AsLong(number);
    if (fd == -1 && PyErr_Occurred())
        return NULL;
    if (it->owner == binding_forks()) {
        Py_BEGIN_ALLOW_THREADS
        roost_group_unlisten(it->group, fd);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

/* --- closing --- */

static PyObject *close_group(PyObject *self, PyObject *args)
{
    struct group_object *it = (struct group_object *)self;
    int status = 0;
    if (!PyArg_ParseTuple(args, "|i:close", &status))
        return NULL;
    it->is_closed = true;
    if (it->owner == binding_forks()) {
        Py_BEGIN_ALLOW_THREADS
        roost_group_end(it->group, status);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

/* --- calling --- */

bool group_is_closed(PyObject *group)
{
    return ((const struct group_object *)group)->is_closed;
}

/* While a call waits for room: whether a signal's handler has raised. */
static bool is_interrupted(void *context)
{
    PyThreadState **state = context;
    PyEval_RestoreThread(*state);
    bool has_raised = PyErr_CheckSignals() != 0;
    *state = PyEval_SaveThread();
    return has_raised;
}

PyObject *group_call(PyObject *self, const struct roost_call_options *options, PyTypeObject *type,
                     PyObject *site)
{
    struct binding *binding = binding_of(Py_TYPE(self));
    struct roost_group *group = group_of(self);
    struct roost_error error;
    struct roost_call_options wanted = *options;
    if (!group)
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    wanted.is_stopped = is_interrupted;
    wanted.stop_ctx = &state;
    struct roost_call *call = roost_group_call(group, &wanted, &error);
    PyEval_RestoreThread(state);
    if (!call && PyErr_Occurred())
        return NULL;
    if (!call)
        return binding_raise(binding, &error, NULL, NULL);
    return call_new(binding, type ? type : binding->call, self, site, call);
}

static PyObject *call_method(PyObject *self, PyObject *args)
{
    struct roost_call_options options = {0};
    PyObject *sequence, *numbers = Py_None, *seconds = Py_None, *call = NULL;
    struct pieces pieces;
    struct rank_list ranks;
    if (!PyArg_ParseTuple(args, "sO|OO:call", &options.method, &sequence, &numbers, &seconds) ||
        !binding_timeout(seconds, &options.timeout_ms) || !pieces_open(&pieces, sequence, "pieces"))
        return NULL;
    options.timeout_ms = options.timeout_ms < 0 ? 0 : options.timeout_ms ? options.timeout_ms : 1;
    options.bytes = pieces.bytes;
    options.byte_count = (size_t)pieces.count;
    if (rank_list_open(binding_of(Py_TYPE(self)), &ranks, numbers)) {
        options.ranks = ranks.numbers;
        options.rank_count = ranks.count;
        call = group_call(self, &options, NULL, NULL);
        rank_list_close(&ranks);
    }
    pieces_close(&pieces);
    return call;
}

/* --- the type --- */

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(roost_group_name(((struct group_object *)self)->group));
}

static PyObject *get_run_id(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(roost_group_run_id(((struct group_object *)self)->group));
}

static PyObject *get_dir(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_DecodeFSDefault(roost_group_dir(((struct group_object *)self)->group));
}

static PyObject *get_size(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(roost_group_size(((struct group_object *)self)->group));
}

static PyObject *get_fd(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(roost_group_fd(((struct group_object *)self)->group));
}

static PyMethodDef methods[] = {
    {"wait_ready", wait_ready, METH_O, "None when all ranks are ready, else (code, message, rank)"},
    {"rank", rank, METH_O, "What is known of a rank: state, pid, bytes, end."},
    {"call", call_method, METH_VARARGS, "(method, pieces, ranks=None, timeout=None) -> Call"},
    {"note", note, METH_NOARGS, "What was noted of it since the last time, or None."},
    {"pump", pump, METH_NOARGS, "Takes what has come and sends what did not fit."},
    {"listen", listen_to, METH_O, "Writes to an eventfd whenever outcomes have come."},
    {"unlisten", unlisten_to, METH_O, "Does so no more."},
    {"signal", send_signal, METH_VARARGS, "(rank, signal)"},
    {"close", close_group, METH_VARARGS, "(status=0) ends the processes; the run ends with it"},
    {NULL, NULL, 0, NULL},
};

static PyObject *get_warnings(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(((struct group_object *)self)->warnings);
}

static PyGetSetDef getters[] = {
    {"name", get_name, NULL, "of the group", NULL},
    {"run_id", get_run_id, NULL, "of its run", NULL},
    {"dir", get_dir, NULL, "where its logs and records are", NULL},
    {"size", get_size, NULL, "how many processes", NULL},
    {"warnings", get_warnings, NULL, "(word, place, message, hint)", NULL},
    {"fd", get_fd, NULL, "readable when pump has something to do", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The processes of one launch on this machine."},
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec group_spec = {
    .name = "roost.Group",
    .basicsize = sizeof(struct group_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
