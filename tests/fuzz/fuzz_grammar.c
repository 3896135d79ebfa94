/* fuzz_grammar.c - any bytes, as a placement text and as a plain set of ranks.
 * The first byte chooses what there is to place on. What is accepted keeps the rules: processes are
 * 0, 1, 2, ... without a gap, resources rise and are there. Costs what the text is long, whatever its
 * numbers are. */
#include "base/rankset.h"
#include "placement/rank_text.h"
#include "tests/fuzz/check.h"

static void check_set(struct strview text)
{
    struct arena arena = ARENA_INIT;
    struct rankset set = {0};
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    enum roost_code code = rankset_read(&set, &arena, text, NOWHERE, &diag);
    CHECK((code == ROOST_OK) == (diag.errors == 0) && code == err.code);
    check_words(err.message);
    int64_t size = 0;
    for (int32_t i = 0; i < set.count; i++) {
        struct rank_range range = set.ranges[i];
        CHECK(range.first >= 0 && range.first <= range.last);
        CHECK(i == 0 || (int64_t)set.ranges[i - 1].last + 1 < range.first);
        CHECK(rankset_has(&set, range.first) && rankset_has(&set, range.last));
        CHECK(range.first == 0 || !rankset_has(&set, range.first - 1));
        CHECK(range.last == ROOST_RANK_MAX || !rankset_has(&set, range.last + 1));
        size += range_size(range);
    }
    CHECK(rankset_size(&set) == size && (size_t)set.count <= text.len);
    arena_release(&arena);
}

static void check_entries(const struct rank_text *text, const struct rank_bounds *bounds)
{
    int64_t next_process = 0, next_resource = 0;
    CHECK(text->count > 0);
    for (int32_t i = 0; i < text->count; i++) {
        const struct rank_entry *entry = &text->entries[i];
        int64_t resources = range_size(entry->resources), processes = range_size(entry->processes);
        CHECK(resources > 0 && processes > 0);
        CHECK(entry->processes.first == next_process && entry->processes.last < PROCESSES_MAX);
        CHECK(entry->resources.first >= next_resource && entry->resources.last < bounds->total);
        CHECK(bounds->is_node ? processes >= resources
                              : resources % processes == 0 || processes % resources == 0);
        next_process = (int64_t)entry->processes.last + 1;
        next_resource = (int64_t)entry->resources.last + 1;
    }
    CHECK(rank_text_processes(text) == next_process);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int32_t totals[] = {-1, 1, 8, 100, 1 << 26};
    if (size == 0)
        return 0;
    struct source source = {.name = "text", .text = {(const char *)data + 1, size - 1}};
    struct rank_bounds bounds = {.label = "g",
                                 .unit = "units",
                                 .total = totals[data[0] % 5],
                                 .is_node = data[0] & 64,
                                 .is_known = true};
    struct roost_report *report = roost_report_new();
    struct arena arena = ARENA_INIT;
    struct diag diag = diag_start(report, NULL);
    struct rank_text text;
    CHECK(report);
    check_set(source.text);
    bool is_good = rank_text_read(
        &arena, (struct word){.text = source.text, .at = source_place(&source, 0, 1)}, &diag,
        &text);
    CHECK(is_good == (diag.errors == 0));
    is_good = rank_text_bind(&text, &bounds, &diag) && is_good;
    CHECK(is_good == (diag.errors == 0));
    if (is_good && bounds.total >= 0)
        check_entries(&text, &bounds);
    check_report(report, "text", source.text);
    arena_release(&arena);
    roost_report_free(report);
    return 0;
}
