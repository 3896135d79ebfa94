/* agent_test.c - links between two ends in one process, and agents that cannot be started. */
#include <roost/engine/agent.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/socket_pair.h"
#include "tests/unit.h"

static void make_pair(struct roost_agent_link *out[2])
{
    int ends[2];
    assert_true(socket_pair_open(ends));
    for (int i = 0; i < 2; i++) {
        out[i] = roost_agent_link_new(ends[i]);
        assert_non_null(out[i]);
        assert_int_equal(roost_agent_link_fd(out[i]), ends[i]);
    }
}

TEST(a_parcel_arrives_with_its_file_as_it_was_sent)
{
    struct roost_agent_link *links[2];
    struct roost_agent_message got;
    make_pair(links);
    assert_int_equal(roost_agent_link_receive(links[1], &got), ROOST_LINK_LATER);
    size_t size = 3 << 20;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, 'x', size);
    struct roost_agent_message rows[] = {
        {7, "body", 4, NULL, 0}, {8, "", 0, "", 0}, {ROOST_AGENT_MESSAGE, "b", 1, large, size}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(roost_agent_link_send(links[0], &rows[i]), ROOST_LINK_DONE);
        assert_int_equal(roost_agent_link_receive(links[1], &got), ROOST_LINK_DONE);
        assert_int_equal(got.type, rows[i].type);
        assert_int_equal(got.len, rows[i].len);
        assert_memory_equal(got.body, rows[i].body, rows[i].len);
        assert_int_equal(got.file != NULL, rows[i].file != NULL); /* an empty one is one, too */
        assert_int_equal(got.file_len, rows[i].file_len);
        if (rows[i].file_len)
            assert_memory_equal(got.file, rows[i].file, rows[i].file_len);
    }
    free(large);
    roost_agent_link_free(links[0]);
    assert_int_equal(roost_agent_link_receive(links[1], &got), ROOST_LINK_CLOSED);
    assert_int_equal(roost_agent_link_send(links[1], &rows[0]), ROOST_LINK_CLOSED);
    assert_int_equal(roost_agent_link_fd(links[1]), -1);
    roost_agent_link_free(links[1]);
    roost_agent_link_free(NULL);
}

/* Whether somebody who waits for the link wakes. */
static bool is_awake(const struct roost_agent_link *link)
{
    struct pollfd fd = {roost_agent_link_fd(link), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
}

TEST(messages_sent_before_the_other_side_went_are_received_after_a_failure_to_send)
{
    struct roost_agent_link *links[2];
    struct roost_agent_message last = {.type = 7, .body = "last", .len = 4}, got;
    make_pair(links);
    assert_int_equal(roost_agent_link_send(links[0], &last), ROOST_LINK_DONE);
    roost_agent_link_free(links[0]);
    assert_int_equal(roost_agent_link_send(links[1], &last), ROOST_LINK_CLOSED);
    assert_true(is_awake(links[1]));
    assert_int_equal(roost_agent_link_receive(links[1], &got), ROOST_LINK_DONE);
    assert_memory_equal(got.body, "last", 4);
    assert_int_equal(roost_agent_link_receive(links[1], &got), ROOST_LINK_CLOSED);
    assert_int_equal(roost_agent_link_fd(links[1]), -1);
    roost_agent_link_free(links[1]);
}

TEST(a_body_that_fits_into_no_message_ends_the_carrier_on_both_sides)
{
    struct roost_agent_link *links[2];
    char body[SOCKET_PAIR_BODY_MAX + 1] = "";
    make_pair(links);
    struct roost_agent_message message = {.type = 1, .body = body, .len = sizeof body};
    assert_false(is_awake(links[0]));
    assert_int_equal(roost_agent_link_send(links[0], &message), ROOST_LINK_CLOSED);
    for (int i = 0; i < 2; i++) {
        assert_true(is_awake(links[i]));
        assert_int_equal(roost_agent_link_receive(links[i], &message), ROOST_LINK_CLOSED);
    }
    roost_agent_link_free(links[0]);
    roost_agent_link_free(links[1]);
}

TEST(what_keeps_an_agent_from_starting_is_reported_with_its_cure)
{
    char folder[] = "/tmp/roost-unit-XXXXXX", runtime[64], inner[64];
    assert_non_null(mkdtemp(folder));
    snprintf(runtime, sizeof runtime, "XDG_RUNTIME_DIR=%s", folder);
    struct roost_agent_options options = {.program = "/nowhere/roost",
                                          .run_id = "abcdef",
                                          .node_rank = 3,
                                          .folder = "/nowhere/at-all",
                                          .env = (const char *const[]){runtime, NULL}};
    struct roost_error err;
    assert_null(roost_agent_start(&options, &err));
    assert_int_equal(err.code, ROOST_ERR_IO);
    assert_string_equal(err.message, "cannot make a folder for logs in '/nowhere/at-all': No such "
                                     "file or directory");
    assert_string_equal(err.hint, "set TMPDIR before Ray is started on the node");
    options.folder = folder;
    assert_null(roost_agent_start(&options, &err));
    assert_int_equal(err.code, ROOST_ERR_ENGINE);
    assert_string_equal(err.message, "cannot run the program '/nowhere/roost' as the guardian of "
                                     "the run: No such file or directory");
    assert_string_equal(err.hint, "install the roost program beside the Python of the node");
    /* Nothing of the tries is left but the place for leases. */
    snprintf(inner, sizeof inner, "%s/roost", folder);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parcel_arrives_with_its_file_as_it_was_sent),
        cmocka_unit_test(
            messages_sent_before_the_other_side_went_are_received_after_a_failure_to_send),
        cmocka_unit_test(a_body_that_fits_into_no_message_ends_the_carrier_on_both_sides),
        cmocka_unit_test(what_keeps_an_agent_from_starting_is_reported_with_its_cure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
