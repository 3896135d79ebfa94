/* cluster_view.c - NodeManager: the cluster as its driver sees it, with the same answer for every caller.
 *
 * Its fields are kept as JSON and passed on. Only the counts of accelerators are read, for devices that
 * are named by their number in the cluster. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "registry/registry_internal.h"

void cluster_view_release(struct cluster_view *view)
{
    free(view->nodes);
    free(view->node_groups);
    free(view->config);
    free(view->cluster_config);
    free(view->master_ip);
    free(view->master_port);
    free(view->first_device_of_node);
    *view = (struct cluster_view){0};
}

static bool say_view(struct diag *diag, const char *what)
{
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "not a view of a cluster: %s", what);
    diag_hint(diag, "write {\"nodes\": [...], \"node_groups\": [...]} as in a snapshot");
    return false;
}

/* What copies of values share. */
struct reading {
    struct json_reader *reader;
    struct diag *diag;
    struct cluster_view *view;
    struct text nodes;
    struct json_writer json; /* on `nodes` */
    int32_t room;
};

static bool add_node(struct reading *it, int64_t count)
{
    struct cluster_view *view = it->view;
    if (view->node_count + 2 > it->room) {
        int32_t room = it->room ? 2 * it->room : 64;
        int64_t *first = realloc(view->first_device_of_node, (size_t)room * sizeof *first);
        if (!first) {
            diag_nomem(it->diag);
            return false;
        }
        view->first_device_of_node = first;
        it->room = room;
    }
    view->first_device_of_node[0] = 0;
    view->first_device_of_node[view->node_count + 1] =
        view->first_device_of_node[view->node_count] + count;
    view->node_count++;
    return true;
}

/* Copies a node, key by key, and learns how many accelerators it has. */
static bool read_node(struct reading *it)
{
    int64_t count = 0;
    struct json_event event;
    json_open_object(&it->json);
    while ((event = json_next(it->reader, it->diag)).kind == JSON_KEY) {
        bool is_count = sv_is(event.text, "num_accelerators");
        json_key_view(&it->json, event.text);
        event = json_next(it->reader, it->diag);
        if (is_count && !json_int(event, 0, 1 << 20, &count))
            return event.kind != JSON_FAILED &&
                   say_view(it->diag, "\"num_accelerators\" must be a whole number");
        if (!json_put_value(&it->json, it->reader, event, it->diag))
            return false;
    }
    json_close(&it->json);
    return event.kind == JSON_OBJECT_END && add_node(it, count);
}

static bool read_nodes(struct reading *it)
{
    struct json_event event = json_next(it->reader, it->diag);
    if (event.kind != JSON_ARRAY)
        return event.kind != JSON_FAILED && say_view(it->diag, "\"nodes\" must be an array");
    json_open_array(&it->json);
    while ((event = json_next(it->reader, it->diag)).kind == JSON_OBJECT)
        if (!read_node(it))
            return false;
    json_close(&it->json);
    if (event.kind != JSON_ARRAY_END)
        return event.kind != JSON_FAILED && say_view(it->diag, "a node must be an object");
    it->view->nodes = text_string(&it->nodes) ? strdup(it->nodes.bytes) : NULL;
    if (!it->view->nodes)
        diag_nomem(it->diag);
    return it->view->nodes != NULL;
}

static bool read_field(struct reading *it, char **field)
{
    struct text text = TEXT_INIT;
    struct json_writer json = json_writer_on(&text, JSON_COMPACT);
    bool is_read = json_put_value(&json, it->reader, json_next(it->reader, it->diag), it->diag);
    *field = is_read && text_string(&text) ? strdup(text.bytes) : NULL;
    if (is_read && !*field)
        diag_nomem(it->diag);
    text_release(&text);
    return *field != NULL;
}

static bool read_view(struct reading *it)
{
    struct cluster_view *view = it->view;
    const struct {
        const char *key;
        char **field;
    } fields[] = {{"node_groups", &view->node_groups},
                  {"config", &view->config},
                  {"cluster_config", &view->cluster_config},
                  {"master_ip", &view->master_ip},
                  {"master_port", &view->master_port}};
    struct json_event event = json_next(it->reader, it->diag);
    if (event.kind != JSON_OBJECT)
        return event.kind != JSON_FAILED && say_view(it->diag, "it must be an object");
    while ((event = json_next(it->reader, it->diag)).kind == JSON_KEY) {
        size_t i = 0;
        while (i < sizeof fields / sizeof *fields && !sv_is(event.text, fields[i].key))
            i++;
        bool is_good = i < sizeof fields / sizeof *fields ? read_field(it, fields[i].field)
                       : sv_is(event.text, "nodes") ? read_nodes(it)
                                                    : json_skip(it->reader, it->diag) == ROOST_OK;
        if (!is_good)
            return false;
    }
    return event.kind == JSON_OBJECT_END && json_next(it->reader, it->diag).kind == JSON_END;
}

