/* rpc_unit.h - what tests of calls share: links with socketpairs, and both honest and wicked workers. */
#ifndef TESTS_RPC_UNIT_H
#define TESTS_RPC_UNIT_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/frame.h"
#include "rpc/links.h"
#include "tests/unit.h"

enum { WATCHDOG_MS = 60000, RANKS_MAX = 64 };

/* Links, and the other end of each socket. */
struct net {
    struct links *links;
    int peer[RANKS_MAX];
    int cuts;
    int32_t cut_rank;
    char cut_why[128];
};

static inline void count_cut(void *context, int32_t rank, int32_t life, const char *why)
{
    struct net *net = context;
    (void)life;
    net->cuts++;
    net->cut_rank = rank;
    snprintf(net->cut_why, sizeof net->cut_why, "%s", why);
}

static inline void net_join(struct net *net, int32_t rank, int32_t life)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    net->peer[rank] = ends[1];
    assert_true(links_add(net->links, rank, life, 1, ends[0]));
}

static inline void net_open_with(struct net *net, struct links_options options, bool joins)
{
    *net = (struct net){.cut_rank = -1};
    options.on_cut = count_cut;
    options.context = net;
    options.other_fd = options.on_other ? options.other_fd : -1;
    net->links = links_new(&options);
    assert_non_null(net->links);
    for (int32_t rank = 0; rank < options.rank_count; rank++) {
        net->peer[rank] = -1;
        if (joins)
            net_join(net, rank, 1);
    }
}

static inline void net_open(struct net *net, int32_t ranks)
{
    net_open_with(net, (struct links_options){.rank_count = ranks, .close_grace_ms = -1}, true);
}

static inline void net_close(struct net *net)
{
    links_free(net->links);
    for (int32_t rank = 0; rank < RANKS_MAX; rank++)
        if (net->peer[rank] > 0)
            close(net->peer[rank]);
}

static inline struct roost_call *call_with(struct net *net, const void *bytes, size_t len,
                                           const int32_t *ranks, size_t rank_count,
                                           int32_t timeout_ms)
{
    struct roost_bytes piece = {bytes, len};
    struct roost_call_options options = {.method = "echo",
                                         .bytes = &piece,
                                         .byte_count = 1,
                                         .ranks = ranks,
                                         .rank_count = rank_count,
                                         .timeout_ms = timeout_ms};
    struct roost_error err = {0};
    struct roost_call *call = links_call(net->links, &options, &err);
    if (!call)
        fail_msg("no call: %s", err.message);
    return call;
}

static inline struct roost_call *call_rank(struct net *net, int32_t rank, const char *text)
{
    return call_with(net, text, strlen(text), &rank, 1, 0);
}

static inline struct roost_call *call_all(struct net *net, const char *text)
{
    return call_with(net, text, strlen(text), NULL, 0, 0);
}

static inline void check_outcome(struct roost_call *call, size_t index,
                                 enum roost_outcome_kind kind, const char *text)
{
    struct roost_outcome it = roost_call_outcome(call, index);
    assert_string_equal(roost_outcome_word(it.kind), roost_outcome_word(kind));
    if (kind == ROOST_OUTCOME_UNKNOWN || kind == ROOST_OUTCOME_NOT_RUN) {
        CHECK_SAYS("why", it.why, text);
        return;
    }
    assert_int_equal(it.bytes.len, strlen(text));
    assert_memory_equal(it.bytes.at, text, it.bytes.len);
}

/* Waits for the call, looks at its one outcome, frees it. */
static inline void expect(struct roost_call *call, enum roost_outcome_kind kind, const char *text)
{
    assert_true(roost_call_wait(call, WATCHDOG_MS));
    check_outcome(call, 0, kind, text);
    roost_call_free(call);
}

/* --- a worker by hand --- */

static inline void write_all(int fd, const void *bytes, size_t len)
{
    for (const char *at = bytes; len;) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        assert_true(sent > 0);
        at += sent;
        len -= (size_t)sent;
    }
}

static inline void read_all(int fd, void *bytes, size_t len)
{
    for (char *at = bytes; len;) {
        ssize_t got = recv(fd, at, len, 0);
        assert_true(got > 0);
        at += got;
        len -= (size_t)got;
    }
}

/* The next request, its method and payload left out. */
static inline struct frame read_request(int fd)
{
    struct frame frame;
    char body[4096];
    read_all(fd, &frame, sizeof frame);
    assert_true(frame_body_len(&frame) <= sizeof body);
    read_all(fd, body, (size_t)frame_body_len(&frame));
    return frame;
}

static inline struct frame answer_to(const struct frame *request, size_t len)
{
    struct frame frame = frame_of(FRAME_ANSWER, request->life ? request->life : 1);
    frame.call = request->call;
    frame.payload_len = len;
    return frame;
}

static inline void send_answer(int fd, const struct frame *request, const char *text)
{
    struct frame frame = answer_to(request, strlen(text));
    write_all(fd, &frame, sizeof frame);
    write_all(fd, text, strlen(text));
}

/* --- a worker by the book, as a thread --- */

struct server {
    pthread_t thread;
    int fd;
    int32_t life;
    enum roost_code code;
};

static inline void echo(struct roost_request *request, void *context)
{
    struct roost_bytes bytes = roost_request_payload(request);
    (void)context;
    (void)!roost_request_reply(request, &bytes, 1, NULL);
    roost_request_free(request);
}

static inline void complain(struct roost_request *request, void *context)
{
    struct roost_bytes bytes = {"it hurts", 8};
    (void)context;
    (void)!roost_request_fail(request, &bytes, 1, NULL);
    roost_request_free(request);
}

static inline void *serve(void *context)
{
    struct server *server = context;
    struct roost_error err = {0};
    struct roost_worker *worker = roost_worker_new(server->fd, server->life, &err);
    server->code = worker ? ROOST_OK : err.code;
    if (server->code == ROOST_OK)
        server->code = roost_worker_on(worker, "echo", echo, NULL, &err);
    if (server->code == ROOST_OK)
        server->code = roost_worker_on(worker, "complain", complain, NULL, &err);
    if (server->code == ROOST_OK)
        server->code = roost_worker_serve(worker, &err);
    roost_worker_free(worker);
    return NULL;
}

/* The peer of a rank, served by a thread from here on. */
static inline void server_start(struct server *server, struct net *net, int32_t rank, int32_t life)
{
    *server = (struct server){.fd = net->peer[rank], .life = life};
    net->peer[rank] = -1;
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static inline void server_join(struct server *server)
{
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    assert_int_equal(server->code, ROOST_OK);
}

#endif
