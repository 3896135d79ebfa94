/* worker_groups.c - which groups run in a namespace, by name. Two groups of one name are not allowed: callers
 * could not tell their workers apart. One connection holds a name, until it releases it or its process ends. */
#include "registry/registry_internal.h"

static bool read_name(struct request *request, struct strview *out)
{
    return request_text(request, 0, "the name", out) && group_name_check(*out, request->diag);
}

/* null when it is the caller's from now on; else the process that has it. */
static bool reserve_group(struct request *request)
{
    struct strview name;
    int64_t pid;
    if (!read_name(request, &name) || !request_int(request, 1, "the pid", 1, INT32_MAX, &pid))
        return false;
    struct table *groups = &request->registry->groups;
    const struct table_entry *entry = table_find(groups, name);
    if (!entry && !request_keep(request, groups, name, request->args[1].json, false))
        return false;
    json_put_raw(&request->answer, entry ? table_value(entry) : SV("null"));
    return true;
}

/* Whether it was the caller's. */
static bool release_group(struct request *request)
{
    struct strview name;
    if (!read_name(request, &name))
        return false;
    struct table *groups = &request->registry->groups;
    struct table_entry *entry = table_find(groups, name);
    bool is_mine = entry && entry->owners[0] == request->owner;
    if (is_mine)
        table_remove(groups, entry);
    json_put_bool(&request->answer, is_mine);
    return true;
}

const struct call worker_group_calls[] = {
    {"WorkerManager.reserve_group", 2, reserve_group},
    {"WorkerManager.release_group", 1, release_group},
    {NULL, 0, NULL},
};
