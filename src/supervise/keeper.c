/* keeper.c - the process that remembers who is where, for one namespace.
 *
 * It serves a registry at its socket until the process that started it ends, by whatever means, or lets
 * go of it. It starts nothing and reads nothing but what it is asked; when it ends its socket is gone. */
#include "supervise/keeper.h"

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

#include <roost/port.h>
#include <roost/registry.h>

#include "base/cure.h"
#include "base/private_dir.h"
#include "registry/namespaces.h"
#include "registry/server.h"
#include "rpc/channel.h"
#include "rpc/control.h"
#include "supervise/clock.h"
#include "supervise/doors.h"

struct keeper {
    const char *name;
    char socket[NAMESPACE_FILE_MAX];
    int signals;
    struct server *server;
    struct roost_leases *leases;
    bool has_socket;
};

static bool prepare(struct keeper *keeper, struct diag *diag)
{
    keeper->signals = doors_open(KEEPER_CHANNEL, KEEPER_FD_COUNT);
    if (keeper->signals < 0) {
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
    (void)channel_send(KEEPER_CHANNEL, KEEPER_REFUSED, err, sizeof *err, -1);
    return 1;
}

/* A port that no other run of this user gets; it is for whoever leads a collective to bind. */
static bool lease(struct keeper *keeper, const struct keeper_setup *setup, struct diag *diag)
{
    struct roost_error err;
    struct roost_port_options options = {
        .dir = setup->runtime, .base = setup->port_base, .owner = keeper->name};
    struct roost_port_want want = {.count = 1};
    keeper->leases = roost_leases_new(&options, &want, 1, &err);
    if (!keeper->leases) {
        diag_again(diag, &err);
        return false;
    }
    roost_leases_release(keeper->leases, 0);
    return registry_set_master_port(server_registry(keeper->server),
                                    roost_leases_port(keeper->leases, 0), diag);
}

static bool read_view(struct keeper *keeper, struct diag *diag)
{
    struct stat about;
    const char *bytes = MAP_FAILED;
    if (fstat(KEEPER_VIEW, &about) == 0 && about.st_size > (off_t)sizeof(struct keeper_setup))
        bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, KEEPER_VIEW, 0);
    if (bytes == MAP_FAILED) {
        diag_nomem(diag);
        return false;
    }
    struct keeper_setup setup;
    memcpy(&setup, bytes, sizeof setup);
    struct strview view = {bytes + sizeof setup, (size_t)about.st_size - sizeof setup};
    bool is_good = registry_set_view(server_registry(keeper->server), view, diag) &&
                   (!setup.leases_master_port || lease(keeper, &setup, diag));
    (void)munmap((void *)bytes, (size_t)about.st_size);
    return is_good;
}

static bool open_socket(struct keeper *keeper, struct diag *diag)
{
    namespace_socket(keeper->name, keeper->socket);
    int listener = control_listen(KEEPER_RUNTIME_DIR, keeper->socket);
    keeper->has_socket = listener >= 0;
    if (listener >= 0)
        keeper->server = server_new(listener);
    if (keeper->server)
        return true;
    int error = errno;
    diag_error(diag, ROOST_ERR_IO, NOWHERE, "cannot make the managers' socket '%s': %s",
               shown_in(KEEPER_RUNTIME_DIR, keeper->socket).text, strerror(error));
    diag_hint(diag, "%s", cure_of_place(error, "set XDG_RUNTIME_DIR").text);
    return false;
}

/* Whether the driver has let go. It may have left a copy of the channel to a child: so it says it. */
static bool is_let_go(void)
{
    static struct message message;
    enum channel_result result = channel_receive(KEEPER_CHANNEL, &message);
    if (result == CHANNEL_OK && message.fd >= 0)
        close(message.fd);
    return result != CHANNEL_AGAIN;
}

static void serve(const struct keeper *keeper)
{
    for (;;) {
        int64_t left = server_step(keeper->server, clock_ms());
        struct pollfd fds[4] = {{server_fd(keeper->server), POLLIN, 0},
                                {KEEPER_DRIVER, POLLIN, 0},
                                {KEEPER_CHANNEL, POLLIN, 0},
                                {keeper->signals, POLLIN, 0}};
        if (poll(fds, 4, (int)left) < 0 && errno != EINTR)
            clock_pause_ms(10); /* no memory for poll: look again, never spin */
        if (fds[1].revents || fds[3].revents || (fds[2].revents && is_let_go()))
            return;
    }
}

int roost_keeper_main(int argc, char **argv)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct keeper keeper = {.name = argc == 1 ? argv[0] : ""};
    if (argc != 1)
        return 2;
    bool is_good =
        prepare(&keeper, &diag) && open_socket(&keeper, &diag) && read_view(&keeper, &diag);
    close(KEEPER_VIEW);
    if (!is_good)
        refuse(&err);
    else if (channel_send(KEEPER_CHANNEL, KEEPER_READY, "", 0, -1) == CHANNEL_OK)
        serve(&keeper);
    if (keeper.has_socket)
        (void)unlinkat(KEEPER_RUNTIME_DIR, keeper.socket, 0);
    server_free(keeper.server);
    roost_leases_free(keeper.leases);
    return is_good ? 0 : 1;
}
