/* registry.h - what the managers remember: workers, collectives, nodes, devices and ports.
 *
 * Pure: no sockets, no clock, no processes. Both engines use this registry: the local engine in the registry
 * server (supervise/registry_server.c), the Ray engine in an actor.
 *
 * A request is a JSON object in one line of UTF-8, and so is its answer:
 *
 *     {"id": 7, "call": "WorkerManager.get_worker_info", "args": ["actor:0"]}
 *     {"id":7,"value":{"address":"actor:0","rank":0}}
 *     {"id":7,"error":{"code":"name","message":"...","hint":"..."}}
 *
 * A request may leave out "id"; its answer then has none. An owner is a number that the caller gives to the
 * connection or process that asks. When an owner ends, so does everything it registered, locked or waits
 * for.
 *
 *     WorkerManager.register_worker(address, info)          the newest wins
 *     WorkerManager.unregister_worker(address)              -> whether it was there
 *     WorkerManager.get_worker_info(address)                -> info or null
 *     WorkerManager.get_workers(group)                      -> the infos of its workers, by rank
 *     WorkerManager.get_group_names()                       -> the groups that have workers
 *     WorkerManager.add_processes({address: record})        processes that a run is about to start; each is
 *         "waiting". A worker that registers itself is known by its own info instead.
 *     WorkerManager.set_process_state(state, addresses)     "running" or "ended"; unknown ones are ignored
 *     CollectiveManager.register_collective_group(info)     other members under the same name: an error
 *     CollectiveManager.get_collective_group(name)          -> info or null
 *     CollectiveManager.set_master_port_info(name, port), .get_master_port_info(name) -> port or null,
 *         .reset_master_port_info(name)
 *     NodeManager.get_nodes(), .get_node_groups(), .get_cluster_config(), .get_master_ip(),
 *         .get_master_port(), .get_num_gpus_per_node(), .get_view()
 *     DeviceLockManager.acquire_devices(address, ids)       -> true, when they are all free
 *     DeviceLockManager.release_devices(address, ids)
 *     PortLockManager.acquire(node_rank, worker_name, port) -> whether it is this worker's now
 *     PortLockManager.release(node_rank, worker_name, port)
 *     Registry.cancel(id)                                   -> whether that request still waited
 *     Registry.undo(id)                                     frees what that request has locked
 *
 * A device is an accelerator's number in the cluster, or [node_rank, number on that node]. */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include "base/diag.h"
#include "base/text.h"

struct registry;

/* Receives an answer that had to wait. `answer` is valid during the call. */
typedef void (*registry_later_fn)(void *context, uint64_t owner, struct strview answer);

/* NULL without memory. `later` may be called by every function below that takes the registry. */
struct registry *registry_new(registry_later_fn later, void *context);
void registry_free(struct registry *registry);

/* Sets what NodeManager reports: {"nodes": [...], "node_groups": [...], "config": ..., "cluster_config": ...,
 * "master_ip": ..., "master_port": ...}. Any of these may be missing. False after it reported what is wrong;
 * the view does not change then. */
bool registry_set_view(struct registry *registry, struct strview json, struct diag *diag);

/* Sets the master port of the view, which is known later than the rest. */
bool registry_set_master_port(struct registry *registry, int32_t port, struct diag *diag);

enum registry_result {
    REGISTRY_ANSWERED, /* the answer was appended to `out`, unless `out` has failed */
    REGISTRY_WAITING,  /* the answer comes later */
};

/* Answers a request of an owner. The answer to a malformed request is an error. */
enum registry_result registry_answer(struct registry *registry, uint64_t owner,
                                     struct strview request, struct text *out);

/* The owner has ended: releases everything it had and answers requests that waited for it. */
void registry_owner_gone(struct registry *registry, uint64_t owner);

/* A counter that grows whenever something is registered, locked or released. */
uint64_t registry_changes(const struct registry *registry);

/* Passes the content to `tell`, as requests that rebuild it in an empty registry with the same view. Waiting
 * requests are not among them. False when `tell` returned false, or without memory. */
typedef bool (*registry_tell_fn)(void *context, uint64_t owner, struct strview request);
bool registry_tell(const struct registry *registry, registry_tell_fn tell, void *context);

#endif
