/* snapshot.c - a cluster from a snapshot file: {"roost": 1, "cluster": {"nodes": [...]}}.
 *
 * The file is streamed: it may be a gigabyte, and memory grows only with its nodes. A plan document is a
 * snapshot too, because it has the same `cluster`. Unknown keys are ignored, so that later versions may add
 * some. Node groups come from the config, not from here.
 *
 * A file that a config names may be any file that the user can read. It counts as a snapshot when its first
 * key is "roost"; before that, no message quotes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "topology/snapshot_internal.h"

bool snapshot_refuse(struct snapshot *snapshot, struct json_event event, const char *what,
                     const char *wanted, const char *example)
{
    if (event.kind == JSON_FAILED)
        return false; /* it was reported */
    diag_error(snapshot->diag, ROOST_ERR_SCHEMA, event.at, "%s must be %s, not %s", what, wanted,
               json_kind_words(event.kind));
    diag_hint(snapshot->diag, "write %s", example);
    return snapshot_skip(snapshot);
}

bool snapshot_skip(struct snapshot *snapshot)
{
    return json_skip(snapshot->json, snapshot->diag) == ROOST_OK;
}

struct json_event snapshot_next(struct snapshot *snapshot)
{
    return json_next(snapshot->json, snapshot->diag);
}

bool snapshot_text(struct snapshot *snapshot, const char *what, const char **out)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind == JSON_NULL)
        return true;
    if (event.kind != JSON_STRING)
        return snapshot_refuse(snapshot, event, what, "a string or null",
                               "it in double quotes, or null");
    *out = arena_copy(&snapshot->cluster->arena, event.text);
    if (!*out)
        diag_nomem(snapshot->diag);
    return *out != NULL;
}

bool snapshot_count(struct snapshot *snapshot, const char *what, int32_t max, int32_t *out)
{
    struct json_event event = snapshot_next(snapshot);
    int64_t value;
    if (event.kind == JSON_NULL)
        return true;
    if (event.kind != JSON_NUMBER)
        return snapshot_refuse(snapshot, event, what, "a number or null",
                               "digits without quotes, or null");
    if (!json_int(event, 0, max, &value)) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, event.at,
                   "%s must be a whole number from 0 to %d, not '%s'", what, (int)max,
                   quote(event.text).text);
        if (json_int(event, 0, INT64_MAX, &value))
            diag_hint(snapshot->diag, "write %d or less, or null", (int)max);
        else
            diag_hint(snapshot->diag, "write digits only, such as 1, or null");
        return true;
    }
    *out = (int32_t)value;
    return true;
}

static bool add_node(struct snapshot *snapshot, struct place at)
{
    if (snapshot->count == CLUSTER_NODES_MAX) {
        if (!snapshot->is_full) {
            diag_error(snapshot->diag, ROOST_ERR_LIMIT, at, "more than %d nodes",
                       CLUSTER_NODES_MAX);
            diag_hint(snapshot->diag, "leave out nodes that nothing is placed on");
        }
        snapshot->is_full = snapshot->has_bad_rank = true;
        return snapshot_skip(snapshot);
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
    return snapshot_node(snapshot, at, &snapshot->nodes[snapshot->count++]);
}

static bool read_nodes(struct snapshot *snapshot)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_ARRAY)
        return snapshot_refuse(snapshot, event, "nodes", "an array",
                               "[{\"num_accelerators\": 8}, ...]");
    while ((event = snapshot_next(snapshot)).kind != JSON_ARRAY_END) {
        if (event.kind == JSON_OBJECT) {
            if (!add_node(snapshot, event.at))
                return false;
            continue;
        }
        snapshot->has_bad_rank = true; /* as long as a node is missing, so is its rank */
        if (!snapshot_refuse(snapshot, event, "a node", "an object", "{\"num_accelerators\": 8}"))
            return false;
    }
    return true;
}

