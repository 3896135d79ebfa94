/* registry.h - the managers of a run: its workers, collectives, nodes, devices and ports.
 *
 * A registry server is a small process that holds the registry of one namespace. It answers every process
 * of the same user through a socket (mode 0600, in a directory of mode 0700; the kernel identifies the
 * peer). A namespace is `roost`, `roost_1`, ... or a name that the caller chooses, and belongs to one
 * living registry server or run. The registry server ends with the process that started it. Only
 * NAME.namespace stays in the runtime directory: a lock on that file is what holds the namespace.
 *
 * Requests and answers are JSON objects, one per line:
 *
 *     {"call": "WorkerManager.get_worker_info", "args": ["actor:0"]}
 *     {"value": {"address": "actor:0", ...}}  or  {"error": {"code": ..., "message": ..., "hint": ...}}
 *
 * When a process ends or closes its connection, everything that it registered or locked is released. */
#ifndef ROOST_ENGINE_REGISTRY_H
#define ROOST_ENGINE_REGISTRY_H

#include <roost/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ROOST_NAMESPACE_MAX = 48 }; /* bytes of its name */

/* --- the registry server --- */

struct roost_registry_server;

/* All zero except env: the first free namespace and an empty view. Everything is borrowed for the call. */
struct roost_registry_server_options {
    /* "NAME=value" texts, NULL-terminated, to look up XDG_RUNTIME_DIR. */
    const char *const *env;
    /* The roost program. NULL = the installed one. */
    const char *program;
    /* NULL = the first of roost, roost_1, ... that is free. */
    const char *name_space;
    /* What NodeManager reports: the text of roost_render_cluster_view. */
    const char *view;
    size_t view_len;
    /* Lease a port, and report it as master_port of the view. */
    bool leases_master_port;
    /* The first port that the lease tries. 0 = 20000. */
    int32_t port_base;
};

/* Starts a registry server, which answers requests when this returns. NULL after filling `err`. */
ROOST_API struct roost_registry_server *roost_registry_server_start(
    const struct roost_registry_server_options *options, struct roost_error *err) ROOST_MUST_USE;

/* Ends the registry server and waits until it is gone. In a process forked from the one that started it,
 * this only releases memory and descriptors. */
ROOST_API void roost_registry_server_free(struct roost_registry_server *server);

ROOST_API const char *roost_registry_server_namespace(const struct roost_registry_server *server);
ROOST_API int32_t roost_registry_server_pid(const struct roost_registry_server *server);

/* --- a client of it --- */

struct roost_registry_client;

/* Connects to the registry server of a namespace. NULL after filling `err`: ROOST_ERR_ENGINE if there is
 * none (the hint lists the existing ones), ROOST_ERR_ACCESS if it belongs to another user. */
ROOST_API struct roost_registry_client *roost_registry_client_open(
    const char *const *env, const char *name_space, struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_registry_client_close(struct roost_registry_client *client);

/* Sends a request, a JSON object without "id", and waits for the answer (-1 = no limit). *out_answer is a
 * NUL-terminated line that the caller frees with roost_answer_free. ROOST_ERR_TIMEOUT: the time is up and
 * the request was cancelled. ROOST_ERR_ENGINE: the registry server is gone. Threads may call at the same
 * time; a forked process must open a connection of its own. */
ROOST_API enum roost_code roost_registry_client_call(struct roost_registry_client *client,
                                                     const char *request, size_t len,
                                                     int32_t timeout_ms, char **out_answer,
                                                     struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_answer_free(char *answer);

/* The same in three steps, for a caller that has other things to watch in between. A ticket ends with its
 * answer, or with roost_registry_client_cancel. */
ROOST_API enum roost_code roost_registry_client_ask(struct roost_registry_client *client,
                                                    const char *request, size_t len,
                                                    int64_t *out_ticket,
                                                    struct roost_error *err) ROOST_MUST_USE;

/* ROOST_ERR_TIMEOUT: there is no answer yet, and the ticket stays valid. */
ROOST_API enum roost_code roost_registry_client_wait(struct roost_registry_client *client,
                                                     int64_t ticket, int32_t timeout_ms,
                                                     char **out_answer,
                                                     struct roost_error *err) ROOST_MUST_USE;

/* Cancels the request. ROOST_ERR_TIMEOUT: it was cancelled. ROOST_OK: the answer had come already, and
 * what it says has happened. */
ROOST_API enum roost_code roost_registry_client_cancel(struct roost_registry_client *client,
                                                       int64_t ticket, char **out_answer,
                                                       struct roost_error *err) ROOST_MUST_USE;

/* Releases the devices or the port that an answered request took and that the caller no longer wants. What
 * the process had before stays. ROOST_ERR_ENGINE: the registry server is gone or does not answer. The
 * connection is then closed, and everything that this process had is released. */
ROOST_API enum roost_code roost_registry_client_undo(struct roost_registry_client *client,
                                                     int64_t ticket,
                                                     struct roost_error *err) ROOST_MUST_USE;

/* --- all namespaces --- */

struct roost_namespace {
    char name[ROOST_NAMESPACE_MAX + 1];
};

/* Fills `out` with at most `cap` of this user's namespaces that have a living registry server, in natural
 * order. Returns how many there are. */
ROOST_API size_t roost_namespace_list(const char *const *env, struct roost_namespace *out,
                                      size_t cap);

/* --- the registry without a server --- */

/* What a registry server holds, in this process: for engines with their own transport. Not for two threads
 * at once. */
struct roost_registry;

/* Receives an answer that had to wait. Called while one of the calls below runs. */
typedef void (*roost_later_fn)(void *context, uint64_t owner, const char *answer, size_t len);

/* An empty registry. `view` may be NULL. NULL after filling `err`. */
ROOST_API struct roost_registry *roost_registry_new(const char *view, size_t view_len,
                                                    roost_later_fn later, void *context,
                                                    struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_registry_free(struct roost_registry *registry);

/* Answers a request of an owner: a number that the caller gives to a process. The caller frees *out_answer;
 * it is NULL if the answer comes later. A request may begin with an "id"; its answer has the same. */
ROOST_API enum roost_code roost_registry_answer(struct roost_registry *registry, uint64_t owner,
                                                const char *request, size_t len, char **out_answer,
                                                struct roost_error *err) ROOST_MUST_USE;

/* The owner has ended: releases everything it had and answers those who waited for it. */
ROOST_API void roost_registry_owner_gone(struct roost_registry *registry, uint64_t owner);

/* A counter that grows whenever something is registered, locked or released. */
ROOST_API uint64_t roost_registry_changes(const struct roost_registry *registry);

/* Receives one request of roost_registry_tell; false stops it. */
typedef bool (*roost_tell_fn)(void *context, uint64_t owner, const char *request, size_t len);

/* Writes the content as requests that rebuild it in an empty registry with the same view. Requests that
 * still wait are not among them. For engines whose managers may be killed and restarted. */
ROOST_API enum roost_code roost_registry_tell(const struct roost_registry *registry,
                                              roost_tell_fn tell, void *context,
                                              struct roost_error *err) ROOST_MUST_USE;

/* --- addresses of workers --- */

/* Checks the address of a worker: the name of its group and its ranks, such as "actor:3", or "actor:3:1"
 * for a child of it. */
ROOST_API enum roost_code roost_address_check(const char *address,
                                              struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
