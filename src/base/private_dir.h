/* private_dir.h - directories and files that only this user can reach.
 *
 * Sockets, leases, logs and records of a run live in directories of mode 0700. Another user must not be
 * able to look into them, to put something there first, or to swap a name on the way to them. So a
 * path is walked one name at a time: every directory on the way is opened, and the checks use the opened
 * descriptor. Nothing here allocates. */
#ifndef BASE_PRIVATE_DIR_H
#define BASE_PRIVATE_DIR_H

#include <limits.h>
#include <roost/error.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens the directory `path` (O_RDONLY, close-on-exec). With `is_made` it and its missing parents are
 * made, each of mode 0700. Refused, with the owner or mode that was found and the cure:
 *   - the directory itself: a symbolic link, another owner, any permission for group or others
 *   - a parent: an owner other than this user and root, or writable by group or others and not sticky;
 *     the group of this user's own number may write
 *   - a symbolic link among the parents that belongs to neither this user nor root; other links are
 *     followed and the directories behind them are checked too
 * A relative path starts at the working directory, whose parents are checked as well. -1 after filling
 * `err`: ROOST_ERR_ACCESS for a refusal, ROOST_ERR_IO when a system call fails. */
int private_dir_open(const char *path, bool is_made, struct roost_error *err);

/* The same for one directory `name` (no '/', not "." or "..") inside the checked directory `dir`. */
int private_dir_open_in(int dir, const char *name, bool is_made, struct roost_error *err);

/* Creates the file `name` in the checked directory `dir`: mode 0600, for appending, close-on-exec. If
 * anything has that name already, even a dangling link, that is an error. -1 after filling `err`. */
int private_file_create(int dir, const char *name, struct roost_error *err);

/* Opens a file with `flags` (O_RDONLY, O_RDWR, O_APPEND ...; O_CREAT creates a missing file with mode
 * 0600). It must be a regular file of this user with no other name (hard link) and no permission for group
 * and others. -1 after filling `err`. If the file does not exist, or was removed meanwhile, *out_is_missing
 * (may be NULL) is set as well. */
int private_file_open(int dir, const char *name, int flags, bool *out_is_missing,
                      struct roost_error *err);

/* The directory of sockets and leases: $XDG_RUNTIME_DIR/roost, else /tmp/roost-<uid>. `env` is a
 * NULL-terminated list of "NAME=value". A value that is not an absolute path counts as missing. False, and
 * `out` untouched, when the path does not fit into `size`. */
bool private_dir_runtime(char *out, size_t size, const char *const *env);

/* The directory of run directories: $XDG_STATE_HOME/roost/runs, else $HOME/.local/state/roost/runs. False,
 * and `out` untouched, when neither variable is set or the path does not fit. */
bool private_dir_state(char *out, size_t size, const char *const *env);

/* A path for messages. */
struct shown_path {
    char text[PATH_MAX];
};

/* "<path of dir>/<name>" as the kernel knows it now, for messages only; `name` may be NULL. */
struct shown_path shown_in(int dir, const char *name);

/* --- shared by private_dir.c and private_file.c --- */

struct diag;

/* Whether `name` stays in its directory. False after reporting a name that does not. */
bool private_name_check(struct diag *diag, const char *name);

/* Reports "cannot <step> '<path>': <reason of errno>", with a hint. */
void private_say_errno(struct diag *diag, int error, const char *step, const char *path);

#endif
