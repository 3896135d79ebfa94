/* record_test.c - exit records as they are written, found again. */
#include "supervise/record.h"

#include "tests/unit.h"

TEST(a_record_is_found_as_it_was_written)
{
    const struct roost_event rows[] = {
        {.rank = 0, .life = 1, .pid = 100, .end = ROOST_END_EXITED, .exit_code = 0},
        {.rank = 1, .life = 1, .pid = 101, .end = ROOST_END_EXITED, .exit_code = 17},
        {.rank = 1,
         .life = 2,
         .pid = 102,
         .end = ROOST_END_CRASHED,
         .exit_code = -1,
         .signal = 11,
         .has_core = true},
        {.rank = 10, .life = 1, .pid = 103, .end = ROOST_END_KILLED, .exit_code = -1, .signal = 9},
        {.rank = 11, .life = 1, .pid = 104, .end = ROOST_END_OOM, .exit_code = -1, .signal = 9},
    };
    struct text lines = TEXT_INIT;
    for (size_t i = 0; i < ROWS(rows); i++)
        record_put_life(&lines, "actor", &rows[i]);
    record_put_end(
        &lines, true,
        &(struct roost_event){.component = -1, .exit_code = -1, .signal = 15, .ended_at = 5});
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_event event = {.rank = rows[i].rank, .life = rows[i].life, .pid = rows[i].pid};
        assert_true(record_find((struct strview){lines.bytes, lines.len}, "actor", &event));
        assert_int_equal(event.end, rows[i].end);
        assert_int_equal(event.exit_code, rows[i].exit_code);
        assert_int_equal(event.signal, rows[i].signal);
        assert_int_equal(event.has_core, rows[i].has_core);
    }
    text_release(&lines);
}

TEST(the_record_of_another_life_is_not_taken_for_it)
{
    struct text lines = TEXT_INIT;
    struct roost_event event = {.rank = 1, .life = 1, .pid = 12, .end = ROOST_END_EXITED};
    record_put_life(&lines, "actor", &event);
    struct strview all = {lines.bytes, lines.len};
    const struct roost_event others[] = {{.rank = 1, .life = 1, .pid = 1},
                                         {.rank = 1, .life = 2, .pid = 12},
                                         {.rank = 11, .life = 1, .pid = 12}};
    for (size_t i = 0; i < ROWS(others); i++) {
        struct roost_event other = others[i];
        assert_false(record_find(all, "actor", &other));
    }
    assert_false(record_find(all, "act", &event));
    assert_false(record_find((struct strview){NULL, 0}, "actor", &event));
    for (size_t len = 0; len + 40 < all.len; len++) { /* torn: no end can be read from it */
        struct roost_event torn = {.rank = 1, .life = 1, .pid = 12};
        if (record_find((struct strview){all.at, len}, "actor", &torn))
            assert_int_equal(torn.end, ROOST_END_EXITED);
    }
    text_release(&lines);
}

RUN_TESTS(cmocka_unit_test(a_record_is_found_as_it_was_written),
          cmocka_unit_test(the_record_of_another_life_is_not_taken_for_it))
