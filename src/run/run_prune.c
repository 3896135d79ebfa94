/* run_prune.c - removes ended runs, one after the other.
 *
 * Words: the state directory has an entry for each run, its directory or a link to it. A run to be removed is
 * first renamed there, to a name with a dot, which no command takes for a run. If a prune is killed after
 * that, the name stays, and the next prune finishes the work. The directory is locked meanwhile: the run's own
 * processes hold that lock as long as they live, readers share it, and only one of two prunes gets it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <roost/prune.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/private_dir.h"
#include "run/run_dir.h"
#include "run/run_page.h"
#include "run/run_remove.h"

/* In front of the id of a run that is being removed. */
static const char gone_prefix[] = ".removed-";

enum { GONE_MAX = sizeof gone_prefix + 64 };

struct prune {
    const struct roost_prune_options *options;
    int state; /* the state directory */
    struct run_list list;
    int64_t now, kept_count, kept_size;
};

/* --- one run --- */

/* Opens the directory behind a name of the state directory; -1 when it is not one of this user. */
static int open_run(int state, const char *name)
{
    struct stat info;
    int dir = openat(state, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && (fstat(dir, &info) != 0 || info.st_uid != geteuid())) {
        close(dir);
        errno = EPERM;
        return -1;
    }
    return dir;
}

/* Whether the name still leads to the directory that was opened. */
static bool is_still(int state, const char *name, int dir)
{
    struct stat now, then;
    return fstatat(state, name, &now, 0) == 0 && fstat(dir, &then) == 0 &&
           now.st_ino == then.st_ino && now.st_dev == then.st_dev;
}

/* Removes the emptied directory behind `gone`, and the name. */
static bool remove_emptied(int state, const char *gone)
{
    char path[RUN_PATH_MAX];
    ssize_t len = readlinkat(state, gone, path, sizeof path - 1);
    if (len < 0)
        return unlinkat(state, gone, AT_REMOVEDIR) == 0 || errno == ENOENT;
    path[len] = '\0';
    if (rmdir(path) != 0 && errno != ENOENT)
        return false;
    return unlinkat(state, gone, 0) == 0 || errno == ENOENT;
}

/* Removes what is behind `gone`, whose directory is locked. */
static enum roost_prune_verdict remove_gone(int state, const char *gone, int dir,
                                            struct run_contents *contents)
{
    if (run_empty(dir, contents) && remove_emptied(state, gone))
        return ROOST_PRUNE_REMOVED;
    if (contents->foreign[0])
        return ROOST_PRUNE_FOREIGN;
    if (!contents->failed[0])
        snprintf(contents->failed, sizeof contents->failed, "cannot remove its folder: %s",
                 strerrordesc_np(errno));
    return ROOST_PRUNE_FAILED;
}

static enum roost_prune_verdict remove_run(struct prune *prune, const struct run_entry *entry,
                                           int dir, struct run_contents *contents)
{
    char gone[GONE_MAX];
    run_measure(dir, contents);
    if (contents->foreign[0])
        return ROOST_PRUNE_FOREIGN;
    if (contents->failed[0])
        return ROOST_PRUNE_FAILED;
    if (!prune->options->is_real)
        return ROOST_PRUNE_REMOVED;
    int64_t bytes = contents->bytes;
    snprintf(gone, sizeof gone, "%s%.*s", gone_prefix, RUN_ID_LEN, entry->id);
    if (renameat(prune->state, entry->id, prune->state, gone) != 0) {
        snprintf(contents->failed, sizeof contents->failed, "cannot rename it: %s",
                 strerrordesc_np(errno));
        return ROOST_PRUNE_FAILED;
    }
    enum roost_prune_verdict verdict = remove_gone(prune->state, gone, dir, contents);
    contents->bytes = bytes;
    return verdict;
}

static void report(const struct prune *prune, struct roost_pruned *run,
                   const struct run_contents *contents, enum roost_prune_verdict verdict)
{
    run->size = contents->bytes;
    run->verdict = verdict;
    run->what = verdict == ROOST_PRUNE_FOREIGN ? contents->foreign : contents->failed;
    if (prune->options->report)
        prune->options->report(prune->options->ctx, run);
}

