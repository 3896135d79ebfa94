/* socket_pair_test.c - messages arrive whole or not at all, and no descriptor gets lost on the way. */
#include "rpc/socket_pair.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit.h"

static struct message message;

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void send_raw(int socket, const void *bytes, size_t len, const int *fds, int fd_count)
{
    char control[CMSG_SPACE(4 * sizeof(int))] = {0};
    struct iovec part = {(void *)(uintptr_t)bytes, len};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count) {
        packet.msg_control = control;
        packet.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
        struct cmsghdr *item = CMSG_FIRSTHDR(&packet);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
        memcpy(CMSG_DATA(item), fds, (size_t)fd_count * sizeof(int));
    }
    assert_true(sendmsg(socket, &packet, MSG_NOSIGNAL) == (ssize_t)len);
}

/* The bytes of a good message with a body of four. */
struct raw {
    uint32_t magic;
    uint16_t version, type;
    uint32_t len;
    char body[4];
};

static struct raw good_raw(void)
{
    return (struct raw){0x54534f52, 1, 7, 4, "abc"};
}

TEST(a_message_arrives_with_its_type_body_and_descriptor)
{
    int ends[2];
    assert_true(socket_pair_open(ends));
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(socket_pair_send(ends[0], 9, "hello", 5, null), SOCKET_PAIR_OK);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_OK);
    assert_int_equal(message.type, 9);
    assert_int_equal(message.len, 5);
    assert_memory_equal(message.body, "hello", 5);
    assert_true(message.fd >= 0 && message.fd != null);
    assert_int_equal(fcntl(message.fd, F_GETFD), FD_CLOEXEC);
    close(message.fd);
    close(null);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_AGAIN);
    close(ends[0]);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_CLOSED);
    assert_int_equal(socket_pair_send(ends[1], 1, "", 0, -1), SOCKET_PAIR_CLOSED);
    close(ends[1]);
}

TEST(the_largest_body_goes_through_and_one_more_byte_does_not)
{
    int ends[2];
    char *body = calloc(1, SOCKET_PAIR_BODY_MAX + 1);
    assert_non_null(body);
    assert_true(socket_pair_open(ends));
    body[SOCKET_PAIR_BODY_MAX - 1] = 'z';
    assert_int_equal(socket_pair_send(ends[0], 1, body, SOCKET_PAIR_BODY_MAX, -1), SOCKET_PAIR_OK);
    assert_int_equal(socket_pair_send(ends[0], 1, body, SOCKET_PAIR_BODY_MAX + 1, -1),
                     SOCKET_PAIR_FAILED);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_OK);
    assert_int_equal(message.len, SOCKET_PAIR_BODY_MAX);
    assert_int_equal(message.body[SOCKET_PAIR_BODY_MAX - 1], 'z');
    free(body);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_full_socket_says_so_and_loses_nothing)
{
    int ends[2];
    int32_t sent = 0, got = 0;
    assert_true(socket_pair_open(ends));
    while (socket_pair_send(ends[0], 1, &sent, sizeof sent, -1) == SOCKET_PAIR_OK)
        sent++;
    assert_true(sent > 10);
    for (; socket_pair_receive(ends[1], &message) == SOCKET_PAIR_OK; got++)
        assert_memory_equal(message.body, &got, sizeof got);
    assert_int_equal(got, sent);
    close(ends[0]);
    close(ends[1]);
}

TEST(what_is_not_a_message_is_refused)
{
    int ends[2];
    assert_true(socket_pair_open(ends));
    struct raw rows[8];
    for (size_t i = 0; i < ROWS(rows); i++)
        rows[i] = good_raw();
    rows[0].magic ^= 1;
    rows[1].version++;
    rows[2].len++;
    rows[3].len--;
    rows[4].len = UINT32_MAX;
    rows[5].len = 0;
    rows[6].magic = 0;
    rows[7].version = 0;
    for (size_t i = 0; i < ROWS(rows); i++) {
        send_raw(ends[0], &rows[i], sizeof rows[i], NULL, 0);
        assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_BAD);
    }
    struct raw raw = good_raw();
    for (size_t len = 1; len < sizeof raw; len++) { /* cut anywhere */
        send_raw(ends[0], &raw, len, NULL, 0);
        assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_BAD);
    }
    send_raw(ends[0], &raw, sizeof raw, NULL, 0);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_OK);
    close(ends[0]);
    close(ends[1]);
}

TEST(descriptors_that_nobody_asked_for_are_closed)
{
    int ends[2], fds[4];
    assert_true(socket_pair_open(ends));
    for (int i = 0; i < 4; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int before = count_descriptors();
    struct raw raw = good_raw();
    for (int count = 2; count <= 4; count++) {
        send_raw(ends[0], &raw, sizeof raw, fds, count);
        assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_BAD);
        assert_int_equal(message.fd, -1);
    }
    raw.magic = 0; /* one too, with a message that is refused */
    send_raw(ends[0], &raw, sizeof raw, fds, 1);
    assert_int_equal(socket_pair_receive(ends[1], &message), SOCKET_PAIR_BAD);
    assert_int_equal(count_descriptors(), before);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    close(ends[0]);
    close(ends[1]);
}

RUN_TESTS(cmocka_unit_test(a_message_arrives_with_its_type_body_and_descriptor),
          cmocka_unit_test(the_largest_body_goes_through_and_one_more_byte_does_not),
          cmocka_unit_test(a_full_socket_says_so_and_loses_nothing),
          cmocka_unit_test(what_is_not_a_message_is_refused),
          cmocka_unit_test(descriptors_that_nobody_asked_for_are_closed))
