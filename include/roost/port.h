/* port.h - leases of TCP ports on this machine.
 *
 * A lease is a block of consecutive port numbers that no other run of this user gets while the lease
 * lasts. Bound sockets hold the ports against every other program until the process that wants them is
 * about to start.
 *
 * Ports come from 1024-10001, 20000-32767 and 61000-65535, without the kernel's ephemeral range and its
 * reserved ports. The search goes upwards from `base`, then through the higher ranges, then through the
 * lower ones from 1024 on. Each want takes the first free block.
 *
 * Each user has one lease directory. Under a lock file, a new holder reads the leases of living holders,
 * binds its own ports and writes them into a file that it keeps locked. The kernel drops that lock when
 * the holder ends, so nothing is ever left to clean up. A child forked without exec keeps the lease too,
 * until it ends; what the child frees is its own copy. */
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
    /* The lease directory, for this user alone (0700); created if it is missing. NULL = the one that
     * all runs of this user on this machine share, found through `env`. */
    const char *dir;
    /* "NAME=value" texts, NULL-terminated, to look up XDG_RUNTIME_DIR. */
    const char *const *env;
    /* The first port to try. 0 = 20000. */
    int32_t base;
    /* The id of the run, shown to others. It has the form of a component's name. NULL = none. */
    const char *owner;
    /* How long to wait for the lock. 0 = 10 s. */
    int32_t wait_ms;
    /* Where to read the kernel's settings. NULL = "/proc". */
    const char *proc;
};

/* One block of ports. */
struct roost_port_want {
    /* Consecutive ports, at least 1. */
    int32_t count;
    /* The process inherits the socket (LISTEN_FDS), bound to 127.0.0.1. It calls listen() itself. */
    bool is_handed;
};

/* The leases of one run, or of one node of it. Not for two threads at once. */
struct roost_leases;

/* Leases all wants or none. When a port is leased, it is free for TCP and UDP on all addresses; its TCP
 * side then stays held. All descriptors are close-on-exec: one per port and two for the lease file. NULL
 * after filling `err`: ROOST_ERR_LEASE if there are not enough ports or descriptors, ROOST_ERR_TIMEOUT
 * if another process keeps the lock, ROOST_ERR_ACCESS or ROOST_ERR_IO for the directory, ROOST_ERR_USAGE
 * for an invalid want or base, ROOST_ERR_NAME for the owner, ROOST_ERR_MEMORY. */
ROOST_API struct roost_leases *roost_leases_new(const struct roost_port_options *options,
                                                const struct roost_port_want *wants,
                                                size_t want_count,
                                                struct roost_error *err) ROOST_MUST_USE;

/* The first port of the block; the others follow it. -1 if there is no such want. */
ROOST_API int32_t roost_leases_port(const struct roost_leases *leases, size_t want);

/* The socket of port first + i, borrowed from the leases; -1 after its release. */
ROOST_API int roost_leases_fd(const struct roost_leases *leases, size_t want, int32_t i);

/* Closes the sockets of a block just before its process starts. The ports stay leased, and the process can
 * bind them. Not for handed sockets: every life of a process inherits the same socket, so that a client
 * that connects between two lives waits instead of being refused. */
ROOST_API void roost_leases_release(struct roost_leases *leases, size_t want);

/* Binds the released ports of a block again, between two lives of its process. Connections of the last
 * life in TIME_WAIT do not matter. ROOST_ERR_LEASE if another program has one of the ports; nothing new
 * is held then. */
ROOST_API enum roost_code roost_leases_hold(struct roost_leases *leases, size_t want,
                                            struct roost_error *err) ROOST_MUST_USE;

/* Releases everything. */
ROOST_API void roost_leases_free(struct roost_leases *leases);

#ifdef __cplusplus
}
#endif
#endif
