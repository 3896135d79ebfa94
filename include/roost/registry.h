/* registry.h - the managers of a run: who is where, who talks to whom, who has which device and port.
 *
 * A keeper is a small process that remembers this for one namespace and answers every process of the
 * same user through a socket (mode 0600, in a directory of mode 0700, peer checked by the kernel). A
 * namespace is `roost`, `roost_1`, ... or a name that was asked for; it belongs to one living keeper or
 * run. The keeper ends with the process that started it, however that ends. What
 * stays is NAME.namespace in the runtime directory, whose lock is the namespace.
 *
 * Questions and answers are JSON objects of one line; docs/managers.md lists them:
 *
 *     {"call": "WorkerManager.get_worker_info", "args": ["actor:0"]}
 *     {"value": {"address": "actor:0", ...}}  or  {"error": {"code": ..., "message": ..., "hint": ...}}
 *
 * What a process registered or locked is free again when it has ended or closed its connection. */
#ifndef ROOST_REGISTRY_H
#define ROOST_REGISTRY_H

#include <roost/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ROOST_NAMESPACE_MAX = 48 }; /* bytes of a name */

/* --- the keeper --- */

struct roost_keeper;

/* All zero but env: the first free namespace, an empty view. Everything is borrowed for the call. */
struct roost_keeper_options {
    const char *const *env; /* "NAME=value", NULL-terminated: where XDG_RUNTIME_DIR is looked up */
    const char *program;    /* the roost program; NULL = the installed one */
    const char *name_space; /* NULL = roost, roost_1, ...: the first that is free */
    const char *view;       /* what NodeManager tells, as JSON: nodes, node_groups, ... */
    size_t view_len;
    bool leases_master_port; /* lease a port, and tell it as master_port of the view */
    int32_t port_base;       /* the first port that the lease tries; 0 = 20000 */
};

/* Starts a keeper; it answers when this returns. NULL after filling `err`. */
ROOST_API struct roost_keeper *roost_keeper_start(const struct roost_keeper_options *options,
                                                  struct roost_error *err);

/* Ends the keeper and waits until it is gone. In a process that was forked from the one that started
 * it only memory and descriptors are given back. */
ROOST_API void roost_keeper_free(struct roost_keeper *keeper);

ROOST_API const char *roost_keeper_namespace(const struct roost_keeper *keeper);
ROOST_API int32_t roost_keeper_pid(const struct roost_keeper *keeper);

/* For the roost program alone: what it does when roost_keeper_start starts it. */
ROOST_API int roost_keeper_main(int argc, char **argv);

/* --- asking it --- */

struct roost_registry;

/* Connects to the keeper of a namespace. NULL after filling `err`: ROOST_ERR_ENGINE when there is none
 * (the hint lists those that are there), ROOST_ERR_ACCESS when it is not this user's. */
ROOST_API struct roost_registry *roost_registry_open(const char *const *env, const char *name_space,
                                                     struct roost_error *err);
ROOST_API void roost_registry_close(struct roost_registry *registry);

/* Asks and waits: a request that is a JSON object without "id"; -1 = as long as it takes. *out_answer
 * is then a NUL-terminated line, the caller's to free with roost_answer_free. When time is up the
 * request is taken back: ROOST_ERR_TIMEOUT. ROOST_ERR_ENGINE when the keeper is gone. Threads may call
 * at the same time; a process that was forked must open a connection of its own. */
ROOST_API enum roost_code roost_registry_call(struct roost_registry *registry, const char *request,
                                              size_t len, int32_t timeout_ms, char **out_answer,
                                              struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_answer_free(char *answer);

/* The same in three steps, for who must look at something else in between. A ticket ends with its
 * answer, or with roost_registry_cancel. */
ROOST_API enum roost_code roost_registry_ask(struct roost_registry *registry, const char *request,
                                             size_t len, int64_t *out_ticket,
                                             struct roost_error *err) ROOST_MUST_USE;

/* ROOST_ERR_TIMEOUT: not yet; the ticket is still good. */
ROOST_API enum roost_code roost_registry_wait(struct roost_registry *registry, int64_t ticket,
                                              int32_t timeout_ms, char **out_answer,
                                              struct roost_error *err) ROOST_MUST_USE;

/* Takes the request back. ROOST_OK when its answer came all the same: what it says has happened.
 * ROOST_ERR_TIMEOUT when it was taken back. */
ROOST_API enum roost_code roost_registry_cancel(struct roost_registry *registry, int64_t ticket,
                                                char **out_answer,
                                                struct roost_error *err) ROOST_MUST_USE;

/* Gives back the devices or the port that a request has taken whose answer came, and is wanted no more: what
 * its process had before stays. ROOST_ERR_ENGINE when the keeper is gone, or does not answer: then it is left,
 * and all that this process had is free. */
ROOST_API enum roost_code roost_registry_undo(struct roost_registry *registry, int64_t ticket,
                                              struct roost_error *err) ROOST_MUST_USE;

/* --- which there are --- */

struct roost_namespace {
    char name[ROOST_NAMESPACE_MAX + 1];
};

/* Fills the first `cap` of this user's namespaces that have a living keeper, in natural order; returns
 * how many there are. */
ROOST_API size_t roost_registry_list(const char *const *env, struct roost_namespace *out,
                                     size_t cap);

/* --- the memory alone --- */

/* What a keeper remembers, in this process: for engines that have another way to it. Not for two threads
 * at once. */
struct roost_managers;

/* `later` is told the answers that were waited for, while one of the calls below runs. `view` may be
 * NULL. NULL after filling `err`. */
typedef void (*roost_later_fn)(void *context, uint64_t owner, const char *answer, size_t len);
ROOST_API struct roost_managers *roost_managers_new(const char *view, size_t view_len,
                                                    roost_later_fn later, void *context,
                                                    struct roost_error *err);
ROOST_API void roost_managers_free(struct roost_managers *managers);

/* Answers a request of an owner, a number that the caller gives to a process. *out_answer is the
 * caller's to free, or NULL when it comes later. A request may have an "id", in front of all else; its
 * answer has the same. */
ROOST_API enum roost_code roost_managers_answer(struct roost_managers *managers, uint64_t owner,
                                                const char *request, size_t len, char **out_answer,
                                                struct roost_error *err) ROOST_MUST_USE;

/* The owner has ended: all it had is free, and whoever waited for it is told. */
ROOST_API void roost_managers_owner_gone(struct roost_managers *managers, uint64_t owner);

/* Grows with everything that is registered, locked or freed. */
ROOST_API uint64_t roost_managers_changes(const struct roost_managers *managers);

/* What is remembered, as requests that make it again in managers with the same view and an empty memory:
 * `tell` is called for each, with its owner, until it gives false. For engines whose managers may be
 * killed and begun anew. Requests that wait are not among them. */
typedef bool (*roost_tell_fn)(void *context, uint64_t owner, const char *request, size_t len);
ROOST_API enum roost_code roost_managers_tell(const struct roost_managers *managers,
                                              roost_tell_fn tell, void *context,
                                              struct roost_error *err) ROOST_MUST_USE;

/* --- addresses of workers --- */

/* Checks "actor:3", or "actor:3:1" for a child of it: a group's name and ranks. */
ROOST_API enum roost_code roost_address_check(const char *address,
                                              struct roost_error *err) ROOST_MUST_USE;

/* Checks the name of a group: letters, digits, '_', '-', '.', at most 63; no ':'. */
ROOST_API enum roost_code roost_group_name_check(const char *name,
                                                 struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
