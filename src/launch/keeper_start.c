/* keeper_start.c - the driver's side of a keeper: a namespace, a process, a channel that says when it
 * may end. Whatever fails on the way undoes what was done. */
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

#include <roost/registry.h>

#include "base/file.h"
#include "base/private_dir.h"
#include "launch/local/clock.h"
#include "launch/local/keeper.h"
#include "launch/local/spawn.h"
#include "registry/namespaces.h"
#include "rpc/channel.h"

enum { ANSWER_MS = 60000, END_MS = 10000 };

struct roost_keeper {
    char name_space[ROOST_NAMESPACE_MAX + 1];
    int channel, pidfd; /* -1 = none */
    pid_t pid, driver;
};

/* What is open while a keeper is being started. */
struct start {
    const struct roost_keeper_options *options;
    struct roost_keeper *keeper;
    struct diag *diag;
    char runtime[sizeof((struct keeper_setup *)NULL)->runtime];
    int runtime_dir, lock, view;
    struct message message;
};

static bool say_errno(struct start *start, const char *what)
{
    diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE, "cannot %s for the managers: %s", what,
               strerror(errno));
    diag_hint(start->diag, "raise the limit of open files: ulimit -n");
    return false;
}

static bool find_place(struct start *start)
{
    struct roost_error err;
    if (!private_dir_runtime(start->runtime, sizeof start->runtime, start->options->env)) {
        diag_error(start->diag, ROOST_ERR_IO, NOWHERE,
                   "the path of the runtime directory is too long");
        diag_hint(start->diag, "set XDG_RUNTIME_DIR to a shorter path");
        return false;
    }
    start->runtime_dir = private_dir_open(start->runtime, true, &err);
    if (start->runtime_dir < 0) {
        diag_again(start->diag, &err);
        return false;
    }
    start->lock = namespace_take(start->runtime_dir, start->options->name_space,
                                 start->keeper->name_space, start->diag);
    return start->lock >= 0;
}

static bool write_view(struct start *start)
{
    const struct roost_keeper_options *options = start->options;
    struct keeper_setup setup = {.leases_master_port = options->leases_master_port,
                                 .port_base = options->port_base};
    memcpy(setup.runtime, start->runtime, sizeof setup.runtime);
    start->view = memfd_create("roost-view", MFD_CLOEXEC);
    if (start->view >= 0 && file_write(start->view, &setup, sizeof setup) &&
        file_write(start->view, options->view ? options->view : "{}",
                   options->view ? options->view_len : 2))
        return true;
    return say_errno(start, "make a memory file");
}

static bool start_process(struct start *start)
{
    struct roost_keeper *keeper = start->keeper;
    const char *program = start->options->program ? start->options->program : ROOST_PROGRAM;
    int ends[2], driver = pidfd_open(getpid(), 0), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool is_good = driver >= 0 && null >= 0 && channel_pair(ends);
    if (!is_good)
        (void)say_errno(start, "make a channel");
    struct spawned spawned = {.pidfd = -1, .failed = SPAWN_OK};
    if (is_good) {
        char *argv[] = {"roost", "--keeper", keeper->name_space, NULL};
        int handed[KEEPER_FD_COUNT] = {ends[1], start->runtime_dir, driver, start->lock,
                                       start->view};
        struct spawn spawn = {.paths = (const char *const[]){program, NULL},
                              .argv = argv,
                              .env = (char *const[]){NULL},
                              .cwd = "/",
                              .fd = {null, null, null},
                              .handed = handed,
                              .handed_count = KEEPER_FD_COUNT,
                              .outlives_parent = true};
        spawned = spawn_process(&spawn);
        close(ends[1]);
        keeper->channel = ends[0];
        keeper->pidfd = spawned.pidfd;
        keeper->pid = spawned.pid;
    }
    if (driver >= 0)
        close(driver);
    if (null >= 0)
        close(null);
    if (!is_good || spawned.failed == SPAWN_OK)
        return is_good;
    diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE, "cannot %s '%s' for the managers: %s",
               spawn_step_word(spawned.failed), program, strerror(spawned.error));
    diag_hint(start->diag, spawned.failed == SPAWN_EXEC
                               ? "install the roost program, or let `program` name it"
                               : "raise the limits of processes and open files: ulimit -u, -n");
    return false;
}

