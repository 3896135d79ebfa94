/* port.h - leases of TCP ports on this machine.
 *
 * A lease is a block of consecutive port numbers that no other run of this user gets while it lasts,
 * held by bound sockets against everybody else until the process that wants them is about to start.
 *
 * Which ports: 1024-10001, 20000-32767 and 61000-65535, less the kernel's ephemeral range and its
 * reserved ports. They are searched upwards from `base`, then on through the higher ranges, then
 * through the lower ones from 1024 on; each want takes the first block that is free.
 *
 * How they are kept apart: one lease directory per user; under a lock file a new holder reads the
 * leases of the living, binds its own and writes them into a file that it keeps locked. The kernel
 * drops that lock with the holder, however it ends, so nothing is ever left to clean by hand. A child
 * that is forked without exec keeps the lease too, until it ends; what it frees of it is its own copy. */
#ifndef ROOST_PORT_H
#define ROOST_PORT_H

#include <roost/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_port_options {
    const char *dir; /* the lease directory: this user's alone (0700), made when missing; NULL = the
                          one that runs of this user on this machine use, by `env` */
    const char *const *env; /* "NAME=value", NULL-terminated: where XDG_RUNTIME_DIR is looked up */
    int32_t base;           /* first port tried; 0 = 20000 */
    const char *owner; /* the run's id, shown to others; a name as components have; NULL = none */
    int32_t wait_ms;   /* how long to wait for the lock at most; 0 = 10 s */
    const char *proc;  /* where the kernel's settings are read; NULL = "/proc" */
};

/* One block. A process that takes its socket as a descriptor (LISTEN_FDS) is handed it: bound to
 * 127.0.0.1; listening is the process's business. */
struct roost_port_want {
    int32_t count; /* ports in a row, at least 1 */
    bool is_handed;
};

/* The leases of one run, or of one part of it. Not for two threads at once. */
struct roost_leases;

/* Leases all wants or none. Every port is free for TCP and UDP on all addresses when it is leased, and
 * its TCP side stays held. All descriptors are close-on-exec, one a port and two for the books. NULL
 * after filling `err`: ROOST_ERR_LEASE when ports or descriptors do not suffice, ROOST_ERR_TIMEOUT
 * when another process keeps the lock, ROOST_ERR_ACCESS or ROOST_ERR_IO for the directory,
 * ROOST_ERR_USAGE for a want or base that is none, ROOST_ERR_NAME for the owner, ROOST_ERR_MEMORY. */
ROOST_API struct roost_leases *roost_leases_new(const struct roost_port_options *options,
                                                const struct roost_port_want *wants,
                                                size_t want_count, struct roost_error *err);

/* The first port of the block; the others follow. -1 for a want that is not there. */
ROOST_API int32_t roost_leases_port(const struct roost_leases *leases, size_t want);

/* The socket of port first + i, borrowed; -1 once released. */
ROOST_API int roost_leases_fd(const struct roost_leases *leases, size_t want, int32_t i);

/* Closes the sockets of a block, just before its process starts: still leased, and now the process
 * can bind them. Not for handed sockets: a new life of the process is handed the same one, and who
 * connects in between waits for it instead of being refused. */
ROOST_API void roost_leases_release(struct roost_leases *leases, size_t want);

/* Binds released ports of the block again, between two lives of its process; connections that the
 * last life left behind (TIME_WAIT) do not matter. ROOST_ERR_LEASE, and nothing new is held, when
 * somebody else has one of them. */
ROOST_API enum roost_code roost_leases_hold(struct roost_leases *leases, size_t want,
                                            struct roost_error *err);

/* Gives everything back. NULL is fine. */
ROOST_API void roost_leases_free(struct roost_leases *leases);

#ifdef __cplusplus
}
#endif
#endif
