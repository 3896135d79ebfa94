/* memory.c - the content of a registry, as the requests that rebuild it.
 *
 * For engines whose managers can be killed and restarted: an empty registry that gets these requests in this
 * order then answers as this one does. Waiting requests are left out: their answer never comes, and the
 * caller sends them again. */
#include "registry/registry_internal.h"

struct telling {
    struct text line;
    struct json_writer json; /* on `line` */
    registry_tell_fn tell;
    void *context;
    bool has_failed;
};

/* Starts a request; its arguments follow. */
static struct json_writer *begin(struct telling *telling, const char *call)
{
    struct json_writer *json = &telling->json;
    telling->line.len = 0;
    *json = json_writer_on(&telling->line, JSON_COMPACT);
    json_open_object(json);
    json_put_string(json_key(json, "call"), call);
    json_open_array(json_key(json, "args"));
    return json;
}

static void end(struct telling *telling, uint64_t owner)
{
    json_close(&telling->json);
    json_close(&telling->json);
    const char *request = telling->has_failed ? NULL : text_string(&telling->line);
    telling->has_failed = !request || !telling->tell(telling->context, owner,
                                                     (struct strview){request, telling->line.len});
}

/* Where the parts of an entry go among the arguments of its call. */
typedef void (*put_args_fn)(struct json_writer *json, struct strview key, struct strview value);

static void put_named(struct json_writer *json, struct strview key, struct strview value)
{
    json_put_view(json, key);
    json_put_raw(json, value);
}

static void put_group(struct json_writer *json, struct strview key, struct strview value)
{
    (void)key; /* it is in the value */
    json_put_raw(json, value);
}

/* The key of a port is "node_rank:port", its value the worker's name. */
static void put_port(struct json_writer *json, struct strview key, struct strview value)
{
    size_t colon = sv_find(key, ':', 0);
    json_put_raw(json, sv_sub(key, 0, colon));
    json_put_view(json, value);
    json_put_raw(json, sv_sub(key, colon + 1, key.len));
}

static void tell_table(struct telling *telling, const struct table *table, const char *call,
                       put_args_fn put_args)
{
    for (size_t b = 0; b < table->bucket_count; b++)
        for (const struct table_entry *it = table->buckets[b]; it; it = it->next)
            for (size_t i = 0; i < it->owner_count; i++) {
                put_args(begin(telling, call), (struct strview){it->key, it->key_len},
                         table_value(it));
                end(telling, it->owners[i]);
            }
}

/* A process as a request of its own, and its state as another. */
static void tell_processes(struct telling *telling, const struct table *table)
{
    for (size_t b = 0; b < table->bucket_count; b++)
        for (const struct table_entry *it = table->buckets[b]; it; it = it->next)
            for (size_t i = 0; i < it->owner_count; i++) {
                struct strview address = {it->key, it->key_len};
                struct json_writer *json = begin(telling, "WorkerManager.add_processes");
                json_open_object(json);
                json_put_raw(json_key_view(json, address), table_value(it));
                json_close(json);
                end(telling, it->owners[i]);
                json = begin(telling, "WorkerManager.set_process_state");
                json_put_string(json, process_state_word(it));
                json_open_array(json);
                json_put_view(json, address);
                json_close(json);
                end(telling, it->owners[i]);
            }
}

static void tell_devices(struct telling *telling, const struct devices *devices)
{
    for (int32_t i = 0; i < devices->count; i++) {
        const struct device *device = &devices->devices[i];
        if (!device->is_held)
            continue;
        struct json_writer *json = begin(telling, "DeviceLockManager.acquire_devices");
        json_put_string(json, device->holder.address);
        json_open_array(json);
        json_open_array(json);
        json_put_int(json, device->node_rank);
        json_put_int(json, device->id);
        json_close(json);
        json_close(json);
        end(telling, device->holder.owner);
    }
}

bool registry_tell(const struct registry *registry, registry_tell_fn tell, void *context)
{
    struct telling telling = {.line = TEXT_INIT, .tell = tell, .context = context};
    tell_table(&telling, &registry->workers, "WorkerManager.register_worker", put_named);
    tell_processes(&telling, &registry->processes);
    tell_table(&telling, &registry->groups, "WorkerManager.reserve_group", put_named);
    tell_table(&telling, &registry->collectives, "CollectiveManager.register_collective_group",
               put_group);
    tell_table(&telling, &registry->master_ports, "CollectiveManager.set_master_port_info",
               put_named);
    tell_table(&telling, &registry->ports, "PortLockManager.acquire", put_port);
    tell_devices(&telling, &registry->devices);
    text_release(&telling.line);
    return !telling.has_failed;
}

uint64_t registry_changes(const struct registry *registry)
{
    return registry->workers.changes + registry->processes.changes + registry->groups.changes +
           registry->collectives.changes + registry->master_ports.changes +
           registry->ports.changes + registry->devices.changes;
}
