/* snapshot_facts.c - raw facts about a node, as a probe of a Ray cluster wrote them down:
 *
 *     "ray": {"resources": {"GPU": 8.0}, "accelerator_type": "AMD-Instinct-MI300X"}
 *     "env": {"ROOST_NODE_RANK": "1", "RLINF_NODE_RANK": "0"}
 *
 * Only this file decides what they mean: how many accelerators the node has, of which type, and which rank
 * it was given. Facts are read first and settled when the whole node has been read, because messages name
 * the node's address, which may follow them. */
#include "base/amount.h"
#include "base/number.h"
#include "topology/snapshot_internal.h"

/* Ray's names for accelerators, as enum ray_resource has them: the first that is there counts. */
static const char *const resources[RAY_RESOURCES] = {"GPU", "NPU"};

static enum ray_resource counted_as(bool has_gpu, bool has_npu)
{
    return has_npu && !has_gpu ? RAY_NPU : RAY_GPU;
}

const char *roost_ray_resource(double gpus, double npus)
{
    return resources[counted_as(gpus >= 1, npus >= 1)];
}

/* Where a node's rank is looked for, in this order. */
static const char *const rank_names[RANK_VARIABLES] = {"ROOST_NODE_RANK", "RLINF_NODE_RANK"};

/* Nobody knows the lines of a text that a program made up. */
static struct place seen_at(const struct snapshot *snapshot, struct place at)
{
    return snapshot->is_file ? at : NOWHERE;
}

/* How a sentence names the node. */
static struct quote name_of(const struct cluster_node *node)
{
    return quote(sv_from(node->address ? node->address : node->id ? node->id : "?"));
}

/* --- Ray's own count --- */

/* Ray counts in fractions, and writes 8 as 8.0; part of an accelerator is none. */
static bool read_amount(struct snapshot *snapshot, const char *name, struct ray_count *out)
{
    struct json_event event = snapshot_next(snapshot);
    int64_t amount;
    if (event.kind == JSON_NULL)
        return true;
    if (event.kind != JSON_NUMBER)
        return snapshot_refuse(snapshot, event, name, "a number or null",
                               "how many Ray was told of, without quotes");
    if (amount_parse(event.text, (int64_t)ROOST_RANK_MAX * AMOUNT_ONE, &amount) != AMOUNT_OK) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, event.at,
                   "Ray's resource %s must be a number from 0 to %d, not '%s'", name,
                   ROOST_RANK_MAX, quote(event.text).text);
        diag_hint(snapshot->diag, "write how many Ray was told of, such as 8 or 8.0");
        return true;
    }
    out->count = (int32_t)(amount / AMOUNT_ONE);
    out->at = event.at;
    return true;
}

static bool read_resources(struct snapshot *snapshot, struct snapshot_facts *facts)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_OBJECT)
        return snapshot_refuse(snapshot, event, "resources", "an object", "{\"GPU\": 8}");
    while ((event = snapshot_next(snapshot)).kind == JSON_KEY) {
        int i = 0;
        while (i < RAY_RESOURCES && !sv_is(event.text, resources[i]))
            i++;
        if (i < RAY_RESOURCES ? !read_amount(snapshot, resources[i], &facts->counts[i])
                              : !snapshot_skip(snapshot))
            return false;
    }
    return event.kind == JSON_OBJECT_END;
}

static bool holds_word(struct strview text, const char *lower)
{
    size_t len = strlen(lower);
    for (size_t i = 0; i + len <= text.len; i++)
        if (sv_is_nocase(sv_sub(text, i, i + len), lower))
            return true;
    return false;
}

/* The type of what Ray's label calls by its model; NVIDIA's models are called anything. */
static enum roost_accelerator type_of_label(struct strview label)
{
    static const struct {
        const char *word;
        enum roost_accelerator type;
    } families[] = {
        {"amd", ROOST_ACCELERATOR_AMD},
        {"instinct", ROOST_ACCELERATOR_AMD},
        {"ascend", ROOST_ACCELERATOR_ASCEND},
        {"intel", ROOST_ACCELERATOR_INTEL},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (holds_word(label, families[i].word))
            return families[i].type;
    return ROOST_ACCELERATOR_NVIDIA;
}

static bool read_label(struct snapshot *snapshot, struct snapshot_facts *facts)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind == JSON_NULL)
        return true;
    if (event.kind != JSON_STRING)
        return snapshot_refuse(snapshot, event, "Ray's accelerator_type", "a string or null",
                               "Ray's label of the node in double quotes, or null");
    facts->labelled = type_of_label(event.text);
    return true;
}

