/* snapshot.c - a cluster from a snapshot file: {"roost": 1, "cluster": {"nodes": [...]}}.
 *
 * Streamed: the file may be a gigabyte, memory follows the nodes in it. A plan document is a
 * snapshot too, as it holds the same `cluster`. Keys that are not known are left alone, so that later
 * versions may add some; node groups come from the config, not from here. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "base/text.h"
#include "topology/cluster.h"

enum { UNITS_MAX = 4096 };

struct snapshot {
    struct roost_cluster *cluster;
    struct json_reader *json;
    struct diag *diag;
    struct cluster_node *nodes; /* grows; moves into the arena at the end */
    int32_t count, room;
};

static bool refuse(struct snapshot *snapshot, struct json_token token, const char *what,
                   const char *wanted)
{
    if (token.kind != JSON_FAILED) /* otherwise it was said */
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "%s must be %s, not %s", what,
                   wanted, json_kind_words(token.kind));
    return false;
}

static struct json_token next(struct snapshot *snapshot)
{
    return json_next(snapshot->json, snapshot->diag);
}

static bool read_text(struct snapshot *snapshot, const char *what, const char **out)
{
    struct json_token token = next(snapshot);
    if (token.kind == JSON_NULL)
        return true;
    if (token.kind != JSON_STRING)
        return refuse(snapshot, token, what, "a string or null");
    *out = arena_copy(&snapshot->cluster->arena, token.text);
    if (!*out)
        diag_nomem(snapshot->diag);
    return *out != NULL;
}

static bool read_count(struct snapshot *snapshot, const char *what, int32_t max, int32_t *out)
{
    struct json_token token = next(snapshot);
    int64_t value;
    if (token.kind == JSON_NULL)
        return true;
    if (token.kind != JSON_NUMBER)
        return refuse(snapshot, token, what, "a number or null");
    if (!json_int(token, 0, max, &value)) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at,
                   "%s must be a whole number from 0 to %d, not '%s'", what, (int)max,
                   quote(token.text).text);
        return false;
    }
    *out = (int32_t)value;
    return true;
}

static bool read_type(struct snapshot *snapshot, struct cluster_node *node)
{
    struct json_token token = next(snapshot);
    if (token.kind != JSON_STRING)
        return refuse(snapshot, token, "accelerator_type", "a string");
    for (int i = ROOST_ACCELERATOR_NONE; i <= ROOST_ACCELERATOR_KUNLUN; i++) {
        if (sv_is(token.text, roost_accelerator_type((enum roost_accelerator)i))) {
            node->accelerator = (enum roost_accelerator)i;
            return true;
        }
    }
    diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "accelerator_type '%s' is not known",
               quote(token.text).text);
    diag_hint(snapshot->diag, "known are NV_GPU, AMD_GPU, NPU, INTEL_GPU, MUSA_GPU, KUNLUN_XPU and "
                              "NO_ACCEL");
    return false;
}

/* One accelerator: {"id", "uuid", "pci", "numa"}. */
static bool read_accelerator(struct snapshot *snapshot, struct accelerator *out)
{
    out->numa = -1;
    struct json_token token;
    while ((token = next(snapshot)).kind == JSON_KEY) {
        bool is_good = sv_is(token.text, "id")     ? read_text(snapshot, "id", &out->id)
                       : sv_is(token.text, "uuid") ? read_text(snapshot, "uuid", &out->uuid)
                       : sv_is(token.text, "pci")  ? read_text(snapshot, "pci", &out->pci)
                       : sv_is(token.text, "numa")
                           ? read_count(snapshot, "numa", CLUSTER_NODES_MAX, &out->numa)
                           : json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
        if (!is_good)
            return false;
    }
    return token.kind == JSON_OBJECT_END;
}

