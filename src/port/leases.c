/* leases.c - the leases of one run: all of them or none.
 *
 * The order matters. Descriptors are counted first, because a run that cannot hold its ports should not
 * touch the lease directory. Ports are bound and recorded under one lock; other processes look only after
 * that. The object owns its sockets and its file in the lease directory, and releases both at the end. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <roost/port.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/private_dir.h"
#include "port/lease_search.h"
#include "port/port_socket.h"

enum {
    WAIT_MS = 10000,
    OWN_DESCRIPTORS = 8, /* directory, its listing, lock, lease file, the sockets being tried */
};

struct block {
    int32_t first, count;
    bool is_handed;
    int *fds; /* [count], in the leases' own row */
};

struct roost_leases {
    struct lease_dir dir;
    struct lease_entry entry;
    char owner[LEASE_OWNER_MAX];
    struct block *blocks;
    size_t block_count;
    int *fds;
    int32_t port_count;
};

/* --- before anything is touched --- */

static bool check_options(const struct roost_port_options *options, struct diag *diag)
{
    if (options->base < 0 || options->base > PORT_MAX) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "base port %d is not a port", options->base);
        diag_hint(diag, "give one from 1024 to %d, or 0 for %d", PORT_MAX, PORT_BASE);
    } else if (options->owner && !is_name(sv_from(options->owner))) {
        diag_error(diag, ROOST_ERR_NAME, NOWHERE, "'%s' cannot be the owner of port leases",
                   quote(sv_from(options->owner)).text);
        diag_hint(diag, "a name has 1 to 63 letters, digits, '_', '.' or '-'");
    } else {
        return true;
    }
    return false;
}

static bool count_ports(const struct roost_port_want *wants, size_t want_count, int32_t *out_total,
                        struct diag *diag)
{
    int64_t total = 0;
    for (size_t i = 0; i < want_count; i++) {
        if (wants[i].count < 1) {
            diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "want %zu asks for %d ports", i,
                       wants[i].count);
            diag_hint(diag, "ask for at least 1");
            return false;
        }
        total += wants[i].count;
        if (total > PORT_MAX) {
            diag_error(diag, ROOST_ERR_LEASE, NOWHERE,
                       "more than %d ports are asked for, but a machine has only as many",
                       PORT_MAX);
            diag_hint(diag, "ask for fewer ports");
            return false;
        }
    }
    *out_total = (int32_t)total;
    return true;
}

