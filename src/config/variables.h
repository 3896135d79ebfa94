/* variables.h - the environment variables that roost gives to processes: the one list of them.
 *
 * What may be set in a config, what %{NAME} may name and what command/environment.c sets all come from
 * here; a name added here without a value there does not compile. */
#ifndef CONFIG_VARIABLES_H
#define CONFIG_VARIABLES_H

#include "base/strview.h"

enum variable_kind {
    VARIABLE_EVERY,   /* every process has it, and nobody else may set it */
    VARIABLE_VENDOR,  /* processes on nodes with certain accelerators; nobody else may set it */
    VARIABLE_DEFAULT, /* the same, but a value of the config wins */
};

/* name, kind; in the order of their names */
#define ROOST_VARIABLE_MAP(X)                                                                      \
    X(ACCELERATOR_MODEL, EVERY)                                                                    \
    X(ACCELERATOR_TYPE, EVERY)                                                                     \
    X(ASCEND_RT_VISIBLE_DEVICES, VENDOR)                                                           \
    X(CATCH_SYSTEM_FAILURE, EVERY)                                                                 \
    X(CLUSTER_NAMESPACE, EVERY)                                                                    \
    X(CLUSTER_NODE_RANK, EVERY)                                                                    \
    X(CUDA_VISIBLE_DEVICES, VENDOR)                                                                \
    X(EGL_DEVICE_ID, DEFAULT)                                                                      \
    X(GROUP_NAME, EVERY)                                                                           \
    X(GROUP_RANK, EVERY)                                                                           \
    X(HIP_VISIBLE_DEVICES, VENDOR)                                                                 \
    X(ISOLATE_ACCELERATOR, EVERY)                                                                  \
    X(LOCAL_ACCELERATOR_RANK, EVERY)                                                               \
    X(LOCAL_HARDWARE_RANKS, EVERY)                                                                 \
    X(LOCAL_RANK, EVERY)                                                                           \
    X(LOCAL_WORLD_SIZE, EVERY)                                                                     \
    X(MASTER_ADDR, EVERY)                                                                          \
    X(MASTER_PORT, EVERY)                                                                          \
    X(MUJOCO_EGL_DEVICE_ID, DEFAULT)                                                               \
    X(MUSA_VISIBLE_DEVICES, VENDOR)                                                                \
    X(NCCL_CUMEM_ENABLE, DEFAULT)                                                                  \
    X(NODE_GROUP_LABEL, EVERY)                                                                     \
    X(NODE_LOCAL_RANK, EVERY)                                                                      \
    X(NODE_LOCAL_WORLD_SIZE, EVERY)                                                                \
    X(NODE_RANK, EVERY)                                                                            \
    X(ONEAPI_DEVICE_SELECTOR, VENDOR)                                                              \
    X(RANK, EVERY)                                                                                 \
    X(RAY_ACTOR, EVERY)                                                                            \
    X(RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES, VENDOR)                                    \
    X(RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES, VENDOR)                                         \
    X(RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES, VENDOR)                                          \
    X(RAY_EXPERIMENTAL_NOSET_MUSA_VISIBLE_DEVICES, VENDOR)                                         \
    X(RAY_EXPERIMENTAL_NOSET_ONEAPI_DEVICE_SELECTOR, VENDOR)                                       \
    X(RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES, VENDOR)                                         \
    X(ROOST_COMPONENT, EVERY)                                                                      \
    X(ROOST_NAMESPACE, EVERY)                                                                      \
    X(ROOST_RUN_ID, EVERY)                                                                         \
    X(VISIBLE_DEVICES, EVERY)                                                                      \
    X(WORKER_NAME, EVERY)                                                                          \
    X(WORLD_SIZE, EVERY)

enum variable {
#define X(name, kind) VARIABLE_##name,
    ROOST_VARIABLE_MAP(X)
#undef X
};

enum { VARIABLE_COUNT = VARIABLE_WORLD_SIZE + 1 };

const char *variable_name(enum variable variable);
enum variable_kind variable_kind(enum variable variable);

/* Whether all processes of a component have the same value, on nodes with the same accelerators. */
bool variable_is_shared(enum variable variable);

/* Finds a variable of the list by its name. */
bool variable_find(struct strview name, enum variable *out);

/* A name that only roost may give a value: what it sets itself, everything that starts like one of
 * its own (ROOST_PORT_<NAME> is among them), and how descriptors are handed over. */
bool is_roost_variable(struct strview name);

/* Of those, the ones that roost itself goes by: how a process is found again, and what it was handed. Nobody
 * sets them, not even who may set everything else by hand. */
bool is_own_variable(struct strview name);

/* The variables that roost gives each process of a component in its own way: its ranks, its devices, its
 * ports, its socket. Programs that serve several processes must not know them. Returns the name at `index`,
 * NULL after the last one. A name that ends with '*' stands for all names that start so (sv_matches). */
const char *variable_of_one_process(int index);

/* The one rule for secrets: a variable whose name has one of these words between its underscores, in any
 * case: KEY, TOKEN, SECRET, PASS, PASSWORD, PASSWD, PASSPHRASE, CREDENTIAL, and their plurals. Its value is
 * for processes alone: *** stands for it in all that roost prints, records or exports. */
bool is_secret_name(struct strview name);

#endif
