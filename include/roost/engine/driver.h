/* driver.h - rules that every driver follows, in any language: which engine runs a config, what the
 * environment sets for a run, and how messages name ranks. Pure functions. */
#ifndef ROOST_ENGINE_DRIVER_H
#define ROOST_ENGINE_DRIVER_H

#include <roost/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The names of the engines, NULL-terminated; static. */
ROOST_API const char *const *roost_engine_names(void);

/* Whether an engine has this name. */
ROOST_API bool roost_engine_is_known(const char *name);

/* The engine that runs a config: `asked`, else `from_env` (the value of ROOST_ENGINE), else what the
 * config says, else "local". All three may be NULL, and an empty text counts as NULL. Returns the text
 * that was chosen, borrowed: roost_engine_is_known tells whether it names an engine. */
ROOST_API const char *roost_engine_choose(const char *asked, const char *from_env,
                                          const struct roost_config *config);

/* What the environment sets for runs on this machine; all zero = the defaults. */
struct roost_settings {
    /* ROOST_PORT_BASE: the first port that leases try; 0 = the usual one. */
    int32_t port_base;
    /* ROOST_CGROUP=never: the run gets no control group. */
    bool has_no_cgroup;
};

/* Reads them from "NAME=value" texts, NULL-terminated. An empty value counts as not set. Fails with
 * ROOST_ERR_USAGE. */
ROOST_API enum roost_code roost_settings_read(const char *const *env, struct roost_settings *out,
                                              struct roost_error *err) ROOST_MUST_USE;

/* Ranks in rising order as "0-3, 5". Writes at most `size` bytes, NUL included, and returns the length of
 * the whole text. */
ROOST_API size_t roost_ranks_text(const int32_t *ranks, size_t count, char *out, size_t size);

/* How many late ranks roost_readiness_text names; it counts the others. */
enum { ROOST_LATE_NAMED = 3 };

/* A rank that is not ready. */
struct roost_late {
    int32_t rank;
    /* Follows the name of the rank, such as " on node 1"; NULL = nothing. */
    const char *note;
};

/* "2 of 4 processes of 'actor' are ready; actor/1, actor/3 are not". `late` holds the first late ranks:
 * `late_count` of them, but at most ROOST_LATE_NAMED. Writes and returns as roost_ranks_text does. */
ROOST_API size_t roost_readiness_text(const char *group, int32_t world_size,
                                      const struct roost_late *late, int32_t late_count, char *out,
                                      size_t size);

#ifdef __cplusplus
}
#endif

#endif
