/* outbox_test.c - events between two ends of a socket: their order, their descriptors, the mark. */
#include "supervise/outbox.h"

#include <fcntl.h>
#include <unistd.h>

#include "supervise/watcher.h"
#include "tests/unit.h"

static struct message message;

/* Receives one message and returns how many events it has; the rank of the first goes to *out_rank. */
static int receive(int socket, int32_t *out_rank)
{
    struct roost_event event;
    size_t read = 0;
    int count = 0;
    assert_int_equal(socket_pair_receive(socket, &message), SOCKET_PAIR_OK);
    assert_int_equal(message.type, MSG_EVENTS);
    while (outbox_take_event(message.body, message.len, &read, &event))
        if (count++ == 0)
            *out_rank = event.rank;
    return count;
}

static void put(struct outbox *outbox, int32_t rank, int fd)
{
    struct worker worker = {.rank = rank, .life = 1};
    struct roost_event event = outbox_event(ROOST_EVENT_STARTED, &worker);
    if (fd < 0)
        outbox_put(outbox, &event);
    else
        outbox_put_with(outbox, &event, fd);
}

TEST(a_message_carries_one_descriptor_for_its_first_event)
{
    int ends[2];
    int32_t rank = -1;
    assert_true(socket_pair_open(ends));
    struct outbox outbox = {.socket = ends[0], .events = TEXT_INIT};
    put(&outbox, 0, -1);
    put(&outbox, 1, -1);
    put(&outbox, 2, open("/dev/null", O_RDONLY | O_CLOEXEC));
    put(&outbox, 3, -1);
    put(&outbox, 4, open("/dev/null", O_RDONLY | O_CLOEXEC));
    outbox_flush(&outbox);
    assert_true(outbox_is_empty(&outbox));
    static const struct {
        int32_t rank;
        int count;
        bool has_fd;
    } rows[] = {{0, 2, false}, {2, 2, true}, {4, 1, true}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(receive(ends[1], &rank), rows[i].count);
        assert_int_equal(rank, rows[i].rank);
        assert_int_equal(message.fd >= 0, rows[i].has_fd);
        if (message.fd >= 0)
            close(message.fd);
    }
    outbox_release(&outbox);
    close(ends[0]);
    close(ends[1]);
}

TEST(events_after_the_mark_wait_for_the_next_one)
{
    int ends[2];
    int32_t rank = -1;
    assert_true(socket_pair_open(ends));
    struct outbox outbox = {.socket = ends[0], .events = TEXT_INIT};
    put(&outbox, 0, -1);
    outbox_flush_marked(&outbox);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_AGAIN);
    outbox_mark(&outbox);
    put(&outbox, 1, -1);
    outbox_flush_marked(&outbox);
    assert_int_equal(receive(ends[1], &rank), 1);
    assert_int_equal(rank, 0);
    outbox_mark(&outbox);
    outbox_flush_marked(&outbox);
    assert_int_equal(receive(ends[1], &rank), 1);
    assert_int_equal(rank, 1);
    /* An outbox that was empty starts again: the old mark must not let new events through. */
    put(&outbox, 2, -1);
    outbox_flush_marked(&outbox);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_AGAIN);
    outbox_release(&outbox);
    close(ends[0]);
    close(ends[1]);
}

TEST(an_outbox_without_a_driver_drops_events_and_closes_their_descriptors)
{
    int ends[2];
    assert_true(socket_pair_open(ends));
    close(ends[1]);
    struct outbox outbox = {.socket = ends[0], .events = TEXT_INIT};
    put(&outbox, 0, -1);
    outbox_flush(&outbox);
    assert_true(outbox.is_closed);
    assert_false(outbox.has_lost);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    put(&outbox, 1, fd);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    outbox_release(&outbox);
    close(ends[0]);
}

TEST(bytes_that_are_no_event_end_the_message)
{
    struct roost_event event;
    int32_t sizes[] = {-1, 0, 3, 1 << 20};
    for (size_t i = 0; i < ROWS(sizes); i++) {
        char bytes[64] = {0};
        size_t read = 0;
        memcpy(bytes, &sizes[i], sizeof *sizes);
        assert_false(outbox_take_event(bytes, sizeof bytes, &read, &event));
        assert_int_equal(read, sizeof bytes);
    }
}

RUN_TESTS(cmocka_unit_test(a_message_carries_one_descriptor_for_its_first_event),
          cmocka_unit_test(events_after_the_mark_wait_for_the_next_one),
          cmocka_unit_test(an_outbox_without_a_driver_drops_events_and_closes_their_descriptors),
          cmocka_unit_test(bytes_that_are_no_event_end_the_message))
