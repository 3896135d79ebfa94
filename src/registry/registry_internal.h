/* registry_internal.h - a registry and a request to it, shared by the files that answer: workers.c,
 * worker_groups.c, collectives.c, cluster_view.c, devices.c, ports.c. */
#ifndef REGISTRY_REGISTRY_INTERNAL_H
#define REGISTRY_REGISTRY_INTERNAL_H

#include "command/worker_address.h"
#include "registry/registry.h"
#include "registry/table.h"
#include "json/json_writer.h"

enum {
    REQUEST_ARGS_MAX = 3,
    REQUEST_BYTES_MAX = 1 << 20,
    REGISTRY_KEPT_MAX = 1 << 28,    /* bytes of all records */
    REGISTRY_WAITING_MAX = 1 << 10, /* requests of one owner */
    REGISTRY_DEVICES_MAX = 1 << 20, /* locks without a view */
    NO_ID = -1,
};

struct registry;

/* --- cluster_view.c --- */

struct cluster_view {
    char *nodes, *node_groups, *config, *cluster_config, *master_ip, *master_port; /* JSON */
    int64_t *first_device_of_node; /* [node_count + 1]; NULL = nodes are not known */
    int32_t node_count;
};

void cluster_view_release(struct cluster_view *view);

/* --- devices.c --- */

/* Who holds or waits: a worker of an owner. */
struct party {
    uint64_t owner;
    char address[ADDRESS_MAX + 1];
};

struct device {
    int32_t node_rank, id;
    int32_t next; /* in its bucket, -1 = last */
    bool is_held;
    struct party holder;
    int64_t taken_by;   /* the id of the request that made it the holder's, NO_ID = it had none */
    uint64_t wanted_in; /* the round in which an earlier waiter wanted it */
};

struct waiter {
    struct waiter *next;
    struct party party;
    bool has_id;
    int64_t id;
    int32_t count;
    int32_t devices[]; /* [count], indices */
};

struct devices {
    struct device *devices;
    int32_t *buckets; /* [bucket_count], -1 = empty; a power of two */
    int32_t count, room, bucket_count;
    struct waiter *first, *last; /* in the order they came */
    uint64_t round;
    uint64_t changes;
};

void devices_release(struct devices *devices);

/* An owner has ended, see registry_owner_gone. */
void devices_owner_gone(struct registry *registry, uint64_t owner);

/* Takes back a request that waits; false when it does not. */
bool devices_cancel(struct registry *registry, uint64_t owner, int64_t id);

/* Frees the devices that the owner got by that request; it keeps those that it had before. */
void devices_undo(struct registry *registry, uint64_t owner, int64_t id);

/* --- ports.c --- */

void ports_undo(struct registry *registry, uint64_t owner, int64_t id);

/* --- processes.c --- */

/* The state of an entry of `processes`: "waiting", "running" or "ended". */
const char *process_state_word(const struct table_entry *entry);

/* What is known of the worker with this address; null when that is nothing. */
void worker_put_info(struct json_writer *json, const struct registry *registry,
                     struct strview address);

/* --- the registry --- */

struct registry {
    struct table workers, processes, groups, collectives, master_ports, ports;
    struct cluster_view view;
    struct devices devices;
    registry_later_fn later;
    void *context;
};

/* An argument, good while the request is answered. */
struct argument {
    enum json_kind kind;
    struct strview json; /* as one line */
    struct strview text; /* of a string or number */
};

struct request {
    struct registry *registry;
    uint64_t owner;
    bool has_id;
    int64_t id;
    const struct call *call;
    struct argument args[REQUEST_ARGS_MAX];
    int32_t arg_count;
    struct text pieces;        /* what the arguments point into */
    struct json_writer answer; /* the value goes here */
    bool is_waiting;
    struct diag *diag;
};

/* A call. `run` writes the value to the answer; false after reporting an error. */
struct call {
    const char *name;
    int32_t arg_count;
    bool (*run)(struct request *request);
};

/* NULL-terminated by their names. */
extern const struct call worker_calls[], process_calls[], worker_group_calls[], collective_calls[],
    node_calls[], device_calls[], port_calls[];

/* Answers the waiting request with this id: true. */
void registry_grant(struct registry *registry, uint64_t owner, bool has_id, int64_t id);

/* Read an argument as a text or an integer; false after reporting that it is neither. */
bool request_text(struct request *request, int32_t index, const char *what, struct strview *out);
bool request_int(struct request *request, int32_t index, const char *what, int64_t min, int64_t max,
                 int64_t *out);

/* The address in the argument, checked. */
bool request_address(struct request *request, int32_t index, struct strview *out);

/* A node rank that is there, as far as nodes are known. */
bool request_node_rank(struct request *request, int64_t node_rank);

/* Stores a text under a name in one of the tables; false after reporting why not. */
bool request_keep(struct request *request, struct table *table, struct strview key,
                  struct strview value, bool is_joined);

#endif
