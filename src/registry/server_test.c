/* server_test.c - connections that behave badly, with a clock of the test's own. */
#include "registry/server.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpc/control_socket.h"
#include "tests/unit.h"

struct stage {
    char folder[64];
    int dir;
    struct server *server;
};

static void stage_open(struct stage *stage)
{
    struct diag diag = diag_start(NULL, NULL);
    struct text view = TEXT_INIT;
    snprintf(stage->folder, sizeof stage->folder, "/tmp/roost-server-XXXXXX");
    assert_non_null(mkdtemp(stage->folder));
    stage->dir = open(stage->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int listener = control_listen(stage->dir, "socket");
    assert_true(listener >= 0);
    stage->server = server_new(listener);
    assert_non_null(stage->server);
    /* Nodes that no socket's buffer takes at once. */
    text_puts(&view, "{\"nodes\":[{\"a\":\"\"}");
    for (int i = 0; i < 100000; i++)
        text_puts(&view, ",{\"id\":\"abcdefghijklmnopqrstuvwxyz\"}");
    text_puts(&view, "],\"master_ip\":\"10.0.0.1\"}");
    assert_true(registry_set_view(server_registry(stage->server),
                                  (struct strview){view.bytes, view.len}, &diag));
    text_release(&view);
}

static void stage_close(struct stage *stage)
{
    server_free(stage->server);
    assert_int_equal(unlinkat(stage->dir, "socket", 0), 0);
    close(stage->dir);
    assert_int_equal(rmdir(stage->folder), 0);
}

static int join(struct stage *stage)
{
    int fd = control_connect(stage->dir, "socket");
    assert_true(fd >= 0);
    (void)server_step(stage->server, 0);
    return fd;
}

static void say(struct stage *stage, int fd, const char *words, int64_t now)
{
    assert_int_equal(control_send(fd, words, strlen(words)), strlen(words));
    (void)server_step(stage->server, now);
}

/* What has come by now; "" when nothing has, NULL when the connection has ended. */
static const char *hear(int fd)
{
    static char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof bytes - 1);
    bytes[got > 0 ? got : 0] = '\0';
    return got == 0 ? NULL : bytes;
}

#define GET_IP "{\"call\":\"NodeManager.get_master_ip\",\"args\":[]}\n"
#define GET_NODES "{\"call\":\"NodeManager.get_nodes\",\"args\":[]}\n"
#define IP "{\"value\":\"10.0.0.1\"}\n"

TEST(half_a_line_waits_for_the_rest)
{
    struct stage stage;
    stage_open(&stage);
    int fd = join(&stage);
    say(&stage, fd, "{\"call\":\"NodeManager.", 0);
    assert_string_equal(hear(fd), "");
    say(&stage, fd, "get_master_ip\",\"args\":[]}\n" GET_IP "{\"ca", 0);
    assert_string_equal(hear(fd), IP IP);
    close(fd);
    stage_close(&stage);
}

TEST(who_takes_nothing_of_an_answer_is_let_go_in_time)
{
    struct stage stage;
    stage_open(&stage);
    int slow = join(&stage), other = join(&stage);
    say(&stage, slow, GET_NODES, 1000);
    say(&stage, slow, GET_IP GET_IP, 1000); /* heard when there is room for answers again */
    assert_int_equal(server_step(stage.server, 1000), SERVER_PATIENCE_MS);
    say(&stage, other, GET_IP, 1000 + SERVER_PATIENCE_MS - 1);
    assert_string_equal(hear(other), IP);
    assert_non_null(hear(slow)); /* takes some: it has another while */
    while (poll(&(struct pollfd){slow, POLLIN, 0}, 1, 0) == 1 && *hear(slow))
        ;
    (void)server_step(stage.server, 1000 + SERVER_PATIENCE_MS - 1);
    assert_true(server_step(stage.server, 1000 + SERVER_PATIENCE_MS) > 0);
    (void)server_step(stage.server, 1000 + 3 * SERVER_PATIENCE_MS);
    while (poll(&(struct pollfd){slow, POLLIN, 0}, 1, 0) == 1 && hear(slow))
        ;
    assert_null(hear(slow));
    say(&stage, other, GET_IP, 0);
    assert_string_equal(hear(other), IP);
    assert_int_equal(server_step(stage.server, 0), -1);
    close(slow);
    close(other);
    stage_close(&stage);
}

TEST(what_came_while_answers_were_not_taken_is_answered_afterwards)
{
    struct stage stage;
    size_t lines = 0;
    stage_open(&stage);
    int fd = join(&stage);
    say(&stage, fd, GET_NODES GET_IP GET_IP, 0);
    for (int i = 0; i < 100000 && lines < 3; i++) {
        for (const char *text = hear(fd); text && (text = strchr(text, '\n')); text++)
            lines++;
        (void)server_step(stage.server, 0);
    }
    assert_int_equal(lines, 3);
    close(fd);
    stage_close(&stage);
}

TEST(a_line_without_an_end_is_cut)
{
    struct stage stage;
    static char many[60001];
    bool has_ended = false;
    stage_open(&stage);
    memset(many, 'x', sizeof many - 1);
    int fd = join(&stage);
    for (int i = 0; i < 100 && !has_ended; i++) {
        has_ended = control_send(fd, many, sizeof many - 1) < 0;
        (void)server_step(stage.server, 0);
    }
    assert_true(has_ended);
    close(fd);
    stage_close(&stage);
}

TEST(what_a_connection_had_ends_with_it)
{
    struct stage stage;
    stage_open(&stage);
    int first = join(&stage), second = join(&stage);
    say(&stage, first, "{\"call\":\"PortLockManager.acquire\",\"args\":[0,\"a\",5000]}\n", 0);
    assert_string_equal(hear(first), "{\"value\":true}\n");
    say(&stage, second, "{\"call\":\"PortLockManager.acquire\",\"args\":[0,\"a\",5000]}\n", 0);
    assert_string_equal(hear(second), "{\"value\":false}\n");
    close(first);
    (void)server_step(stage.server, 0);
    int third = join(&stage); /* has the slot of the first, and nothing of it */
    say(&stage, second, "{\"call\":\"PortLockManager.acquire\",\"args\":[0,\"a\",5000]}\n", 0);
    assert_string_equal(hear(second), "{\"value\":true}\n");
    close(second);
    close(third);
    stage_close(&stage);
}

RUN_TESTS(cmocka_unit_test(half_a_line_waits_for_the_rest),
          cmocka_unit_test(who_takes_nothing_of_an_answer_is_let_go_in_time),
          cmocka_unit_test(what_came_while_answers_were_not_taken_is_answered_afterwards),
          cmocka_unit_test(a_line_without_an_end_is_cut),
          cmocka_unit_test(what_a_connection_had_ends_with_it))
