/* registry_server_start.c - the driver's side of a registry server: a namespace, a process, and a
 * socket whose end tells the process to end. Whatever fails on the way undoes what was done. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <roost/engine/registry.h>

#include "base/cure.h"
#include "base/file.h"
#include "base/private_dir.h"
#include "registry/namespaces.h"
#include "rpc/control_socket.h"
#include "rpc/socket_pair.h"
#include "run/registry_server_start.h"
#include "supervise/clock.h"
#include "supervise/proc.h"
#include "supervise/registry_server.h"
#include "supervise/spawn.h"

enum { ANSWER_MS = 60000, END_MS = 10000 };

struct roost_registry_server {
    char name_space[ROOST_NAMESPACE_MAX + 1];
    int socket, pidfd; /* -1 = none */
    int runtime_dir;   /* to clean up after a server that was killed */
    pid_t pid, driver;
};

static bool report_errno(struct diag *diag, const char *what)
{
    int error = errno;
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "cannot %s for the managers: %s", what,
               strerror(error));
    diag_hint(diag, "%s", cure_of_descriptor(error).text);
    return false;
}

/* --- the process --- */

/* Its setup and view, as a memory file; -1 after reporting why there is none. */
static int write_view(const struct roost_registry_server_options *options,
                      const struct registry_server_place *place, struct diag *diag)
{
    struct registry_server_setup setup = {.leases_master_port = options->leases_master_port,
                                          .port_base = options->port_base,
                                          .view_len = options->view ? options->view_len : 2};
    snprintf(setup.runtime, sizeof setup.runtime, "%s", place->runtime);
    int file = memfd_create("roost-view", MFD_CLOEXEC);
    if (file >= 0 && file_write(file, &setup, sizeof setup) &&
        file_write(file, options->view ? options->view : "{}", setup.view_len) &&
        file_write(file, place->lines.at, place->lines.len))
        return file;
    (void)report_errno(diag, "make a memory file");
    if (file >= 0)
        close(file);
    return -1;
}

static void report_spawned(const struct spawned *spawned, const char *program, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "cannot %s '%s' for the managers: %s",
               spawn_step_word(spawned->failed), program, strerror(spawned->error));
    diag_hint(diag, spawned->failed == SPAWN_EXEC
                        ? "install the roost program, or let `program` name it"
                        : "raise the limits of processes and open files: ulimit -u, -n");
}

static bool start_process(struct roost_registry_server *server, const char *program,
                          const struct registry_server_place *place, int view, struct diag *diag)
{
    int ends[2], driver = -1, null = spawn_null(diag);
    if (null < 0)
        return false;
    bool is_good = (driver = pidfd_open(getpid(), 0)) >= 0 && socket_pair_open(ends);
    if (!is_good)
        (void)report_errno(diag, "make a socket");
    struct spawned spawned = {.pidfd = -1, .failed = SPAWN_OK};
    if (is_good) {
        char token[64];
        snprintf(token, sizeof token, "ROOST_RUN_ID=%s", place->run_id ? place->run_id : "");
        char *argv[] = {"roost", "--registry-server", server->name_space, NULL};
        /* It goes to another folder before it is executed. */
        char *whole = program[0] != '/' && strchr(program, '/') ? realpath(program, NULL) : NULL;
        int handed[REGISTRY_SERVER_FD_COUNT] = {ends[1], place->runtime_dir, driver, place->lock,
                                                view};
        struct spawn spawn = {.paths = (const char *const[]){whole ? whole : program, NULL},
                              .argv = argv,
                              .env = (char *const[]){place->run_id ? token : NULL, NULL},
                              .cwd = "/",
                              .fd = {null, null, null},
                              .handed = handed,
                              .handed_count = REGISTRY_SERVER_FD_COUNT,
                              .outlives_parent = true};
        spawned = spawn_process(&spawn);
        free(whole);
        close(ends[1]);
        server->socket = ends[0];
        server->pidfd = spawned.pidfd;
        server->pid = spawned.pid;
    }
    if (driver >= 0)
        close(driver);
    close(null);
    if (is_good && spawned.failed != SPAWN_OK)
        report_spawned(&spawned, program, diag);
    return is_good && spawned.failed == SPAWN_OK;
}

struct roost_registry_server *registry_server_spawn(
    const struct roost_registry_server_options *options, const struct registry_server_place *place,
    struct diag *diag)
{
    struct roost_registry_server *server = calloc(1, sizeof *server);
    if (!server) {
        diag_nomem(diag);
        return NULL;
    }
    *server = (struct roost_registry_server){.socket = -1, .pidfd = -1, .driver = getpid()};
    snprintf(server->name_space, sizeof server->name_space, "%s", place->name_space);
    server->runtime_dir = fcntl(place->runtime_dir, F_DUPFD_CLOEXEC, 0);
    if (server->runtime_dir < 0)
        (void)report_errno(diag, "open the runtime directory");
    int view = server->runtime_dir < 0 ? -1 : write_view(options, place, diag);
    const char *program = options->program ? options->program : ROOST_PROGRAM;
    bool is_started = view >= 0 && start_process(server, program, place, view, diag);
    if (view >= 0)
        close(view);
    if (is_started)
        return server;
    roost_registry_server_free(server);
    return NULL;
}

