/* ray_join.c - the JSON between the driver and the bridge to Ray (roost._ray.bridge). */
#include "agent/ray_join.h"

#include <string.h>

#include "config/config.h"
#include "topology/cluster.h"
#include "json/json_writer.h"

enum { ENV_MAX = 1 << 16, VARIABLE_MAX = 1 << 20 };

/* --- to the bridge --- */

/* Marks the accelerators that the component's processes hold on a node. */
static void mark_devices(const struct ray_join *join, const struct roost_component *it,
                         int32_t node, bool *is_held)
{
    for (int32_t rank = 0; rank < it->world_size; rank++) {
        if (it->cluster_node_rank[rank] != node ||
            !roost_component_holds_accelerators(it, join->cluster, rank))
            continue;
        for (int32_t i = it->first_hardware[rank]; i < it->first_hardware[rank + 1]; i++)
            if (it->hardware[i] < CLUSTER_ACCELERATORS_MAX)
                is_held[it->hardware[i]] = true;
    }
}

static void put_agent(struct json_writer *json, const struct ray_join *join, int32_t node)
{
    bool is_held[CLUSTER_ACCELERATORS_MAX] = {false};
    const char *id = join->cluster->nodes[node].id;
    for (int32_t c = 0; c < join->commands->component_count; c++)
        mark_devices(join, join->commands->components[c].placed, node, is_held);
    json_open_object(json);
    json_put_int(json_key(json, "node"), node);
    json_put_string(json_key(json, "id"), id);
    json_open_array(json_key(json, "devices"));
    for (int32_t i = 0; i < CLUSTER_ACCELERATORS_MAX; i++)
        if (is_held[i])
            json_put_int(json, i);
    json_close(json);
    json_close(json);
}

void ray_join_put(struct text *out, const struct ray_join *join)
{
    const struct roost_config *config = join->config;
    struct json_writer json = json_writer_on(out, JSON_COMPACT);
    json_open_object(&json);
    json_put_string(json_key(&json, "run"), join->run_id);
    json_put_int(json_key(&json, "num_nodes"), config->num_nodes);
    json_put_int(json_key(&json, "wait_ms"), join->wait_ms);
    json_put_bool(json_key(&json, "reserve"), roost_config_ray_reserves(config));
    json_put_string(json_key(&json, "address"), roost_config_ray_address(config));
    json_put_raw(json_key(&json, "view"), join->view.len ? join->view : SV("null"));
    json_open_array(json_key(&json, "agents"));
    for (int32_t i = 0; i < join->agent_count; i++)
        put_agent(&json, join, join->node_of_agent[i]);
    json_close(&json);
    json_close(&json);
}

/* --- from it --- */

/* ["NAME=value", ...] as strings; NULL after reporting why not. */
static const char *const *read_env(struct json_reader *json, struct arena *arena, struct diag *diag)
{
    const char **env = NULL;
    int32_t count = 0, room = 0;
    struct json_event event = json_next(json, diag);
    if (event.kind != JSON_ARRAY)
        return NULL;
    while ((event = json_next(json, diag)).kind == JSON_STRING && count < ENV_MAX) {
        if (count + 1 >= room) {
            room = room ? 2 * room : 64;
            const char **grown = arena_array(arena, const char *, room);
            if (grown && count)
                memcpy(grown, env, (size_t)count * sizeof *grown);
            env = grown;
        }
        const char *entry = env ? arena_copy(arena, event.text) : NULL;
        if (!entry) {
            diag_nomem(diag);
            return NULL;
        }
        env[count++] = entry;
    }
    if (!env)
        env = arena_array(arena, const char *, 1);
    if (event.kind != JSON_ARRAY_END || !env)
        return NULL;
    env[count] = NULL;
    return env;
}

static bool read_envs(struct ray_joined *out, struct json_reader *json, struct arena *arena,
                      int32_t agent_count, struct diag *diag)
{
    out->env_of_agent = arena_zeroed(arena, const char *const *, agent_count + 1);
    if (!out->env_of_agent || json_next(json, diag).kind != JSON_ARRAY)
        return false;
    for (int32_t i = 0; i < agent_count; i++)
        if (!(out->env_of_agent[i] = read_env(json, arena, diag)))
            return false;
    return json_next(json, diag).kind == JSON_ARRAY_END;
}

bool ray_joined_read(struct ray_joined *out, struct arena *arena, struct strview text,
                     int32_t agent_count, struct diag *diag)
{
    size_t errors = diag->errors;
    struct json_limits limits = {.max_string = VARIABLE_MAX};
    struct json_reader *json = json_reader_from_text("the answer of Ray", text, &limits);
    *out = (struct ray_joined){0};
    bool is_good = json && json_next(json, diag).kind == JSON_OBJECT;
    struct json_event event;
    while (is_good && (event = json_next(json, diag)).kind == JSON_KEY) {
        if (sv_is(event.text, "namespace")) {
            event = json_next(json, diag);
            out->name_space = event.kind == JSON_STRING ? arena_copy(arena, event.text) : NULL;
        } else if (sv_is(event.text, "env")) {
            is_good = read_envs(out, json, arena, agent_count, diag);
        } else {
            is_good = json_skip(json, diag) == ROOST_OK;
        }
    }
    json_reader_free(json);
    if (is_good && out->name_space && out->env_of_agent)
        return true;
    if (diag->errors == errors) {
        diag_error(diag, ROOST_ERR_BUG, NOWHERE,
                   "the bridge to Ray gave no answer that can be read");
        diag_hint(diag, "let ROOST_PYTHON be a Python with the same roost as this program");
    }
    return false;
}
