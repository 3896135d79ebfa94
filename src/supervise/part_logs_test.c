/* part_logs_test.c - what a part sends of its workers' logs, when reading them goes wrong. */
#include "supervise/part_logs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/channel.h"
#include "supervise/supervisor.h"
#include "tests/unit.h"

static struct message message;

TEST(a_log_that_cannot_be_read_for_a_while_is_sent_without_a_hole)
{
    int ends[2];
    assert_true(channel_pair(ends));
    int out = memfd_create("stdout", MFD_CLOEXEC);
    assert_int_equal(write(out, "first ", 6), 6);
    struct worker worker = {.rank = 3, .has_logs = true};
    struct shipped shipped[2] = {{.fd = dup(out)}, {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC)}};
    static struct supervisor supervisor;
    supervisor.spec.process_count = 1;
    supervisor.workers = &worker;
    supervisor.shipped = shipped;
    supervisor.channel = ends[0];

    int failing = open("/proc/self/exe", O_PATH | O_CLOEXEC); /* has a size, and is never read */
    int log = dup(shipped[0].fd);
    assert_true(dup2(failing, shipped[0].fd) >= 0);
    assert_true(part_logs_ship(&supervisor));
    assert_int_equal(channel_receive(ends[1], &message), CHANNEL_AGAIN);

    assert_int_equal(write(out, "second", 6), 6);
    assert_true(dup2(log, shipped[0].fd) >= 0);
    assert_true(part_logs_ship(&supervisor));
    assert_int_equal(channel_receive(ends[1], &message), CHANNEL_OK);
    struct log_piece piece;
    assert_int_equal(message.len, sizeof piece + 12);
    memcpy(&piece, message.body, sizeof piece);
    assert_int_equal(piece.offset, 0);
    assert_memory_equal(message.body + sizeof piece, "first second", 12);

    part_logs_release(&supervisor);
    int left[] = {ends[0], ends[1], out, failing, log};
    for (size_t i = 0; i < ROWS(left); i++)
        close(left[i]);
}

RUN_TESTS(cmocka_unit_test(a_log_that_cannot_be_read_for_a_while_is_sent_without_a_hole))
