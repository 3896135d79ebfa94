/* part_start.c - a guardian on a node, for whoever carries messages to it. The folder of the part is its
 * own, and the guardian removes it in the end. */
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

#include "base/cure.h"
#include "base/diag.h"
#include "base/private_dir.h"
#include "rpc/channel.h"
#include "supervise/guardian_say.h"
#include "supervise/messages.h"
#include "supervise/part_dir.h"
#include "supervise/spawn.h"

#define PREFIX "roost-part-"

enum { STALE_SECONDS = 10 }; /* a young one may be about to be locked */

/* What is open on the way. */
struct part_birth {
    const struct roost_part_options *options;
    struct diag *diag;
    char folder[RUNTIME_PATH_MAX];
    int ends[2], dir, runtime, self, null;
};

/* Folders of parts whose guardian was killed with everything else: nobody has them locked. */
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
            part_dir_remove(fd);
        if (fd >= 0)
            close(fd);
    }
    closedir(dir);
}

static bool make_folder(struct part_birth *birth)
{
    const struct roost_part_options *options = birth->options;
    tidy(options->folder ? options->folder : "/tmp");
    int len =
        snprintf(birth->folder, sizeof birth->folder, "%s/" PREFIX "%s-%d-XXXXXX",
                 options->folder ? options->folder : "/tmp", options->run_id, options->node_rank);
    if (len < (int)sizeof birth->folder && mkdtemp(birth->folder))
        birth->dir = open(birth->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    else
        birth->folder[0] = '\0';
    if (birth->dir >= 0) {
        (void)flock(birth->dir, LOCK_EX | LOCK_NB); /* until guardian and supervisor are gone */
        return true;
    }
    int error = errno;
    diag_error(birth->diag, ROOST_ERR_IO, NOWHERE, "cannot make a folder for logs in '%s': %s",
               options->folder ? options->folder : "/tmp", strerror(error));
    diag_hint(birth->diag, "%s",
              cure_of_place(error, "set TMPDIR before Ray is started on the node").text);
    return false;
}

static bool find_runtime(struct part_birth *birth)
{
    static const char *const none[] = {NULL};
    char path[RUNTIME_PATH_MAX];
    struct roost_error err = {.code = ROOST_ERR_IO,
                              .message = "the path of the runtime directory is too long"};
    if (private_dir_runtime(path, sizeof path, birth->options->env ? birth->options->env : none))
        birth->runtime = private_dir_open(path, true, &err);
    if (birth->runtime < 0)
        diag_again(birth->diag, &err);
    return birth->runtime >= 0;
}

static bool open_ends(struct part_birth *birth)
{
    birth->self = pidfd_open(getpid(), 0);
    if (birth->self >= 0 && channel_pair(birth->ends)) {
        birth->null = spawn_null(birth->diag);
        return birth->null >= 0;
    }
    int error = errno;
    diag_error(birth->diag, ROOST_ERR_ENGINE, NOWHERE,
               "cannot make the channel to the supervisor: %s", strerror(error));
    diag_hint(birth->diag, "%s", cure_of_descriptor(error).text);
    return false;
}

static bool start_guardian(struct part_birth *birth)
{
    const char *program = birth->options->program ? birth->options->program : ROOST_PROGRAM;
    char token[64], name[64];
    snprintf(token, sizeof token, "ROOST_RUN_ID=%.16s", birth->options->run_id);
    snprintf(name, sizeof name, "%.16s.%d", birth->options->run_id, birth->options->node_rank);
    char *argv[] = {"roost", "--guardian", name, "cgroup", "part", NULL};
    int handed[GUARDIAN_FD_COUNT] = {birth->ends[1], birth->dir, birth->runtime, birth->self,
                                     birth->null};
    struct spawn spawn = {.paths = (const char *const[]){program, NULL},
                          .argv = argv,
                          .env = (char *const[]){token, NULL},
                          .fd = {birth->null, birth->null, birth->null},
                          .handed = handed,
                          .handed_count = GUARDIAN_FD_COUNT,
                          .outlives_parent = true};
    struct spawned spawned = spawn_process(&spawn);
    if (spawned.failed != SPAWN_OK) {
        guardian_say(birth->diag, program, &spawned,
                     "install the roost program beside the Python of the node");
        return false;
    }
    /* What was started is gone at once: the guardian is its child. Who ends its own children does not
     * reach it. */
    int status;
    while (waitpid(spawned.pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(spawned.pidfd);
    return true;
}

struct roost_carrier *roost_part_start(const struct roost_part_options *options,
                                       struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct part_birth birth = {.options = options,
                               .diag = &diag,
                               .ends = {-1, -1},
                               .dir = -1,
                               .runtime = -1,
                               .self = -1,
                               .null = -1};
    bool is_born =
        make_folder(&birth) && find_runtime(&birth) && open_ends(&birth) && start_guardian(&birth);
    int open_files[] = {birth.ends[1], birth.dir, birth.runtime, birth.self, birth.null};
    for (size_t i = 0; i < sizeof open_files / sizeof *open_files; i++)
        if (open_files[i] >= 0)
            close(open_files[i]);
    struct roost_carrier *carrier = is_born ? roost_carrier_new(birth.ends[0]) : NULL;
    if (is_born && !carrier)
        diag_nomem(&diag);
    if (!is_born && birth.ends[0] >= 0)
        close(birth.ends[0]);
    if (!is_born && birth.folder[0])
        (void)rmdir(birth.folder);
    return carrier;
}
