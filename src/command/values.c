/* values.c - one switch computes each variable of config/variables.h. RLinf's names have RLinf's meanings;
 * RANK, LOCAL_RANK and the like are those that torch reads. */
#include "command/values.h"

enum {
    EVERYWHERE = ~0,
    NVIDIA = 1 << ROOST_ACCELERATOR_NVIDIA,
    AMD = 1 << ROOST_ACCELERATOR_AMD,
    ASCEND = 1 << ROOST_ACCELERATOR_ASCEND,
    INTEL = 1 << ROOST_ACCELERATOR_INTEL,
    MUSA = 1 << ROOST_ACCELERATOR_MUSA,
    KUNLUN = 1 << ROOST_ACCELERATOR_KUNLUN,
};

uint32_t variable_types(enum variable variable)
{
    switch ((int)variable) {
    case VARIABLE_CUDA_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES: return NVIDIA | KUNLUN;
    case VARIABLE_EGL_DEVICE_ID:
    case VARIABLE_MUJOCO_EGL_DEVICE_ID:
    case VARIABLE_NCCL_CUMEM_ENABLE: return NVIDIA;
    case VARIABLE_HIP_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES: return AMD;
    case VARIABLE_ASCEND_RT_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES: return ASCEND;
    case VARIABLE_ONEAPI_DEVICE_SELECTOR:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR: return INTEL;
    case VARIABLE_MUSA_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_MUSA_VISIBLE_DEVICES: return MUSA;
    default: return (uint32_t)EVERYWHERE;
    }
}

static void put_number(struct text *out, int32_t value)
{
    if (text_reserve(out, 16))
        out->len += format_int32(out->bytes + out->len, value);
}

/* values[i], or i itself when there are no values; with commas. */
static void put_list(struct text *out, const int32_t *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (i)
            text_char(out, ',');
        put_number(out, values ? values[i] : i);
    }
}

static void put_hardware(struct text *out, const struct roost_component *it, int32_t p)
{
    put_list(out, it->hardware + it->first_hardware[p],
             it->first_hardware[p + 1] - it->first_hardware[p]);
}

/* The same numbers as visible_accelerators of the plan. */
static void put_visible(struct text *out, const struct roost_component *it, int32_t p)
{
    if (!it->visible_count || it->visible_count[p] < 0)
        put_hardware(out, it, p);
    else
        put_list(out, NULL, it->visible_count[p]);
}

static void put_model(struct text *out, const struct cluster_node *node)
{
    if (!node->model || !node->model[0] || node->accelerator_count == 0)
        return;
    if (!strchr(node->model, ':')) {
        text_puts(out, roost_accelerator_type(node->accelerator));
        text_char(out, ':');
    }
    text_puts(out, node->model);
}

static int32_t local_rank(const struct roost_component *it, int32_t p)
{
    switch (it->local_rank_rule) {
    case ROOST_LOCAL_RANK_TORCHRUN: return it->local_rank[p];
    case ROOST_LOCAL_RANK_ZERO: return 0;
    case ROOST_LOCAL_RANK_DEVICE: return it->local_accelerator_rank[p];
    case ROOST_LOCAL_RANK_RLINF: break;
    }
    return it->isolate_accelerator ? 0 : it->local_accelerator_rank[p];
}

static int32_t local_world_size(const struct roost_component *it, int32_t p)
{
    bool is_alone = it->local_rank_rule == ROOST_LOCAL_RANK_ZERO ||
                    (it->local_rank_rule == ROOST_LOCAL_RANK_RLINF && it->isolate_accelerator);
    return is_alone ? 1 : it->local_world_size[p];
}

static void put_request(struct text *out, const struct run_values *values, int32_t request)
{
    if (values->ports)
        put_number(out, values->ports[request]);
    else
        text_puts(out, "<port>");
}

void put_port(struct text *out, const struct value_source *source, int32_t port)
{
    int32_t request = source->first_port + 1 + source->rank * source->launch->port_count + port;
    put_request(out, source->values, request);
}

