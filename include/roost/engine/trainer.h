/* trainer.h - the variables that a trainer of a placement group is started with, by whichever engine.
 *
 * slime starts one trainer per GPU of the actor's share. A trainer sees all GPUs of its node and finds its
 * own one by LOCAL_RANK. The function here is pure: it looks at nothing but its arguments. */
#ifndef ROOST_ENGINE_TRAINER_H
#define ROOST_ENGINE_TRAINER_H

#include <roost/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One trainer. Everything is borrowed for the call. */
struct roost_trainer {
    /* -1 = leave out what differs between trainers: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT.
     * The other fields up to `visible` are not read then. */
    int32_t rank;
    int32_t world_size;
    /* The address of rank 0's node, and a port that is leased there. */
    const char *master_addr;
    int32_t master_port;
    /* The GPU of its slot, as the engine names it: "3", or "GPU-1a2b". */
    const char *gpu_id;
    /* The node's visible devices, "3,5" or "GPU-1a2b,GPU-3c4d". NULL or "" = all. */
    const char *visible;
    /* The library of a memory saver that is preloaded, for trainers that offload. NULL = none. */
    const char *preload;
    /* The trainer replays the routing of experts. */
    bool is_replaying;
    /* "NAME=value" texts of the driver, NULL-terminated. Only NCCL_CUMEM_ENABLE and
     * NVTE_FP8_BLOCK_SCALING_FP32_SCALES are read. NULL = none. */
    const char *const *env;
    /* "NAME=value" texts of the user (train_env_vars), NULL-terminated. They win over all variables but those
     * that differ between trainers, which nobody else may set. NULL = none. */
    const char *const *own;
};

/* Takes one variable; both texts are borrowed for the call. False = it cannot. */
typedef bool (*roost_variable_fn)(void *ctx, const char *name, const char *value);

/* Hands each variable of the trainer to `take` once, in no order that matters. A user's value for one of
 * Ray's switches that keep visible devices as they are is a warning: the trainer may then see other devices.
 * ROOST_ERR_NAME for a variable that the user may not set, ROOST_ERR_RANK for a GPU id that is neither a
 * number nor among the visible devices, ROOST_ERR_MEMORY also where `take` returns false. `report` (may be
 * NULL) has every fault and the warnings, `err` (may be NULL) the first fault. Nothing is taken then. */
ROOST_API enum roost_code roost_trainer_variables(const struct roost_trainer *trainer,
                                                  roost_variable_fn take, void *ctx,
                                                  struct roost_report *report,
                                                  struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