static bool read_cluster(struct snapshot *snapshot)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_OBJECT)
        return snapshot_refuse(snapshot, event, "cluster", "an object",
                               "{\"nodes\": [{\"num_accelerators\": 8}]}");
    size_t errors = snapshot->diag->errors;
    struct json_event key;
    while ((key = snapshot_next(snapshot)).kind == JSON_KEY)
        if (sv_is(key.text, "nodes") ? !read_nodes(snapshot) : !snapshot_skip(snapshot))
            return false;
    if (key.kind != JSON_OBJECT_END)
        return false;
    /* What was refused may have been meant for one. */
    if (snapshot->count == 0 && snapshot->diag->errors == errors) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, event.at, "the cluster has no nodes");
        diag_hint(snapshot->diag, "list them: \"nodes\": [{\"num_accelerators\": 8}]");
    }
    return true;
}

/* The version of the document; what is not a number is not taken for one. */
static bool read_version(struct snapshot *snapshot)
{
    enum { VERSION = 1 };
    struct json_event event = snapshot_next(snapshot);
    int64_t value;
    if (event.kind == JSON_NUMBER && !json_int(event, VERSION, VERSION, &value)) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, event.at, "snapshot version %s is not known",
                   quote(event.text).text);
        diag_hint(snapshot->diag, "write \"roost\": %d, or read it with a newer roost", VERSION);
    }
    return snapshot_skip(snapshot);
}

static bool read_document(struct snapshot *snapshot)
{
    struct json_event event = snapshot_next(snapshot);
    if (event.kind != JSON_OBJECT) /* what it is instead has nothing to say */
        return snapshot_refuse(snapshot, event, "a snapshot", "an object",
                               "{\"roost\": 1, \"cluster\": {\"nodes\": [...]}}");
    bool has_cluster = false, is_first = true;
    struct json_event key;
    while ((key = snapshot_next(snapshot)).kind == JSON_KEY) {
        if (is_first && sv_is(key.text, "roost"))
            snapshot->diag = snapshot->known;
        is_first = false;
        bool is_cluster = sv_is(key.text, "cluster");
        has_cluster |= is_cluster;
        bool is_good = is_cluster                 ? read_cluster(snapshot)
                       : sv_is(key.text, "roost") ? read_version(snapshot)
                                                  : snapshot_skip(snapshot);
        if (!is_good)
            return false;
    }
    if (key.kind != JSON_OBJECT_END)
        return false;
    if (!has_cluster) {
        diag_error(snapshot->diag, ROOST_ERR_SCHEMA, event.at, "a snapshot needs a 'cluster'");
        diag_hint(snapshot->diag, "write {\"roost\": 1, \"cluster\": {\"nodes\": [...]}}");
    }
    return snapshot_next(snapshot).kind == JSON_END;
}

/* The file behind a reader, and what of a pipe was read ahead. */
struct input {
    int fd;
    char *ahead;
    size_t len, used;
};

static ssize_t read_input(void *ctx, char *buf, size_t cap)
{
    struct input *input = ctx;
    size_t left = input->len - input->used;
    if (left == 0)
        return read(input->fd, buf, cap);
    size_t count = left < cap ? left : cap;
    memcpy(buf, input->ahead + input->used, count);
    input->used += count;
    return (ssize_t)count;
}

static size_t peek_file(void *ctx, size_t offset, char *buf, size_t cap)
{
    const struct input *input = ctx;
    ssize_t len = file_read_at(input->fd, buf, cap, (int64_t)offset);
    return len > 0 ? (size_t)len : 0;
}

/* Reads as much of a pipe as is kept for errors to show; true when that is all of it. */
static bool read_ahead(struct input *input)
{
    enum { KEPT = 1024 * 1024 };
    ssize_t got = 1;
    input->ahead = malloc(KEPT);
    while (input->ahead && input->len < KEPT && got != 0) {
        got = read(input->fd, input->ahead + input->len, KEPT - input->len);
        if (got < 0 && errno != EINTR)
            break; /* the reader meets it again, and says it */
        input->len += got > 0 ? (size_t)got : 0;
    }
    return input->ahead && got == 0;
}

