/* variables.c - looking names up in the list of variables.h. */
#include "config/variables.h"

static const struct {
    const char *name;
    enum variable_kind kind;
} list[] = {
#define X(name, kind) {#name, VARIABLE_##kind},
    ROOST_VARIABLE_MAP(X)
#undef X
};

const char *variable_name(enum variable variable)
{
    return list[variable].name;
}

enum variable_kind variable_kind(enum variable variable)
{
    return list[variable].kind;
}

bool variable_is_shared(enum variable variable)
{
    switch ((int)variable) {
    case VARIABLE_CATCH_SYSTEM_FAILURE:
    case VARIABLE_CLUSTER_NAMESPACE:
    case VARIABLE_GROUP_NAME:
    case VARIABLE_ISOLATE_ACCELERATOR:
    case VARIABLE_MASTER_ADDR:
    case VARIABLE_MASTER_PORT:
    case VARIABLE_NCCL_CUMEM_ENABLE:
    case VARIABLE_RAY_ACTOR:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_MUSA_VISIBLE_DEVICES:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR:
    case VARIABLE_RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES:
    case VARIABLE_ROOST_COMPONENT:
    case VARIABLE_ROOST_NAMESPACE:
    case VARIABLE_ROOST_RUN_ID:
    case VARIABLE_WORLD_SIZE: return true;
    default: return false;
    }
}

bool variable_find(struct strview name, enum variable *out)
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        if (!sv_is(name, list[i].name))
            continue;
        *out = (enum variable)i;
        return true;
    }
    return false;
}

static bool hands_descriptors(struct strview name)
{
    return sv_is(name, "LISTEN_FDS") || sv_is(name, "LISTEN_PID") || sv_is(name, "LISTEN_FDNAMES");
}

bool is_own_variable(struct strview name)
{
    return sv_starts(name, "ROOST_") || hands_descriptors(name);
}

const char *variable_of_one_process(int index)
{
    static const char *const others[] = {"LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID",
                                         "ROOST_CALL_SOCKET", "ROOST_PORT_*"};
    for (int i = 0; i < VARIABLE_COUNT; i++)
        if (!variable_is_shared((enum variable)i) && index-- == 0)
            return list[i].name;
    return index < (int)(sizeof others / sizeof *others) ? others[index] : NULL;
}

bool is_roost_variable(struct strview name)
{
    enum variable found;
    if (variable_find(name, &found))
        return list[found].kind != VARIABLE_DEFAULT;
    return is_own_variable(name) || sv_starts(name, "RAY_EXPERIMENTAL_NOSET_");
}

bool is_secret_name(struct strview name)
{
    static const char *const words[] = {
        "key",      "keys",      "token",  "tokens",     "secret",      "secrets",    "pass",
        "password", "passwords", "passwd", "passphrase", "passphrases", "credential", "credentials",
    };
    for (size_t from = 0; from <= name.len;) {
        size_t end = sv_find(name, '_', from);
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (sv_is_nocase(sv_sub(name, from, end), words[w]))
                return true;
        from = end + 1;
    }
    return false;
}
