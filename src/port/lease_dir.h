/* lease_dir.h - all leases of one user on this machine: a directory with a lock file and one file per
 * holder. The process that has the lock may read the files, add one, and remove those of dead holders. */
#ifndef PORT_LEASE_DIR_H
#define PORT_LEASE_DIR_H

#include "base/diag.h"
#include "base/text.h"
#include "port/lease_file.h"

struct lease_dir {
    int dir;  /* the checked directory */
    int lock; /* the lock file, locked; -1 = not */
};

#define LEASE_DIR_INIT {-1, -1}

/* A lease file that is ours and locked. */
struct lease_entry {
    int fd;      /* -1 = none */
    int32_t pid; /* of the holder; a fork has a copy of this struct but is not the holder */
    char name[40];
};

/* The ports that living holders have. */
struct lease_books {
    uint16_t holder_of_port[PORT_COUNT]; /* 0 = nobody, else 1 + index into holders */
    struct lease_holder *holders;
    int32_t holder_count;
};

/* Opens the directory and takes the lock, waiting `wait_ms` at most. */
enum roost_code lease_dir_lock(struct lease_dir *dir, const char *path, const char *owner,
                               int32_t wait_ms, struct diag *diag);

/* Reads the leases of living holders and removes the files of dead ones; needs the lock. */
enum roost_code lease_dir_read(struct lease_dir *dir, struct lease_books *out, struct diag *diag);
void lease_books_free(struct lease_books *books);

/* Writes this process's own file and locks it until this process ends; needs the lock. */
enum roost_code lease_dir_add(struct lease_dir *dir, struct text *content, struct lease_entry *out,
                              struct diag *diag);

/* Removes that file; does not need the lock. A fork of the holder only closes its descriptor. */
void lease_dir_remove(struct lease_dir *dir, struct lease_entry *entry);

/* Releases the lock. */
void lease_dir_unlock(struct lease_dir *dir);
void lease_dir_close(struct lease_dir *dir);

#endif