/* Takes its next message; SOCKET_PAIR_AGAIN while there is none. */
static enum socket_pair_result read_server(const struct roost_registry_server *server,
                                           struct message *message, bool *out_is_ready,
                                           struct diag *diag)
{
    enum socket_pair_result result = socket_pair_receive(server->socket, message);
    *out_is_ready = result == SOCKET_PAIR_OK && message->type == REGISTRY_SERVER_READY;
    if (*out_is_ready || result == SOCKET_PAIR_AGAIN)
        return result;
    struct roost_error err;
    if (result == SOCKET_PAIR_OK && message->type == REGISTRY_SERVER_REFUSED &&
        message->len == sizeof err) {
        memcpy(&err, message->body, sizeof err);
        diag_again(diag, &err);
        return result;
    }
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "the managers' process ended before it began");
    diag_hint(diag, "is `program` the roost program that came with this library?");
    return result;
}

bool registry_server_meet(const struct roost_registry_server *server, struct diag *diag)
{
    bool is_ready = false;
    int64_t deadline = clock_ms() + ANSWER_MS, left = ANSWER_MS;
    struct message *message = calloc(1, sizeof *message); /* too large for a stack */
    if (!message) {
        diag_nomem(diag);
        return false;
    }
    while (left > 0 && read_server(server, message, &is_ready, diag) == SOCKET_PAIR_AGAIN) {
        poll(&(struct pollfd){server->socket, POLLIN, 0}, 1, (int)left);
        left = deadline - clock_ms();
    }
    free(message);
    if (left <= 0) {
        diag_error(diag, ROOST_ERR_TIMEOUT, NOWHERE, "the managers' process gives no answer");
        diag_hint(diag, "the machine is very busy: try again");
    }
    return is_ready;
}

/* --- one with a namespace of its own --- */

/* Opens the runtime directory and takes a namespace; false after reporting why not. */
static bool find_place(const struct roost_registry_server_options *options,
                       struct registry_server_place *place, char *runtime, size_t size,
                       char *name_space, struct diag *diag)
{
    struct roost_error err;
    *place = (struct registry_server_place){
        .runtime = runtime, .runtime_dir = -1, .lock = -1, .name_space = name_space};
    if (!private_dir_runtime(runtime, size, options->env)) {
        diag_error(diag, ROOST_ERR_IO, NOWHERE, "the path of the runtime directory is too long");
        diag_hint(diag, "set XDG_RUNTIME_DIR to a shorter path");
        return false;
    }
    place->runtime_dir = private_dir_open(runtime, true, &err);
    if (place->runtime_dir < 0) {
        diag_again(diag, &err);
        return false;
    }
    place->lock = namespace_take(place->runtime_dir, options->name_space, name_space, diag);
    return place->lock >= 0;
}

struct roost_registry_server *roost_registry_server_start(
    const struct roost_registry_server_options *options, struct roost_error *err)
{
    static const char *const no_env[] = {NULL};
    struct roost_registry_server_options given = *options;
    struct diag diag = diag_start(NULL, err);
    given.env = given.env ? given.env : no_env;
    struct registry_server_place place;
    char runtime[sizeof((struct registry_server_setup *)NULL)->runtime];
    char name_space[ROOST_NAMESPACE_MAX + 1];
    struct roost_registry_server *server = NULL;
    if (find_place(&given, &place, runtime, sizeof runtime, name_space, &diag))
        server = registry_server_spawn(&given, &place, &diag);
    if (place.runtime_dir >= 0)
        close(place.runtime_dir);
    if (place.lock >= 0)
        close(place.lock);
    if (server && registry_server_meet(server, &diag))
        return server;
    roost_registry_server_free(server);
    return NULL;
}

enum socket_pair_result registry_server_tell(const struct roost_registry_server *server,
                                             const char *lines, size_t len)
{
    return socket_pair_send(server->socket, REGISTRY_SERVER_TELL, lines, len, -1);
}

int registry_server_socket(const struct roost_registry_server *server)
{
    return server->socket;
}

/* --- its end --- */

void registry_server_let_go(const struct roost_registry_server *server)
{
    if (!server)
        return;
    (void)socket_pair_send(server->socket, REGISTRY_SERVER_END, "", 0, -1);
    proc_continue(server->pidfd, server->pid); /* a stopped server must run to read it */
}

/* The server removes its socket itself, unless it was killed. Only the holder of the namespace may then
 * remove it: another registry server may be there by now. */
static void remove_socket(const struct roost_registry_server *server)
{
    char name[ROOST_NAMESPACE_MAX + 1], socket[NAMESPACE_FILE_MAX];
    struct diag quiet = diag_start(NULL, NULL);
    int lock = namespace_take(server->runtime_dir, server->name_space, name, &quiet);
    if (lock < 0)
        return;
    namespace_socket(name, socket);
    control_remove(server->runtime_dir, socket);
    close(lock);
}

/* Waits for one that was asked to end; one that does not, is killed. */
static void end(const struct roost_registry_server *server)
{
    siginfo_t info = {0};
    registry_server_let_go(server);
    if (poll(&(struct pollfd){server->pidfd, POLLIN, 0}, 1, END_MS) <= 0)
        (void)pidfd_send_signal(server->pidfd, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t)server->pidfd, &info, WEXITED) != 0 && errno == EINTR)
        ;
    if (info.si_code != CLD_EXITED)
        remove_socket(server);
}

void roost_registry_server_free(struct roost_registry_server *server)
{
    if (!server)
        return;
    if (server->pidfd >= 0 && server->driver == getpid())
        end(server);
    const int opened[] = {server->pidfd, server->socket, server->runtime_dir};
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        if (opened[i] >= 0)
            close(opened[i]);
    free(server);
}

const char *roost_registry_server_namespace(const struct roost_registry_server *server)
{
    return server->name_space;
}

int32_t roost_registry_server_pid(const struct roost_registry_server *server)
{
    return server->pid;
}
