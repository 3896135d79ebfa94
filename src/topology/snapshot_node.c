/* snapshot_node.c - one node of a snapshot: its fields, misspelt keys, and whether its fields agree with
 * each other. */
#include "topology/snapshot_internal.h"

static bool read_type(struct snapshot *snapshot, struct cluster_node *node)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_STRING)
        return snapshot_refuse(snapshot, event, "accelerator_type", "a string",
                               "\"NV_GPU\", or leave the key out");
    for (int i = ROOST_ACCELERATOR_NONE; i < ROOST_ACCELERATOR_COUNT; i++) {
        if (sv_is(event.text, roost_accelerator_type((enum roost_accelerator)i))) {
            node->accelerator = (enum roost_accelerator)i;
            return true;
        }
    }
    diag_error(snapshot->diag, ROOST_ERR_SCHEMA, event.at, "accelerator_type '%s' is not known",
               quote(event.text).text);
    diag_hint(snapshot->diag, "known are NV_GPU, AMD_GPU, NPU, INTEL_GPU, MUSA_GPU, KUNLUN_XPU and "
                              "NO_ACCEL");
    return true;
}

/* What a node says of itself must agree with itself. */
static void check_node(struct snapshot *snapshot, struct cluster_node *node, bool has_type,
                       int32_t listed, struct place at)
{
    if (listed >= 0 && node->accelerator_count >= 0 && listed != node->accelerator_count) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, at,
                   "num_accelerators is %d, but %d accelerators are listed",
                   (int)node->accelerator_count, (int)listed);
        diag_hint(snapshot->diag, "write \"num_accelerators\": %d, or leave it out", (int)listed);
        return;
    }
    if (node->accelerator_count < 0)
        node->accelerator_count = listed > 0 ? listed : 0;
    if (!has_type && node->accelerator_count > 0)
        node->accelerator = ROOST_ACCELERATOR_NVIDIA;
    if ((node->accelerator == ROOST_ACCELERATOR_NONE) != (node->accelerator_count == 0)) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, at,
                   "a node of type %s cannot have %d accelerators",
                   roost_accelerator_type(node->accelerator), (int)node->accelerator_count);
        if (node->accelerator_count)
            diag_hint(snapshot->diag, "leave accelerator_type out, or write \"NV_GPU\" or another "
                                      "type that it has");
        else
            diag_hint(snapshot->diag, "write \"NO_ACCEL\", or how many num_accelerators it has");
    }
}

enum node_key {
    NODE_RANK,
    NODE_ID,
    NODE_ADDRESS,
    NODE_CPUS,
    NODE_TYPE,
    NODE_MODEL,
    NODE_COUNT,
    NODE_LIST,
    NODE_HARDWARE,
    NODE_HEAD,
    NODE_RAY,
    NODE_ENV,
    NODE_KEYS
};

static const char *const node_keys[NODE_KEYS] = {"node_rank",
                                                 "id",
                                                 "address",
                                                 "num_cpus",
                                                 "accelerator_type",
                                                 "accelerator_model",
                                                 "num_accelerators",
                                                 "accelerators",
                                                 "hardware",
                                                 "head",
                                                 "ray",
                                                 "env"};

/* What a node has that is not known: left alone, unless it is a slip for a key that is missing. */
struct slips {
    uint32_t seen;  /* bit k: node_keys[k] is there */
    uint32_t meant; /* bit k: a key that is not known is near to it */
    struct {
        struct place at;
        struct quote key;
    } first[NODE_KEYS]; /* of those near to node_keys[k] */
};

/* Whether two words differ in at most two neighbouring letters. */
static bool is_near(struct strview a, struct strview b)
{
    enum { SHORTEST = 4, APART = 2 };
    if (a.len < SHORTEST || b.len < SHORTEST)
        return false;
    size_t head = 0, tail = 0, least = a.len < b.len ? a.len : b.len;
    while (head < least && a.at[head] == b.at[head])
        head++;
    while (tail < least - head && a.at[a.len - 1 - tail] == b.at[b.len - 1 - tail])
        tail++;
    return a.len - head - tail <= APART && b.len - head - tail <= APART;
}