static bool read_accelerators(struct snapshot *snapshot, struct cluster_node *node, int32_t *count)
{
    struct json_token token = next(snapshot);
    if (token.kind == JSON_NULL)
        return true;
    if (token.kind != JSON_ARRAY)
        return refuse(snapshot, token, "accelerators", "an array");
    struct accelerator list[CLUSTER_ACCELERATORS_MAX];
    int32_t filled = 0;
    while ((token = next(snapshot)).kind == JSON_OBJECT) {
        if (filled == CLUSTER_ACCELERATORS_MAX) {
            diag_error(snapshot->diag, ROOST_ERR_LIMIT, token.at,
                       "more than %d accelerators on one node", CLUSTER_ACCELERATORS_MAX);
            return false;
        }
        list[filled] = (struct accelerator){0};
        if (!read_accelerator(snapshot, &list[filled++]))
            return false;
    }
    if (token.kind != JSON_ARRAY_END)
        return refuse(snapshot, token, "an accelerator", "an object");
    node->accelerators = arena_array(&snapshot->cluster->arena, struct accelerator, filled);
    if (!node->accelerators) {
        diag_nomem(snapshot->diag);
        return false;
    }
    if (filled)
        memcpy(node->accelerators, list, (size_t)filled * sizeof *list);
    *count = filled;
    return true;
}

/* A value as compact JSON text: a robot's config is kept as it was written. */
static bool copy_value(struct snapshot *snapshot, struct json_token token, struct text *out)
{
    int depth = 0;
    bool needs_comma = false;
    do {
        bool is_end = token.kind == JSON_OBJECT_END || token.kind == JSON_ARRAY_END;
        if (needs_comma && !is_end)
            text_puts(out, ", ");
        needs_comma = true;
        switch (token.kind) {
        case JSON_OBJECT:
        case JSON_ARRAY:
            text_char(out, token.kind == JSON_OBJECT ? '{' : '[');
            needs_comma = false;
            depth++;
            break;
        case JSON_OBJECT_END:
        case JSON_ARRAY_END:
            text_char(out, token.kind == JSON_OBJECT_END ? '}' : ']');
            depth--;
            break;
        case JSON_KEY:
            text_json(out, token.text);
            text_puts(out, ": ");
            needs_comma = false;
            break;
        case JSON_STRING: text_json(out, token.text); break;
        case JSON_NUMBER: text_put(out, token.text); break;
        case JSON_TRUE: text_puts(out, "true"); break;
        case JSON_FALSE: text_puts(out, "false"); break;
        case JSON_NULL: text_puts(out, "null"); break;
        case JSON_END:
        case JSON_FAILED: return false;
        }
        if (depth == 0)
            return true;
        token = next(snapshot);
    } while (true);
}

static bool read_unit_config(struct snapshot *snapshot, struct unit *unit)
{
    struct json_token token = next(snapshot);
    if (token.kind != JSON_OBJECT)
        return refuse(snapshot, token, "the config of a hardware entry", "an object");
    struct text text = TEXT_INIT;
    bool is_good = copy_value(snapshot, token, &text);
    const char *string = is_good ? text_string(&text) : NULL;
    unit->config = string ? arena_copy(&snapshot->cluster->arena, sv_from(string)) : NULL;
    text_release(&text);
    if (is_good && !unit->config)
        diag_nomem(snapshot->diag);
    return unit->config != NULL;
}

static bool read_unit(struct snapshot *snapshot, struct json_token start, struct cluster_node *node)
{
    struct unit *unit = arena_zeroed(&snapshot->cluster->arena, struct unit, 1);
    if (!unit) {
        diag_nomem(snapshot->diag);
        return false;
    }
    unit->config = "{}";
    struct json_token token;
    while ((token = next(snapshot)).kind == JSON_KEY) {
        bool is_good = sv_is(token.text, "type") ? read_text(snapshot, "type", &unit->type)
                       : sv_is(token.text, "config")
                           ? read_unit_config(snapshot, unit)
                           : json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
        if (!is_good)
            return false;
    }
    if (token.kind != JSON_OBJECT_END)
        return false;
    if (!unit->type) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, start.at, "a hardware entry needs a 'type'");
        return false;
    }
    *(node->last_unit ? &node->last_unit->next : &node->units) = unit;
    node->last_unit = unit;
    return true;
}

