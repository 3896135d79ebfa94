/* section_node_groups.c - cluster.node_groups: labels, their nodes and what their ranks count. */
#include <string.h>

#include "config/sections.h"
#include "config/yaml11.h"

enum { GROUPS_MAX = 4096 };

static bool read_label(struct reader *reader, const struct node *group,
                       struct node_group_config *out)
{
    const struct node *node = read_key(reader, group, "label");
    struct word label;
    if (!node) {
        say_missing(reader, group, "label", "node group");
        return false;
    }
    if (!read_word(reader, node, "'label'", &label))
        return false;
    out->at = label.at;
    yaml11_warn(node, reader->diag);
    if (sv_is(label.text, "cluster") || sv_is(label.text, "node")) {
        diag_error(reader->diag, ROOST_ERR_NAME, label.at,
                   "label '%s' is reserved for the built-in node group", quote(label.text).text);
        diag_hint(reader->diag, "choose another label");
        return false;
    }
    if (!is_name(label.text)) {
        diag_error(reader->diag, ROOST_ERR_NAME, label.at,
                   "'%s' cannot be the label of a node group", quote(label.text).text);
        diag_hint(reader->diag,
                  "a label is 1 to 63 of A-Z a-z 0-9 _ . - and does not start with . or -");
        return false;
    }
    const struct node_group_config *before = config_find_node_group(reader->config, label.text);
    if (before) {
        diag_error(
            reader->diag, ROOST_ERR_NAME, label.at,
            "label '%s' is given to two node groups (labels must be unique); the first is at %s",
            quote(label.text).text, place_name(before->at).text);
        diag_hint(reader->diag, "rename one of the two");
        return false;
    }
    out->label = read_copy(reader, label.text);
    return out->label != NULL;
}

static bool read_node_ranks(struct reader *reader, const struct node *group,
                            struct node_group_config *out)
{
    struct node *written = node_get(group, SV("node_ranks"));
    if (!written) {
        say_missing(reader, group, "node_ranks", "node group");
        return false;
    }
    const struct node *node = read_value(reader, written);
    if (!node)
        return false;
    out->node_ranks_at = node_place(node);
    if (!read_ranks(reader, node, "'node_ranks'", &out->node_ranks))
        return false;
    const struct rankset *ranks = &out->node_ranks;
    const char *label = out->label ? out->label : "?";
    if (ranks->count == 0 && !ranks->is_all) {
        diag_error(reader->diag, ROOST_ERR_RANK, out->node_ranks_at,
                   "Error parsing node_ranks of node group '%s': the list must not be empty",
                   label);
        diag_hint(reader->diag, "name its nodes (0-1) or write 'all'");
        return false;
    }
    int32_t num_nodes = reader->config->num_nodes;
    if (num_nodes > 0 && ranks->count > 0 && ranks->ranges[ranks->count - 1].last >= num_nodes) {
        diag_error(
            reader->diag, ROOST_ERR_FIT, out->node_ranks_at,
            "Error parsing node_ranks of node group '%s': node %d is not there, num_nodes is %d",
            label, (int)ranks->ranges[ranks->count - 1].last, (int)num_nodes);
        diag_hint(reader->diag,
                  num_nodes > 1 ? "nodes are 0-%d; or raise num_nodes"
                                : "the only node is %d; or raise num_nodes",
                  (int)num_nodes - 1);
        return false;
    }
    return true;
}

static bool read_hardware_keys(struct reader *reader, const struct node *group,
                               struct node_group_config *out)
{
    const struct node *hardware = read_key(reader, group, "hardware");
    const struct node *type = read_key(reader, group, "hardware_type");
    const struct node *ignore = read_key(reader, group, "ignore_hardware");
    bool is_good =
        !ignore || read_bool(reader, ignore, "'ignore_hardware'", &out->ignores_hardware);
    if (hardware && (type || out->ignores_hardware)) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(hardware),
                   "'hardware' cannot be combined with '%s' in one node group",
                   type ? "hardware_type" : "ignore_hardware");
        diag_hint(reader->diag, "keep one of the two");
        return false;
    }
    if (type)
        is_good = read_word(reader, type, "'hardware_type'", &out->hardware_type) && is_good;
    if (hardware)
        node_group_hardware(reader, out, hardware);
    return is_good;
}

static void read_group(struct reader *reader, const struct node *node,
                       struct node_group_config *out)
{
    if (node->kind != NODE_MAPPING) {
        diag_error(
            reader->diag, ROOST_ERR_SCHEMA, node_place(node),
            "Each node yaml config must be a dictionary, with at least label and node_ranks");
        diag_hint(reader->diag, "write '- label: name', and 'node_ranks: 0' below 'label'");
        out->is_broken = true;
        return;
    }
    size_t said = reader->diag->errors;
    want_keys(
        reader, node,
        KEYS("label", "node_ranks", "env_configs", "hardware", "hardware_type", "ignore_hardware"),
        "node group");
    read_label(reader, node, out);
    out->has_ranks = read_node_ranks(reader, node, out);
    read_hardware_keys(reader, node, out);
    const struct node *env = read_key(reader, node, "env_configs");
    if (env)
        node_group_env_configs(reader, out, env);
    out->is_broken = reader->diag->errors > said;
}

void section_node_groups(struct reader *reader, const struct node *groups)
{
    struct roost_config *config = reader->config;
    if (!want_sequence(reader, groups, "'node_groups'"))
        return;
    if (groups->count > GROUPS_MAX) {
        diag_error(reader->diag, ROOST_ERR_LIMIT, node_place(groups), "more than %d node groups",
                   GROUPS_MAX);
        diag_hint(reader->diag, "join groups of equal nodes: one group may have many nodes");
        return;
    }
    config->node_groups = read_array(reader, struct node_group_config, groups->count);
    if (!config->node_groups)
        return;
    for (int32_t i = 0; i < groups->count; i++) {
        struct node_group_config *group = &config->node_groups[config->node_group_count];
        const struct node *node = read_value(reader, groups->items[i]);
        if (node)
            read_group(reader, node, group);
        else
            group->is_broken = true;
        if (!group->label)
            group->label = ""; /* never found by a label, and never NULL */
        config->node_group_count++;
    }
    node_groups_check_robots(reader);
}

const struct node_group_config *config_find_node_group(const struct roost_config *config,
                                                       struct strview label)
{
    for (int32_t i = 0; i < config->node_group_count; i++)
        if (sv_is(label, config->node_groups[i].label))
            return &config->node_groups[i];
    return NULL;
}