/* Open descriptors of this process; 0 where nobody tells. */
static int64_t count_descriptors(void)
{
    DIR *entries = opendir("/proc/self/fd");
    if (!entries)
        return 0;
    int64_t count = -1; /* the listing itself */
    for (struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

static bool check_descriptors(int32_t ports, struct diag *diag)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    int64_t open_now = count_descriptors(), needed = open_now + ports + OWN_DESCRIPTORS;
    if ((rlim_t)needed <= limit.rlim_cur)
        return true;
    diag_error(diag, ROOST_ERR_LEASE, NOWHERE,
               "holding %d ports needs %lld open files, but the limit is %llu and %lld are open "
               "already",
               ports, (long long)needed - open_now, (unsigned long long)limit.rlim_cur,
               (long long)open_now);
    diag_hint(diag, "raise the limit: ulimit -n %lld", (long long)needed);
    return false;
}

/* --- the object --- */

static struct roost_leases *leases_alloc(const struct roost_port_options *options,
                                         const struct roost_port_want *wants, size_t want_count,
                                         int32_t total)
{
    struct roost_leases *leases = calloc(1, sizeof *leases);
    if (!leases)
        return NULL;
    leases->dir = (struct lease_dir)LEASE_DIR_INIT;
    leases->entry.fd = -1;
    leases->blocks = calloc(want_count ? want_count : 1, sizeof *leases->blocks);
    leases->fds = calloc((size_t)total + 1, sizeof *leases->fds);
    if (!leases->blocks || !leases->fds) {
        roost_leases_free(leases);
        return NULL;
    }
    leases->block_count = want_count;
    leases->port_count = total;
    for (int32_t i = 0; i < total; i++)
        leases->fds[i] = -1;
    int *next = leases->fds;
    for (size_t i = 0; i < want_count; i++) {
        leases->blocks[i] = (struct block){-1, wants[i].count, wants[i].is_handed, next};
        next += wants[i].count;
    }
    if (options->owner)
        memcpy(leases->owner, options->owner, strlen(options->owner) + 1);
    return leases;
}

/* Binds every block and writes them down; the caller has the lock. */
static enum roost_code take_blocks(struct roost_leases *leases, struct lease_search *search,
                                   struct diag *diag)
{
    struct text content = TEXT_INIT;
    struct lease_holder self = {.pid = (int32_t)getpid()};
    memcpy(self.owner, leases->owner, sizeof self.owner);
    lease_file_start(&content, &self);
    enum roost_code code = ROOST_OK;
    for (size_t i = 0; i < leases->block_count && code == ROOST_OK; i++) {
        struct block *block = &leases->blocks[i];
        code = lease_search_take(search, block->count, block->is_handed, block->fds, &block->first,
                                 diag);
        lease_file_block(&content, block->first, block->count);
    }
    lease_file_end(&content);
    if (code == ROOST_OK)
        code = lease_dir_add(&leases->dir, &content, &leases->entry, diag);
    text_release(&content);
    return code;
}

/* In the directory of the options, else in that of all runs of this user on this machine. */
static enum roost_code lock_books(struct roost_leases *leases,
                                  const struct roost_port_options *options, struct diag *diag)
{
    static const char *const no_env[] = {NULL};
    char shared[PATH_MAX];
    const char *dir = options->dir;
    if (!dir) {
        if (!private_dir_runtime(shared, sizeof shared, options->env ? options->env : no_env)) {
            diag_error(diag, ROOST_ERR_IO, NOWHERE,
                       "the path of the runtime directory is too long");
            diag_hint(diag, "set XDG_RUNTIME_DIR to a shorter path");
            return ROOST_ERR_IO;
        }
        dir = shared;
    }
    return lease_dir_lock(&leases->dir, dir, options->owner,
                          options->wait_ms > 0 ? options->wait_ms : WAIT_MS, diag);
}

static enum roost_code allocate(struct roost_leases *leases,
                                const struct roost_port_options *options, struct diag *diag)
{
    struct lease_books *books = calloc(1, sizeof *books);
    struct lease_search *search = calloc(1, sizeof *search);
    enum roost_code code = ROOST_ERR_MEMORY;
    if (!books || !search) {
        diag_nomem(diag);
    } else {
        port_map_read(&search->map, options->proc ? options->proc : "/proc");
        search->books = books;
        search->base = options->base ? options->base : PORT_BASE;
        search->wanted_total = leases->port_count;
        code = lock_books(leases, options, diag);
    }
    if (code == ROOST_OK)
        code = lease_dir_read(&leases->dir, books, diag);
    if (code == ROOST_OK)
        code = take_blocks(leases, search, diag);
    lease_dir_unlock(&leases->dir);
    free(search);
    lease_books_free(books);
    return code;
}

struct roost_leases *roost_leases_new(const struct roost_port_options *options,
                                      const struct roost_port_want *wants, size_t want_count,
                                      struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    int32_t total;
    if (!check_options(options, &diag) || !count_ports(wants, want_count, &total, &diag) ||
        !check_descriptors(total, &diag))
        return NULL;
    struct roost_leases *leases = leases_alloc(options, wants, want_count, total);
    if (!leases) {
        diag_nomem(&diag);
        return NULL;
    }
    if (want_count == 0 || allocate(leases, options, &diag) == ROOST_OK)
        return leases;
    roost_leases_free(leases);
    return NULL;
}

int32_t roost_leases_port(const struct roost_leases *leases, size_t want)
{
    return want < leases->block_count ? leases->blocks[want].first : -1;
}

int roost_leases_fd(const struct roost_leases *leases, size_t want, int32_t i)
{
    if (want >= leases->block_count || i < 0 || i >= leases->blocks[want].count)
        return -1;
    return leases->blocks[want].fds[i];
}

static void close_fds(int *fds, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

void roost_leases_release(struct roost_leases *leases, size_t want)
{
    if (want < leases->block_count)
        close_fds(leases->blocks[want].fds, leases->blocks[want].count);
}

static enum roost_code say_not_held(const struct roost_leases *leases, int32_t port,
                                    enum port_state state, int error, struct diag *diag)
{
    const char *words = strerrordesc_np(error);
    const char *owner = leases->owner[0] ? leases->owner : "-";
    if (state == PORT_TAKEN)
        diag_error(diag, ROOST_ERR_LEASE, NOWHERE,
                   "port %d of run '%s' is in use by another process", port, owner);
    else
        diag_error(diag, ROOST_ERR_LEASE, NOWHERE, "cannot hold port %d of run '%s': %s", port,
                   owner, words ? words : "error");
    diag_hint(diag, "find who has it: ss -tanp 'sport = :%d'", port);
    return ROOST_ERR_LEASE;
}

enum roost_code roost_leases_hold(struct roost_leases *leases, size_t want, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (want >= leases->block_count) {
        diag_error(&diag, ROOST_ERR_USAGE, NOWHERE, "there is no want %zu: these leases have %zu",
                   want, leases->block_count);
        diag_hint(&diag, "count wants from 0");
        return ROOST_ERR_USAGE;
    }
    struct block *block = &leases->blocks[want];
    int32_t first_new = -1;
    for (int32_t i = 0; i < block->count; i++) {
        if (block->fds[i] >= 0)
            continue;
        enum port_state state =
            port_socket_hold_again(block->first + i, block->is_handed, &block->fds[i]);
        if (state != PORT_HELD) {
            int error = errno;
            if (first_new >= 0)
                close_fds(block->fds + first_new, i - first_new);
            return say_not_held(leases, block->first + i, state, error, &diag);
        }
        first_new = first_new < 0 ? i : first_new;
    }
    return ROOST_OK;
}

void roost_leases_free(struct roost_leases *leases)
{
    if (!leases)
        return;
    /* Sockets first: whoever sees the books without us finds the ports free as well. */
    close_fds(leases->fds, leases->fds ? leases->port_count : 0);
    lease_dir_remove(&leases->dir, &leases->entry);
    lease_dir_close(&leases->dir);
    free(leases->fds);
    free(leases->blocks);
    free(leases);
}
