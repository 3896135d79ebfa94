/* agent_start.c - starts the guardian of an agent on a node. Runs in the process that carries the
 * messages of the agent, a Ray actor for example. The agent has a folder of its own, which its guardian
 * removes in the end. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_dir.h"
#include "base/cure.h"
#include "base/diag.h"
#include "base/private_dir.h"
#include "rpc/socket_pair.h"
#include "supervise/guardian.h"
#include "supervise/messages.h"
#include "supervise/spawn.h"

#define PREFIX "roost-agent-"

enum { STALE_SECONDS = 10 }; /* a young one may be about to be locked */

/* What is open on the way. */
struct agent_start {
    const struct roost_agent_options *options;
    struct diag *diag;
    char folder[RUNTIME_PATH_MAX];
    int ends[2], dir, runtime, self, null;
};

/* Removes folders of agents whose guardian was killed with everything else: nothing holds their lock. */
static void tidy(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
            time(NULL) - info.st_ctime > STALE_SECONDS && flock(fd, LOCK_EX | LOCK_NB) == 0)
            agent_dir_remove(fd);
        if (fd >= 0)
            close(fd);
    }
    closedir(dir);
}

static bool make_folder(struct agent_start *start)
{
    const struct roost_agent_options *options = start->options;
    tidy(options->folder ? options->folder : "/tmp");
    int len =
        snprintf(start->folder, sizeof start->folder, "%s/" PREFIX "%s-%d-XXXXXX",
                 options->folder ? options->folder : "/tmp", options->run_id, options->node_rank);
    if (len < (int)sizeof start->folder && mkdtemp(start->folder))
        start->dir = open(start->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    else
        start->folder[0] = '\0';
    if (start->dir >= 0) {
        (void)flock(start->dir, LOCK_EX | LOCK_NB); /* until guardian and supervisor are gone */
        return true;
    }
    int error = errno;
    diag_error(start->diag, ROOST_ERR_IO, NOWHERE, "cannot make a folder for logs in '%s': %s",
               options->folder ? options->folder : "/tmp", strerror(error));
    diag_hint(start->diag, "%s",
              cure_of_place(error, "set TMPDIR before Ray is started on the node").text);
    return false;
}

static bool find_runtime(struct agent_start *start)
{
    static const char *const none[] = {NULL};
    char path[RUNTIME_PATH_MAX];
    struct roost_error err = {.code = ROOST_ERR_IO,
                              .message = "the path of the runtime directory is too long"};
    if (private_dir_runtime(path, sizeof path, start->options->env ? start->options->env : none))
        start->runtime = private_dir_open(path, true, &err);
    if (start->runtime < 0)
        diag_again(start->diag, &err);
    return start->runtime >= 0;
}

static bool open_ends(struct agent_start *start)
{
    start->self = pidfd_open(getpid(), 0);
    if (start->self >= 0 && socket_pair_open(start->ends)) {
        start->null = spawn_null(start->diag);
        return start->null >= 0;
    }
    int error = errno;
    diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE,
               "cannot make the socket to the supervisor: %s", strerror(error));
    diag_hint(start->diag, "%s", cure_of_descriptor(error).text);
    return false;
}

static bool start_guardian(struct agent_start *start)
{
    const char *program = start->options->program ? start->options->program : ROOST_PROGRAM;
    char token[64], name[64];
    snprintf(token, sizeof token, "ROOST_RUN_ID=%.16s", start->options->run_id);
    snprintf(name, sizeof name, "%.16s.%d", start->options->run_id, start->options->node_rank);
    char *argv[] = {"roost", "--guardian", name, "cgroup", "agent", NULL};
    int handed[GUARDIAN_FD_COUNT] = {start->ends[1], start->dir, start->runtime, start->self,
                                     start->null};
    struct spawn spawn = {.paths = (const char *const[]){program, NULL},
                          .argv = argv,
                          .env = (char *const[]){token, NULL},
                          .fd = {start->null, start->null, start->null},
                          .handed = handed,
                          .handed_count = GUARDIAN_FD_COUNT,
                          .outlives_parent = true};
    struct spawned spawned = spawn_process(&spawn);
    if (spawned.failed != SPAWN_OK) {
        guardian_report_start(start->diag, program, &spawned,
                              "install the roost program beside the Python of the node");
        return false;
    }
    /* The started process ends at once: the guardian is its child. A caller that kills its own children
     * does not reach the guardian. */
    int status;
    while (waitpid(spawned.pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(spawned.pidfd);
    return true;
}

struct roost_agent_link *roost_agent_start(const struct roost_agent_options *options,
                                           struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct agent_start start = {.options = options,
                                .diag = &diag,
                                .ends = {-1, -1},
                                .dir = -1,
                                .runtime = -1,
                                .self = -1,
                                .null = -1};
    bool is_born =
        make_folder(&start) && find_runtime(&start) && open_ends(&start) && start_guardian(&start);
    int open_files[] = {start.ends[1], start.dir, start.runtime, start.self, start.null};
    for (size_t i = 0; i < sizeof open_files / sizeof *open_files; i++)
        if (open_files[i] >= 0)
            close(open_files[i]);
    struct roost_agent_link *link = is_born ? roost_agent_link_new(start.ends[0]) : NULL;
    if (is_born && !link)
        diag_nomem(&diag);
    if (!is_born && start.ends[0] >= 0)
        close(start.ends[0]);
    if (!is_born && start.folder[0])
        (void)rmdir(start.folder);
    return link;
}