static void note_unknown(struct slips *slips, struct json_event event)
{
    /* Near to num_cpus, but not what is meant by it. */
    struct strview text = sv_is(event.text, "num_gpus") ? SV("num_accelerators") : event.text;
    for (int k = 0; k < NODE_KEYS; k++) {
        if (slips->meant & 1U << k || !is_near(text, sv_from(node_keys[k])))
            continue;
        slips->meant |= 1U << k;
        slips->first[k].at = event.at;
        slips->first[k].key = quote(event.text);
        return;
    }
}

static void check_slips(struct snapshot *snapshot, const struct slips *slips)
{
    for (int k = 0; k < NODE_KEYS; k++) {
        if (!(slips->meant & ~slips->seen & 1U << k))
            continue;
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, slips->first[k].at, "key '%s' is not known",
                   slips->first[k].key.text);
        diag_hint(snapshot->diag, "did you mean '%s'?", node_keys[k]);
        snapshot->has_bad_rank |= k == NODE_RANK;
    }
}

static bool read_rank(struct snapshot *snapshot, struct cluster_node *node)
{
    size_t errors = snapshot->diag->errors;
    bool is_good = snapshot_count(snapshot, "node_rank", ROOST_RANK_MAX, &node->explicit_rank);
    snapshot->has_bad_rank |= snapshot->diag->errors > errors;
    return is_good;
}

static bool read_head(struct snapshot *snapshot, struct cluster_node *node)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_TRUE && event.kind != JSON_FALSE)
        return snapshot_refuse(snapshot, event, "head", "true or false",
                               "true for the head node of a Ray cluster, or leave the key out");
    node->is_head = event.kind == JSON_TRUE;
    return true;
}

/* The value of one key of a node; that of NODE_KEYS, a key that is not known, is skipped. */
static bool read_field(struct snapshot *snapshot, int key, struct cluster_node *node,
                       struct snapshot_facts *facts, int32_t *out_listed)
{
    switch ((enum node_key)key) {
    case NODE_RANK: return read_rank(snapshot, node);
    case NODE_ID: return snapshot_text(snapshot, "id", &node->id);
    case NODE_ADDRESS: return snapshot_text(snapshot, "address", &node->address);
    case NODE_CPUS: return snapshot_count(snapshot, "num_cpus", CLUSTER_NODES_MAX, &node->num_cpus);
    case NODE_TYPE: return read_type(snapshot, node);
    case NODE_MODEL: return snapshot_text(snapshot, "accelerator_model", &node->model);
    case NODE_COUNT:
        return snapshot_count(snapshot, "num_accelerators", CLUSTER_ACCELERATORS_MAX,
                              &node->accelerator_count);
    case NODE_LIST: return snapshot_accelerators(snapshot, node, out_listed);
    case NODE_HARDWARE: return snapshot_hardware(snapshot, node);
    case NODE_HEAD: return read_head(snapshot, node);
    case NODE_RAY: return snapshot_ray(snapshot, facts);
    case NODE_ENV: return snapshot_env(snapshot, facts);
    case NODE_KEYS: break;
    }
    return snapshot_skip(snapshot);
}

bool snapshot_node(struct snapshot *snapshot, struct place at, struct cluster_node *node)
{
    *node = (struct cluster_node){.num_cpus = -1, .explicit_rank = -1, .accelerator_count = -1};
    struct snapshot_facts facts = {.labelled = ROOST_ACCELERATOR_NVIDIA};
    int32_t listed = -1;
    size_t errors = snapshot->diag->errors;
    struct slips slips;
    struct json_event event;
    slips.seen = slips.meant = 0;
    while ((event = snapshot_next(snapshot)).kind == JSON_KEY) {
        int key = 0;
        while (key < NODE_KEYS && !sv_is(event.text, node_keys[key]))
            key++;
        if (key < NODE_KEYS)
            slips.seen |= 1U << key;
        else
            note_unknown(&slips, event);
        if (!read_field(snapshot, key, node, &facts, &listed))
            return false;
    }
    if (event.kind != JSON_OBJECT_END)
        return false;
    check_slips(snapshot, &slips);
    /* Values that were refused would not agree either. */
    if (snapshot->diag->errors == errors)
        check_node(snapshot, node, slips.seen & 1U << NODE_TYPE, listed, at);
    if (snapshot->diag->errors == errors)
        snapshot_settle_accelerators(snapshot, &facts, node);
    snapshot_settle_rank(snapshot, &facts, node);
    return true;
}
