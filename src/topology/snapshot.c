/* snapshot.c - a cluster from a snapshot file: {"roost": 1, "cluster": {"nodes": [...]}}.
 *
 * Streamed: the file may be a gigabyte, memory follows the nodes in it. A plan document is a
 * snapshot too, as it holds the same `cluster`. Keys that are not known are left alone, so that later
 * versions may add some; node groups come from the config, not from here. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology/snapshot_internal.h"

bool snapshot_refuse(struct snapshot *snapshot, struct json_token token, const char *what,
                     const char *wanted, const char *example)
{
    if (token.kind == JSON_FAILED)
        return false; /* it was said */
    diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "%s must be %s, not %s", what, wanted,
               json_kind_words(token.kind));
    diag_hint(snapshot->diag, "write %s", example);
    return false;
}

struct json_token snapshot_next(struct snapshot *snapshot)
{
    return json_next(snapshot->json, snapshot->diag);
}

bool snapshot_text(struct snapshot *snapshot, const char *what, const char **out)
{
    struct json_token token = snapshot_next(snapshot);
    if (token.kind == JSON_NULL)
        return true;
    if (token.kind != JSON_STRING)
        return snapshot_refuse(snapshot, token, what, "a string or null",
                               "it in double quotes, or null");
    *out = arena_copy(&snapshot->cluster->arena, token.text);
    if (!*out)
        diag_nomem(snapshot->diag);
    return *out != NULL;
}

bool snapshot_count(struct snapshot *snapshot, const char *what, int32_t max, int32_t *out)
{
    struct json_token token = snapshot_next(snapshot);
    int64_t value;
    if (token.kind == JSON_NULL)
        return true;
    if (token.kind != JSON_NUMBER)
        return snapshot_refuse(snapshot, token, what, "a number or null",
                               "digits without quotes, or null");
    if (!json_int(token, 0, max, &value)) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at,
                   "%s must be a whole number from 0 to %d, not '%s'", what, (int)max,
                   quote(token.text).text);
        if (json_int(token, 0, INT64_MAX, &value))
            diag_hint(snapshot->diag, "write %d or less, or null", (int)max);
        else
            diag_hint(snapshot->diag, "write digits only, such as 1, or null");
        return false;
    }
    *out = (int32_t)value;
    return true;
}

static bool read_type(struct snapshot *snapshot, struct cluster_node *node)
{
    struct json_token token = snapshot_next(snapshot);
    if (token.kind != JSON_STRING)
        return snapshot_refuse(snapshot, token, "accelerator_type", "a string",
                               "\"NV_GPU\", or leave the key out");
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

/* What a node says of itself must agree with itself. */
static bool check_node(struct snapshot *snapshot, struct cluster_node *node, bool has_type,
                       int32_t listed, struct place at)
{
    if (listed >= 0 && node->accelerator_count >= 0 && listed != node->accelerator_count) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, at,
                   "num_accelerators is %d, but %d accelerators are listed",
                   (int)node->accelerator_count, (int)listed);
        diag_hint(snapshot->diag, "write \"num_accelerators\": %d, or leave it out", (int)listed);
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
        if (node->accelerator_count)
            diag_hint(snapshot->diag, "leave accelerator_type out, or write \"NV_GPU\" or another "
                                      "type that it has");
        else
            diag_hint(snapshot->diag, "write \"NO_ACCEL\", or how many num_accelerators it has");
        return false;
    }
    return true;
}

static const char *const node_keys[] = {"node_rank",        "id",
                                        "address",          "num_cpus",
                                        "accelerator_type", "accelerator_model",
                                        "num_accelerators", "accelerators",
                                        "hardware"};
enum { NODE_KEYS = sizeof node_keys / sizeof *node_keys };

