/* binding.h - what the files of the extension share: the module's state, errors, and the types.
 *
 * Everything that is decided is decided in the C library; here values are carried over. There are no
 * globals: types and exceptions live in the module's state. The GIL is released around every call
 * into the library that may take time. */
#ifndef ROOST_BINDING_H
#define ROOST_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <roost/engine/agent.h>
#include <roost/engine/cluster.h>
#include <roost/engine/process.h>
#include <roost/engine/registry.h>
#include <roost/engine/trainer.h>
#include <roost/roost.h>

/* How values become messages; functions of Python, set by roost._work.codec. */
struct codec {
    PyObject *all; /* a tuple, which holds those below; NULL = not set */
    PyObject *encode, *decode, *unpickle;
    PyObject *marshal, *version, *unmarshal; /* marshal(value, version) */
    Py_ssize_t large; /* bytes of this length are worth a piece of their own */
};

struct binding {
    PyObject *error, *rank_error; /* exception classes */
    PyTypeObject *config, *cluster, *plan, *strategy, *placements, *placement, *column;
    PyTypeObject *group, *caller, *call, *answer, *reader, *worker_socket, *request;
    PyTypeObject *server, *client, *managers;
    PyTypeObject *processes, *leases, *link;
    PyObject *accelerator_types; /* a tuple, by enum roost_accelerator */
    struct codec codec;
};

/* The state of the module that `type`, one of ours, belongs to. */
struct binding *binding_of(PyTypeObject *type);

/* A zeroed object of one of our types. */
void *binding_alloc(PyTypeObject *type);

/* Gives the object's memory and its hold on the type back; what it owns is gone already. */
void binding_dealloc(PyObject *self);

/* Raises roost.Error (or RankError) with code, file, line, column, key and hint of the first error;
 * returns NULL. Its text and `errors` have all errors of the report, which may be NULL. `paths` is a
 * tuple of keys by line for a config that came as a mapping, or NULL: then lines are lines. */
PyObject *binding_raise(struct binding *binding, const struct roost_error *error,
                        const struct roost_report *report, PyObject *paths);

/* Tuples (word, place, message, hint) of the report's warnings. */
PyObject *binding_warnings(const struct roost_report *report, PyObject *paths);

/* A cure without the program's options; a function of the module. */
PyObject *python_words(PyObject *module, PyObject *hint);

/* UTF-8 borrowed from a str; NULL with an exception that names `what`. */
const char *binding_text(struct binding *binding, PyObject *value, const char *what);

/* Texts borrowed from a Python sequence, NULL-terminated, and what keeps them alive. */
struct texts {
    const char **texts;
    Py_ssize_t count;
    PyObject *owner;
};

/* Fills *out from a sequence of str; false with an exception that names `what`. */
bool texts_open(struct binding *binding, struct texts *out, PyObject *sequence, const char *what);
void texts_close(struct texts *texts);

/* An int from a Python object; a TypeError or, outside int32_t, a range_error names the argument. */
bool binding_int32(PyObject *value, const char *what, PyObject *range_error, int32_t *out);

/* Ranks of a sequence; of None: no numbers, which stands for all. */
struct rank_list {
    int32_t *numbers;
    size_t count;
};

/* False with an exception. */
bool rank_list_open(struct binding *binding, struct rank_list *out, PyObject *sequence);
void rank_list_close(struct rank_list *ranks);

/* Whether `value` is of our type; an error names the argument. */
bool binding_want(PyObject *value, PyTypeObject *type, const char *what);

PyObject *binding_int_list(const int32_t *values, int32_t count);

/* Appends and takes `item`, which may be NULL; on failure *list is cleared. */
void binding_append(PyObject **list, PyObject *item);

/* The library's values behind objects of our types. */
const struct roost_config *config_value(PyObject *config);
PyObject *config_paths(PyObject *config); /* borrowed; NULL for a file */
const struct roost_cluster *cluster_value(PyObject *cluster);

/* Take the value, also on failure, and the list of warnings. */
PyObject *cluster_take(PyTypeObject *type, struct roost_cluster *value, PyObject *warnings);

