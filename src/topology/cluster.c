/* cluster.c - nodes -> order -> cut -> robots -> groups: the steps of roost_cluster_new. */
#include "topology/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* digits "x" digit */
bool roost_cluster_is_spec(const char *text)
{
    size_t digits = strspn(text, "0123456789 ");
    return digits > 0 && text[digits] == 'x' && text[digits + 1] >= '0' && text[digits + 1] <= '9';
}

static bool find_nodes(struct roost_cluster *cluster, const struct roost_cluster_options *options,
                       const char *text, struct place at, struct diag *diag)
{
    const char *snapshot = options->snapshot;
    if (snapshot)
        return topology_from_snapshot_text(cluster, text, snapshot, diag);
    if (strcmp(text, "local") == 0) {
        cluster->is_here = true;
        return topology_from_local(cluster, diag);
    }
    if (roost_cluster_is_spec(text))
        return topology_from_spec(cluster, sv_from(text), at, diag);
    return topology_from_snapshot(cluster, text, at, !options->text, diag);
}

/* Fewer nodes than wanted is an error; of more, the first are taken. */
static bool cut_to_num_nodes(struct roost_cluster *cluster, int32_t wanted, struct place at,
                             struct diag *diag)
{
    if (wanted == 0 || wanted == cluster->node_count)
        return true;
    if (wanted > cluster->node_count && cluster->is_here) {
        diag_error(diag, ROOST_ERR_FIT, at, "num_nodes is %d, but this machine is one node",
                   (int)wanted);
        diag_hint(diag, "--cluster %dx8 simulates %d nodes, --engine ray uses real ones",
                  (int)wanted, (int)wanted);
        return false;
    }
    if (wanted > cluster->node_count) {
        diag_error(diag, ROOST_ERR_FIT, at, "num_nodes is %d, but the cluster has %d node%s",
                   (int)wanted, (int)cluster->node_count, cluster->node_count == 1 ? "" : "s");
        diag_hint(diag, "lower num_nodes to %d, or plan against a larger cluster",
                  (int)cluster->node_count);
        return false;
    }
    diag_warn(diag, ROOST_WARN_EXTRA_NODES, at,
              "num_nodes is %d, but the cluster has %d nodes; nodes from %d on are not used",
              (int)wanted, (int)cluster->node_count, (int)wanted);
    cluster->node_count = wanted;
    return true;
}

/* Groups name nodes by rank; where nodes have none of their own, a new node can shift them all. */
static void warn_order(const struct roost_cluster *cluster, const struct roost_config *config,
                       struct diag *diag)
{
    if (config->node_group_count == 0 || cluster->node_count < 2 ||
        cluster->nodes[0].explicit_rank >= 0)
        return;
    bool has_head = cluster->nodes[0].is_head; /* then it is a live cluster of Ray */
    diag_warn(diag, ROOST_WARN_NODE_ORDER, config->node_groups[0].node_ranks_at,
              "node groups name nodes by rank, but the nodes of this cluster have none; they were "
              "ordered by address%s",
              has_head ? ", behind Ray's head" : "");
    if (has_head)
        diag_hint(diag, "set ROOST_NODE_RANK on every node before `ray start` there");
    else
        diag_hint(diag, "give every node a node_rank");
}

/* A user of a cluster without accelerators meets this hint first: ranks then count nodes. */
static void hint_at_accelerators(struct roost_cluster *cluster)
{
    bool has_head = false; /* then it is a live cluster of Ray */
    for (int32_t n = 0; n < cluster->node_count; n++)
        has_head = has_head || cluster->nodes[n].is_head;
    if (cluster->is_here) {
        cluster->no_accelerator_hint =
            "this machine has no accelerators, so ranks are nodes; to simulate some, set "
            "ROOST_CLUSTER=1x4 or use --cluster 1x4";
        return;
    }
    cluster->no_accelerator_hint =
        has_head ? "no node of this Ray has accelerators, so ranks are nodes; start Ray with some, "
                   "such as `ray start --head --num-gpus=8`, or set RAY_ADDRESS to another one"
                 : "no node has accelerators, so ranks are nodes; to plan for some that are not "
                   "here, set roost.cluster, such as 1x8";
}

static bool count_accelerators(struct roost_cluster *cluster, struct place at, struct diag *diag)
{
    for (int32_t n = 0; n < cluster->node_count; n++)
        cluster->accelerator_count += cluster->nodes[n].accelerator_count;
    if (cluster->accelerator_count == 0)
        hint_at_accelerators(cluster);
    if (cluster->accelerator_count <= CLUSTER_TOTAL_MAX)
        return true;
    diag_error(diag, ROOST_ERR_LIMIT, at, "a cluster of %lld accelerators; at most %d are numbered",
               (long long)cluster->accelerator_count, CLUSTER_TOTAL_MAX);
    diag_hint(diag, "plan against fewer nodes, or fewer accelerators on each");
    return false;
}

/* What the config adds to the nodes that were found. */
static bool apply_config(struct roost_cluster *cluster, const struct roost_config *config,
                         struct diag *diag)
{
    warn_order(cluster, config, diag);
    return cut_to_num_nodes(cluster, config->num_nodes, config->num_nodes_at, diag) &&
           topology_add_robots(cluster, config, diag);
}

/* A number beside a config says the same, or one of them is wrong. */
static bool check_num_nodes(int32_t num_nodes, const struct roost_config *config, struct diag *diag)
{
    if (num_nodes < 0) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
                   "'num_nodes' must be a positive integer, or 0 for all nodes, not %d",
                   (int)num_nodes);
        diag_hint(diag, "pass 0, or leave it out, for all nodes");
        return false;
    }
    if (num_nodes == 0 || !config || config->num_nodes == num_nodes)
        return true;
    diag_error(diag, ROOST_ERR_USAGE, config->num_nodes_at,
               "num_nodes is asked to be %d, but the config says %d", (int)num_nodes,
               (int)config->num_nodes);
    diag_hint(diag, "pass %d, or leave it out", (int)config->num_nodes);
    return false;
}

