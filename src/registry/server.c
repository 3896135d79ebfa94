/* server.c - one thread, one epoll, one slot per connection.
 *
 * Nothing is freed while the events of a round are served. A broken connection is marked, and removed at the
 * end of the round, because the end of one owner can answer requests of others. New connections are accepted
 * after that, so that an event never reaches another connection in the slot it was meant for. */
#include "registry/server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpc/control_socket.h"

enum {
    SLOT_BITS = 16,
    CONNECTIONS_MAX = 1 << SLOT_BITS,
    LINE_MAX_BYTES = 1 << 20,
    READ_BYTES = 64 * 1024,
    ROUND = 64, /* events at a time */
};

/* What an event is of: an owner twice, plus one when it is its process; or the listener. */
#define IS_PROCESS 1u
#define LISTENER UINT64_MAX

struct connection {
    int fd;    /* -1 = nobody */
    int pidfd; /* -1 = not to be had */
    uint64_t owner;
    struct text inbox, outbox;
    size_t told;
    int64_t until; /* ms: something of the outbox must be taken by then; -1 = it is empty */
    bool hears;    /* lines are taken from it */
    bool is_broken;
};

struct server {
    struct registry *registry;
    int listener, epoll;
    bool is_deaf; /* newcomers wait in the kernel's queue */
    struct connection *connections;
    uint32_t room, count;
    uint64_t met; /* owners so far */
    int64_t now;
    bool has_broken;
};

/* --- owners and slots --- */

static uint64_t owner_of(uint64_t met, uint32_t slot)
{
    return met << SLOT_BITS | slot;
}

static struct connection *find(struct server *server, uint64_t owner)
{
    uint32_t slot = (uint32_t)(owner & (CONNECTIONS_MAX - 1));
    struct connection *it = slot < server->room ? &server->connections[slot] : NULL;
    return it && it->fd >= 0 && it->owner == owner ? it : NULL;
}

static void give_up(struct server *server, struct connection *connection)
{
    connection->is_broken = true;
    server->has_broken = true;
}

static void watch(struct server *server, struct connection *connection, int operation)
{
    bool has_more = connection->outbox.len > connection->told;
    struct epoll_event event = {.events = has_more ? EPOLLOUT : EPOLLIN,
                                .data = {.u64 = connection->owner << 1}};
    connection->hears = !has_more;
    if (epoll_ctl(server->epoll, operation, connection->fd, &event) != 0)
        give_up(server, connection);
}

/* --- answers --- */

/* Hands on what is taken now. */
static void tell(struct server *server, struct connection *connection)
{
    struct text *out = &connection->outbox;
    if (out->has_failed)
        give_up(server, connection);
    while (!connection->is_broken && connection->told < out->len) {
        ssize_t done = control_send(connection->fd, out->bytes + connection->told,
                                    out->len - connection->told);
        if (done > 0) {
            connection->told += (size_t)done;
            connection->until = server->now + SERVER_PATIENCE_MS;
        } else if (done == 0 || errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            give_up(server, connection);
        }
    }
    if (connection->told == out->len) {
        if (out->cap > READ_BYTES)
            text_release(out); /* a large answer was the exception */
        out->len = 0;
        connection->told = 0;
        connection->until = -1;
    } else if (connection->until < 0) {
        connection->until = server->now + SERVER_PATIENCE_MS;
    }
    if (!connection->is_broken && connection->hears == (connection->told < out->len))
        watch(server, connection, EPOLL_CTL_MOD);
}

static void tell_later(void *context, uint64_t owner, struct strview answer)
{
    struct server *server = context;
    struct connection *connection = find(server, owner);
    if (!connection)
        return;
    text_put(&connection->outbox, answer);
    text_char(&connection->outbox, '\n');
    tell(server, connection);
}

/* Answers one line. Built aside: what it frees may be told to this very connection meanwhile. */
static void answer(struct server *server, struct connection *connection, struct strview line)
{
    struct text out = TEXT_INIT;
    if (registry_answer(server->registry, connection->owner, line, &out) == REGISTRY_ANSWERED) {
        text_char(&out, '\n');
        text_append(&connection->outbox, out.bytes, out.has_failed ? 0 : out.len);
        if (out.has_failed)
            give_up(server, connection); /* better no answer than a wrong one */
    }
    text_release(&out);
}

/* Answers whole lines until one of the answers is not taken. */
static void serve_lines(struct server *server, struct connection *connection)
{
    struct text *in = &connection->inbox;
    size_t used = 0;
    while (!connection->is_broken && connection->outbox.len == connection->told) {
        const char *from = in->bytes + used;
        const char *end = in->len > used ? memchr(from, '\n', in->len - used) : NULL;
        if (!end)
            break;
        answer(server, connection, (struct strview){from, (size_t)(end - from)});
        used += (size_t)(end - from) + 1;
        tell(server, connection);
    }
    if (used) {
        memmove(in->bytes, in->bytes + used, in->len - used);
        in->len -= used;
    }
    if (in->len == 0 && in->cap > 2 * READ_BYTES)
        text_release(in);
}

static void hear(struct server *server, struct connection *connection)
{
    struct text *in = &connection->inbox;
    if (!text_reserve(in, READ_BYTES)) {
        give_up(server, connection);
        return;
    }
    ssize_t got = read(connection->fd, in->bytes + in->len, READ_BYTES);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        give_up(server, connection);
        return;
    }
    in->len += got > 0 ? (size_t)got : 0;
    serve_lines(server, connection);
    if (in->len > LINE_MAX_BYTES && !memchr(in->bytes, '\n', in->len))
        give_up(server, connection);
}