/* The class method Cluster.from_description(nodes, groups). */
PyObject *cluster_from_description(PyObject *class, PyObject *args);

/* Takes the plan, also on failure. */
PyObject *plan_take(struct binding *binding, struct roost_plan *plan);

/* Placements of one component of a plan object; holds a reference to it. */
PyObject *placements_new(struct binding *binding, PyObject *plan,
                         const struct roost_component *component);

/* The component behind placements, borrowed. */
const struct roost_component *placements_component(PyObject *placements);

/* A column of a component; `data` is NULL where the component has no such column. */
struct column_entry {
    const char *name;
    const void *data;
    Py_ssize_t count, item_size;
};

/* Fills *out; false with a KeyError when no column has that name. */
bool find_column(const struct roost_component *component, PyObject *name, struct column_entry *out);

/* Raises a TypeError that says what to pickle instead; returns NULL. */
PyObject *binding_refuse_pickle(PyObject *self, const char *instead);

/* Whether two processes have equal fields. */
bool rows_equal(const struct roost_component *a, int32_t rank_a, const struct roost_component *b,
                int32_t rank_b);

/* How many accelerators a process sees, and which the one at `index` is. */
int32_t row_visible_count(const struct roost_component *component, int32_t rank);
int32_t row_visible(const struct roost_component *component, int32_t rank, int32_t index);

/* One process of placements; the attributes are read when asked for. */
PyObject *placement_new(PyTypeObject *type, PyObject *placements,
                        const struct roost_component *component, int32_t rank);

/* Read-only memory of the plan as a buffer: int32_t, or uint8_t when item_size is 1. The name is
 * static. */
PyObject *column_new(struct binding *binding, PyObject *owner, const struct column_entry *entry);

/* Waits for the next request of a socket object, -1 = without a limit; *out NULL when time was up or the
 * driver has gone. False with an exception. */
bool socket_take(PyObject *socket, int32_t wait_ms, struct roost_request **out);

/* The method WorkerSocket.serve (serve.c). */
PyObject *socket_serve(PyObject *socket, PyObject *args);

/* A request that came over a socket object, which it holds. Takes it, also on failure. */
PyObject *request_take(PyObject *socket, struct roost_request *request);

/* Functions of the module: the signal kills the process; processes of the user may trace this one. */
PyObject *binding_die_on(PyObject *module, PyObject *number);
PyObject *binding_heed_parent(PyObject *module, PyObject *number);
PyObject *binding_allow_tracing(PyObject *module, PyObject *nothing);

/* Functions of the module: (config, cluster or None, slots or None, sizes_only) -> (JSON, warnings),
 * and (rows, resolve) -> (indices, nodes, resolved). */
PyObject *binding_groups_json(PyObject *module, PyObject *args);
PyObject *binding_order_bundles(PyObject *module, PyObject *args);
PyObject *binding_trainer_variables(PyObject *module, PyObject *args);

/* --- buffers and waiting (buffers.c) --- */

/* Memory of Python objects, borrowed as pieces of one payload. */
struct pieces {
    Py_buffer *views;
    struct roost_bytes *bytes;
    Py_ssize_t count;
};

/* Borrows the buffers of a sequence; false with an exception. */
bool pieces_open(struct pieces *out, PyObject *sequence, const char *what);
void pieces_close(struct pieces *pieces);

/* Hands bytes to the library on behalf of one of our objects, without the GIL. */
typedef enum roost_code sending(PyObject *self, const struct roost_bytes *bytes, size_t count,
                                struct roost_error *err);
/* Sends the buffers of a sequence; None, or NULL with an exception. */
PyObject *pieces_send(PyObject *self, PyObject *sequence, sending *send);

/* --- values (values.c) --- */

/* A function of the module: what the members of struct codec are set to. */
PyObject *binding_set_codec(PyObject *module, PyObject *args);

/* A Python value as the bytes of a call. */
struct message {
    PyObject *data; /* of a plain value, in `plain`; otherwise the codec's pieces are in `pieces` */
    struct roost_bytes plain[2];
    struct pieces pieces;
    const struct roost_bytes *bytes; /* whichever it is */
    size_t count;
};

