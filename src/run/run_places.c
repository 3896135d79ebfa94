/* run_places.c - in the driver: where a run lives, which is its directory, its namespace, and the
 * directory of sockets and leases. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <roost/prune.h>

#include "base/cure.h"
#include "base/file.h"
#include "base/private_dir.h"
#include "config/config.h"
#include "registry/namespaces.h"
#include "run/run_start.h"

/* roost.logs.dir, which is relative to the config, as an absolute path. */
static bool find_logs(struct run_start *start, char *out, size_t size, bool *has_logs)
{
    const struct roost_config *config = start->options->config;
    const char *wanted = start->options->logs_dir;
    struct strview dir = wanted ? sv_from(wanted) : config->logs_dir.text;
    struct strview name = wanted ? SV("") : sv_from(config->source.name);
    size_t folder = name.len;
    *has_logs = dir.len > 0;
    if (!*has_logs)
        return true;
    while (folder > 0 && name.at[folder - 1] != '/')
        folder--;
    bool is_absolute = dir.at[0] == '/', is_config_absolute = folder && name.at[0] == '/';
    size_t len = 0;
    if (!is_absolute && !is_config_absolute) {
        if (!getcwd(out, size - 1)) {
            diag_error(start->diag, ROOST_ERR_IO, config->logs_dir.at,
                       "cannot find the working directory: %s", strerror(errno));
            diag_hint(start->diag, "write roost.logs.dir as an absolute path");
            return false;
        }
        len = strlen(out);
        out[len++] = '/';
    }
    int wrote = snprintf(out + len, size - len, "%.*s%.*s", is_absolute ? 0 : (int)folder, name.at,
                         (int)dir.len, dir.at);
    if (wrote >= 0 && (size_t)wrote < size - len)
        return true;
    diag_error(start->diag, ROOST_ERR_IO, config->logs_dir.at,
               "the path of the log directory is too long");
    diag_hint(start->diag, "choose a shorter roost.logs.dir");
    return false;
}

/* The kernel frees it with the run's last process. */
static bool choose_namespace(struct run_start *start)
{
    const char *given = start->options->name_space;
    if (start->host->brings_namespace)
        return true;
    if (given) { /* another process holds it */
        snprintf(start->name_space, sizeof start->name_space, "%s", given);
        return true;
    }
    start->namespace_lock =
        namespace_take(start->runtime_dir, NULL, start->name_space, start->diag);
    return start->namespace_lock >= 0;
}

/* Writes the run's id where other processes look for the owner of a namespace. */
bool run_start_sign_namespace(struct run_start *start)
{
    const char *id = start->run->dir.id;
    if (start->namespace_lock < 0)
        return true; /* it is not the run's own */
    if (ftruncate(start->namespace_lock, 0) == 0 &&
        file_write_at(start->namespace_lock, id, strlen(id), 0))
        return true;
    int error = errno;
    diag_error(start->diag, ROOST_ERR_IO, NOWHERE, "cannot write to '%s': %s", start->runtime,
               strerror(error));
    diag_hint(start->diag, "%s", cure_of_place(error, "set XDG_RUNTIME_DIR").text);
    return false;
}

/* Applies roost.logs.keep, before the run takes room itself. A run does not fail because an old one could not
 * be removed: `roost prune` tells why. */
static void prune_old(const struct run_start *start, const char *logs)
{
    const struct roost_prune_limits *keep = &start->options->config->logs_keep;
    char state[RUN_PATH_MAX];
    struct roost_prune_options options = {
        .env = start->options->env, .limits = *keep, .dir = logs, .is_real = true};
    if (!keep->has_age && !keep->has_count && !keep->has_size)
        return;
    if (!logs && private_dir_state(state, sizeof state, options.env))
        options.dir = state;
    if (options.dir && roost_prune(&options, NULL) != ROOST_OK)
        return; /* making the run's own directory reports what is wrong there */
}

bool run_start_find_places(struct run_start *start)
{
    const char *const *env = start->options->env;
    if (!private_dir_runtime(start->runtime, sizeof start->runtime, env)) {
        diag_error(start->diag, ROOST_ERR_IO, NOWHERE,
                   "the path of the runtime directory is too long");
        diag_hint(start->diag, "set XDG_RUNTIME_DIR to a shorter path");
        return false;
    }
    struct roost_error err;
    start->runtime_dir = private_dir_open(start->runtime, true, &err);
    if (start->runtime_dir < 0) {
        diag_again(start->diag, &err);
        return false;
    }
    if (!choose_namespace(start))
        return false;
    char logs[RUN_PATH_MAX];
    bool has_logs = false;
    if (!find_logs(start, logs, sizeof logs, &has_logs))
        return false;
    prune_old(start, has_logs ? logs : NULL);
    return run_dir_make(&start->run->dir, has_logs ? logs : NULL, env, start->diag);
}
