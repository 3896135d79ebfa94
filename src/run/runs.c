/* runs.c - reads the state directory: one entry for each run, a directory or a link to one elsewhere. */
#include "run/runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/private_dir.h"
#include "rpc/control_socket.h"
#include "run/run_dir.h"
#include "run/run_page.h"
#include "supervise/lost.h"
#include "supervise/sweep.h"

enum {
    PAGE_MAX = 1 << 20,
    SWEEP_MS = 1000,
    WAKE_MS = 5000,     /* for a guardian to end a run */
    STALE_SECONDS = 60, /* a younger folder without a page may be about to have one */
};

const char *run_state_word(enum run_state state)
{
    static const char *const words[] = {[RUN_STARTING] = "starting", [RUN_ALIVE] = "running",
                                        [RUN_DONE] = "done",         [RUN_FAILED] = "failed",
                                        [RUN_STOPPED] = "stopped",   [RUN_CRASHED] = "crashed"};
    return words[state];
}

/* --- one run --- */

static bool is_this_boot(const struct run_entry *entry)
{
    char boot[RUN_BOOT_MAX];
    return run_boot_id(boot) && strcmp(boot, entry->boot_id) == 0;
}

/* Ends what a crashed run may have left on this machine, but for its folder. */
static void end_leftovers(const struct run_list *list, const char *id, const char *cgroup)
{
    char name[CONTROL_NAME_MAX];
    (void)sweep_leftovers(id, cgroup, SWEEP_MS);
    snprintf(name, sizeof name, "%.*s.sock", RUN_ID_LEN, id);
    if (list->runtime_dir >= 0)
        control_remove(list->runtime_dir, name);
}

/* Removes what is left of a run that was killed while it started: it has no process, and nothing to show. */
static void remove_unstarted(const struct run_list *list, int state, int dir, const char *id)
{
    char path[RUN_PATH_MAX];
    if (!run_dir_clear_unstarted(dir))
        return;
    end_leftovers(list, id, "");
    ssize_t len = readlinkat(state, id, path, sizeof path - 1);
    if (len > 0) {
        path[len] = '\0';
        if (rmdir(path) == 0 || errno == ENOENT)
            (void)unlinkat(state, id, 0);
    } else {
        (void)unlinkat(state, id, AT_REMOVEDIR);
    }
}

bool runs_goes_on(int dir)
{
    struct run_end end = run_end_read(dir);
    return !end.is_known && run_dir_is_held(dir);
}

static void find_state(const struct run_list *list, int dir, struct run_entry *entry)
{
    int fd = runs_connect(list, entry);
    if (fd >= 0) {
        close(fd);
        entry->state = RUN_ALIVE;
        return;
    }
    struct run_end end = run_end_read(dir);
    run_end_put(&end, entry);
    if (end.is_known)
        return;
    /* Not to be reached is not to be dead: it may have another runtime directory, or another machine. */
    bool is_here = is_this_boot(entry), is_held = run_dir_is_held(dir);
    if (is_held && is_here &&
        sweep_wake_guardian(entry->id, entry->guardian, entry->supervisor, WAKE_MS))
        is_held = run_dir_is_held(dir); /* by its driver, if that lives */
    if (is_held) {
        entry->state = RUN_ALIVE;
    } else if (is_here) {
        end_leftovers(list, entry->id, entry->cgroup);
        lost_record(dir, LOST_END_CRASHED);
        end = run_end_read(dir);
        run_end_put(&end, entry);
    }
}

int runs_hold(const struct run_entry *entry)
{
    int dir = open(entry->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || flock(dir, LOCK_SH | LOCK_NB) == 0)
        return dir;
    close(dir);
    return -1;
}

