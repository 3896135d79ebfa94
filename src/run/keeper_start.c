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

#include "base/cure.h"
#include "base/file.h"
#include "base/private_dir.h"
#include "registry/namespaces.h"
#include "rpc/channel.h"
#include "rpc/control.h"
#include "run/keeper_start.h"
#include "supervise/clock.h"
#include "supervise/keeper.h"
#include "supervise/proc.h"
#include "supervise/spawn.h"

enum { ANSWER_MS = 60000, END_MS = 10000 };

struct roost_keeper {
    char name_space[ROOST_NAMESPACE_MAX + 1];
    int channel, pidfd; /* -1 = none */
    int runtime_dir;    /* to tidy up behind one that was killed */
    pid_t pid, driver;
};

static bool say_errno(struct diag *diag, const char *what)
{
    int error = errno;
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "cannot %s for the managers: %s", what,
               strerror(error));
    diag_hint(diag, "%s", cure_of_descriptor(error).text);
    return false;
}

/* --- the process --- */

/* What it is told: a memory file; -1 after saying why there is none. */
static int write_view(const struct roost_keeper_options *options, const struct keeper_place *place,
                      struct diag *diag)
{
    struct keeper_setup setup = {.leases_master_port = options->leases_master_port,
                                 .port_base = options->port_base};
    snprintf(setup.runtime, sizeof setup.runtime, "%s", place->runtime);
    int file = memfd_create("roost-view", MFD_CLOEXEC);
    if (file >= 0 && file_write(file, &setup, sizeof setup) &&
        file_write(file, options->view ? options->view : "{}",
                   options->view ? options->view_len : 2))
        return file;
    (void)say_errno(diag, "make a memory file");
    if (file >= 0)
        close(file);
    return -1;
}

static void say_spawned(const struct spawned *spawned, const char *program, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "cannot %s '%s' for the managers: %s",
               spawn_step_word(spawned->failed), program, strerror(spawned->error));
    diag_hint(diag, spawned->failed == SPAWN_EXEC
                        ? "install the roost program, or let `program` name it"
                        : "raise the limits of processes and open files: ulimit -u, -n");
}

static bool start_process(struct roost_keeper *keeper, const char *program,
                          const struct keeper_place *place, int view, struct diag *diag)
{
    int ends[2], driver = -1, null = spawn_null(diag);
    if (null < 0)
        return false;
    bool is_good = (driver = pidfd_open(getpid(), 0)) >= 0 && channel_pair(ends);
    if (!is_good)
        (void)say_errno(diag, "make a channel");
    struct spawned spawned = {.pidfd = -1, .failed = SPAWN_OK};
    if (is_good) {
        char token[64];
        snprintf(token, sizeof token, "ROOST_RUN_ID=%s", place->run_id ? place->run_id : "");
        char *argv[] = {"roost", "--keeper", keeper->name_space, NULL};
        /* It goes to another folder before it is executed. */
        char *whole = program[0] != '/' && strchr(program, '/') ? realpath(program, NULL) : NULL;
        int handed[KEEPER_FD_COUNT] = {ends[1], place->runtime_dir, driver, place->lock, view};
        struct spawn spawn = {.paths = (const char *const[]){whole ? whole : program, NULL},
                              .argv = argv,
                              .env = (char *const[]){place->run_id ? token : NULL, NULL},
                              .cwd = "/",
                              .fd = {null, null, null},
                              .handed = handed,
                              .handed_count = KEEPER_FD_COUNT,
                              .outlives_parent = true};
        spawned = spawn_process(&spawn);
        free(whole);
        close(ends[1]);
        keeper->channel = ends[0];
        keeper->pidfd = spawned.pidfd;
        keeper->pid = spawned.pid;
    }
    if (driver >= 0)
        close(driver);
    close(null);
    if (is_good && spawned.failed != SPAWN_OK)
        say_spawned(&spawned, program, diag);
    return is_good && spawned.failed == SPAWN_OK;
}

struct roost_keeper *keeper_spawn(const struct roost_keeper_options *options,
                                  const struct keeper_place *place, struct diag *diag)
{
    struct roost_keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper) {
        diag_nomem(diag);
        return NULL;
    }
    *keeper = (struct roost_keeper){.channel = -1, .pidfd = -1, .driver = getpid()};
    snprintf(keeper->name_space, sizeof keeper->name_space, "%s", place->name_space);
    keeper->runtime_dir = fcntl(place->runtime_dir, F_DUPFD_CLOEXEC, 0);
    if (keeper->runtime_dir < 0)
        (void)say_errno(diag, "open the runtime directory");
    int view = keeper->runtime_dir < 0 ? -1 : write_view(options, place, diag);
    const char *program = options->program ? options->program : ROOST_PROGRAM;
    bool is_started = view >= 0 && start_process(keeper, program, place, view, diag);
    if (view >= 0)
        close(view);
    if (is_started)
        return keeper;
    roost_keeper_free(keeper);
    return NULL;
}

