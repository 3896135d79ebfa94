/* totals.c - the limit on a whole plan. Each component has its own limit, but a file can name thousands of
 * components. Their sum decides how much memory a plan takes, so it is checked first. */
#include "placement/totals.h"

/* Some 40 bytes a process and 4 a resource: a plan stays below a gigabyte. */
enum { ALL_PROCESSES_MAX = 1 << 24, ALL_RESOURCES_MAX = 1 << 26 };

struct text_size text_size(const struct rank_text *text)
{
    struct text_size size = {0};
    for (int32_t i = 0; i < text->count; i++) {
        const struct rank_entry *entry = &text->entries[i];
        int64_t resources = range_size(entry->resources);
        if (entry->is_bad || resources < 1)
            continue;
        int64_t processes = entry->has_processes ? range_size(entry->processes) : resources;
        size.processes += processes;
        size.resources += resources > processes ? resources : processes;
    }
    return size;
}

bool totals_check(const struct roost_config *config, const struct text_size *sizes,
                  struct diag *diag)
{
    struct text_size all = {0};
    for (int32_t c = 0; c < config->component_count; c++) {
        const struct component *component = &config->components[c];
        all.processes += sizes[component->rule].processes;
        all.resources += sizes[component->rule].resources;
        bool is_crowd = all.processes > ALL_PROCESSES_MAX;
        if (!is_crowd && all.resources <= ALL_RESOURCES_MAX)
            continue;
        diag_error(diag, ROOST_ERR_LIMIT, config->rules[component->rule].text.at,
                   is_crowd ? "with '%s' the components have more than %d processes together"
                            : "with '%s' the components hold more than %d resources together",
                   component->name, is_crowd ? ALL_PROCESSES_MAX : ALL_RESOURCES_MAX);
        diag_hint(diag, "write fewer ranks, or plan some of the components by themselves");
        return false;
    }
    return true;
}
