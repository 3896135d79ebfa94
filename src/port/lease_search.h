/* lease_search.h - finds and binds blocks of consecutive free ports. */
#ifndef PORT_LEASE_SEARCH_H
#define PORT_LEASE_SEARCH_H

#include "base/diag.h"
#include "port/lease_dir.h"
#include "port/port_map.h"

/* A search lives for one allocation. */
struct lease_search {
    struct port_map map;
    const struct lease_books *books; /* borrowed */
    int32_t base;
    int32_t wanted_total;          /* ports of all wants, for messages */
    bool is_out[PORT_COUNT];       /* this search has it already, or found it taken */
    int32_t first_try[PORT_COUNT]; /* per count: every start before this one has failed */
};

/* Binds the first free block of `count` ports. Puts its sockets into fds[0 .. count) and its first port into
 * *out_first. On failure nothing stays bound. */
enum roost_code lease_search_take(struct lease_search *search, int32_t count, bool is_handed,
                                  int *fds, int32_t *out_first, struct diag *diag);

#endif
