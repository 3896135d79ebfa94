/* bundles.h - the settings of bundles after defaults, and the steps that fill a layout from them. Each step
 * reports its errors; the next step continues where it can. */
#ifndef BUNDLE_BUNDLES_H
#define BUNDLE_BUNDLES_H

#include <roost/bundle.h>

#include "base/arena.h"
#include "base/diag.h"
#include "config/bundle_settings.h"

struct roost_bundles {
    struct arena arena;
    struct roost_layout layout;
};

/* The arguments once every rule about defaults has been applied. */
struct settled {
    int32_t actor_gpus;   /* A */
    int32_t rollout_gpus; /* R; -1 = not known, and nothing depends on it */
    int32_t per_engine;   /* GPUs, unless a model or server group sets its own */
    int32_t dist_ports;   /* of one rendezvous block */
    int64_t actor_share, part_share, posters_cpu;
    bool is_train_only, is_rollout_only, is_external, is_colocated, has_critic;
    bool is_colocate_cut; /* colocate takes A GPUs and ignores R */
};

struct job {
    struct roost_bundles *bundles;
    struct roost_layout *layout;
    const struct bundle_settings *settings;
    const struct roost_cluster *cluster;         /* may be NULL */
    const struct roost_bundles_options *options; /* never NULL */
    struct diag *diag;
    struct settled settled;
    struct roost_machine *machines;
    struct roost_server_group *groups;
    struct place *group_at; /* of the number that decides a group's size */
    int32_t ranks;          /* of all parts, and those that placeholders would have had */
};

/* The place of a value that was written, or of the whole section. */
struct place job_place(const struct job *job, const struct count_setting *setting);

/* Zeroed memory from the bundles' arena; NULL after reporting that there is none. */
#define job_array(job, T, count)                                                                   \
    ((T *)job_memory((job), arena_zeroed(&(job)->bundles->arena, T, (count) > 0 ? (count) : 1)))
void *job_memory(struct job *job, void *memory);

/* Applies the rules of the arguments, in their order. */
bool job_settle(struct job *job);

/* Chooses the row of the table, and computes the sizes and the trainers' shares. */
bool job_size(struct job *job);

/* Finds the node of each slot: as measured, else from the cluster, else by counting. */
bool job_find_machines(struct job *job);

/* The GPUs of a node, used or not. */
int32_t job_slots_of(const struct job *job, int32_t node);

/* The list of models as server groups with their GPUs, slots, ranks and engines. */
bool job_list_server_groups(struct job *job);

/* The machine of a slot. The search starts at `machine`, because slots rise. */
int32_t job_machine_of(const struct job *job, int32_t slot, int32_t machine);

/* The number of a slot's GPU on its machine: as measured, else by counting. */
int32_t job_gpu_of(const struct job *job, int32_t slot, int32_t machine);

/* GPUs of one part of an engine with `per_engine` GPUs. */
int32_t job_part_size(const struct job *job, int32_t per_engine);

/* Whether every part is on one node, on GPUs that follow one another. */
bool job_check_parts(struct job *job);

/* Fills the columns of engines and parts. */
bool job_place_engines(struct job *job);

/* Offsets of the ports wanted, per machine. */
bool job_count_ports(struct job *job);

/* Computes the number of CPUs, and checks the shares of one GPU and, with `has_machines`, the CPUs of the
 * cluster. */
bool job_check_amounts(struct job *job, bool has_machines);

#endif