/* Until it answers at its socket. */
static bool meet(struct start *start)
{
    struct message *message = &start->message;
    int64_t deadline = clock_ms() + ANSWER_MS;
    for (;;) {
        enum channel_result result = channel_receive(start->keeper->channel, message);
        if (result == CHANNEL_OK && message->type == KEEPER_READY)
            return true;
        if (result == CHANNEL_OK && message->type == KEEPER_REFUSED &&
            message->len == sizeof(struct roost_error)) {
            struct roost_error err;
            memcpy(&err, message->body, sizeof err);
            diag_again(start->diag, &err);
            return false;
        }
        int64_t left = deadline - clock_ms();
        if (result != CHANNEL_AGAIN) {
            diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE,
                       "the managers' process ended before it began");
            diag_hint(start->diag, "is `program` the roost program that came with this library?");
            return false;
        }
        if (left <= 0) {
            diag_error(start->diag, ROOST_ERR_TIMEOUT, NOWHERE,
                       "the managers' process gives no answer");
            diag_hint(start->diag, "the machine is very busy: try again");
            return false;
        }
        poll(&(struct pollfd){start->keeper->channel, POLLIN, 0}, 1, (int)left);
    }
}

struct roost_keeper *roost_keeper_start(const struct roost_keeper_options *options,
                                        struct roost_error *err)
{
    static const char *const no_env[] = {NULL};
    struct roost_keeper_options given = *options;
    struct diag diag = diag_start(NULL, err);
    given.env = given.env ? given.env : no_env;
    struct roost_keeper *keeper = calloc(1, sizeof *keeper);
    struct start *start = calloc(1, sizeof *start); /* too large for a stack */
    if (!keeper || !start) {
        free(keeper);
        free(start);
        diag_nomem(&diag);
        return NULL;
    }
    *keeper = (struct roost_keeper){.channel = -1, .pidfd = -1, .driver = getpid()};
    *start = (struct start){.options = &given,
                            .keeper = keeper,
                            .diag = &diag,
                            .runtime_dir = -1,
                            .lock = -1,
                            .view = -1};
    bool is_started = find_place(start) && write_view(start) && start_process(start) && meet(start);
    const int opened[] = {start->runtime_dir, start->lock, start->view};
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        if (opened[i] >= 0)
            close(opened[i]);
    free(start);
    if (is_started)
        return keeper;
    roost_keeper_free(keeper);
    return NULL;
}

/* Asks it to end; one that does not, is killed. */
static void end(const struct roost_keeper *keeper)
{
    siginfo_t info = {0};
    (void)channel_send(keeper->channel, KEEPER_END, "", 0, -1);
    if (poll(&(struct pollfd){keeper->pidfd, POLLIN, 0}, 1, END_MS) <= 0)
        (void)pidfd_send_signal(keeper->pidfd, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t)keeper->pidfd, &info, WEXITED) != 0 && errno == EINTR)
        ;
}

void roost_keeper_free(struct roost_keeper *keeper)
{
    if (!keeper)
        return;
    if (keeper->pidfd >= 0 && keeper->driver == getpid())
        end(keeper);
    if (keeper->pidfd >= 0)
        close(keeper->pidfd);
    if (keeper->channel >= 0)
        close(keeper->channel);
    free(keeper);
}

const char *roost_keeper_namespace(const struct roost_keeper *keeper)
{
    return keeper->name_space;
}

int32_t roost_keeper_pid(const struct roost_keeper *keeper)
{
    return keeper->pid;
}