static void put_master(struct text *out, const struct value_source *source)
{
    const struct cluster_node *first =
        &source->cluster->nodes[source->placed->cluster_node_rank[0]];
    const char *address = source->values->master_addr;
    text_puts(out, address ? address : first->address ? first->address : "");
}

void put_variable(struct text *out, const struct value_source *source, enum variable variable)
{
    const struct roost_component *it = source->placed;
    int32_t p = source->rank;
    const struct cluster_node *node = &source->cluster->nodes[it->cluster_node_rank[p]];
    switch (variable) {
    case VARIABLE_ACCELERATOR_MODEL: return put_model(out, node);
    case VARIABLE_ACCELERATOR_TYPE:
        return text_puts(out, roost_accelerator_type(node->accelerator));
    case VARIABLE_CATCH_SYSTEM_FAILURE: return text_char(out, source->catches_failure ? '1' : '0');
    case VARIABLE_CLUSTER_NAMESPACE:
    case VARIABLE_ROOST_NAMESPACE: return text_puts(out, source->values->name_space);
    case VARIABLE_CLUSTER_NODE_RANK: return put_number(out, it->cluster_node_rank[p]);
    case VARIABLE_GROUP_NAME:
    case VARIABLE_ROOST_COMPONENT: return text_puts(out, source->name);
    case VARIABLE_GROUP_RANK: /* torch: the rank of the group of processes on one node */
    case VARIABLE_NODE_RANK: return put_number(out, it->placement_node_rank[p]);
    case VARIABLE_ISOLATE_ACCELERATOR: return text_char(out, it->isolate_accelerator ? '1' : '0');
    case VARIABLE_LOCAL_ACCELERATOR_RANK: return put_number(out, it->local_accelerator_rank[p]);
    case VARIABLE_LOCAL_HARDWARE_RANKS: return put_hardware(out, it, p);
    case VARIABLE_LOCAL_RANK: return put_number(out, local_rank(it, p));
    case VARIABLE_LOCAL_WORLD_SIZE: return put_number(out, local_world_size(it, p));
    case VARIABLE_MASTER_ADDR: return put_master(out, source);
    case VARIABLE_MASTER_PORT: return put_request(out, source->values, source->first_port);
    case VARIABLE_NODE_GROUP_LABEL: return text_puts(out, it->node_groups[it->node_group[p]]);
    case VARIABLE_NODE_LOCAL_RANK: return put_number(out, it->local_rank[p]);
    case VARIABLE_NODE_LOCAL_WORLD_SIZE: return put_number(out, it->local_world_size[p]);
    case VARIABLE_RANK: return put_number(out, p);
    case VARIABLE_ROOST_RUN_ID: return text_puts(out, source->values->run_id);
    case VARIABLE_WORKER_NAME:
        text_puts(out, source->name);
        text_char(out, ':');
        return put_number(out, p);
    case VARIABLE_WORLD_SIZE: return put_number(out, it->world_size);
    case VARIABLE_ONEAPI_DEVICE_SELECTOR:
        /* Bare numbers select nothing: a selector starts with its back end. */
        text_puts(out, "level_zero:");
        return put_visible(out, it, p);
    case VARIABLE_ASCEND_RT_VISIBLE_DEVICES:
    case VARIABLE_CUDA_VISIBLE_DEVICES:
    case VARIABLE_HIP_VISIBLE_DEVICES:
    case VARIABLE_MUSA_VISIBLE_DEVICES:
    case VARIABLE_VISIBLE_DEVICES: return put_visible(out, it, p);
    case VARIABLE_EGL_DEVICE_ID:
    case VARIABLE_MUJOCO_EGL_DEVICE_ID: return put_number(out, it->local_accelerator_rank[p]);
    case VARIABLE_NCCL_CUMEM_ENABLE: return text_char(out, '0');
    case VARIABLE_RAY_ACTOR:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_MUSA_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES: return text_char(out, '1');
    }
}
