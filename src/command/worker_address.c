/* worker_address.c - reads worker addresses. Only this file knows which are valid. */
#include "command/worker_address.h"

#include <roost/engine/registry.h>
#include <roost/group.h>

bool group_name_check(struct strview name, struct diag *diag)
{
    if (is_run_file(name)) {
        diag_error(
            diag, ROOST_ERR_NAME, NOWHERE,
            "'%s' cannot be the name of a group: a run keeps a file of that name in its folder",
            quote(name).text);
        diag_hint(diag, "choose another name");
        return false;
    }
    if (is_name(name))
        return true;
    diag_error(diag, ROOST_ERR_NAME, NOWHERE, "'%s' cannot be the name of a group",
               quote(name).text);
    if (sv_find(name, ':', 0) < name.len)
        diag_hint(diag, "leave out the ':', which stands between a group and a rank");
    else
        diag_hint(diag,
                  "use letters, digits, '_', and after the first of them '-' and '.', at most 63");
    return false;
}

static bool say_path(struct strview text, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_NAME, NOWHERE, "'%s' is not the address of a worker",
               quote(text).text);
    diag_hint(diag, "write the group and the rank: actor:0, or actor:0:1 for a child of it");
    return false;
}

/* A rank without sign, blanks or leading zeros: an address has one spelling. */
static bool read_rank(struct strview text, int32_t *out)
{
    int64_t value = 0;
    if (text.len == 0 || text.len > 10 || (text.at[0] == '0' && text.len > 1))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        value = value * 10 + (text.at[i] - '0');
    }
    *out = (int32_t)value;
    return value <= INT32_MAX;
}

bool worker_address_read(struct strview text, struct worker_address *out, struct diag *diag)
{
    struct worker_address scratch = {.path_len = 0};
    struct worker_address *it = out ? out : &scratch;
    size_t end = sv_find(text, ':', 0);
    if (text.len > ADDRESS_MAX)
        return say_path(text, diag);
    *it = (struct worker_address){.group = sv_sub(text, 0, end)};
    if (!group_name_check(it->group, diag))
        return false;
    while (end < text.len) {
        size_t next = sv_find(text, ':', end + 1);
        if (it->path_len == ADDRESS_PATH_MAX ||
            !read_rank(sv_sub(text, end + 1, next), &it->path[it->path_len++]))
            return say_path(text, diag);
        end = next;
    }
    return true;
}

enum roost_code roost_address_check(const char *address, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    (void)worker_address_read(sv_from(address), NULL, &diag);
    return diag.first;
}

enum roost_code roost_group_name_check(const char *name, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    (void)group_name_check(sv_from(name), &diag);
    return diag.first;
}
