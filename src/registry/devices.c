/* devices.c - DeviceLockManager: one lock for each accelerator.
 *
 * A request takes all its devices at once or waits and takes none, so two requests can never each have
 * what the other wants. Requests are served in the order they came: a later one does not take a device
 * that an earlier one waits for. The exception: a worker that already holds a device waits for holders only.
 * An earlier request may be waiting for that very device, and the two would wait for each other for ever.
 *
 * Holding has no count: a worker that acquires a device again gets it at once, and one release frees it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/search.h"
#include "registry/registry_internal.h"

enum { FIRST_BUCKETS = 64, REQUEST_DEVICES_MAX = 1 << 16 };

void devices_release(struct devices *devices)
{
    for (struct waiter *it = devices->first, *next; it; it = next) {
        next = it->next;
        free(it);
    }
    free(devices->devices);
    free(devices->buckets);
    *devices = (struct devices){0};
}

/* --- devices by their place --- */

static uint32_t bucket_of(const struct devices *devices, int32_t node_rank, int32_t id)
{
    uint64_t mixed = ((uint64_t)(uint32_t)node_rank << 32 | (uint32_t)id) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(mixed >> 32) & (uint32_t)(devices->bucket_count - 1);
}

static bool grow(struct devices *devices)
{
    if (devices->count < devices->room)
        return true;
    int32_t room = devices->room ? devices->room * 2 : FIRST_BUCKETS;
    struct device *more = realloc(devices->devices, (size_t)room * sizeof *more);
    if (!more)
        return false;
    devices->devices = more;
    int32_t *buckets = realloc(devices->buckets, (size_t)room * sizeof *buckets);
    if (!buckets)
        return false;
    devices->buckets = buckets;
    devices->room = devices->bucket_count = room;
    for (int32_t b = 0; b < room; b++)
        buckets[b] = -1;
    for (int32_t i = 0; i < devices->count; i++) {
        int32_t *bucket = &buckets[bucket_of(devices, more[i].node_rank, more[i].id)];
        more[i].next = *bucket;
        *bucket = i;
    }
    return true;
}

/* The index of a device, which is made when it was not asked for before; -1 without memory. */
static int32_t find(struct devices *devices, int32_t node_rank, int32_t id)
{
    if (devices->bucket_count)
        for (int32_t i = devices->buckets[bucket_of(devices, node_rank, id)]; i >= 0;
             i = devices->devices[i].next)
            if (devices->devices[i].node_rank == node_rank && devices->devices[i].id == id)
                return i;
    if (devices->count >= REGISTRY_DEVICES_MAX || !grow(devices))
        return -1;
    int32_t *bucket = &devices->buckets[bucket_of(devices, node_rank, id)];
    devices->devices[devices->count] =
        (struct device){.node_rank = node_rank, .id = id, .next = *bucket};
    *bucket = devices->count;
    return devices->count++;
}

/* --- reading --- */

static bool say_device(struct request *request, struct strview written)
{
    const struct cluster_view *view = &request->registry->view;
    diag_error(request->diag, ROOST_ERR_FIT, NOWHERE, "there is no device %s", quote(written).text);
    if (view->node_count && view->first_device_of_node[view->node_count] == 0)
        diag_hint(request->diag, "the cluster has no accelerators");
    else if (view->node_count)
        diag_hint(request->diag,
                  "the cluster has devices 0 to %" PRId64
                  "; [node_rank, number] names one by its node",
                  view->first_device_of_node[view->node_count] - 1);
    else
        diag_hint(request->diag, "devices are whole numbers from 0 on");
    return false;
}

/* A number in the cluster -> node and number there. */
static bool locate(const struct cluster_view *view, int64_t device, int32_t *node_rank, int32_t *id)
{
    *node_rank = 0;
    *id = (int32_t)device;
    if (view->node_count == 0)
        return true;
    const int64_t *first = view->first_device_of_node;
    int32_t node = SEARCH(view->node_count - 1, at, first[at + 1] <= device);
    *node_rank = node;
    *id = (int32_t)(device - first[node]);
    return device < first[view->node_count];
}

static bool is_there(const struct cluster_view *view, int64_t node_rank, int64_t id)
{
    if (view->node_count == 0)
        return true;
    return node_rank < view->node_count &&
           id < view->first_device_of_node[node_rank + 1] - view->first_device_of_node[node_rank];
}

