/* managers.c - the registry for programs that have their own way to reach it. */
#include <stdlib.h>

#include <roost/engine/registry.h>

#include "registry/registry.h"

struct roost_registry {
    struct registry *registry;
    roost_later_fn later;
    void *context;
};

static void tell_later(void *context, uint64_t owner, struct strview answer)
{
    const struct roost_registry *managers = context;
    if (managers->later)
        managers->later(managers->context, owner, answer.at, answer.len);
}

struct roost_registry *roost_registry_new(const char *view, size_t view_len, roost_later_fn later,
                                          void *context, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct roost_registry *managers = calloc(1, sizeof *managers);
    if (managers) {
        *managers = (struct roost_registry){.later = later, .context = context};
        managers->registry = registry_new(tell_later, managers);
    }
    if (!managers || !managers->registry)
        diag_nomem(&diag);
    else if (!view ||
             registry_set_view(managers->registry, (struct strview){view, view_len}, &diag))
        return managers;
    roost_registry_free(managers);
    return NULL;
}

void roost_registry_free(struct roost_registry *managers)
{
    if (managers)
        registry_free(managers->registry);
    free(managers);
}

enum roost_code roost_registry_answer(struct roost_registry *managers, uint64_t owner,
                                      const char *request, size_t len, char **out_answer,
                                      struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct text out = TEXT_INIT;
    char *answer = NULL;
    if (registry_answer(managers->registry, owner, (struct strview){request, len}, &out) ==
        REGISTRY_ANSWERED) {
        answer = text_string(&out) ? out.bytes : NULL;
        if (!answer) {
            text_release(&out);
            return diag_nomem(&diag);
        }
    }
    *out_answer = answer; /* the text's memory is the caller's now */
    if (!answer)
        text_release(&out);
    return ROOST_OK;
}

void roost_registry_owner_gone(struct roost_registry *managers, uint64_t owner)
{
    registry_owner_gone(managers->registry, owner);
}

uint64_t roost_registry_changes(const struct roost_registry *managers)
{
    return registry_changes(managers->registry);
}

struct telling {
    roost_tell_fn tell;
    void *context;
};

static bool tell_request(void *context, uint64_t owner, struct strview request)
{
    const struct telling *telling = context;
    return telling->tell(telling->context, owner, request.at, request.len);
}

enum roost_code roost_registry_tell(const struct roost_registry *managers, roost_tell_fn tell,
                                    void *context, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct telling telling = {tell, context};
    return registry_tell(managers->registry, tell_request, &telling) ? ROOST_OK : diag_nomem(&diag);
}
