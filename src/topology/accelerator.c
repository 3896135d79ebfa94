/* accelerator.c - the types of accelerators, and how nodes name their models. */
#include <string.h>

#include "base/diag.h"
#include "topology/cluster.h"

static const char *const types[] = {
#define X(name, type, word) type,
    ROOST_ACCELERATOR_MAP(X)
#undef X
        NULL,
};

const char *roost_accelerator_type(enum roost_accelerator accelerator)
{
    return types[accelerator];
}

enum roost_code roost_accelerator_read(const char *text, enum roost_accelerator *out_type,
                                       const char **out_model, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    const char *colon = strchr(text, ':');
    if (!colon) {
        *out_type = ROOST_ACCELERATOR_NVIDIA;
        *out_model = text;
        return ROOST_OK;
    }
    struct strview word = {text, (size_t)(colon - text)};
    int type = 0;
    while (types[type] && !sv_is(word, types[type]))
        type++;
    if (types[type] && !strchr(colon + 1, ':')) {
        *out_type = (enum roost_accelerator)type;
        *out_model = colon + 1;
        return ROOST_OK;
    }
    diag_error(&diag, ROOST_ERR_SCHEMA, NOWHERE,
               "the model of an accelerator is TYPE:MODEL, not '%s'", quote(sv_from(text)).text);
    const char *near = types[type] ? NULL : nearest_word(word, types);
    if (near)
        diag_hint(&diag, "did you mean the type '%s'?", near);
    else
        diag_hint(&diag, "write NV_GPU:A800, or the model alone for NVIDIA");
    return diag.first;
}
