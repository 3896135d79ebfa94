/* agent_logs_test.c - what an agent sends of its workers' logs, when reading them goes wrong. */
#include "agent/agent_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/socket_pair.h"
#include "tests/unit.h"

static struct message message;

TEST(a_log_that_cannot_be_read_for_a_while_is_sent_without_a_hole)
{
    int ends[2];
    assert_true(socket_pair_open(ends));
    int out = memfd_create("stdout", MFD_CLOEXEC);
    assert_int_equal(write(out, "first ", 6), 6);
    struct worker worker = {.rank = 3, .has_logs = true};
    struct shipped shipped[2] = {{.fd = dup(out)}, {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC)}};
    static struct agent agent;
    agent.watcher.spec.process_count = 1;
    agent.watcher.workers = &worker;
    agent.shipped = shipped;
    agent.watcher.outbox.socket = ends[0];

    int failing = open("/proc/self/exe", O_PATH | O_CLOEXEC); /* has a size, and is never read */
    int log = dup(shipped[0].fd);
    assert_true(dup2(failing, shipped[0].fd) >= 0);
    assert_true(agent_logs_ship(&agent));
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_AGAIN);

    assert_int_equal(write(out, "second", 6), 6);
    assert_true(dup2(log, shipped[0].fd) >= 0);
    assert_true(agent_logs_ship(&agent));
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_OK);
    struct log_piece piece;
    assert_int_equal(message.len, sizeof piece + 12);
    memcpy(&piece, message.body, sizeof piece);
    assert_int_equal(piece.offset, 0);
    assert_memory_equal(message.body + sizeof piece, "first second", 12);

    agent_logs_release(&agent);
    int left[] = {ends[0], ends[1], out, failing, log};
    for (size_t i = 0; i < ROWS(left); i++)
        close(left[i]);
}

RUN_TESTS(cmocka_unit_test(a_log_that_cannot_be_read_for_a_while_is_sent_without_a_hole))
