/* synthetic.c - a cluster from a spec: entry ("," entry)*, entry = N "x" K [WORD]. */
#include "base/number.h"
#include "topology/cluster.h"

struct spec_entry {
    int32_t nodes;
    int32_t accelerators; /* on each */
    enum roost_accelerator accelerator;
    const char *model; /* NULL = none */
};

static bool refuse(struct strview entry, struct place at, struct diag *diag, const char *why)
{
    enum roost_code code = at.line > 0 ? ROOST_ERR_SYNTAX : ROOST_ERR_USAGE;
    diag_error(diag, code, at, "'%s' does not describe a cluster: %s", quote(entry).text, why);
    diag_hint(diag, "write nodes x accelerators, such as 2x8, 1x8 A800,1x4 AMD or 3x0");
    return false;
}

/* A vendor, or else the model of an NVIDIA accelerator. */
static bool read_kind(struct roost_cluster *cluster, struct strview word, struct spec_entry *entry,
                      struct diag *diag)
{
    static const char *const vendors[] = {
#define X(name, type, vendor) vendor,
        ROOST_ACCELERATOR_MAP(X)
#undef X
    };
    entry->accelerator = entry->accelerators ? ROOST_ACCELERATOR_NVIDIA : ROOST_ACCELERATOR_NONE;
    if (word.len == 0 || entry->accelerators == 0)
        return true;
    for (size_t i = 1; i < sizeof vendors / sizeof *vendors; i++) {
        if (sv_is(word, vendors[i])) {
            entry->accelerator = (enum roost_accelerator)i;
            return true;
        }
    }
    entry->model = arena_copy(&cluster->arena, word);
    if (!entry->model)
        diag_nomem(diag);
    return entry->model != NULL;
}

static bool read_entry(struct roost_cluster *cluster, struct strview text, struct place at,
                       struct diag *diag, struct spec_entry *out)
{
    *out = (struct spec_entry){0};
    size_t x = sv_find(text, 'x', 0);
    struct strview rest = sv_trim(sv_sub(text, x + 1, text.len));
    size_t digits = 0;
    while (digits < rest.len && rest.at[digits] >= '0' && rest.at[digits] <= '9')
        digits++;
    struct strview word = sv_trim(sv_sub(rest, digits, rest.len));
    int64_t nodes, accelerators;
    enum number_result left = number_parse(sv_sub(text, 0, x), CLUSTER_NODES_MAX, &nodes);
    enum number_result right =
        number_parse(sv_sub(rest, 0, digits), CLUSTER_ACCELERATORS_MAX, &accelerators);
    if (x == text.len || left == NUMBER_MALFORMED || right == NUMBER_MALFORMED)
        return refuse(text, at, diag, "an entry is N x K, with a vendor or model after it");
    if (left == NUMBER_TOO_LARGE || right == NUMBER_TOO_LARGE) {
        diag_error(diag, ROOST_ERR_LIMIT, at, "'%s' is larger than %d nodes of %d accelerators",
                   quote(text).text, CLUSTER_NODES_MAX, CLUSTER_ACCELERATORS_MAX);
        diag_hint(diag, "write nodes x accelerators on each, in this order, such as 2x8");
        return false;
    }
    if (nodes == 0)
        return refuse(text, at, diag, "it has no nodes");
    bool is_apart = digits == rest.len || rest.at[digits] == ' ';
    if (word.len && (!is_name(word) || !is_apart))
        return refuse(text, at, diag, "a vendor or model is one word");
    out->nodes = (int32_t)nodes;
    out->accelerators = (int32_t)accelerators;
    return read_kind(cluster, word, out, diag);
}

bool topology_from_spec(struct roost_cluster *cluster, struct strview text, struct place at,
                        struct diag *diag)
{
    int64_t total = 0;
    for (int pass = 0; pass < 2; pass++) {
        int32_t filled = 0;
        for (size_t from = 0; from <= text.len;) {
            size_t comma = sv_find(text, ',', from);
            struct strview piece = sv_trim(sv_sub(text, from, comma));
            struct spec_entry entry;
            from = comma + 1;
            if (!read_entry(cluster, piece, place_piece(at, text, piece), diag, &entry))
                return false;
            total += pass == 0 ? entry.nodes : 0;
            for (int32_t n = 0; pass == 1 && n < entry.nodes; n++, filled++)
                cluster->nodes[filled] = (struct cluster_node){
                    .model = entry.model,
                    .num_cpus = -1,
                    .explicit_rank = filled,
                    .accelerator_count = entry.accelerators,
                    .accelerator = entry.accelerator,
                };
        }
        if (pass == 1)
            break;
        if (total > CLUSTER_NODES_MAX) {
            diag_error(diag, ROOST_ERR_LIMIT, at, "'%s' is larger than %d nodes", quote(text).text,
                       CLUSTER_NODES_MAX);
            diag_hint(diag, "write fewer nodes: all entries together are %lld", (long long)total);
            return false;
        }
        cluster->nodes = arena_array(&cluster->arena, struct cluster_node, total);
        if (!cluster->nodes) {
            diag_nomem(diag);
            return false;
        }
        cluster->node_count = (int32_t)total;
    }
    return true;
}
