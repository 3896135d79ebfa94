/* registry.h - the managers' memory: who is where, who talks to whom, who has which device and port.
 *
 * Pure: no sockets, no clock, no processes. Both engines ask the same registry: the keeper
 * (supervise/keeper.c) for the connections of its socket, a Ray actor for the processes that call it.
 *
 * A request is one JSON object, so is its answer; both are one line of UTF-8:
 *
 *     {"id": 7, "call": "WorkerManager.get_worker_info", "args": ["actor:0"]}
 *     {"id":7,"value":{"address":"actor:0","rank":0}}
 *     {"id":7,"error":{"code":"name","message":"...","hint":"..."}}
 *
 * "id" may be left out, in both. An owner is whoever asks: a number that the caller gives to a
 * connection or process. What an owner registered, locked or waits for ends with it.
 *
 *     WorkerManager.register_worker(address, info)          the newest wins
 *     WorkerManager.unregister_worker(address)              -> whether it was there
 *     WorkerManager.get_worker_info(address)                -> info or null
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

/* Where answers go that were waited for: `answer` is good during the call. */
typedef void (*registry_later_fn)(void *context, uint64_t owner, struct strview answer);

/* NULL without memory. `later` may be called by every function below that takes the registry. */
struct registry *registry_new(registry_later_fn later, void *context);
void registry_free(struct registry *registry);

/* What NodeManager tells: {"nodes": [...], "node_groups": [...], "config": ..., "cluster_config": ...,
 * "master_ip": ..., "master_port": ...}, of which any may be missing. False after saying why it is none;
 * the view is then as it was. */
bool registry_set_view(struct registry *registry, struct strview json, struct diag *diag);

/* The port of the view, known later than the rest. */
bool registry_set_master_port(struct registry *registry, int32_t port, struct diag *diag);

enum registry_result {
    REGISTRY_ANSWERED, /* the answer was appended to `out`, unless that has failed */
    REGISTRY_WAITING,  /* it comes later */
};

/* Answers a request of an owner. What is no request is answered with an error. */
enum registry_result registry_answer(struct registry *registry, uint64_t owner,
                                     struct strview request, struct text *out);

/* The owner has ended: all it had is free, and whoever waited for it is told. */
void registry_owner_gone(struct registry *registry, uint64_t owner);

/* Grows with everything that is registered, locked or freed. */
uint64_t registry_changes(const struct registry *registry);

/* Tells what is remembered, as requests of their owners that make an empty registry with the same view
 * remember the same; a waiting request is not among them. False when `tell` was, or without memory. */
typedef bool (*registry_tell_fn)(void *context, uint64_t owner, struct strview request);
bool registry_tell(const struct registry *registry, registry_tell_fn tell, void *context);

#endif