/* What a node has that is not known: left alone, unless it is a slip for a key that is missing. */
struct slip {
    uint32_t seen; /* bit k: node_keys[k] is there */
    int meant;     /* index of node_keys */
    struct place at;
    struct quote key;
    bool is_there;
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

static void note_unknown(struct slip *slip, struct json_token token)
{
    /* Near to num_cpus, but not what is meant by it. */
    struct strview text = sv_is(token.text, "num_gpus") ? SV("num_accelerators") : token.text;
    if (slip->is_there && !(slip->seen & 1U << slip->meant))
        return; /* the first is enough */
    for (int k = 0; k < NODE_KEYS; k++)
        if (is_near(text, sv_from(node_keys[k])))
            *slip = (struct slip){slip->seen, k, token.at, quote(token.text), true};
}

static bool check_slip(struct snapshot *snapshot, const struct slip *slip)
{
    if (!slip->is_there || slip->seen & 1U << slip->meant)
        return true;
    diag_error(snapshot->diag, ROOST_ERR_SCHEMA, slip->at, "key '%s' is not known", slip->key.text);
    diag_hint(snapshot->diag, "did you mean '%s'?", node_keys[slip->meant]);
    return false;
}

static bool read_node(struct snapshot *snapshot, struct place at, struct cluster_node *node)
{
    *node = (struct cluster_node){.num_cpus = -1, .explicit_rank = -1, .accelerator_count = -1};
    bool has_type = false;
    int32_t listed = -1;
    struct slip slip = {0};
    struct json_token token;
    while ((token = snapshot_next(snapshot)).kind == JSON_KEY) {
        bool is_good;
        for (int k = 0; k < NODE_KEYS; k++)
            slip.seen |= sv_is(token.text, node_keys[k]) ? 1U << k : 0;
        if (sv_is(token.text, "node_rank"))
            is_good = snapshot_count(snapshot, "node_rank", ROOST_RANK_MAX, &node->explicit_rank);
        else if (sv_is(token.text, "id"))
            is_good = snapshot_text(snapshot, "id", &node->id);
        else if (sv_is(token.text, "address"))
            is_good = snapshot_text(snapshot, "address", &node->address);
        else if (sv_is(token.text, "num_cpus"))
            is_good = snapshot_count(snapshot, "num_cpus", CLUSTER_NODES_MAX, &node->num_cpus);
        else if (sv_is(token.text, "accelerator_type"))
            has_type = is_good = read_type(snapshot, node);
        else if (sv_is(token.text, "accelerator_model"))
            is_good = snapshot_text(snapshot, "accelerator_model", &node->model);
        else if (sv_is(token.text, "num_accelerators"))
            is_good = snapshot_count(snapshot, "num_accelerators", CLUSTER_ACCELERATORS_MAX,
                                     &node->accelerator_count);
        else if (sv_is(token.text, "accelerators"))
            is_good = snapshot_accelerators(snapshot, node, &listed);
        else if (sv_is(token.text, "hardware"))
            is_good = snapshot_hardware(snapshot, node);
        else {
            note_unknown(&slip, token);
            is_good = json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
        }
        if (!is_good)
            return false;
    }
    return token.kind == JSON_OBJECT_END && check_slip(snapshot, &slip) &&
           check_node(snapshot, node, has_type, listed, at);
}

static bool add_node(struct snapshot *snapshot, struct place at)
{
    if (snapshot->count == CLUSTER_NODES_MAX) {
        diag_error(snapshot->diag, ROOST_ERR_LIMIT, at, "more than %d nodes", CLUSTER_NODES_MAX);
        diag_hint(snapshot->diag, "leave out nodes that nothing is placed on");
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
    struct json_token token = snapshot_next(snapshot);
    if (token.kind != JSON_ARRAY)
        return snapshot_refuse(snapshot, token, "nodes", "an array",
                               "[{\"num_accelerators\": 8}, ...]");
    while ((token = snapshot_next(snapshot)).kind == JSON_OBJECT)
        if (!add_node(snapshot, token.at))
            return false;
    return token.kind == JSON_ARRAY_END ||
           snapshot_refuse(snapshot, token, "a node", "an object", "{\"num_accelerators\": 8}");
}

static bool read_cluster(struct snapshot *snapshot)
{
    struct json_token token = snapshot_next(snapshot);
    if (token.kind != JSON_OBJECT)
        return snapshot_refuse(snapshot, token, "cluster", "an object",
                               "{\"nodes\": [{\"num_accelerators\": 8}]}");
    bool has_nodes = false;
    struct json_token key;
    while ((key = snapshot_next(snapshot)).kind == JSON_KEY) {
        bool is_nodes = sv_is(key.text, "nodes");
        has_nodes |= is_nodes;
        if (is_nodes ? !read_nodes(snapshot)
                     : json_skip(snapshot->json, snapshot->diag) != ROOST_OK)
            return false;
    }
    if (key.kind != JSON_OBJECT_END)
        return false;
    if (!has_nodes || snapshot->count == 0) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "the cluster has no nodes");
        diag_hint(snapshot->diag, "list them: \"nodes\": [{\"num_accelerators\": 8}]");
    }
    return snapshot->count > 0;
}

