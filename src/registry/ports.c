/* ports.c - PortLockManager: which worker has which port of which node. A lock is an agreement between
 * workers, not a socket; it ends with the process that took it. */
#include <stdio.h>

#include "registry/registry_internal.h"

enum { KEY_MAX = 32, NAME_MAX_BYTES = 255 };

static bool read_port(struct request *request, char key[KEY_MAX], struct strview *out_name)
{
    int64_t node_rank, port;
    if (!request_int(request, 0, "the node rank", 0, INT32_MAX, &node_rank) ||
        !request_text(request, 1, "the worker's name", out_name) ||
        !request_int(request, 2, "the port", 1, 65535, &port) ||
        !request_node_rank(request, node_rank))
        return false;
    snprintf(key, KEY_MAX, "%d:%d", (int)node_rank, (int)port);
    if (out_name->len > 0 && out_name->len <= NAME_MAX_BYTES)
        return true;
    diag_error(request->diag, ROOST_ERR_NAME, NOWHERE, "a worker's name has 1 to %d bytes, not %zu",
               NAME_MAX_BYTES, out_name->len);
    diag_hint(request->diag, "pass the worker's address, such as actor:0");
    return false;
}

static bool is_mine(const struct request *request, const struct table_entry *entry,
                    struct strview name)
{
    return entry->owners[0] == request->owner && sv_equal(table_value(entry), name);
}

static bool acquire(struct request *request)
{
    char key[KEY_MAX];
    struct strview name;
    if (!read_port(request, key, &name))
        return false;
    struct table *ports = &request->registry->ports;
    const struct table_entry *entry = table_find(ports, sv_from(key));
    bool is_taken = entry && !is_mine(request, entry, name);
    if (!entry) {
        if (!request_keep(request, ports, sv_from(key), name, false))
            return false;
        table_find(ports, sv_from(key))->put_by = request->has_id ? request->id : NO_ID;
    }
    json_put_bool(&request->answer, !is_taken);
    return true;
}

static bool release(struct request *request)
{
    char key[KEY_MAX];
    struct strview name;
    if (!read_port(request, key, &name))
        return false;
    struct table_entry *entry = table_find(&request->registry->ports, sv_from(key));
    if (entry && !is_mine(request, entry, name)) {
        diag_error(request->diag, ROOST_ERR_ACCESS, NOWHERE, "port %s is held by '%s', not by '%s'",
                   key, quote(table_value(entry)).text, quote(name).text);
        diag_hint(request->diag, "only the worker that acquired a port can release it");
        return false;
    }
    if (entry)
        table_remove(&request->registry->ports, entry);
    json_put_null(&request->answer);
    return true;
}

/* A request takes one port at most. */
void ports_undo(struct registry *registry, uint64_t owner, int64_t id)
{
    struct table *ports = &registry->ports;
    for (size_t b = 0; b < ports->bucket_count; b++)
        for (struct table_entry *it = ports->buckets[b]; it; it = it->next)
            if (it->owners[0] == owner && it->put_by == id) {
                table_remove(ports, it);
                return;
            }
}

const struct call port_calls[] = {
    {"PortLockManager.acquire", 3, acquire},
    {"PortLockManager.release", 3, release},
    {NULL, 0, NULL},
};
