/* sections.h - the parts of a config file, each read by a file of its own into struct roost_config.
 * Nothing is returned: what is wrong was reported, and what is broken is marked so. */
#ifndef CONFIG_SECTIONS_H
#define CONFIG_SECTIONS_H

#include "config/reader.h"

/* cluster: num_nodes, then the two below. */
void section_cluster(struct reader *reader, const struct node *cluster);

/* cluster.component_placement */
void section_components(struct reader *reader, const struct node *placement);

/* cluster.node_groups */
void section_node_groups(struct reader *reader, const struct node *groups);

/* cluster.node_groups[i].env_configs, cluster.node_groups[i].hardware */
void node_group_env_configs(struct reader *reader, struct node_group_config *group,
                            const struct node *list);
void node_group_hardware(struct reader *reader, struct node_group_config *group,
                         const struct node *hardware);

/* Robots of one type on one node belong to one group only. */
void node_groups_check_robots(struct reader *reader);

/* roost, roost.launch, and roost.groups */
void section_roost(struct reader *reader, const struct node *roost);
void section_launch(struct reader *reader, const struct node *launch);
void section_bundles(struct reader *reader, const struct node *roost, const struct node *groups);

/* %{NAME} words of all components, and $NAME where no shell reads it; circles of `after`. */
void launch_check_words(struct reader *reader);
void launch_check_order(struct reader *reader);

/* "Missing fields" for a key that `what` needs. */
void say_missing(struct reader *reader, const struct node *mapping, const char *key,
                 const char *what);

/* Reads ranks written as a number, a text or a list of both. False after it reported why. */
bool read_ranks(struct reader *reader, const struct node *node, const char *what,
                struct rankset *out);

#endif