static void prune_run(struct prune *prune, const struct run_entry *entry)
{
    struct run_contents contents = {0};
    struct roost_pruned run = {.run = entry->id,
                               .state = run_state_word(entry->state),
                               .config = entry->config[0] ? entry->config : entry->components,
                               .dir = entry->path,
                               .started = entry->started,
                               .ended = entry->ended};
    int dir = open_run(prune->state, entry->id);
    if (dir < 0)
        return; /* another prune was faster */
    if (flock(dir, LOCK_EX | LOCK_NB) != 0) {
        if (is_still(prune->state, entry->id, dir))
            report(prune, &run, &contents, ROOST_PRUNE_USED);
    } else if (is_still(prune->state, entry->id, dir) && run_end_read(dir).is_known) {
        enum roost_prune_verdict verdict = remove_run(prune, entry, dir, &contents);
        report(prune, &run, &contents, verdict);
    }
    close(dir);
}

/* --- which --- */

/* Whether the directory of a run is in the folder that is asked for. */
static bool is_there(const struct prune *prune, int dir)
{
    struct stat wanted, above;
    const char *path = prune->options->dir;
    return !path || (stat(path, &wanted) == 0 && fstatat(dir, "..", &above, 0) == 0 &&
                     wanted.st_ino == above.st_ino && wanted.st_dev == above.st_dev);
}

/* Whether a limit does not allow the run. Called for every ended run, the newest first. */
static bool is_over(struct prune *prune, const struct run_entry *entry, int dir)
{
    const struct roost_prune_limits *limits = &prune->options->limits;
    if (!limits->has_age && !limits->has_count && !limits->has_size)
        return true;
    bool is_over = limits->has_age &&
                   (entry->ended ? entry->ended : entry->started) < prune->now - limits->age;
    is_over = (limits->has_count && prune->kept_count >= limits->count) || is_over;
    prune->kept_count++;
    if (limits->has_size) {
        struct run_contents contents;
        run_measure(dir, &contents);
        if (prune->kept_size <= limits->size)
            prune->kept_size += contents.bytes; /* once over, over for all older ones */
        is_over = prune->kept_size > limits->size || is_over;
    }
    return is_over;
}

static void prune_runs(struct prune *prune)
{
    for (int32_t i = 0; i < prune->list.count; i++) {
        const struct run_entry *entry = &prune->list.entries[i];
        int dir = entry->has_end ? open_run(prune->state, entry->id) : -1;
        if (dir < 0)
            continue;
        bool is_wanted = is_there(prune, dir) && is_over(prune, entry, dir);
        close(dir);
        if (is_wanted)
            prune_run(prune, entry);
    }
}

/* --- what an earlier prune left --- */

static void finish(struct prune *prune, const char *gone)
{
    struct run_contents contents = {0};
    struct shown_path path;
    struct roost_pruned run = {
        .run = gone + strlen(gone_prefix), .state = "removed", .config = "", .dir = path.text};
    int dir = open_run(prune->state, gone);
    if (dir < 0) {
        if (errno == ENOENT && prune->options->is_real) /* only the link is left */
            (void)unlinkat(prune->state, gone, 0);
        return;
    }
    path = shown_in(dir, NULL);
    if (is_there(prune, dir) && flock(dir, LOCK_EX | LOCK_NB) == 0 &&
        is_still(prune->state, gone, dir)) {
        enum roost_prune_verdict verdict = ROOST_PRUNE_REMOVED;
        run_measure(dir, &contents);
        int64_t bytes = contents.bytes;
        if (prune->options->is_real)
            verdict = remove_gone(prune->state, gone, dir, &contents);
        contents.bytes = bytes;
        report(prune, &run, &contents, verdict);
    }
    close(dir);
}

static void finish_all(struct prune *prune)
{
    int copy = openat(prune->state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    for (struct dirent *it; dir && (it = readdir(dir));)
        if (strncmp(it->d_name, gone_prefix, strlen(gone_prefix)) == 0)
            finish(prune, it->d_name);
    if (dir)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
}

enum roost_code roost_prune(const struct roost_prune_options *options, struct roost_error *err)
{
    static const char *const no_env[] = {NULL};
    const char *const *env = options->env ? options->env : no_env;
    struct diag diag = diag_start(NULL, err);
    struct roost_error fault;
    char path[RUN_PATH_MAX];
    struct prune prune = {.options = options, .state = -1, .now = (int64_t)time(NULL)};
    if (!private_dir_state(path, sizeof path, env) || access(path, F_OK) != 0)
        return ROOST_OK; /* no place for runs: there are none */
    prune.state = private_dir_open(path, false, &fault);
    if (prune.state < 0)
        return diag_again(&diag, &fault);
    finish_all(&prune);
    bool is_listed = runs_list(&prune.list, env, &diag);
    if (is_listed)
        prune_runs(&prune);
    runs_release(&prune.list);
    close(prune.state);
    return is_listed ? ROOST_OK : diag.first;
}
