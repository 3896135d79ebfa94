/* rank_text_test.c - placement texts: grammar, rules and their order, with and without a cluster. */
#include "placement/rank_text.h"

#include "base/text.h"
#include "tests/unit.h"

/* Reads and binds `text`: "0-3>0-7 5>8" (resources > processes), or the error. */
static void describe(const char *text, struct rank_bounds bounds, struct text *out)
{
    struct arena arena = ARENA_INIT;
    struct source source = {.name = "p", .text = sv_from(text)};
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct rank_text parsed;
    struct word word = {.text = source.text, .at = source_place(&source, 0, 1)};
    out->len = 0;
    bool is_good =
        rank_text_read(&arena, word, &diag, &parsed) && rank_text_bind(&parsed, &bounds, &diag);
    CHECK_FACT(text, is_good == (diag.errors == 0));
    if (!is_good)
        text_printf(out, "%s %d: %s", roost_code_word(err.code), err.column, err.message);
    for (int32_t i = 0; is_good && i < parsed.count; i++) {
        const struct rank_entry *entry = &parsed.entries[i];
        text_printf(out, i ? " %d-%d>%d-%d" : "%d-%d>%d-%d", entry->resources.first,
                    entry->resources.last, entry->processes.first, entry->processes.last);
    }
    arena_release(&arena);
}

static const struct rank_bounds eight = {
    .label = "cluster", .unit = "accelerators", .total = 8, .is_known = true};
static const struct rank_bounds four_nodes = {
    .label = "node", .unit = "nodes", .total = 4, .is_node = true, .is_known = true};
static const struct rank_bounds unknown = {.label = "", .unit = "", .total = -1};

static void check_rows(const char *const (*rows)[2], size_t count, struct rank_bounds bounds)
{
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < count; i++) {
        describe(rows[i][0], bounds, &got);
        CHECK_TEXT(rows[i][0], text_string(&got), rows[i][1]);
    }
    text_release(&got);
}

/* Only code, column and a phrase: the words may be polished. */
static void check_faults(const char *const (*rows)[3], size_t count, struct rank_bounds bounds)
{
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < count; i++) {
        describe(rows[i][0], bounds, &got);
        CHECK_SAYS(rows[i][0], text_string(&got), rows[i][1]);
        CHECK_SAYS(rows[i][0], text_string(&got), rows[i][2]);
    }
    text_release(&got);
}

TEST(entries_get_their_resources_and_processes)
{
    static const char *const rows[][2] = {
        {"0-7", "0-7>0-7"},
        {"all", "0-7>0-7"},
        {"ALL:0-3", "0-7>0-3"},
        {"all:0-15", "0-7>0-15"},
        {"all:0", "0-7>0-0"},
        {"0-3:0-7", "0-3>0-7"},
        {"0-3:0-1", "0-3>0-1"},
        {"0-2,5,7", "0-2>0-2 5-5>3-3 7-7>4-4"},
        {"0-1:0-3,3-5,7:7-8", "0-1>0-3 3-5>4-6 7-7>7-8"},
        {"0:0-4, 1:5-9", "0-0>0-4 1-1>5-9"},
        {"0-1,2-3:2", "0-1>0-1 2-3>2-2"},
        {"0-3,4-7", "0-3>0-3 4-7>4-7"},
        {"0", "0-0>0-0"},
        {"0-0", "0-0>0-0"},
        {"  0-1 ,, 2 ,", "0-1>0-1 2-2>2-2"},
        {" 0 - 1 : 0 - 3 ", "0-1>0-3"},
        {"007", "7-7>0-0"},
        {"+1", "1-1>0-0"},
        {" all ", "0-7>0-7"},
        {"0:0-16777215", "0-0>0-16777215"},
    };
    check_rows(rows, ROWS(rows), eight);
}