static bool read_hardware(struct snapshot *snapshot, struct cluster_node *node)
{
    struct json_token token = next(snapshot);
    if (token.kind != JSON_ARRAY)
        return refuse(snapshot, token, "hardware", "an array");
    for (int32_t count = 0; (token = next(snapshot)).kind == JSON_OBJECT; count++) {
        if (count == UNITS_MAX) {
            diag_error(snapshot->diag, ROOST_ERR_LIMIT, token.at,
                       "more than %d hardware entries on one node", UNITS_MAX);
            return false;
        }
        if (!read_unit(snapshot, token, node))
            return false;
    }
    return token.kind == JSON_ARRAY_END || refuse(snapshot, token, "a hardware entry", "an object");
}

/* What a node says of itself must agree with itself. */
static bool check_node(struct snapshot *snapshot, struct cluster_node *node, bool has_type,
                       int32_t listed, struct place at)
{
    if (listed >= 0 && node->accelerator_count >= 0 && listed != node->accelerator_count) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, at,
                   "num_accelerators is %d, but %d accelerators are listed",
                   (int)node->accelerator_count, (int)listed);
        return false;
    }
    if (node->accelerator_count < 0)
        node->accelerator_count = listed > 0 ? listed : 0;
    if (!has_type && node->accelerator_count > 0)
        node->accelerator = ROOST_ACCELERATOR_NVIDIA;
    if ((node->accelerator == ROOST_ACCELERATOR_NONE) != (node->accelerator_count == 0)) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, at,
                   "a node of type %s cannot have %d accelerators",
                   roost_accelerator_type(node->accelerator), (int)node->accelerator_count);
        return false;
    }
    return true;
}

static bool read_node(struct snapshot *snapshot, struct place at, struct cluster_node *node)
{
    *node = (struct cluster_node){.num_cpus = -1, .explicit_rank = -1, .accelerator_count = -1};
    bool has_type = false;
    int32_t listed = -1;
    struct json_token token;
    while ((token = next(snapshot)).kind == JSON_KEY) {
        bool is_good;
        if (sv_is(token.text, "node_rank"))
            is_good = read_count(snapshot, "node_rank", ROOST_RANK_MAX, &node->explicit_rank);
        else if (sv_is(token.text, "id"))
            is_good = read_text(snapshot, "id", &node->id);
        else if (sv_is(token.text, "address"))
            is_good = read_text(snapshot, "address", &node->address);
        else if (sv_is(token.text, "num_cpus"))
            is_good = read_count(snapshot, "num_cpus", CLUSTER_NODES_MAX, &node->num_cpus);
        else if (sv_is(token.text, "accelerator_type"))
            has_type = is_good = read_type(snapshot, node);
        else if (sv_is(token.text, "accelerator_model"))
            is_good = read_text(snapshot, "accelerator_model", &node->model);
        else if (sv_is(token.text, "num_accelerators"))
            is_good = read_count(snapshot, "num_accelerators", CLUSTER_ACCELERATORS_MAX,
                                 &node->accelerator_count);
        else if (sv_is(token.text, "accelerators"))
            is_good = read_accelerators(snapshot, node, &listed);
        else if (sv_is(token.text, "hardware"))
            is_good = read_hardware(snapshot, node);
        else
            is_good = json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
        if (!is_good)
            return false;
    }
    return token.kind == JSON_OBJECT_END && check_node(snapshot, node, has_type, listed, at);
}

