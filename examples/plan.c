/* plan.c - where does every process of a config go? Prints a line a process: rank -> node:devices.
 *
 * Usage:  plan CONFIG CLUSTER        for example: plan grpo.yaml 2x8
 * Build:  cc plan.c $(pkg-config --cflags --libs roost) -o plan */
#include <roost/roost.h>
#include <stdio.h>

/* An error is a plain struct on our stack: it stays good whatever is freed. */
static int complain(const struct roost_error *err)
{
    if (err->line > 0)
        fprintf(stderr, "%s:%d:%d: ", err->file, (int)err->line, (int)err->column);
    fprintf(stderr, "%s\n", err->message);
    return roost_code_exit(err->code);
}

/* A component is columns, indexed by process rank; the hardware of process p lies between two
 * offsets, as processes may hold different numbers of devices. */
static void print_component(const struct roost_component *it)
{
    printf("%s: %d processes\n", it->name, (int)it->world_size);
    for (int32_t p = 0; p < it->world_size; p++) {
        printf("  %d -> %d:", (int)p, (int)it->cluster_node_rank[p]);
        for (int32_t i = it->first_hardware[p]; i < it->first_hardware[p + 1]; i++)
            printf("%s%d", i > it->first_hardware[p] ? "," : "", (int)it->hardware[i]);
        printf("\n");
    }
}

/* Config, cluster and plan are built in this order. Each owns all it shows and borrows the others
 * only while it is built, so what is no longer needed can be freed at once. */
static int print_plan(const char *path, const char *where)
{
    struct roost_error err;
    struct roost_config_options reading = {.path = path};
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    if (!config)
        return complain(&err);

    struct roost_cluster_options choice = {.text = where, .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&choice, NULL, &err);
    struct roost_plan *plan = cluster ? roost_plan_new(config, cluster, NULL, NULL, &err) : NULL;
    roost_cluster_free(cluster);
    roost_config_free(config);
    if (!plan)
        return complain(&err);

    for (size_t i = 0; i < roost_plan_component_count(plan); i++)
        print_component(roost_plan_component(plan, i));
    roost_plan_free(plan);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: plan CONFIG CLUSTER\n");
        return 2;
    }
    return print_plan(argv[1], argv[2]);
}