bool snapshot_ray(struct snapshot *snapshot, struct snapshot_facts *facts)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_OBJECT)
        return snapshot_refuse(snapshot, event, "ray", "an object",
                               "{\"resources\": {\"GPU\": 8}}");
    while ((event = snapshot_next(snapshot)).kind == JSON_KEY) {
        bool is_good = sv_is(event.text, "resources")          ? read_resources(snapshot, facts)
                       : sv_is(event.text, "accelerator_type") ? read_label(snapshot, facts)
                                                               : snapshot_skip(snapshot);
        if (!is_good)
            return false;
    }
    return event.kind == JSON_OBJECT_END;
}

/* Of a node for which only Ray can tell. */
static void take_rays(struct snapshot *snapshot, const struct ray_count *told,
                      enum roost_accelerator type, struct cluster_node *node)
{
    if (told->count > CLUSTER_ACCELERATORS_MAX) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, seen_at(snapshot, told->at),
                   "Ray was told of %d accelerators on node %s; at most %d can be numbered",
                   (int)told->count, name_of(node).text, CLUSTER_ACCELERATORS_MAX);
        diag_hint(snapshot->diag, "start Ray there with as many as there are");
        return;
    }
    node->accelerator = type;
    node->accelerator_count = told->count;
    node->model = NULL;
    node->accelerators = NULL; /* an empty list told of none, but Ray counts some */
}

void snapshot_settle_accelerators(struct snapshot *snapshot, const struct snapshot_facts *facts,
                                  struct cluster_node *node)
{
    enum ray_resource kind =
        counted_as(facts->counts[RAY_GPU].count > 0, facts->counts[RAY_NPU].count > 0);
    const struct ray_count *told = &facts->counts[kind];
    int32_t found = node->accelerator_count;
    if (told->count == 0 || told->count == found)
        return;
    if (found == 0) {
        take_rays(snapshot, told, kind == RAY_GPU ? facts->labelled : ROOST_ACCELERATOR_ASCEND,
                  node);
        return;
    }
    int32_t fewer = told->count < found ? told->count : found;
    diag_warn(snapshot->diag, ROOST_WARN_COUNTS, seen_at(snapshot, told->at),
              "node %s has %d accelerators, but Ray was told of %d there: %d are used",
              name_of(node).text, (int)found, (int)told->count, (int)fewer);
    node->accelerator_count = fewer; /* of those that are listed, the first */
}

/* --- the rank that the node was given before Ray was started there --- */

static bool read_rank_text(struct snapshot *snapshot, const char *name, struct rank_text *out)
{
    struct json_event event = snapshot_next(snapshot);
    int64_t rank = -1;
    if (event.kind == JSON_NULL)
        return true;
    if (event.kind != JSON_STRING) {
        snapshot->has_bad_rank = true;
        return snapshot_refuse(snapshot, event, name, "a string or null",
                               "its value in double quotes, or null");
    }
    if (number_parse(event.text, ROOST_RANK_MAX, &rank) != NUMBER_OK)
        rank = -1;
    *out = (struct rank_text){.is_set = event.text.len > 0,
                              .rank = (int32_t)rank,
                              .text = quote(event.text),
                              .at = event.at};
    return true;
}

bool snapshot_env(struct snapshot *snapshot, struct snapshot_facts *facts)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_OBJECT) {
        snapshot->has_bad_rank = true;
        return snapshot_refuse(snapshot, event, "env", "an object", "{\"ROOST_NODE_RANK\": \"0\"}");
    }
    while ((event = snapshot_next(snapshot)).kind == JSON_KEY) {
        int i = 0;
        while (i < RANK_VARIABLES && !sv_is(event.text, rank_names[i]))
            i++;
        if (i < RANK_VARIABLES ? !read_rank_text(snapshot, rank_names[i], &facts->ranks[i])
                               : !snapshot_skip(snapshot))
            return false;
    }
    return event.kind == JSON_OBJECT_END;
}

void snapshot_settle_rank(struct snapshot *snapshot, const struct snapshot_facts *facts,
                          struct cluster_node *node)
{
    int i = 0;
    while (i < RANK_VARIABLES && !facts->ranks[i].is_set)
        i++;
    if (i == RANK_VARIABLES || node->explicit_rank >= 0)
        return;
    node->explicit_rank = facts->ranks[i].rank;
    snapshot->has_given_rank = true;
    if (node->explicit_rank >= 0)
        return;
    snapshot->has_bad_rank = true;
    diag_error(snapshot->diag, ROOST_ERR_SCHEMA, seen_at(snapshot, facts->ranks[i].at),
               "%s of node %s is '%s', which is no node rank", rank_names[i], name_of(node).text,
               facts->ranks[i].text.text);
    diag_hint(snapshot->diag, "set it to 0, 1, ... before `ray start` there");
}