/* Takes what it says; CHANNEL_AGAIN while it says nothing. */
static enum channel_result hear(const struct roost_keeper *keeper, struct message *message,
                                bool *out_is_ready, struct diag *diag)
{
    enum channel_result result = channel_receive(keeper->channel, message);
    *out_is_ready = result == CHANNEL_OK && message->type == KEEPER_READY;
    if (*out_is_ready || result == CHANNEL_AGAIN)
        return result;
    struct roost_error err;
    if (result == CHANNEL_OK && message->type == KEEPER_REFUSED && message->len == sizeof err) {
        memcpy(&err, message->body, sizeof err);
        diag_again(diag, &err);
        return result;
    }
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "the managers' process ended before it began");
    diag_hint(diag, "is `program` the roost program that came with this library?");
    return result;
}

bool keeper_meet(const struct roost_keeper *keeper, struct diag *diag)
{
    bool is_ready = false;
    int64_t deadline = clock_ms() + ANSWER_MS, left = ANSWER_MS;
    struct message *message = calloc(1, sizeof *message); /* too large for a stack */
    if (!message) {
        diag_nomem(diag);
        return false;
    }
    while (left > 0 && hear(keeper, message, &is_ready, diag) == CHANNEL_AGAIN) {
        poll(&(struct pollfd){keeper->channel, POLLIN, 0}, 1, (int)left);
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

/* Opens the runtime directory and takes a namespace; false after saying why not. */
static bool find_place(const struct roost_keeper_options *options, struct keeper_place *place,
                       char *runtime, size_t size, char *name_space, struct diag *diag)
{
    struct roost_error err;
    *place = (struct keeper_place){
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

struct roost_keeper *roost_keeper_start(const struct roost_keeper_options *options,
                                        struct roost_error *err)
{
    static const char *const no_env[] = {NULL};
    struct roost_keeper_options given = *options;
    struct diag diag = diag_start(NULL, err);
    given.env = given.env ? given.env : no_env;
    struct keeper_place place;
    char runtime[sizeof((struct keeper_setup *)NULL)->runtime];
    char name_space[ROOST_NAMESPACE_MAX + 1];
    struct roost_keeper *keeper = NULL;
    if (find_place(&given, &place, runtime, sizeof runtime, name_space, &diag))
        keeper = keeper_spawn(&given, &place, &diag);
    if (place.runtime_dir >= 0)
        close(place.runtime_dir);
    if (place.lock >= 0)
        close(place.lock);
    if (keeper && keeper_meet(keeper, &diag))
        return keeper;
    roost_keeper_free(keeper);
    return NULL;
}

/* --- its end --- */

void keeper_let_go(const struct roost_keeper *keeper)
{
    if (!keeper)
        return;
    (void)channel_send(keeper->channel, KEEPER_END, "", 0, -1);
    proc_continue(keeper->pidfd, keeper->pid); /* one that was stopped must hear it */
}

/* Its socket is its own to remove, unless it was killed. Only who has the namespace may then do it:
 * another keeper may be there by now. */
static void remove_socket(const struct roost_keeper *keeper)
{
    char name[ROOST_NAMESPACE_MAX + 1], socket[NAMESPACE_FILE_MAX];
    struct diag quiet = diag_start(NULL, NULL);
    int lock = namespace_take(keeper->runtime_dir, keeper->name_space, name, &quiet);
    if (lock < 0)
        return;
    namespace_socket(name, socket);
    control_remove(keeper->runtime_dir, socket);
    close(lock);
}

/* Waits for one that was asked to end; one that does not, is killed. */
static void end(const struct roost_keeper *keeper)
{
    siginfo_t info = {0};
    keeper_let_go(keeper);
    if (poll(&(struct pollfd){keeper->pidfd, POLLIN, 0}, 1, END_MS) <= 0)
        (void)pidfd_send_signal(keeper->pidfd, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t)keeper->pidfd, &info, WEXITED) != 0 && errno == EINTR)
        ;
    if (info.si_code != CLD_EXITED)
        remove_socket(keeper);
}

void roost_keeper_free(struct roost_keeper *keeper)
{
    if (!keeper)
        return;
    if (keeper->pidfd >= 0 && keeper->driver == getpid())
        end(keeper);
    const int opened[] = {keeper->pidfd, keeper->channel, keeper->runtime_dir};
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        if (opened[i] >= 0)
            close(opened[i]);
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