static bool say_ids(struct request *request)
{
    diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE,
               "the devices of %s must be an array of at most %d", request->call->name,
               REQUEST_DEVICES_MAX);
    diag_hint(request->diag, "write numbers of the cluster, [0, 1], or of nodes, [[0, 0], [1, 0]]");
    return false;
}

/* One of them: 5, or [node_rank, 1]. */
static bool read_device(struct request *request, struct json_reader *reader,
                        struct json_event event, int32_t *out)
{
    const struct cluster_view *view = &request->registry->view;
    int64_t number = 0, node_rank = 0;
    int32_t node, id;
    bool is_good;
    if (event.kind == JSON_ARRAY) {
        is_good = json_int(json_next(reader, request->diag), 0, INT32_MAX, &node_rank) &&
                  json_int(json_next(reader, request->diag), 0, INT32_MAX, &number) &&
                  json_next(reader, request->diag).kind == JSON_ARRAY_END;
        if (!is_good)
            return say_ids(request);
        char written[32];
        snprintf(written, sizeof written, "[%" PRId64 ", %" PRId64 "]", node_rank, number);
        if (!is_there(view, node_rank, number))
            return say_device(request, sv_from(written));
        node = (int32_t)node_rank;
        id = (int32_t)number;
    } else {
        if (event.kind != JSON_NUMBER)
            return say_ids(request);
        if (!json_int(event, 0, INT32_MAX, &number) || !locate(view, number, &node, &id))
            return say_device(request, event.text);
    }
    *out = find(&request->registry->devices, node, id);
    if (*out < 0)
        diag_nomem(request->diag);
    return *out >= 0;
}

/* A waiter with the devices of the arguments, or NULL after it reported why not. */
static struct waiter *read_waiter(struct request *request)
{
    struct strview address;
    if (!request_address(request, 0, &address))
        return NULL;
    struct strview json = request->args[1].json;
    size_t most = 1; /* an element and what is between take two bytes at least */
    for (size_t i = 0; i < json.len; i++)
        most += json.at[i] == ',';
    struct waiter *waiter = request->args[1].kind == JSON_ARRAY && most <= REQUEST_DEVICES_MAX
                                ? calloc(1, sizeof *waiter + most * sizeof *waiter->devices)
                                : NULL;
    struct json_reader *reader = waiter ? json_reader_from_text("devices", json, NULL) : NULL;
    bool is_good = reader != NULL;
    if (request->args[1].kind != JSON_ARRAY || most > REQUEST_DEVICES_MAX)
        (void)say_ids(request);
    else if (!reader)
        diag_nomem(request->diag);
    else
        (void)json_next(reader, request->diag);
    struct json_event event;
    while (is_good && (event = json_next(reader, request->diag)).kind != JSON_ARRAY_END)
        is_good = read_device(request, reader, event, &waiter->devices[waiter->count++]);
    json_reader_free(reader);
    if (!is_good) {
        free(waiter);
        return NULL;
    }
    waiter->party.owner = request->owner;
    memcpy(waiter->party.address, address.at, address.len);
    waiter->has_id = request->has_id;
    waiter->id = request->id;
    return waiter;
}

/* --- locks --- */

static bool is_party(const struct party *a, const struct party *b)
{
    return a->owner == b->owner && strcmp(a->address, b->address) == 0;
}

static bool holds_any(const struct devices *devices, const struct party *party)
{
    for (int32_t i = 0; i < devices->count; i++)
        if (devices->devices[i].is_held && is_party(&devices->devices[i].holder, party))
            return true;
    return false;
}

/* Whether all it wants can be its own now; `round` marks what earlier ones want. */
static bool can_have(const struct devices *devices, const struct waiter *waiter)
{
    bool is_wanted = false;
    for (int32_t i = 0; i < waiter->count; i++) {
        const struct device *device = &devices->devices[waiter->devices[i]];
        if (device->is_held && !is_party(&device->holder, &waiter->party))
            return false;
        is_wanted = is_wanted || (!device->is_held && device->wanted_in == devices->round);
    }
    return !is_wanted || holds_any(devices, &waiter->party);
}

static void take(struct devices *devices, const struct waiter *waiter)
{
    devices->changes++;
    for (int32_t i = 0; i < waiter->count; i++) {
        struct device *device = &devices->devices[waiter->devices[i]];
        if (device->is_held)
            continue; /* it is the party's own already */
        device->is_held = true;
        device->holder = waiter->party;
        device->taken_by = waiter->has_id ? waiter->id : NO_ID;
    }
}

