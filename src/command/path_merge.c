/* path_merge.c - see path_merge.h. The list of variables is RLinf's. */
#include "command/path_merge.h"

bool is_path_variable(struct strview name)
{
    static const char *const names[] = {
        "PATH",         "PYTHONPATH",        "LD_LIBRARY_PATH",
        "LIBRARY_PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH",
        "CPATH",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sv_is(name, names[i]))
            return true;
    return false;
}

/* The entry of `list` that starts at `from`. */
static struct strview entry_at(struct strview list, size_t from)
{
    return sv_sub(list, from, sv_find(list, ':', from));
}

static bool has_entry(struct strview list, struct strview entry)
{
    for (size_t at = 0; at < list.len; at += entry_at(list, at).len + 1)
        if (sv_equal(entry_at(list, at), entry))
            return true;
    return false;
}

void path_merge(struct text *out, struct strview new, struct strview old)
{
    const struct strview lists[] = {new, old};
    bool is_first = true;
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < lists[i].len; at += entry_at(lists[i], at).len + 1) {
            struct strview entry = entry_at(lists[i], at);
            bool came_before = has_entry(sv_sub(lists[i], 0, at), entry);
            if (entry.len == 0 || came_before || (i == 1 && has_entry(new, entry)))
                continue;
            if (!is_first)
                text_char(out, ':');
            text_put(out, entry);
            is_first = false;
        }
    }
}
