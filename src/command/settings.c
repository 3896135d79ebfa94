/* settings.c - what a driver takes from its environment and its config: the engine, the first port, the
 * control group. Pure: the caller passes the environment. */
#include <roost/engine/driver.h>
#include <string.h>

#include "base/diag.h"
#include "base/number.h"
#include "command/environment.h"

enum { PORT_FIRST = 1024 }; /* below are the system's */

static const char *const engine_names[] = {"local", "ray", NULL};

const char *const *roost_engine_names(void)
{
    return engine_names;
}

bool roost_engine_is_known(const char *name)
{
    for (const char *const *it = engine_names; *it; it++)
        if (strcmp(*it, name) == 0)
            return true;
    return false;
}

const char *roost_engine_choose(const char *asked, const char *from_env,
                                const struct roost_config *config)
{
    if (asked && *asked)
        return asked;
    if (from_env && *from_env)
        return from_env;
    const char *written = config ? roost_config_engine(config) : NULL;
    return written ? written : engine_names[0];
}

/* The value of a variable; NULL when it is not set or empty. */
static const char *find(const char *const *env, const char *name)
{
    const char *value = environment_find(env, name);
    return value && *value ? value : NULL;
}

enum roost_code roost_settings_read(const char *const *env, struct roost_settings *out,
                                    struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    const char *cgroup = find(env, "ROOST_CGROUP"), *base = find(env, "ROOST_PORT_BASE");
    int64_t port = 0;
    if (cgroup && strcmp(cgroup, "auto") != 0 && strcmp(cgroup, "never") != 0)
        return diag_error(&diag, ROOST_ERR_USAGE, NOWHERE,
                          "ROOST_CGROUP is 'auto' or 'never', not '%s'",
                          quote(sv_from(cgroup)).text);
    if (base && (number_parse(sv_from(base), UINT16_MAX, &port) != NUMBER_OK || port < PORT_FIRST))
        return diag_error(&diag, ROOST_ERR_USAGE, NOWHERE,
                          "ROOST_PORT_BASE is a port from 1024 to 65535, not '%s'",
                          quote(sv_from(base)).text);
    *out = (struct roost_settings){.port_base = (int32_t)port,
                                   .has_no_cgroup = cgroup && strcmp(cgroup, "never") == 0};
    return ROOST_OK;
}