static bool build(struct roost_cluster *cluster, const struct roost_cluster_options *options,
                  struct diag *diag)
{
    const struct roost_config *config = options->config;
    const char *text = options->text;
    struct place at = NOWHERE;
    if (!text && config) {
        text = config->cluster;
        at = config->cluster_at;
    }
    if (!text) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "no cluster to plan against");
        diag_hint(diag, "pass --cluster 2x8, a snapshot, or local");
        return false;
    }
    return check_num_nodes(options->num_nodes, config, diag) &&
           find_nodes(cluster, options, text, at, diag) &&
           topology_order_nodes(cluster, text, diag) &&
           (config ? apply_config(cluster, config, diag)
                   : cut_to_num_nodes(cluster, options->num_nodes, NOWHERE, diag)) &&
           count_accelerators(cluster, at, diag) && topology_add_node_groups(cluster, config, diag);
}

struct roost_cluster *roost_cluster_new(const struct roost_cluster_options *options,
                                        struct roost_report *report, struct roost_error *err)
{
    struct diag diag = config_diag(options->config, report, err);
    struct roost_cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster) {
        diag_nomem(&diag);
        return NULL;
    }
    if (build(cluster, options, &diag))
        return cluster;
    roost_cluster_free(cluster);
    return NULL;
}

struct roost_cluster *roost_cluster_new_described(
    const struct roost_cluster_description *description, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct roost_cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster) {
        diag_nomem(&diag);
        return NULL;
    }
    cluster->is_described = true;
    if (topology_from_description(cluster, description, &diag) &&
        count_accelerators(cluster, NOWHERE, &diag) &&
        topology_add_described(cluster, description, &diag))
        return cluster;
    roost_cluster_free(cluster);
    return NULL;
}

bool roost_simulated_text(const struct roost_cluster *cluster, char out[ROOST_SIMULATED_MAX])
{
    int32_t nodes = cluster->node_count;
    int64_t wanted = cluster->accelerator_count, there = 0;
    if (cluster->is_here || (nodes < 2 && wanted == 0))
        return false;
    struct roost_cluster_options local = {.text = "local"};
    struct roost_cluster *here = roost_cluster_new(&local, NULL, NULL);
    there = here ? here->accelerator_count : 0;
    roost_cluster_free(here);
    if (nodes < 2 && wanted <= there)
        return false;
    snprintf(out, ROOST_SIMULATED_MAX,
             "simulated: %d node%s with %lld accelerator%s %s on this machine, which has %lld",
             (int)nodes, nodes == 1 ? "" : "s", (long long)wanted, wanted == 1 ? "" : "s",
             nodes == 1 ? "runs" : "run", (long long)there);
    return true;
}

void roost_cluster_free(struct roost_cluster *cluster)
{
    if (!cluster)
        return;
    arena_release(&cluster->arena);
    free(cluster);
}

int32_t roost_cluster_node_count(const struct roost_cluster *cluster)
{
    return cluster->node_count;
}

int64_t roost_cluster_accelerator_count(const struct roost_cluster *cluster)
{
    return cluster->accelerator_count;
}

bool roost_cluster_node(const struct roost_cluster *cluster, int32_t node_rank,
                        struct roost_node *out)
{
    if (node_rank < 0 || node_rank >= cluster->node_count)
        return false;
    const struct cluster_node *node = &cluster->nodes[node_rank];
    *out = (struct roost_node){
        .node_rank = node_rank,
        .id = node->id,
        .address = node->address,
        .num_cpus = node->num_cpus,
        .accelerator = node->accelerator,
        .accelerator_model = node->model,
        .num_accelerators = node->accelerator_count,
    };
    for (const struct unit *unit = node->units; unit; unit = unit->next)
        out->num_hardware++;
    return true;
}

bool roost_cluster_hardware(const struct roost_cluster *cluster, int32_t node_rank, int32_t index,
                            struct roost_hardware *out)
{
    if (node_rank < 0 || node_rank >= cluster->node_count || index < 0)
        return false;
    const struct unit *unit = cluster->nodes[node_rank].units;
    while (unit && index-- > 0)
        unit = unit->next;
    if (unit)
        *out = (struct roost_hardware){unit->type, unit->config};
    return unit != NULL;
}

size_t roost_cluster_node_group_count(const struct roost_cluster *cluster)
{
    return (size_t)cluster->node_group_count;
}

bool roost_cluster_node_group(const struct roost_cluster *cluster, size_t index,
                              struct roost_node_group *out)
{
    if (index >= (size_t)cluster->node_group_count)
        return false;
    const struct node_group *group = &cluster->node_groups[index];
    *out = (struct roost_node_group){group->label, group->hardware_type, group->node_of_member,
                                     group->member_count, node_group_size(group)};
    return true;
}

bool roost_cluster_locate(const struct roost_cluster *cluster, size_t group, int32_t rank,
                          int32_t *out_node_rank, int32_t *out_local_rank)
{
    if (group >= (size_t)cluster->node_group_count)
        return false;
    const struct node_group *it = &cluster->node_groups[group];
    if (rank < 0 || rank >= node_group_size(it))
        return false;
    int32_t member = SEARCH(it->member_count - 1, at, it->first_hw_of_member[at + 1] <= rank);
    *out_node_rank = it->node_of_member[member];
    *out_local_rank = rank - it->first_hw_of_member[member];
    return true;
}