/* The version of the document; what is no number is not taken for one. */
static bool read_version(struct snapshot *snapshot)
{
    enum { VERSION = 1 };
    struct json_token token = snapshot_next(snapshot);
    int64_t value;
    if (token.kind == JSON_NUMBER && !json_int(token, VERSION, VERSION, &value)) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "snapshot version %s is not known",
                   quote(token.text).text);
        diag_hint(snapshot->diag, "write \"roost\": %d, or read it with a newer roost", VERSION);
        return false;
    }
    return json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
}

static bool read_document(struct snapshot *snapshot)
{
    struct json_token token = snapshot_next(snapshot);
    if (token.kind != JSON_OBJECT)
        return snapshot_refuse(snapshot, token, "a snapshot", "an object",
                               "{\"roost\": 1, \"cluster\": {\"nodes\": [...]}}");
    bool has_cluster = false;
    struct json_token key;
    while ((key = snapshot_next(snapshot)).kind == JSON_KEY) {
        bool is_cluster = sv_is(key.text, "cluster");
        has_cluster |= is_cluster;
        bool is_good = is_cluster ? read_cluster(snapshot)
                       : sv_is(key.text, "roost")
                           ? read_version(snapshot)
                           : json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
        if (!is_good)
            return false;
    }
    if (key.kind != JSON_OBJECT_END)
        return false;
    if (!has_cluster) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, token.at, "a snapshot needs a 'cluster'");
        diag_hint(snapshot->diag, "write {\"roost\": 1, \"cluster\": {\"nodes\": [...]}}");
        return false;
    }
    return snapshot_next(snapshot).kind == JSON_END;
}

static ssize_t read_file(void *ctx, char *buf, size_t cap)
{
    return read(*(int *)ctx, buf, cap);
}

/* The whole of a small file, so that errors can show its lines; large ones and pipes are streamed.
 * *out_text is the caller's to free. */
static struct json_reader *open_reader(const char *path, int *fd, char **out_text)
{
    enum { SMALL = 1024 * 1024 };
    struct stat about;
    bool is_small = fstat(*fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
                    about.st_size <= SMALL;
    char *text = is_small ? malloc((size_t)about.st_size) : NULL;
    size_t len = 0;
    for (ssize_t got = 1; text && got > 0 && len < (size_t)about.st_size; len += (size_t)got) {
        got = pread(*fd, text + len, (size_t)about.st_size - len, (off_t)len);
        got = got < 0 ? 0 : got;
    }
    if (!text || len < (size_t)about.st_size) {
        free(text); /* it cannot be had at once: the stream says why */
        return json_reader_new(path, read_file, fd, NULL);
    }
    *out_text = text;
    return json_reader_from_text(path, (struct strview){text, len}, NULL);
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
    char *text = NULL;
    snapshot.json = open_reader(path, &fd, &text);
    bool is_good = snapshot.json && read_document(&snapshot);
    if (!snapshot.json)
        diag_nomem(diag);
    json_reader_free(snapshot.json);
    free(text);
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