enum run_state runs_look_again(const struct run_list *list, const struct run_entry *entry)
{
    struct run_entry now = *entry;
    int dir = open(entry->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return entry->state;
    find_state(list, dir, &now);
    close(dir);
    return now.state;
}

/* Whether DIR/<id> is what roost makes: a folder, or a link to the folder of that name elsewhere. A link or
 * a copy of another name is the user's own, and the run behind it is not a second one. */
static bool is_own_name(int state, const char *id)
{
    char path[RUN_PATH_MAX];
    if (!is_run_id(id))
        return false;
    ssize_t len = readlinkat(state, id, path, sizeof path - 1);
    if (len < 0)
        return true;
    path[len] = '\0';
    const char *last = strrchr(path, '/');
    return path[0] == '/' && strcmp(last + 1, id) == 0;
}

/* Reads DIR/<id>; false when it is not a run of this user. */
static bool read_run(struct run_list *list, int state, const char *state_path, const char *id,
                     struct run_entry *out)
{
    char path[RUN_PATH_MAX];
    struct stat info;
    int dir = openat(state, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return false;
    bool is_ours = fstat(dir, &info) == 0 && info.st_uid == geteuid();
    int fd = is_ours ? openat(dir, RUN_PAGE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    bool is_stale =
        is_ours && fd < 0 && errno == ENOENT && time(NULL) - info.st_mtim.tv_sec > STALE_SECONDS;
    char *page = fd >= 0 ? malloc(PAGE_MAX) : NULL;
    ssize_t len = page ? file_read_at(fd, page, PAGE_MAX, 0) : -1;
    /* An empty page belongs to a run that is still starting, or did not start. */
    bool is_starting = len == 0 && run_dir_is_held(dir);
    /* Its guardian may have been stopped, and the others killed: then it only has to go on. */
    if (is_starting && sweep_wake_guardian(id, sweep_find_stopped(id), 0, WAKE_MS))
        is_starting = run_dir_is_held(dir);
    if ((len == 0 || is_stale) && !is_starting && !run_dir_is_held(dir))
        remove_unstarted(list, state, dir, id);
    if (len > 0 || is_starting) {
        ssize_t link = readlinkat(state, id, path, sizeof path - 1);
        if (link > 0)
            path[link] = '\0';
        else if (snprintf(path, sizeof path, "%s/%s", state_path, id) >= (int)sizeof path)
            path[0] = '\0'; /* cannot be: it has been opened */
        *out = run_page_empty(list, id, path);
        if (is_starting && fstat(fd, &info) == 0) {
            out->started = info.st_mtim.tv_sec;
            out->started_ns = (int32_t)info.st_mtim.tv_nsec;
        }
        if (!is_starting) {
            run_page_read(list, (struct strview){page, (size_t)len}, out);
            if (!out->is_copy)
                find_state(list, dir, out);
        }
    }
    free(page);
    if (fd >= 0)
        close(fd);
    close(dir);
    return (len > 0 && !out->is_copy) || is_starting;
}

/* --- all of them --- */

static int newest_first(const void *a, const void *b)
{
    const struct run_entry *left = a, *right = b;
    if (left->started != right->started)
        return left->started < right->started ? 1 : -1;
    if (left->started_ns != right->started_ns)
        return left->started_ns < right->started_ns ? 1 : -1;
    return strcmp(left->id, right->id);
}

static bool read_all(struct run_list *list, int state, const char *path, struct diag *diag)
{
    DIR *dir = fdopendir(state);
    if (!dir) {
        close(state);
        diag_nomem(diag);
        return false;
    }
    size_t count = 0;
    while (readdir(dir))
        count++;
    rewinddir(dir);
    list->entries = arena_array(&list->arena, struct run_entry, count + 1);
    for (struct dirent *it; list->entries && (it = readdir(dir));)
        if (is_own_name(state, it->d_name) && (size_t)list->count < count &&
            read_run(list, state, path, it->d_name, &list->entries[list->count]))
            list->count++;
    closedir(dir);
    if (!list->entries) {
        diag_nomem(diag);
        return false;
    }
    qsort(list->entries, (size_t)list->count, sizeof *list->entries, newest_first);
    return true;
}

bool runs_list(struct run_list *list, const char *const *env, struct diag *diag)
{
    char path[RUN_PATH_MAX];
    struct roost_error err;
    *list = (struct run_list){.arena = ARENA_INIT, .runtime_dir = -1};
    if (private_dir_runtime(path, sizeof path, env))
        list->runtime_dir = private_dir_open(path, false, &list->unreachable);
    if (!private_dir_state(path, sizeof path, env) || access(path, F_OK) != 0)
        return true; /* no place for runs: there are none */
    int state = private_dir_open(path, false, &err);
    if (state >= 0)
        return read_all(list, state, path, diag);
    diag_again(diag, &err);
    return false;
}

void runs_release(struct run_list *list)
{
    if (list->runtime_dir >= 0)
        close(list->runtime_dir);
    arena_release(&list->arena);
}

/* The newest one that is alive, NULL without any. */
static const struct run_entry *find_living(const struct run_list *list)
{
    for (int32_t i = 0; i < list->count; i++)
        if (list->entries[i].state <= RUN_ALIVE)
            return &list->entries[i];
    return NULL;
}

/* The run, unless it can be asked nothing yet: then not the one before it. */
static const struct run_entry *if_begun(const struct run_entry *entry, struct diag *diag)
{
    if (entry->state != RUN_STARTING)
        return entry;
    diag_error(diag, ROOST_ERR_USAGE, (struct place){0}, "run %s is still starting", entry->id);
    diag_hint(diag, "wait until it runs, end it where it was started, or name another one; `roost "
                    "ps` lists them");
    return NULL;
}

const struct run_entry *runs_named(const struct run_list *list, const char *prefix,
                                   struct diag *diag)
{
    const struct run_entry *found = NULL;
    int32_t count = 0;
    for (int32_t i = 0; i < list->count; i++)
        if (strncmp(list->entries[i].id, prefix, strlen(prefix)) == 0) {
            found = found ? found : &list->entries[i];
            count++;
        }
    if (count == 1)
        return found;
    if (count == 0)
        diag_error(diag, ROOST_ERR_USAGE, (struct place){0}, "there is no run '%s'",
                   quote(sv_from(prefix)).text);
    else
        diag_error(diag, ROOST_ERR_USAGE, (struct place){0}, "%d runs start with '%s'", count,
                   quote(sv_from(prefix)).text);
    diag_hint(diag, count ? "write more of its id; `roost ps -a` lists them"
                          : "`roost ps -a` lists the runs there are");
    return NULL;
}

const struct run_entry *runs_find(const struct run_list *list, const char *prefix,
                                  struct diag *diag)
{
    const struct run_entry *found = prefix ? runs_named(list, prefix, diag) : find_living(list);
    if (!prefix && !found && list->count > 0)
        found = &list->entries[0];
    if (found)
        return if_begun(found, diag);
    if (!prefix) {
        diag_error(diag, ROOST_ERR_USAGE, (struct place){0}, "there are no runs yet");
        diag_hint(diag, "`roost ps -a` lists the runs there are");
    }
    return NULL;
}
