/* cgroup.c - control groups of runs, for the guardian, the supervisor and the driver. Finds the version
 * 2 hierarchy in the list of mounts, never by a fixed path: on many machines it is mounted beside
 * version 1 under another name. */
#include "supervise/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "supervise/clock.h"

enum {
    LEAVE_MS = 10000, /* killed processes go when they get a turn */
    STALE_SECONDS = 60,
    INNER_DEPTH = 16,
    INSIST_MS = 3000,       /* for a supervisor to begin ending a run */
    INSIST_AGAIN_MS = 1000, /* for a group that was thawed */
};

/* Where cgroup2 is mounted, from /proc/self/mountinfo: the fifth field of its line. */
static bool find_mount(char *out, size_t size)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    while (mounts && !is_found && getline(&line, &room, mounts) > 0) {
        if (!strstr(line, " - cgroup2 "))
            continue;
        char *save = NULL, *field = strtok_r(line, " ", &save);
        for (int i = 0; field && i < 4; i++)
            field = strtok_r(NULL, " ", &save);
        /* The list escapes blanks in a mount point; no system mounts the hierarchy at such a path. */
        if (field && !strchr(field, '\\') && strlen(field) < size) {
            memcpy(out, field, strlen(field) + 1);
            is_found = true;
        }
    }
    free(line);
    if (mounts)
        fclose(mounts);
    return is_found;
}

/* The group this process is in: the line "0::/path" of /proc/self/cgroup. */
static bool find_own(char *out, size_t size)
{
    FILE *groups = fopen("/proc/self/cgroup", "re");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    while (groups && !is_found && getline(&line, &room, groups) > 0) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        is_found = strlen(line + 3) < size && !strstr(line, "/..");
        if (is_found)
            memcpy(out, line + 3, strlen(line + 3) + 1);
    }
    free(line);
    if (groups)
        fclose(groups);
    return is_found;
}

static bool write_file(const struct cgroup *cgroup, const char *name, const char *text)
{
    int fd = openat(cgroup->dir, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t written = write(fd, text, strlen(text));
    close(fd);
    return written == (ssize_t)strlen(text);
}

bool cgroup_open(struct cgroup *cgroup, const char *path)
{
    *cgroup = (struct cgroup){.dir = -1};
    if (strlen(path) >= sizeof cgroup->path)
        return false;
    memcpy(cgroup->path, path, strlen(path) + 1);
    cgroup->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return cgroup->dir >= 0;
}

/* The group this process is in, as a directory. */
static bool find_parent(char *out, size_t size)
{
    char mount[CGROUP_PATH_MAX / 4], own[CGROUP_PATH_MAX / 4];
    if (!find_mount(mount, sizeof mount) || !find_own(own, sizeof own))
        return false;
    snprintf(out, size, "%s%s", mount, strcmp(own, "/") == 0 ? "" : own);
    return true;
}

/* Removes empty groups of runs whose processes were all killed in one instant, so that none could
 * remove the group. A process may be about to enter a group that is young. */
static void remove_stale(const char *parent)
{
    DIR *dir = opendir(parent);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        if (strncmp(entry->d_name, "roost-", 6) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            info.st_uid == geteuid() && time(NULL) - info.st_ctime > STALE_SECONDS)
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

bool cgroup_find(struct cgroup *cgroup, const char *run_id)
{
    char parent[CGROUP_PATH_MAX / 2], path[CGROUP_PATH_MAX];
    *cgroup = (struct cgroup){.dir = -1};
    if (!find_parent(parent, sizeof parent))
        return false;
    snprintf(path, sizeof path, "%s/roost-%s", parent, run_id);
    return cgroup_open(cgroup, path);
}

bool cgroup_make(struct cgroup *cgroup, const char *run_id)
{
    char parent[CGROUP_PATH_MAX / 2], path[CGROUP_PATH_MAX];
    *cgroup = (struct cgroup){.dir = -1};
    if (!find_parent(parent, sizeof parent))
        return false;
    remove_stale(parent);
    snprintf(path, sizeof path, "%s/roost-%s", parent, run_id);
    if (mkdir(path, 0755) != 0)
        return false;
    if (cgroup_open(cgroup, path) && faccessat(cgroup->dir, "cgroup.kill", W_OK, 0) == 0 &&
        faccessat(cgroup->dir, "cgroup.procs", W_OK, 0) == 0)
        return true;
    (void)rmdir(path);
    if (cgroup->dir >= 0)
        close(cgroup->dir);
    cgroup->dir = -1;
    return false;
}

bool cgroup_join(const struct cgroup *cgroup)
{
    return cgroup->dir >= 0 && write_file(cgroup, "cgroup.procs", "0");
}

bool cgroup_leave(struct cgroup *cgroup)
{
    if (cgroup->dir < 0 || !write_file(cgroup, "../cgroup.procs", "0"))
        return false;
    return cgroup_remove(cgroup, LEAVE_MS);
}

void cgroup_kill(const struct cgroup *cgroup)
{
    if (cgroup->dir >= 0)
        (void)write_file(cgroup, "cgroup.kill", "1");
}

/* Groups inside that one, from the innermost on: of runs whose guardians were killed with everything else, and
 * whatever processes of this run made for themselves. */
static void remove_inner(int parent, int depth)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        int inner = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0 && depth > 0)
            remove_inner(inner, depth - 1);
        if (inner >= 0)
            close(inner);
        (void)unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

bool cgroup_remove(struct cgroup *cgroup, int64_t timeout_ms)
{
    if (cgroup->dir < 0)
        return true;
    int64_t deadline = clock_ms() + timeout_ms;
    bool is_gone;
    while (!(is_gone = rmdir(cgroup->path) == 0 || errno == ENOENT) && clock_ms() < deadline) {
        cgroup_kill(cgroup);
        clock_pause_ms(2);
        remove_inner(cgroup->dir, INNER_DEPTH);
    }
    close(cgroup->dir);
    cgroup->dir = -1;
    return is_gone;
}

/* --- agents --- */

static bool end_agents_in(const char *folder, const char *run_id, int64_t timeout_ms)
{
    char prefix[64];
    int len = snprintf(prefix, sizeof prefix, "roost-%s.", run_id);
    DIR *dir = opendir(folder);
    bool is_empty = true;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct cgroup group;
        char path[CGROUP_PATH_MAX];
        if (strncmp(entry->d_name, prefix, (size_t)len) != 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            !cgroup_open(&group, path))
            continue;
        cgroup_kill(&group);
        is_empty = cgroup_remove(&group, timeout_ms) && is_empty;
    }
    if (dir)
        closedir(dir);
    return is_empty;
}