static bool add_node(struct snapshot *snapshot, struct place at)
{
    if (snapshot->count == CLUSTER_NODES_MAX) {
        diag_error(snapshot->diag, ROOST_ERR_LIMIT, at, "more than %d nodes", CLUSTER_NODES_MAX);
        return false;
    }
    if (snapshot->count == snapshot->room) {
        int32_t room = snapshot->room ? snapshot->room * 2 : 16;
        struct cluster_node *nodes = realloc(snapshot->nodes, (size_t)room * sizeof *nodes);
        if (!nodes) {
            diag_nomem(snapshot->diag);
            return false;
        }
        snapshot->nodes = nodes;
        snapshot->room = room;
    }
    return read_node(snapshot, at, &snapshot->nodes[snapshot->count++]);
}

static bool read_nodes(struct snapshot *snapshot)
{
    struct json_token token = next(snapshot);
    if (token.kind != JSON_ARRAY)
        return refuse(snapshot, token, "nodes", "an array");
    while ((token = next(snapshot)).kind == JSON_OBJECT)
        if (!add_node(snapshot, token.at))
            return false;
    return token.kind == JSON_ARRAY_END || refuse(snapshot, token, "a node", "an object");
}

/* Reads the keys of an object that is open; the value of `key` is given to `read`. */
static bool read_object(struct snapshot *snapshot, const char *key, bool (*read)(struct snapshot *),
                        bool *out_found)
{
    struct json_token token;
    while ((token = next(snapshot)).kind == JSON_KEY) {
        bool is_wanted = sv_is(token.text, key);
        *out_found |= is_wanted;
        bool is_good =
            is_wanted ? read(snapshot) : json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
        if (!is_good)
            return false;
    }
    return token.kind == JSON_OBJECT_END;
}

static bool read_cluster(struct snapshot *snapshot)
{
    struct json_token token = next(snapshot);
    if (token.kind != JSON_OBJECT)
        return refuse(snapshot, token, "cluster", "an object");
    bool has_nodes = false;
    if (!read_object(snapshot, "nodes", read_nodes, &has_nodes))
        return false;
    if (!has_nodes || snapshot->count == 0)
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "the cluster has no nodes");
    return snapshot->count > 0;
}

static bool read_document(struct snapshot *snapshot)
{
    struct json_token token = next(snapshot);
    if (token.kind != JSON_OBJECT)
        return refuse(snapshot, token, "a snapshot", "an object");
    bool has_cluster = false;
    if (!read_object(snapshot, "cluster", read_cluster, &has_cluster))
        return false;
    if (!has_cluster) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "a snapshot needs a 'cluster'");
        diag_hint(snapshot->diag, "write {\"roost\": 1, \"cluster\": {\"nodes\": [...]}}");
        return false;
    }
    return next(snapshot).kind == JSON_END;
}

static ssize_t read_file(void *ctx, char *buf, size_t cap)
{
    return read(*(int *)ctx, buf, cap);
}

bool topology_from_snapshot(struct roost_cluster *cluster, const char *path, struct diag *diag)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        const char *why = strerrordesc_np(errno);
        diag_error(diag, ROOST_ERR_IO, NOWHERE, "cannot open cluster '%s': %s",
                   quote(sv_from(path)).text, why ? why : "error");
        diag_hint(diag, "a cluster is a spec such as 2x8, a snapshot file, or local");
        return false;
    }
    struct snapshot snapshot = {.cluster = cluster, .diag = diag};
    snapshot.json = json_reader_new(path, read_file, &fd, NULL);
    bool is_good = snapshot.json && read_document(&snapshot);
    if (!snapshot.json)
        diag_nomem(diag);
    json_reader_free(snapshot.json);
    close(fd);
    if (is_good) {
        cluster->nodes = arena_array(&cluster->arena, struct cluster_node, snapshot.count);
        is_good = cluster->nodes != NULL;
        if (is_good)
            memcpy(cluster->nodes, snapshot.nodes, (size_t)snapshot.count * sizeof *cluster->nodes);
        else
            diag_nomem(diag);
        cluster->node_count = snapshot.count;
    }
    free(snapshot.nodes);
    return is_good;
}