bool registry_set_view(struct registry *registry, struct strview json, struct diag *diag)
{
    /* A config may have a megabyte, and is one string here. */
    static const struct json_limits limits = {.max_string = 8 << 20};
    struct cluster_view view = {0};
    struct reading it = {.diag = diag, .view = &view, .nodes = TEXT_INIT};
    it.json = json_writer_on(&it.nodes, JSON_COMPACT);
    it.reader = json_reader_from_text("view", json, &limits);
    bool is_good = it.reader && read_view(&it);
    if (!it.reader)
        diag_nomem(diag);
    json_reader_free(it.reader);
    text_release(&it.nodes);
    if (is_good) {
        cluster_view_release(&registry->view);
        registry->view = view;
    } else {
        cluster_view_release(&view);
    }
    return is_good;
}

bool registry_set_master_port(struct registry *registry, int32_t port, struct diag *diag)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%d", (int)port);
    char *kept = strdup(digits);
    if (!kept) {
        diag_nomem(diag);
        return false;
    }
    free(registry->view.master_port);
    registry->view.master_port = kept;
    return true;
}

/* --- calls --- */

static bool put(struct request *request, const char *field, const char *otherwise)
{
    json_put_raw(&request->answer, sv_from(field ? field : otherwise));
    return true;
}

static bool get_nodes(struct request *request)
{
    return put(request, request->registry->view.nodes, "[]");
}

static bool get_node_groups(struct request *request)
{
    return put(request, request->registry->view.node_groups, "[]");
}

static bool get_cluster_config(struct request *request)
{
    return put(request, request->registry->view.cluster_config, "null");
}

static bool get_master_ip(struct request *request)
{
    return put(request, request->registry->view.master_ip, "null");
}

static bool get_master_port(struct request *request)
{
    return put(request, request->registry->view.master_port, "null");
}

static bool get_num_gpus_per_node(struct request *request)
{
    const struct cluster_view *view = &request->registry->view;
    if (view->node_count == 0) {
        diag_error(request->diag, ROOST_ERR_ENGINE, NOWHERE, "no node is known here");
        diag_hint(request->diag, "the managers were started without a cluster");
        return false;
    }
    const int64_t *first = view->first_device_of_node;
    for (int32_t n = 1; n < view->node_count; n++)
        if (first[n + 1] - first[n] != first[1]) {
            diag_error(request->diag, ROOST_ERR_FIT, NOWHERE,
                       "nodes differ in their accelerators: node 0 has %" PRId64
                       ", node %d has %" PRId64,
                       first[1], (int)n, first[n + 1] - first[n]);
            diag_hint(request->diag, "ask each node: get_nodes()");
            return false;
        }
    json_put_int(&request->answer, first[1]);
    return true;
}

static bool get_view(struct request *request)
{
    const struct cluster_view *view = &request->registry->view;
    const struct {
        const char *key, *field, *otherwise;
    } fields[] = {
        {"nodes", view->nodes, "[]"},           {"node_groups", view->node_groups, "[]"},
        {"config", view->config, "null"},       {"cluster_config", view->cluster_config, "null"},
        {"master_ip", view->master_ip, "null"}, {"master_port", view->master_port, "null"}};
    json_open_object(&request->answer);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        json_key(&request->answer, fields[i].key);
        (void)put(request, fields[i].field, fields[i].otherwise);
    }
    json_close(&request->answer);
    return true;
}

const struct call node_calls[] = {
    {"NodeManager.get_nodes", 0, get_nodes},
    {"NodeManager.get_node_groups", 0, get_node_groups},
    {"NodeManager.get_cluster_config", 0, get_cluster_config},
    {"NodeManager.get_master_ip", 0, get_master_ip},
    {"NodeManager.get_master_port", 0, get_master_port},
    {"NodeManager.get_num_gpus_per_node", 0, get_num_gpus_per_node},
    {"NodeManager.get_view", 0, get_view},
    {NULL, 0, NULL},
};
