/* workers.c - WorkerManager: what every worker has registered about itself, by address.
 *
 * The newest registration of an address replaces the older one: when a group is launched again under its
 * name, callers must not get a port of the dead group. A record ends with the process that made it.
 * Processes that register nothing are known through their run: processes.c. */
#include "registry/registry_internal.h"

static bool register_worker(struct request *request)
{
    struct strview address;
    if (!request_address(request, 0, &address) ||
        !request_keep(request, &request->registry->workers, address, request->args[1].json, false))
        return false;
    json_put_null(&request->answer);
    return true;
}

static bool unregister_worker(struct request *request)
{
    struct strview address;
    if (!request_address(request, 0, &address))
        return false;
    struct table *workers = &request->registry->workers;
    struct table_entry *entry = table_find(workers, address);
    if (entry)
        table_remove(workers, entry);
    json_put_bool(&request->answer, entry != NULL);
    return true;
}

static bool get_worker_info(struct request *request)
{
    struct strview address;
    if (!request_address(request, 0, &address))
        return false;
    worker_put_info(&request->answer, request->registry, address);
    return true;
}

const struct call worker_calls[] = {
    {"WorkerManager.register_worker", 2, register_worker},
    {"WorkerManager.unregister_worker", 1, unregister_worker},
    {"WorkerManager.get_worker_info", 1, get_worker_info},
    {NULL, 0, NULL},
};
