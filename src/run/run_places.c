/* run_places.c - where a run lives: its directory, its namespace, the directory of sockets and leases. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cure.h"
#include "base/file.h"
#include "base/private_dir.h"
#include "config/config.h"
#include "registry/namespaces.h"
#include "run/run_birth.h"

/* roost.logs.dir, which is relative to the config, as an absolute path. */
static bool find_logs(struct birth *birth, char *out, size_t size, bool *has_logs)
{
    const struct roost_config *config = birth->options->config;
    const char *wanted = birth->options->logs_dir;
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
            diag_error(birth->diag, ROOST_ERR_IO, config->logs_dir.at,
                       "cannot find the working directory: %s", strerror(errno));
            diag_hint(birth->diag, "write roost.logs.dir as an absolute path");
            return false;
        }
        len = strlen(out);
        out[len++] = '/';
    }
    int wrote = snprintf(out + len, size - len, "%.*s%.*s", is_absolute ? 0 : (int)folder, name.at,
                         (int)dir.len, dir.at);
    if (wrote >= 0 && (size_t)wrote < size - len)
        return true;
    diag_error(birth->diag, ROOST_ERR_IO, config->logs_dir.at,
               "the path of the log directory is too long");
    diag_hint(birth->diag, "choose a shorter roost.logs.dir");
    return false;
}

/* The kernel frees it with the run's last process. */
static bool choose_namespace(struct birth *birth)
{
    const char *given = birth->options->name_space;
    if (birth->is_on_ray) /* it has one there */
        return true;
    if (given) { /* somebody else holds it */
        snprintf(birth->name_space, sizeof birth->name_space, "%s", given);
        return true;
    }
    birth->namespace_lock =
        namespace_take(birth->runtime_dir, NULL, birth->name_space, birth->diag);
    return birth->namespace_lock >= 0;
}

/* Who the run is: its id goes where others look for a namespace. */
bool birth_sign_namespace(struct birth *birth)
{
    const char *id = birth->run->dir.id;
    if (birth->namespace_lock < 0)
        return true; /* it is somebody else's */
    if (ftruncate(birth->namespace_lock, 0) == 0 &&
        file_write_at(birth->namespace_lock, id, strlen(id), 0))
        return true;
    int error = errno;
    diag_error(birth->diag, ROOST_ERR_IO, NOWHERE, "cannot write to '%s': %s", birth->runtime,
               strerror(error));
    diag_hint(birth->diag, "%s", cure_of_place(error, "set XDG_RUNTIME_DIR").text);
    return false;
}

bool birth_find_places(struct birth *birth)
{
    const char *const *env = birth->options->env;
    if (!private_dir_runtime(birth->runtime, sizeof birth->runtime, env)) {
        diag_error(birth->diag, ROOST_ERR_IO, NOWHERE,
                   "the path of the runtime directory is too long");
        diag_hint(birth->diag, "set XDG_RUNTIME_DIR to a shorter path");
        return false;
    }
    struct roost_error err;
    birth->runtime_dir = private_dir_open(birth->runtime, true, &err);
    if (birth->runtime_dir < 0) {
        diag_again(birth->diag, &err);
        return false;
    }
    if (!choose_namespace(birth))
        return false;
    char logs[RUN_PATH_MAX];
    bool has_logs = false;
    return find_logs(birth, logs, sizeof logs, &has_logs) &&
           run_dir_make(&birth->run->dir, has_logs ? logs : NULL, env, birth->diag);
}