/* False with the exception that the value raised when it was pickled. */
bool message_open(const struct binding *binding, struct message *out, PyObject *value);
void message_close(struct message *message);

/* Whether message_read_small can read it; the value of one that is, and of any other, which is the buffer
 * of `owner`. NULL with an exception. */
bool message_is_small(struct roost_bytes message);
PyObject *message_read_small(const struct binding *binding, struct roost_bytes message);
PyObject *message_read(const struct binding *binding, PyObject *owner);

/* "NAME=value" texts, NULL-terminated, from a mapping, in the encoding of the file system; NULL with an
 * exception. Free with PyMem_Free; *out_owner keeps them alive. */
const char **binding_environment(PyObject *mapping, const char *what, PyObject **out_owner);

/* Bytes of a document, grown without the GIL; free them. */
struct document {
    char *bytes;
    size_t len, room;
};

/* Appends, as the library's writers ask; false without memory. */
bool document_keep(void *document, const char *bytes, size_t len);

/* Seconds or None as milliseconds, -1 = no limit; false with an exception. */
bool binding_timeout(PyObject *seconds, int32_t *out_ms);

/* The next slice of a wait, short enough to hear signals in between; -1 = no limit. */
int32_t binding_slice(int32_t *left_ms);

/* Calls the processes of a group object; an object of `type` (NULL = Call), or NULL with an exception. */
PyObject *group_call(PyObject *group, const struct roost_call_options *options, PyTypeObject *type,
                     PyObject *site);
bool group_is_closed(PyObject *group);
/* Hands the group over to a reader, whose object it holds; false with an exception. */
bool group_read_by(PyObject *group, PyObject *reader, struct roost_call_reader *value);

/* A call on its way, of the type Call or a type that derives from it; `site` may be NULL. Takes the call,
 * also on failure. */
PyObject *call_new(const struct binding *binding, PyTypeObject *type, PyObject *group,
                   PyObject *site, struct roost_call *call);

/* {component, rank, life, ...} of a life that has ended. */
PyObject *binding_end(const struct roost_event *end);

/* How many forks this process is away from the one that first loaded the module: what belongs to a process
 * remembers the number it had. */
unsigned binding_forks(void);
bool binding_count_forks(void); /* false with an exception */

/* Functions of the module for forked workers (forked.c). */
PyObject *binding_follow_parent(PyObject *module, PyObject *pid);
PyObject *binding_duplicate_above(PyObject *module, PyObject *args);

extern PyType_Spec group_spec, caller_spec, call_spec, answer_spec, reader_spec;
/* Functions of the module: namespaces of this user that live, and checks of names. */
PyObject *binding_namespaces(PyObject *module, PyObject *env);
PyObject *binding_check_address(PyObject *module, PyObject *text);
PyObject *binding_check_group_name(PyObject *module, PyObject *text);
PyObject *binding_check_variable(PyObject *module, PyObject *text);

/* Functions of the module, for drivers (driver.c): which engine, the environment's settings, how messages
 * name ranks. */
PyObject *binding_choose_engine(PyObject *module, PyObject *args);
PyObject *binding_settings(PyObject *module, PyObject *environ);
PyObject *binding_ranks_text(PyObject *module, PyObject *ranks);
PyObject *binding_readiness(PyObject *module, PyObject *args);
/* Adds engines and LATE_NAMED to the module. */
bool driver_add_words(PyObject *module);

/* Functions of the module: workers' lines, and whether colours are on (lines.c). */
PyObject *binding_show_lines(PyObject *module, PyObject *args);
PyObject *binding_color_is_on(PyObject *module, PyObject *args);

/* A function of the module: a cluster and its config as managers tell them. */
PyObject *binding_view(PyObject *module, PyObject *args);

extern PyType_Spec registry_server_spec, client_spec, managers_spec;
extern PyType_Spec config_spec, cluster_spec, plan_spec, strategy_spec, placements_spec,
    placement_spec, column_spec, worker_socket_spec, request_spec;
extern PyType_Spec processes_spec, leases_spec, agent_link_spec;

/* Adds AGENT_JOIN, ... of roost/engine/agent.h to the module. */
bool agent_link_add_words(PyObject *module);

#endif
