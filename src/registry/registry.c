/* registry.c - from a request to its answer: reads the line, finds the call, writes value or error.
 *
 * A request does either everything or nothing. The answer is appended to `out`, and removed again if an error
 * has to be reported instead. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "registry/registry_internal.h"

struct registry *registry_new(registry_later_fn later, void *context)
{
    struct registry *registry = calloc(1, sizeof *registry);
    if (registry)
        *registry = (struct registry){.later = later, .context = context};
    return registry;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    table_release(&registry->workers);
    table_release(&registry->processes);
    table_release(&registry->groups);
    table_release(&registry->collectives);
    table_release(&registry->master_ports);
    table_release(&registry->ports);
    cluster_view_release(&registry->view);
    devices_release(&registry->devices);
    free(registry);
}

void registry_owner_gone(struct registry *registry, uint64_t owner)
{
    table_owner_gone(&registry->workers, owner);
    table_owner_gone(&registry->processes, owner);
    table_owner_gone(&registry->groups, owner);
    table_owner_gone(&registry->collectives, owner);
    table_owner_gone(&registry->master_ports, owner);
    table_owner_gone(&registry->ports, owner);
    devices_owner_gone(registry, owner);
}

/* --- what calls use --- */

static bool say_argument(struct request *request, const char *what, const char *wanted)
{
    diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE, "%s of %s must be %s", what,
               request->call->name, wanted);
    diag_hint(request->diag,
              "the calls and their arguments are listed in docs/reference/managers.md");
    return false;
}

bool request_text(struct request *request, int32_t index, const char *what, struct strview *out)
{
    if (request->args[index].kind != JSON_STRING)
        return say_argument(request, what, "a text");
    *out = request->args[index].text;
    return true;
}

bool request_int(struct request *request, int32_t index, const char *what, int64_t min, int64_t max,
                 int64_t *out)
{
    char wanted[64];
    struct json_event event = {.kind = request->args[index].kind,
                               .text = request->args[index].text};
    if (event.kind == JSON_NUMBER && json_int(event, min, max, out))
        return true;
    snprintf(wanted, sizeof wanted, "a whole number from %" PRId64 " to %" PRId64, min, max);
    return say_argument(request, what, wanted);
}

bool request_address(struct request *request, int32_t index, struct strview *out)
{
    return request_text(request, index, "the address", out) &&
           worker_address_read(*out, NULL, request->diag);
}

bool request_node_rank(struct request *request, int64_t node_rank)
{
    const struct cluster_view *view = &request->registry->view;
    if (!view->first_device_of_node || node_rank < view->node_count)
        return true;
    diag_error(request->diag, ROOST_ERR_FIT, NOWHERE, "there is no node %" PRId64, node_rank);
    diag_hint(request->diag, "the cluster has nodes 0 to %d", (int)view->node_count - 1);
    return false;
}

bool request_keep(struct request *request, struct table *table, struct strview key,
                  struct strview value, bool is_joined)
{
    const struct registry *it = request->registry;
    size_t kept = it->workers.bytes + it->processes.bytes + it->groups.bytes +
                  it->collectives.bytes + it->master_ports.bytes + it->ports.bytes;
    if (kept + key.len + value.len > REGISTRY_KEPT_MAX) {
        diag_error(request->diag, ROOST_ERR_LIMIT, NOWHERE,
                   "the managers keep %d MiB already and take no more", REGISTRY_KEPT_MAX >> 20);
        diag_hint(request->diag, "register less: an address, a port, a few words");
        return false;
    }
    if (table_put(table, key, value, request->owner, is_joined))
        return true;
    diag_nomem(request->diag);
    return false;
}

/* --- reading --- */

static bool say_form(struct request *request, const char *what)
{
    diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE, "not a request: %s", what);
    diag_hint(request->diag, "write {\"call\": \"NodeManager.get_nodes\", \"args\": []}");
    return false;
}

static bool cancel(struct request *request)
{
    int64_t id;
    if (!request_int(request, 0, "the id", 0, INT64_MAX, &id))
        return false;
    json_put_bool(&request->answer, devices_cancel(request->registry, request->owner, id));
    return true;
}

static bool undo(struct request *request)
{
    int64_t id;
    if (!request_int(request, 0, "the id", 0, INT64_MAX, &id))
        return false;
    devices_undo(request->registry, request->owner, id);
    ports_undo(request->registry, request->owner, id);
    json_put_null(&request->answer);
    return true;
}

static const struct call own_calls[] = {
    {"Registry.cancel", 1, cancel},
    {"Registry.undo", 1, undo},
    {NULL, 0, NULL},
};

static bool find_call(struct request *request, struct strview name)
{
    static const struct call *const lists[] = {worker_calls,     process_calls, worker_group_calls,
                                               collective_calls, node_calls,    device_calls,
                                               port_calls,       own_calls};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct call *it = lists[i]; it->name; it++)
            if (sv_is(name, it->name)) {
                request->call = it;
                return true;
            }
    diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE, "there is no call '%s'", quote(name).text);
    diag_hint(request->diag, "the calls are listed in docs/reference/managers.md");
    return false;
}

