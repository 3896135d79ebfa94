/* digest.c - the command and the variables of a process, as one hash each. The driver and the agent compute
 * them, and the supervisor compares them. */
#include "agent/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* With its NUL: strings must not run into each other. */
static uint64_t add(uint64_t hash, const char *string)
{
    return hash_bytes(hash, string, strlen(string) + 1);
}

static uint64_t hash_command(const char *const *argv, const char *cwd)
{
    uint64_t hash = add(HASH_START, cwd);
    for (; argv && *argv; argv++)
        hash = add(hash, *argv);
    return hash;
}

static struct digest put(uint64_t command, uint64_t variables)
{
    struct digest digest;
    snprintf(digest.text, sizeof digest.text, "%016" PRIx64 " %016" PRIx64, command, variables);
    return digest;
}

struct digest digest_planned(const char *const *argv, const char *const *env, const char *cwd)
{
    uint64_t variables = HASH_START;
    for (; env && *env; env++)
        variables = add(variables, *env);
    return put(hash_command(argv, cwd), variables);
}

/* As getenv finds it: the first one counts. */
static const char *find(char *const *env, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;
    while (*env && strncmp(*env, variable, len) != 0)
        env++;
    return *env ? *env : "";
}

struct digest digest_executed(const struct spec_process *process, char *const *argv,
                              char *const *env)
{
    uint64_t variables = HASH_START;
    const char *own = process->env.first;
    for (uint32_t i = 0; i < process->env.count; i++, own = spec_next(own))
        variables = add(variables, find(env, own));
    return put(hash_command((const char *const *)argv, process->cwd), variables);
}

const char *digest_difference(const char *planned, const char *executed)
{
    if (strcmp(planned, executed) == 0)
        return NULL;
    return strncmp(planned, executed, 16) == 0 ? "variables" : "command";
}