/* Errors show their lines where the bytes can be had again: in a file, or in a pipe that is short. */
static struct json_reader *open_reader(const char *path, struct input *input)
{
    struct stat about;
    bool is_file = fstat(input->fd, &about) == 0 && S_ISREG(about.st_mode);
    if (!is_file && read_ahead(input))
        return json_reader_from_text(path, (struct strview){input->ahead, input->len}, NULL);
    struct json_reader *reader = json_reader_new(path, read_input, input, NULL);
    if (reader && is_file)
        json_reader_set_peek(reader, peek_file);
    return reader;
}

/* Who chose the document: the person who runs roost, a config, or a program that has it in memory. */
enum snapshot_from { SNAPSHOT_FILE, SNAPSHOT_NAMED, SNAPSHOT_TEXT };

/* Moves the nodes into the cluster. */
static bool keep_nodes(struct snapshot *snapshot)
{
    struct roost_cluster *cluster = snapshot->cluster;
    cluster->nodes = arena_array(&cluster->arena, struct cluster_node, snapshot->count);
    if (!cluster->nodes) {
        diag_nomem(snapshot->diag);
        return false;
    }
    if (snapshot->count)
        memcpy(cluster->nodes, snapshot->nodes, (size_t)snapshot->count * sizeof *cluster->nodes);
    cluster->node_count = snapshot->count;
    /* One node has no order to be in, and the environment may be that of a node of more. */
    if (snapshot->count == 1 && snapshot->has_given_rank)
        cluster->nodes[0].explicit_rank = 0;
    return true;
}

/* Reads the document of `json`, which it takes; NULL = there was no memory for it. */
static bool read_snapshot(struct roost_cluster *cluster, struct json_reader *json, const char *name,
                          enum snapshot_from from, struct diag *diag)
{
    struct roost_error found;
    struct diag quiet = diag_start(NULL, &found);
    struct snapshot snapshot = {.cluster = cluster,
                                .diag = from == SNAPSHOT_NAMED ? &quiet : diag,
                                .known = diag,
                                .json = json,
                                .is_file = from != SNAPSHOT_TEXT};
    size_t errors = diag->errors;
    bool is_whole = json && read_document(&snapshot);
    if (!json)
        diag_nomem(diag);
    json_reader_free(json);
    if (quiet.errors)
        file_refuse_content(
            name, &found, "a roost snapshot",
            "a snapshot starts with {\"roost\": 1; pass the file as --cluster to see "
            "its lines",
            diag);
    bool is_good = is_whole && keep_nodes(&snapshot);
    free(snapshot.nodes);
    if (is_good && diag->errors == errors)
        return true;
    /* The order of nodes can be wrong beside all that; the caller looks at good ones only. */
    if (is_good && !snapshot.has_bad_rank)
        topology_order_nodes(cluster, name, diag);
    return false;
}

bool topology_from_snapshot_text(struct roost_cluster *cluster, const char *name, const char *text,
                                 struct diag *diag)
{
    return read_snapshot(cluster, json_reader_from_text(name, sv_from(text), NULL), name,
                         SNAPSHOT_TEXT, diag);
}

bool topology_from_snapshot(struct roost_cluster *cluster, const char *path, struct place at,
                            bool is_named, struct diag *diag)
{
    const char *kind = NULL;
    int fd = is_named ? file_open_named(path, &kind) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && kind)
        return file_refuse_kind(path, kind, at, diag);
    if (fd < 0) {
        const char *why = strerrordesc_np(errno);
        diag_error(diag, ROOST_ERR_IO, at, "cannot open cluster '%s': %s",
                   quote(sv_from(path)).text, why ? why : "error");
        diag_hint(diag, "a cluster is a spec such as 2x8, a snapshot file, or local");
        return false;
    }
    struct input input = {.fd = fd};
    bool is_good = read_snapshot(cluster, open_reader(path, &input), path,
                                 is_named ? SNAPSHOT_NAMED : SNAPSHOT_FILE, diag);
    free(input.ahead);
    close(fd);
    return is_good;
}