/* The arguments, each as a line of its own in `pieces`; they are pointed at when that grows no more. */
static bool read_args(struct request *request, struct json_reader *reader)
{
    size_t from[REQUEST_ARGS_MAX][3] = {{0}};
    struct json_event event = json_next(reader, request->diag);
    if (event.kind != JSON_ARRAY)
        return event.kind != JSON_FAILED && say_form(request, "\"args\" must be an array");
    while ((event = json_next(reader, request->diag)).kind != JSON_ARRAY_END) {
        if (event.kind == JSON_FAILED)
            return false;
        if (request->arg_count == REQUEST_ARGS_MAX)
            return say_form(request, "too many \"args\"");
        int32_t i = request->arg_count++;
        request->args[i].kind = event.kind;
        from[i][0] = request->pieces.len;
        if (event.kind == JSON_STRING || event.kind == JSON_NUMBER)
            text_put(&request->pieces, event.text);
        from[i][1] = request->pieces.len;
        struct json_writer json = json_writer_on(&request->pieces, JSON_COMPACT);
        if (!json_put_value(&json, reader, event, request->diag))
            return false;
        from[i][2] = request->pieces.len;
    }
    if (request->arg_count > 0 && !text_string(&request->pieces)) {
        diag_nomem(request->diag);
        return false;
    }
    for (int32_t i = 0; i < request->arg_count; i++) {
        const char *bytes = request->pieces.bytes;
        request->args[i].text = (struct strview){bytes + from[i][0], from[i][1] - from[i][0]};
        request->args[i].json = (struct strview){bytes + from[i][1], from[i][2] - from[i][1]};
    }
    return true;
}

static bool read_id(struct request *request, struct json_reader *reader)
{
    struct json_event event = json_next(reader, request->diag);
    request->has_id = event.kind == JSON_NUMBER && json_int(event, 0, INT64_MAX, &request->id);
    if (request->has_id || event.kind == JSON_FAILED)
        return request->has_id;
    return say_form(request, "\"id\" must be a whole number");
}

static bool read_request(struct request *request, struct json_reader *reader)
{
    bool has_args = false;
    struct json_event event = json_next(reader, request->diag);
    if (event.kind != JSON_OBJECT)
        return event.kind != JSON_FAILED && say_form(request, "it must be an object");
    while ((event = json_next(reader, request->diag)).kind == JSON_KEY) {
        bool is_good = true;
        if (sv_is(event.text, "id")) {
            is_good = read_id(request, reader);
        } else if (sv_is(event.text, "call")) {
            event = json_next(reader, request->diag);
            is_good = event.kind == JSON_STRING ? find_call(request, event.text)
                                                : event.kind != JSON_FAILED &&
                                                      say_form(request, "\"call\" must be a text");
        } else if (sv_is(event.text, "args")) {
            has_args = true;
            is_good = read_args(request, reader);
        } else {
            is_good = say_form(request, "its keys are \"id\", \"call\" and \"args\"");
        }
        if (!is_good)
            return false;
    }
    if (event.kind == JSON_FAILED || json_next(reader, request->diag).kind != JSON_END)
        return false;
    if (!request->call || !has_args)
        return say_form(request, "it needs \"call\" and \"args\"");
    if (request->arg_count == request->call->arg_count)
        return true;
    diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE, "%s takes %d argument%s, not %d",
               request->call->name, (int)request->call->arg_count,
               request->call->arg_count == 1 ? "" : "s", (int)request->arg_count);
    diag_hint(request->diag,
              "the calls and their arguments are listed in docs/reference/managers.md");
    return false;
}

/* The start of an answer, to the value or the error. */
static void start_answer(struct json_writer *json, bool has_id, int64_t id)
{
    json_open_object(json);
    if (has_id)
        json_put_int(json_key(json, "id"), id);
}

static bool run(struct request *request, struct strview line)
{
    static const struct json_limits limits = {.max_bytes = REQUEST_BYTES_MAX};
    struct json_reader *reader = json_reader_from_text("request", line, &limits);
    if (!reader) {
        diag_nomem(request->diag);
        return false;
    }
    bool is_read = read_request(request, reader);
    json_reader_free(reader);
    if (!is_read)
        return false;
    start_answer(&request->answer, request->has_id, request->id);
    json_key(&request->answer, "value");
    if (!request->call->run(request))
        return false;
    if (!request->is_waiting)
        json_close(&request->answer);
    return true;
}

static void put_error(struct text *out, const struct request *request,
                      const struct roost_error *err)
{
    struct json_writer json = json_writer_on(out, JSON_COMPACT);
    start_answer(&json, request->has_id, request->id);
    json_open_object(json_key(&json, "error"));
    json_put_string(json_key(&json, "code"), roost_code_word(err->code));
    json_put_string(json_key(&json, "message"), err->message);
    json_put_string(json_key(&json, "hint"), err->hint);
    json_close(&json);
    json_close(&json);
}

enum registry_result registry_answer(struct registry *registry, uint64_t owner, struct strview line,
                                     struct text *out)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct request request = {.registry = registry,
                              .owner = owner,
                              .pieces = TEXT_INIT,
                              .answer = json_writer_on(out, JSON_COMPACT),
                              .diag = &diag};
    size_t before = out->len;
    bool is_good = run(&request, line);
    text_release(&request.pieces);
    if (is_good && !request.is_waiting)
        return REGISTRY_ANSWERED;
    out->len = before;
    if (is_good)
        return REGISTRY_WAITING;
    put_error(out, &request, &err);
    return REGISTRY_ANSWERED;
}

void registry_grant(struct registry *registry, uint64_t owner, bool has_id, int64_t id)
{
    char bytes[96];
    struct text line = text_fixed(bytes, sizeof bytes);
    struct json_writer json = json_writer_on(&line, JSON_COMPACT);
    start_answer(&json, has_id, id);
    json_put_bool(json_key(&json, "value"), true);
    json_close(&json);
    registry->later(registry->context, owner, (struct strview){line.bytes, line.len});
}