static void mark(struct devices *devices, const struct waiter *waiter)
{
    for (int32_t i = 0; i < waiter->count; i++)
        devices->devices[waiter->devices[i]].wanted_in = devices->round;
}

/* Serves whoever can be served, in the order they came. One that is served may then hold something, and
 * so pass others: until nothing changes. */
static void serve(struct registry *registry)
{
    struct devices *devices = &registry->devices;
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        devices->round++;
        struct waiter **at = &devices->first;
        devices->last = NULL;
        while (*at) {
            struct waiter *waiter = *at;
            if (!can_have(devices, waiter)) {
                mark(devices, waiter);
                devices->last = waiter;
                at = &waiter->next;
                continue;
            }
            take(devices, waiter);
            *at = waiter->next;
            registry_grant(registry, waiter->party.owner, waiter->has_id, waiter->id);
            free(waiter);
            has_changed = true;
        }
    }
}

static int32_t count_waiting(const struct devices *devices, uint64_t owner)
{
    int32_t count = 0;
    for (const struct waiter *it = devices->first; it; it = it->next)
        count += it->party.owner == owner;
    return count;
}

static bool acquire(struct request *request)
{
    struct devices *devices = &request->registry->devices;
    struct waiter *waiter = read_waiter(request);
    if (!waiter)
        return false;
    devices->round++;
    for (const struct waiter *it = devices->first; it; it = it->next)
        mark(devices, it);
    if (can_have(devices, waiter)) {
        take(devices, waiter);
        free(waiter);
        json_put_bool(&request->answer, true);
        return true;
    }
    if (count_waiting(devices, request->owner) >= REGISTRY_WAITING_MAX) {
        free(waiter);
        diag_error(request->diag, ROOST_ERR_LIMIT, NOWHERE, "%d requests of one process wait",
                   REGISTRY_WAITING_MAX);
        diag_hint(request->diag, "wait for some of them first");
        return false;
    }
    *(devices->last ? &devices->last->next : &devices->first) = waiter;
    devices->last = waiter;
    request->is_waiting = true;
    return true;
}

static bool release(struct request *request)
{
    struct devices *devices = &request->registry->devices;
    struct waiter *what = read_waiter(request);
    if (!what)
        return false;
    for (int32_t i = 0; i < what->count; i++) {
        const struct device *device = &devices->devices[what->devices[i]];
        if (device->is_held && is_party(&device->holder, &what->party))
            continue;
        diag_error(request->diag, ROOST_ERR_ACCESS, NOWHERE, "device %d of node %d is held by %s%s",
                   (int)device->id, (int)device->node_rank, device->is_held ? "" : "nobody",
                   device->is_held ? device->holder.address : "");
        diag_hint(request->diag, "only the worker that acquired a device can release it");
        free(what);
        return false;
    }
    devices->changes++;
    for (int32_t i = 0; i < what->count; i++)
        devices->devices[what->devices[i]].is_held = false;
    free(what);
    serve(request->registry);
    json_put_null(&request->answer);
    return true;
}

/* --- ends --- */

void devices_owner_gone(struct registry *registry, uint64_t owner)
{
    struct devices *devices = &registry->devices;
    for (int32_t i = 0; i < devices->count; i++)
        if (devices->devices[i].is_held && devices->devices[i].holder.owner == owner) {
            devices->devices[i].is_held = false;
            devices->changes++;
        }
    for (struct waiter **at = &devices->first; *at;) {
        struct waiter *waiter = *at;
        if (waiter->party.owner != owner) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        free(waiter);
    }
    serve(registry); /* also finds the last one again */
}

bool devices_cancel(struct registry *registry, uint64_t owner, int64_t id)
{
    struct devices *devices = &registry->devices;
    for (struct waiter **at = &devices->first; *at; at = &(*at)->next) {
        struct waiter *waiter = *at;
        if (waiter->party.owner != owner || !waiter->has_id || waiter->id != id)
            continue;
        *at = waiter->next;
        free(waiter);
        serve(registry);
        return true;
    }
    return false;
}

void devices_undo(struct registry *registry, uint64_t owner, int64_t id)
{
    struct devices *devices = &registry->devices;
    for (int32_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->devices[i];
        if (!device->is_held || device->holder.owner != owner || device->taken_by != id)
            continue;
        device->is_held = false;
        devices->changes++;
    }
    serve(registry);
}

const struct call device_calls[] = {
    {"DeviceLockManager.acquire_devices", 2, acquire},
    {"DeviceLockManager.release_devices", 2, release},
    {NULL, 0, NULL},
};