/* --- coming and going --- */

static void listen_more(struct server *server, bool is_on)
{
    struct epoll_event event = {.events = is_on ? EPOLLIN : 0, .data = {.u64 = LISTENER}};
    if (epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->listener, &event) == 0)
        server->is_deaf = !is_on;
}

static struct connection *find_room(struct server *server)
{
    for (uint32_t i = 0; server->count < server->room && i < server->room; i++)
        if (server->connections[i].fd < 0)
            return &server->connections[i];
    uint32_t first = server->room, room = first ? first * 2 : 16;
    struct connection *more =
        room <= CONNECTIONS_MAX ? realloc(server->connections, room * sizeof *more) : NULL;
    if (!more)
        return NULL;
    for (uint32_t i = first; i < room; i++)
        more[i] = (struct connection){.fd = -1, .pidfd = -1};
    server->connections = more;
    server->room = room;
    return &more[first];
}

static bool welcome(struct server *server, int fd)
{
    struct connection *it = find_room(server);
    if (!it) {
        close(fd);
        return false;
    }
    uint32_t slot = (uint32_t)(it - server->connections);
    *it = (struct connection){.fd = fd,
                              .pidfd = control_peer_pidfd(fd),
                              .owner = owner_of(++server->met, slot),
                              .inbox = TEXT_INIT,
                              .outbox = TEXT_INIT,
                              .until = -1};
    server->count++;
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = it->owner << 1 | IS_PROCESS}};
    if (it->pidfd >= 0 && epoll_ctl(server->epoll, EPOLL_CTL_ADD, it->pidfd, &event) != 0)
        give_up(server, it);
    watch(server, it, EPOLL_CTL_ADD);
    return true;
}

static void let_in(struct server *server)
{
    for (int i = 0; i < ROUND; i++) {
        int fd = control_accept(server->listener);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd >= 0 ? !welcome(server, fd)
                    : errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
            listen_more(server, false); /* until somebody goes */
            return;
        }
    }
}

static void let_go(struct server *server, struct connection *connection)
{
    uint64_t owner = connection->owner;
    close(connection->fd);
    if (connection->pidfd >= 0)
        close(connection->pidfd);
    text_release(&connection->inbox);
    text_release(&connection->outbox);
    *connection = (struct connection){.fd = -1, .pidfd = -1};
    server->count--;
    registry_owner_gone(server->registry, owner);
}

/* The end of one may find another broken, as it is told what it waited for. */
static void sweep(struct server *server)
{
    bool has_gone = false;
    while (server->has_broken) {
        server->has_broken = false;
        for (uint32_t i = 0; i < server->room; i++)
            if (server->connections[i].fd >= 0 && server->connections[i].is_broken) {
                let_go(server, &server->connections[i]);
                has_gone = true;
            }
    }
    if (has_gone && server->is_deaf)
        listen_more(server, true);
}

/* --- the server --- */

struct server *server_new(int listener)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        close(listener);
        return NULL;
    }
    *server = (struct server){.listener = listener, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    server->registry = registry_new(tell_later, server);
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = LISTENER}};
    if (server->registry && server->epoll >= 0 &&
        epoll_ctl(server->epoll, EPOLL_CTL_ADD, listener, &event) == 0)
        return server;
    server_free(server);
    return NULL;
}

void server_free(struct server *server)
{
    if (!server)
        return;
    for (uint32_t i = 0; i < server->room; i++) {
        struct connection *it = &server->connections[i];
        if (it->fd < 0)
            continue;
        close(it->fd);
        if (it->pidfd >= 0)
            close(it->pidfd);
        text_release(&it->inbox);
        text_release(&it->outbox);
    }
    free(server->connections);
    registry_free(server->registry);
    if (server->epoll >= 0)
        close(server->epoll);
    close(server->listener);
    free(server);
}

struct registry *server_registry(struct server *server)
{
    return server->registry;
}

int server_fd(const struct server *server)
{
    return server->epoll;
}

static void serve_one(struct server *server, struct connection *connection, uint32_t events)
{
    if (events & EPOLLOUT) {
        tell(server, connection);
        serve_lines(server, connection); /* what came while answers were not taken */
    }
    if (!connection->is_broken && (events & EPOLLIN))
        hear(server, connection);
    else if (events & (EPOLLERR | EPOLLHUP))
        give_up(server, connection);
}

/* Gives up who takes nothing; returns how long the next one has. */
static int64_t check_patience(struct server *server)
{
    int64_t soonest = -1;
    for (uint32_t i = 0; i < server->room; i++) {
        struct connection *it = &server->connections[i];
        if (it->fd < 0 || it->until < 0)
            continue;
        int64_t left = it->until - server->now;
        if (left <= 0)
            give_up(server, it);
        else if (soonest < 0 || left < soonest)
            soonest = left;
    }
    return soonest;
}

int64_t server_step(struct server *server, int64_t now_ms)
{
    struct epoll_event events[ROUND];
    bool has_newcomers = false;
    server->now = now_ms;
    int count = epoll_wait(server->epoll, events, ROUND, 0);
    for (int i = 0; i < count; i++) {
        uint64_t mark = events[i].data.u64;
        struct connection *connection = mark == LISTENER ? NULL : find(server, mark >> 1);
        has_newcomers = has_newcomers || mark == LISTENER;
        if (connection && (mark & IS_PROCESS))
            give_up(server, connection);
        else if (connection && !connection->is_broken)
            serve_one(server, connection, events[i].events);
    }
    int64_t left = check_patience(server);
    sweep(server);
    if (has_newcomers) {
        let_in(server);
        sweep(server);
    }
    return left;
}
