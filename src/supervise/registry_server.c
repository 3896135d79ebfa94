/* registry_server.c - the process that serves the registry of one namespace.
 *
 * It serves at its socket until the process that started it ends, by whatever means, or releases it. It
 * starts nothing and reads nothing but requests; when it ends, its socket is gone. */
#include "supervise/registry_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <roost/engine/program.h>
#include <roost/engine/registry.h>
#include <roost/port.h>

#include "base/cure.h"
#include "base/private_dir.h"
#include "registry/namespaces.h"
#include "registry/server.h"
#include "rpc/control_socket.h"
#include "rpc/socket_pair.h"
#include "supervise/clock.h"
#include "supervise/watcher.h"

struct registry_process {
    const char *name;
    char socket[NAMESPACE_FILE_MAX];
    int signals;
    struct server *server;
    struct roost_leases *leases;
    bool has_socket;
};

static bool prepare(struct registry_process *it, struct diag *diag)
{
    it->signals = watcher_block_signals(REGISTRY_SERVER_SOCKET, REGISTRY_SERVER_FD_COUNT, false);
    if (it->signals < 0) {
        int error = errno;
        diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "cannot open what the managers need: %s",
                   strerror(error));
        diag_hint(diag, "%s", cure_of_descriptor(error).text);
        return false;
    }
    /* Two descriptors for every process that asks. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return true;
}

static int refuse(const struct roost_error *err)
{
    (void)socket_pair_send(REGISTRY_SERVER_SOCKET, REGISTRY_SERVER_REFUSED, err, sizeof *err, -1);
    return 1;
}

/* A port that no other run of this user gets, for the process that leads a collective. */
static bool lease(struct registry_process *it, const struct registry_server_setup *setup,
                  struct diag *diag)
{
    struct roost_error err;
    struct roost_port_options options = {
        .dir = setup->runtime, .base = setup->port_base, .owner = it->name};
    struct roost_port_want want = {.count = 1};
    it->leases = roost_leases_new(&options, &want, 1, &err);
    if (!it->leases) {
        diag_again(diag, &err);
        return false;
    }
    roost_leases_release(it->leases, 0);
    return registry_set_master_port(server_registry(it->server), roost_leases_port(it->leases, 0),
                                    diag);
}

/* Requests of the driver, one per line. What they keep ends with this process. */
static void obey(const struct registry_process *it, struct strview lines)
{
    enum { DRIVER = 0 }; /* no connection is this owner */
    while (lines.len > 0) {
        size_t end = sv_find(lines, '\n', 0);
        struct text answer = TEXT_INIT;
        (void)registry_answer(server_registry(it->server), DRIVER, sv_sub(lines, 0, end), &answer);
        text_release(&answer);
        lines = sv_sub(lines, end < lines.len ? end + 1 : end, lines.len);
    }
}

static bool read_view(struct registry_process *it, struct diag *diag)
{
    struct stat about;
    const char *bytes = MAP_FAILED;
    if (fstat(REGISTRY_SERVER_VIEW, &about) == 0 &&
        about.st_size > (off_t)sizeof(struct registry_server_setup))
        bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, REGISTRY_SERVER_VIEW, 0);
    if (bytes == MAP_FAILED) {
        diag_nomem(diag);
        return false;
    }
    struct registry_server_setup setup;
    memcpy(&setup, bytes, sizeof setup);
    struct strview rest = {bytes + sizeof setup, (size_t)about.st_size - sizeof setup};
    struct strview view = sv_sub(rest, 0, setup.view_len);
    bool is_good = registry_set_view(server_registry(it->server), view, diag) &&
                   (!setup.leases_master_port || lease(it, &setup, diag));
    obey(it, sv_sub(rest, view.len, rest.len));
    (void)munmap((void *)bytes, (size_t)about.st_size);
    return is_good;
}

static bool open_socket(struct registry_process *it, struct diag *diag)
{
    namespace_socket(it->name, it->socket);
    int listener = control_listen(REGISTRY_SERVER_RUNTIME_DIR, it->socket);
    it->has_socket = listener >= 0;
    if (listener >= 0)
        it->server = server_new(listener);
    if (it->server)
        return true;
    int error = errno;
    diag_error(diag, ROOST_ERR_IO, NOWHERE, "cannot make the managers' socket '%s': %s",
               shown_in(REGISTRY_SERVER_RUNTIME_DIR, it->socket).text, strerror(error));
    diag_hint(diag, "%s", cure_of_place(error, "set XDG_RUNTIME_DIR").text);
    return false;
}

/* Reads what the driver says; whether it has released this process. It sends a message for that, because
 * a child of the driver may hold a copy of the socket. */
static bool is_let_go(const struct registry_process *it)
{
    static struct message message;
    enum socket_pair_result result;
    while ((result = socket_pair_receive(REGISTRY_SERVER_SOCKET, &message)) == SOCKET_PAIR_OK) {
        if (message.fd >= 0)
            close(message.fd);
        if (message.type != REGISTRY_SERVER_TELL)
            return true;
        obey(it, (struct strview){message.body, message.len});
    }
    return result != SOCKET_PAIR_AGAIN;
}

static void serve(const struct registry_process *it)
{
    for (;;) {
        int64_t left = server_step(it->server, clock_ms());
        struct pollfd fds[4] = {{server_fd(it->server), POLLIN, 0},
                                {REGISTRY_SERVER_DRIVER, POLLIN, 0},
                                {REGISTRY_SERVER_SOCKET, POLLIN, 0},
                                {it->signals, POLLIN, 0}};
        if (poll(fds, 4, (int)left) < 0 && errno != EINTR)
            clock_pause_ms(10); /* no memory for poll: look again, never spin */
        if (fds[1].revents || fds[3].revents || (fds[2].revents && is_let_go(it)))
            return;
    }
}

int roost_registry_server_main(int argc, char **argv)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct registry_process it = {.name = argc == 1 ? argv[0] : ""};
    if (argc != 1)
        return 2;
    bool is_good = prepare(&it, &diag) && open_socket(&it, &diag) && read_view(&it, &diag);
    close(REGISTRY_SERVER_VIEW);
    if (!is_good)
        refuse(&err);
    else if (socket_pair_send(REGISTRY_SERVER_SOCKET, REGISTRY_SERVER_READY, "", 0, -1) ==
             SOCKET_PAIR_OK)
        serve(&it);
    if (it.has_socket)
        (void)unlinkat(REGISTRY_SERVER_RUNTIME_DIR, it.socket, 0);
    server_free(it.server);
    roost_leases_free(it.leases);
    return is_good ? 0 : 1;
}
