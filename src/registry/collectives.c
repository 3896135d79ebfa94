/* collectives.c - CollectiveManager: groups of workers that talk to each other, and the port by which
 * they meet.
 *
 * A group is {"group_name": "...", "workers": [{"address": "actor:0", ...}, ...], ...}; a worker may also
 * be its address alone. Every member may register it. A registration of other members under the same name is
 * an error. The registry forgets a group when the last process that registered it has ended. */
#include "registry/registry_internal.h"

/* What makes two groups the same: a line of addresses. */
struct group {
    struct text name, members;
};

static void group_release(struct group *group)
{
    text_release(&group->name);
    text_release(&group->members);
}

static bool say_group(struct diag *diag, const char *what)
{
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "not a collective group: %s", what);
    diag_hint(diag, "write {\"group_name\": \"pair\", \"workers\": [\"actor:0\", \"actor:1\"]}");
    return false;
}

static bool put_member(struct group *group, struct json_event event, struct diag *diag)
{
    if (event.kind != JSON_STRING)
        return event.kind != JSON_FAILED && say_group(diag, "a worker needs an address");
    if (!worker_address_read(event.text, NULL, diag))
        return false;
    text_put(&group->members, event.text);
    text_char(&group->members, '\n');
    return true;
}

/* The address of a worker that is an object. */
static bool read_worker(struct group *group, struct json_reader *reader, struct diag *diag)
{
    struct json_event event;
    bool has_address = false;
    while ((event = json_next(reader, diag)).kind == JSON_KEY) {
        if (sv_is(event.text, "address")) {
            has_address = true;
            if (!put_member(group, json_next(reader, diag), diag))
                return false;
        } else if (json_skip(reader, diag) != ROOST_OK) {
            return false;
        }
    }
    return has_address || say_group(diag, "a worker needs an address");
}

static bool read_workers(struct group *group, struct json_reader *reader, struct diag *diag)
{
    struct json_event event = json_next(reader, diag);
    if (event.kind != JSON_ARRAY)
        return say_group(diag, "\"workers\" must be an array");
    while ((event = json_next(reader, diag)).kind != JSON_ARRAY_END)
        if (event.kind == JSON_OBJECT ? !read_worker(group, reader, diag)
                                      : !put_member(group, event, diag))
            return false;
    return true;
}

static bool read_group(struct group *group, struct json_reader *reader, struct diag *diag)
{
    bool has_name = false, has_workers = false;
    struct json_event event = json_next(reader, diag);
    if (event.kind != JSON_OBJECT)
        return event.kind != JSON_FAILED && say_group(diag, "it must be an object");
    while ((event = json_next(reader, diag)).kind == JSON_KEY) {
        if (sv_is(event.text, "group_name")) {
            event = json_next(reader, diag);
            has_name = event.kind == JSON_STRING;
            text_put(&group->name, event.text);
            if (!has_name)
                break;
        } else if (sv_is(event.text, "workers")) {
            has_workers = read_workers(group, reader, diag);
            if (!has_workers)
                return false;
        } else if (json_skip(reader, diag) != ROOST_OK) {
            return false;
        }
    }
    if (has_name && has_workers)
        return event.kind == JSON_OBJECT_END;
    return say_group(diag, has_name ? "\"workers\" is missing" : "\"group_name\" must be a text");
}

/* Fills `group`, which the caller releases also after a failure. */
static bool parse(struct strview json, struct group *group, struct diag *diag)
{
    struct json_reader *reader = json_reader_from_text("group", json, NULL);
    bool is_good = reader && read_group(group, reader, diag);
    json_reader_free(reader);
    if (!reader || (is_good && (group->name.has_failed || group->members.has_failed))) {
        diag_nomem(diag);
        return false;
    }
    return is_good;
}

/* Names of collectives are their makers' business ("actor:0-rollout:3"): any short text is one. */
static bool check_name(struct request *request, struct strview name)
{
    enum { LONGEST = 4096 };
    if (name.len > 0 && name.len <= LONGEST)
        return true;
    diag_error(request->diag, ROOST_ERR_NAME, NOWHERE,
               "the name of a collective group has 1 to %d bytes, not %zu", LONGEST, name.len);
    diag_hint(request->diag, "choose a shorter one");
    return false;
}

static bool is_same(struct request *request, const struct table_entry *entry,
                    const struct group *group)
{
    struct group other = {TEXT_INIT, TEXT_INIT};
    bool is_read = parse(table_value(entry), &other, request->diag);
    struct strview ours = {group->members.bytes, group->members.len};
    bool is_equal =
        is_read && sv_equal(ours, (struct strview){other.members.bytes, other.members.len});
    group_release(&other);
    if (is_read && !is_equal) {
        diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE,
                   "the collective group '%s' is registered with other members",
                   quote((struct strview){entry->key, entry->key_len}).text);
        diag_hint(request->diag, "choose another name, or register the same workers in the same "
                                 "order");
    }
    return is_equal;
}

static bool keep(struct request *request, const struct group *group)
{
    struct table *table = &request->registry->collectives;
    struct strview name = {group->name.bytes, group->name.len};
    const struct table_entry *entry = check_name(request, name) ? table_find(table, name) : NULL;
    if (request->diag->errors || (entry && !is_same(request, entry, group)))
        return false;
    return request_keep(request, table, name, request->args[0].json, true);
}

static bool register_group(struct request *request)
{
    struct group group = {TEXT_INIT, TEXT_INIT};
    bool is_good = parse(request->args[0].json, &group, request->diag) && keep(request, &group);
    group_release(&group);
    json_put_null(&request->answer);
    return is_good;
}

static bool put_found(struct request *request, const struct table *table)
{
    struct strview name;
    if (!request_text(request, 0, "the name", &name))
        return false;
    const struct table_entry *entry = table_find(table, name);
    json_put_raw(&request->answer, entry ? table_value(entry) : SV("null"));
    return true;
}

static bool get_group(struct request *request)
{
    return put_found(request, &request->registry->collectives);
}

static bool get_port(struct request *request)
{
    return put_found(request, &request->registry->master_ports);
}

static bool set_port(struct request *request)
{
    struct strview name;
    if (!request_text(request, 0, "the name", &name) || !check_name(request, name) ||
        !request_keep(request, &request->registry->master_ports, name, request->args[1].json,
                      false))
        return false;
    json_put_null(&request->answer);
    return true;
}

static bool reset_port(struct request *request)
{
    struct strview name;
    if (!request_text(request, 0, "the name", &name))
        return false;
    struct table_entry *entry = table_find(&request->registry->master_ports, name);
    if (entry)
        table_remove(&request->registry->master_ports, entry);
    json_put_null(&request->answer);
    return true;
}

const struct call collective_calls[] = {
    {"CollectiveManager.register_collective_group", 1, register_group},
    {"CollectiveManager.get_collective_group", 1, get_group},
    {"CollectiveManager.set_master_port_info", 2, set_port},
    {"CollectiveManager.get_master_port_info", 1, get_port},
    {"CollectiveManager.reset_master_port_info", 1, reset_port},
    {NULL, 0, NULL},
};
