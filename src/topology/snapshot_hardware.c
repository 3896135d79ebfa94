/* snapshot_hardware.c - accelerators and other hardware of a node in a snapshot. */
#include <string.h>

#include "topology/snapshot_internal.h"
#include "json/json_writer.h"

enum { UNITS_MAX = 4096 };

/* One accelerator: {"id", "uuid", "pci", "numa"}. */
static bool read_accelerator(struct snapshot *snapshot, struct accelerator *out)
{
    out->numa = -1;
    struct json_event event;
    while ((event = snapshot_next(snapshot)).kind == JSON_KEY) {
        bool is_good = sv_is(event.text, "id")     ? snapshot_text(snapshot, "id", &out->id)
                       : sv_is(event.text, "uuid") ? snapshot_text(snapshot, "uuid", &out->uuid)
                       : sv_is(event.text, "pci")  ? snapshot_text(snapshot, "pci", &out->pci)
                       : sv_is(event.text, "numa")
                           ? snapshot_count(snapshot, "numa", CLUSTER_NODES_MAX, &out->numa)
                           : snapshot_skip(snapshot);
        if (!is_good)
            return false;
    }
    return event.kind == JSON_OBJECT_END;
}

static void say_too_many(struct snapshot *snapshot, struct place at)
{
    diag_error(snapshot->diag, ROOST_ERR_LIMIT, at, "more than %d accelerators on one node",
               CLUSTER_ACCELERATORS_MAX);
    diag_hint(snapshot->diag, "list the rest on another node");
}

bool snapshot_accelerators(struct snapshot *snapshot, struct cluster_node *node, int32_t *count)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind == JSON_NULL)
        return true;
    if (event.kind != JSON_ARRAY)
        return snapshot_refuse(snapshot, event, "accelerators", "an array",
                               "[{\"uuid\": \"...\"}, ...], or num_accelerators instead");
    struct accelerator list[CLUSTER_ACCELERATORS_MAX];
    int32_t filled = 0;
    while ((event = snapshot_next(snapshot)).kind != JSON_ARRAY_END) {
        bool is_good;
        if (event.kind != JSON_OBJECT) {
            is_good = snapshot_refuse(snapshot, event, "an accelerator", "an object",
                                      "{\"uuid\": \"...\"}");
        } else if (filled >= CLUSTER_ACCELERATORS_MAX) {
            if (filled++ == CLUSTER_ACCELERATORS_MAX)
                say_too_many(snapshot, event.at);
            is_good = snapshot_skip(snapshot);
        } else {
            list[filled] = (struct accelerator){0};
            is_good = read_accelerator(snapshot, &list[filled++]);
        }
        if (!is_good)
            return false;
    }
    if (filled > CLUSTER_ACCELERATORS_MAX)
        return true;
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

static bool read_unit_config(struct snapshot *snapshot, struct unit *unit)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_OBJECT)
        return snapshot_refuse(snapshot, event, "the config of a hardware entry", "an object",
                               "{\"key\": \"value\"}, or leave the key out");
    struct text text = TEXT_INIT; /* a robot's config is kept as it was written */
    struct json_writer json = json_writer_on(&text, JSON_SPACED);
    bool is_good = json_put_value(&json, snapshot->json, event, snapshot->diag);
    const char *string = is_good ? text_string(&text) : NULL;
    unit->config = string ? arena_copy(&snapshot->cluster->arena, sv_from(string)) : NULL;
    text_release(&text);
    if (is_good && !unit->config)
        diag_nomem(snapshot->diag);
    return unit->config != NULL;
}

static bool read_unit(struct snapshot *snapshot, struct json_event start, struct cluster_node *node)
{
    struct unit *unit = arena_zeroed(&snapshot->cluster->arena, struct unit, 1);
    if (!unit) {
        diag_nomem(snapshot->diag);
        return false;
    }
    unit->config = "{}";
    bool is_refused = false;
    struct json_event event;
    while ((event = snapshot_next(snapshot)).kind == JSON_KEY) {
        bool is_type = sv_is(event.text, "type");
        size_t errors = snapshot->diag->errors;
        bool is_good = is_type                       ? snapshot_text(snapshot, "type", &unit->type)
                       : sv_is(event.text, "config") ? read_unit_config(snapshot, unit)
                                                     : snapshot_skip(snapshot);
        if (!is_good)
            return false;
        is_refused |= is_type && snapshot->diag->errors > errors;
    }
    if (event.kind != JSON_OBJECT_END)
        return false;
    if (!unit->type && !is_refused) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, start.at, "a hardware entry needs a 'type'");
        diag_hint(snapshot->diag, "add \"type\": \"Franka\", or whatever it is");
    }
    *(node->last_unit ? &node->last_unit->next : &node->units) = unit;
    node->last_unit = unit;
    return true;
}

bool snapshot_hardware(struct snapshot *snapshot, struct cluster_node *node)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_ARRAY)
        return snapshot_refuse(snapshot, event, "hardware", "an array", "[{\"type\": \"Franka\"}]");
    int32_t count = 0;
    while ((event = snapshot_next(snapshot)).kind != JSON_ARRAY_END) {
        bool is_good;
        if (event.kind != JSON_OBJECT) {
            is_good = snapshot_refuse(snapshot, event, "a hardware entry", "an object",
                                      "{\"type\": \"Franka\"}");
        } else if (count >= UNITS_MAX) {
            if (count++ == UNITS_MAX) {
                diag_error(snapshot->diag, ROOST_ERR_LIMIT, event.at,
                           "more than %d hardware entries on one node", UNITS_MAX);
                diag_hint(snapshot->diag, "leave out what no node group counts");
            }
            is_good = snapshot_skip(snapshot);
        } else {
            count++;
            is_good = read_unit(snapshot, event, node);
        }
        if (!is_good)
            return false;
    }
    return true;
}