bool cgroup_end_agents(const char *run_id, const char *path, int64_t timeout_ms)
{
    char own[CGROUP_PATH_MAX / 2], beside[CGROUP_PATH_MAX];
    snprintf(beside, sizeof beside, "%s", path);
    char *slash = strrchr(beside, '/');
    bool is_empty = true;
    if (slash) {
        *slash = '\0';
        is_empty = end_agents_in(beside, run_id, timeout_ms);
    }
    if (find_parent(own, sizeof own) && (!slash || strcmp(own, beside) != 0))
        is_empty = end_agents_in(own, run_id, timeout_ms) && is_empty;
    return is_empty;
}

/* --- frozen groups --- */

static bool is_frozen(const struct cgroup *cgroup)
{
    char text[128];
    int fd = openat(cgroup->dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return strstr(text, "frozen 1") != NULL;
}

bool cgroup_is_frozen(const char *path)
{
    struct cgroup cgroup;
    if (!path[0] || !cgroup_open(&cgroup, path))
        return false;
    bool is_so = is_frozen(&cgroup);
    close(cgroup.dir);
    return is_so;
}

int32_t cgroup_first(const char *path)
{
    struct cgroup cgroup;
    char text[32] = "";
    if (!path[0] || !cgroup_open(&cgroup, path))
        return -1;
    int fd = openat(cgroup.dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    close(cgroup.dir);
    return len > 0 ? (int32_t)strtol(text, NULL, 10) : -1;
}

int64_t cgroup_insist(struct insist *insist)
{
    struct cgroup cgroup;
    int64_t now = clock_ms();
    if (!insist->path[0])
        return -1;
    if (insist->due == 0)
        insist->due = now + INSIST_MS;
    if (now < insist->due)
        return insist->due - now;
    insist->due = now + INSIST_AGAIN_MS;
    if (!cgroup_open(&cgroup, insist->path))
        return -1; /* it is gone, and with it everything that was in it */
    if (is_frozen(&cgroup)) {
        if (insist->has_acted)
            cgroup_kill(&cgroup);
        else
            (void)write_file(&cgroup, "cgroup.freeze", "0");
        insist->has_acted = true;
    }
    close(cgroup.dir);
    return INSIST_AGAIN_MS;
}
