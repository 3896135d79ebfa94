/* prune.h - removes the directories of runs that have ended.
 *
 * Only runs whose end is recorded are removed. A run that is alive, starts, is read by `roost logs`, or
 * cannot be judged (it left no end, and may live on another machine) is never touched. A run whose
 * directory holds something that roost did not make is kept whole. No symbolic link is followed. */
#ifndef ROOST_PRUNE_H
#define ROOST_PRUNE_H

#include <roost/error.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which runs go: those that any of the given limits does not allow. Without a limit every ended run goes. */
struct roost_prune_limits {
    bool has_age, has_count, has_size;
    int64_t age;   /* seconds: runs go that ended longer ago */
    int64_t count; /* the newest ended runs stay, so many of them */
    int64_t size;  /* the newest ended runs stay that together take at most so many bytes */
};

enum roost_prune_verdict {
    ROOST_PRUNE_REMOVED, /* or would be, without `is_real` */
    ROOST_PRUNE_USED,    /* kept: a process of the run, a reader or another prune uses it */
    ROOST_PRUNE_FOREIGN, /* kept: `what` in it was not made by roost */
    ROOST_PRUNE_FAILED,  /* the system refused to remove it: `what` has its words */
};

/* One run that the limits do not allow. Borrowed for the call. */
struct roost_pruned {
    const char *run; /* its id */
    const char
        *state; /* as `roost ps` says; "removed" = an earlier prune did not come to its end */
    const char *config; /* or the names of its groups */
    const char *dir;
    int64_t started, ended; /* seconds since 1970; 0 = not known */
    int64_t size;           /* bytes on disk */
    enum roost_prune_verdict verdict;
    const char *what; /* see the verdict; "" = nothing */
};

struct roost_prune_options {
    /* "NAME=value" texts, NULL-terminated: XDG_STATE_HOME, XDG_RUNTIME_DIR and HOME are looked up here. */
    const char *const *env;
    struct roost_prune_limits limits;
    /* Only runs whose directories are in this folder. NULL = all. */
    const char *dir;
    /* Remove them. Otherwise they are only reported. */
    bool is_real;
    /* Called for each run, the newest first. May be NULL. */
    void (*report)(void *ctx, const struct roost_pruned *run);
    void *ctx;
};

/* Removes runs, and finishes what an earlier call did not come to the end of. A run that could not be
 * removed does not stop it: its verdict tells. Fails when the runs cannot be listed. */
ROOST_API enum roost_code roost_prune(const struct roost_prune_options *options,
                                      struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
