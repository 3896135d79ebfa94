/* variables.c - one list of reserved names: RLinf's, torch's, the vendors' and our own. */
#include "config/variables.h"

bool is_roost_variable(struct strview name)
{
    static const char *const names[] = {
        "GROUP_NAME",
        "WORKER_NAME",
        "RANK",
        "WORLD_SIZE",
        "NODE_RANK",
        "CLUSTER_NODE_RANK",
        "NODE_LOCAL_RANK",
        "NODE_LOCAL_WORLD_SIZE",
        "LOCAL_ACCELERATOR_RANK",
        "VISIBLE_DEVICES",
        "LOCAL_HARDWARE_RANKS",
        "NODE_GROUP_LABEL",
        "ACCELERATOR_TYPE",
        "ACCELERATOR_MODEL",
        "ISOLATE_ACCELERATOR",
        "CATCH_SYSTEM_FAILURE",
        "RAY_ACTOR",
        "CLUSTER_NAMESPACE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ASCEND_RT_VISIBLE_DEVICES",
        "ONEAPI_DEVICE_SELECTOR",
        "MUSA_VISIBLE_DEVICES",
    };
    if (sv_starts(name, "ROOST_") || sv_starts(name, "RAY_EXPERIMENTAL_NOSET_"))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sv_is(name, names[i]))
            return true;
    return false;
}