TEST(faults_of_the_text_are_said_where_they_stand)
{
    static const char *const rows[][3] = {
        {"", "rank 1:", "must not be empty"},
        {" , ", "rank 1:", "must not be empty"},
        {"0-1,1-2", "rank 5:", "Resource ranks must be unique"},
        {"0-3,2", "rank 5:", "Resource ranks must be unique"},
        {"1,0", "rank 3:", "ascending order"},
        {"4-7,0-3", "rank 5:", "ascending order"},
        {"all,0", "rank 5:", "Resource ranks must be unique"},
        {"0,all", "rank 3:", "Resource ranks must be unique"},
        {"0-0:0,1-1:2", "rank 7:", "Process ranks must be in ascending order and continuous"},
        {"0:1,1:0", "rank 1:", "Process ranks must be in ascending order and continuous"},
        {"0-1:5-6", "rank 1:", "Process ranks must be in ascending order and continuous"},
        {"0-1:0-1,2-3:1-2", "rank 9:", "Process ranks must be in ascending order and continuous"},
        {"0-3,5-7:0-6", "rank 5:", "Process ranks must be in ascending order and continuous"},
        {"0-2:0-1", "rank 1:", "multiple of the other"},
        {"0-3:0-2", "rank 1:", "multiple of the other"},
        {"0:all", "rank 1:", "the process side cannot be 'all'"},
        {"0:ALL", "rank 1:", "the process side cannot be 'all'"},
        {"0:", "rank 1:", "no process ranks"},
        {":0", "rank 1:", "no resource ranks"},
        {":", "rank 1:", "no resource ranks"},
        {"0:0:0", "rank 1:", "more than one ':'"},
        {"8", "fit 1:", "out of range"},
        {"0-8", "fit 1:", "out of range"},
        {"0-3,4-8", "fit 5:", "out of range"},
        {"2147483647", "fit 1:", "out of range"},
        {"2147483648", "limit 1:", "beyond the largest rank"},
        {"true", "rank 1:", "Invalid rank format 'true'"},
        {"0.5", "rank 1:", "Invalid rank format '0.5'"},
        {"0-1,x:0", "rank 5:", "Invalid rank format 'x'"},
        {"0-1:y", "rank 5:", "Invalid rank format 'y'"},
        {"3-1", "rank 1:", "runs backwards"},
        {"0:3-1", "rank 3:", "runs backwards"},
        {"1_0", "rank 1:", "Invalid rank format"},
        {"-1", "rank 1:", "Invalid rank format"},
        {"0:0-16777216", "limit 1:", "more than 16777216 processes"},
    };
    check_faults(rows, ROWS(rows), eight);
}

TEST(every_malformed_entry_is_said_not_only_the_first)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = diag_start(NULL, NULL);
    struct rank_text parsed;
    struct word word = {.text = SV("a,0,b:c,1:,:2")};
    assert_false(rank_text_read(&arena, word, &diag, &parsed));
    assert_int_equal(diag.errors, 5);
    arena_release(&arena);
}

TEST(nodes_take_uneven_processes_but_no_process_takes_two_nodes)
{
    static const char *const rows[][2] = {
        {"0-1:0-200,2-3:201-511", "0-1>0-200 2-3>201-511"},
        {"0-1:0-199,2-3:200-399", "0-1>0-199 2-3>200-399"},
        {"all:0-8", "0-3>0-8"},
        {"0-3", "0-3>0-3"},
    };
    static const char *const faults[][3] = {
        {"0-1:0", "rank 1:", "a process runs on one node"},
        {"all:0-2", "rank 1:", "a process runs on one node"},
        {"4", "fit 1:", "out of range"},
    };
    check_rows(rows, ROWS(rows), four_nodes);
    check_faults(faults, ROWS(faults), four_nodes);
}

TEST(without_a_cluster_only_what_depends_on_it_is_left_unchecked)
{
    static const char *const good[] = {"0-99",    "all",          "all:0-6",
                                       "0-2:0-1", "2147483646:0", "0-3,7-8:4-9"};
    static const char *const faults[][3] = {
        {"1,0", "rank 3:", "ascending order"},
        {"0-1,1-2", "rank 5:", "must be unique"},
        {"0:1", "rank 1:", "continuous"},
        {"0:all", "rank 1:", "cannot be 'all'"},
        {"all,all", "rank 5:", "must be unique"},
        {"0,all", "rank 3:", "must be unique"},
        {"0-2147483647", "limit 1:", "more than 16777216 processes"},
        {"0-16777215,16777216", "limit 12:", "more than 16777216 processes"},
    };
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < ROWS(good); i++) {
        describe(good[i], unknown, &got);
        CHECK_FACT(good[i], !strstr(text_string(&got), ": "));
    }
    text_release(&got);
    check_faults(faults, ROWS(faults), unknown);
}

TEST(processes_are_counted_from_the_last_entry)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = diag_start(NULL, NULL);
    struct rank_text parsed;
    assert_true(
        rank_text_read(&arena, (struct word){.text = SV("0-1:0-3,3-5,7:7-8")}, &diag, &parsed));
    assert_true(parsed.has_processes);
    assert_true(rank_text_bind(&parsed, &eight, &diag));
    assert_int_equal(rank_text_processes(&parsed), 9);
    assert_true(rank_text_read(&arena, (struct word){.text = SV("0-1")}, &diag, &parsed));
    assert_false(parsed.has_processes);
    arena_release(&arena);
}

RUN_TESTS(cmocka_unit_test(entries_get_their_resources_and_processes),
          cmocka_unit_test(faults_of_the_text_are_said_where_they_stand),
          cmocka_unit_test(every_malformed_entry_is_said_not_only_the_first),
          cmocka_unit_test(nodes_take_uneven_processes_but_no_process_takes_two_nodes),
          cmocka_unit_test(without_a_cluster_only_what_depends_on_it_is_left_unchecked),
          cmocka_unit_test(processes_are_counted_from_the_last_entry))
