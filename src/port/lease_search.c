/* lease_search.c - first fit, upwards from the base; after the last port it continues at the first.
 *
 * Words: a start is a port counted from the base (0 = the base itself), so that the search is a plain loop.
 * No port becomes free during a search, so a start that failed for some count fails for good, and the search
 * for that count continues where it stopped. All wants of equal count together cost one walk over the
 * ports. */
#include "port/lease_search.h"

#include <errno.h>
#include <unistd.h>

#include "port/port_socket.h"

static int32_t port_of(const struct lease_search *search, int32_t start)
{
    return (search->base + start) % PORT_COUNT;
}

static bool is_candidate(const struct lease_search *search, int32_t port)
{
    return port < PORT_COUNT && search->map.is_usable[port] && !search->is_out[port] &&
           search->books->holder_of_port[port] == 0;
}

static void close_all(int *fds, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        close(fds[i]);
        fds[i] = -1;
    }
}

/* How many of the ports from `first` on are in the way: 0 = the block is bound, n = the n-th is not to
 * be had, -1 = no sockets, errno says why. */
static int32_t bind_block(struct lease_search *search, int32_t first, int32_t count, bool is_handed,
                          int *fds)
{
    for (int32_t i = 0; i < count; i++)
        if (!is_candidate(search, first + i))
            return i + 1;
    for (int32_t i = 0; i < count; i++) {
        enum port_state state = port_socket_hold(first + i, is_handed, &fds[i]);
        if (state == PORT_HELD)
            continue;
        int error = errno;
        close_all(fds, i);
        errno = error;
        search->is_out[first + i] = state == PORT_TAKEN;
        return state == PORT_TAKEN ? i + 1 : -1;
    }
    for (int32_t i = 0; i < count; i++)
        search->is_out[first + i] = true;
    return 0;
}

/* --- words for failures --- */

static enum roost_code say_no_socket(struct lease_search *search, int error, struct diag *diag)
{
    const char *words = strerrordesc_np(error);
    diag_error(diag, ROOST_ERR_LEASE, NOWHERE, "cannot hold %d ports: %s", search->wanted_total,
               words ? words : "error");
    if (error == EMFILE)
        diag_hint(diag, "each takes a descriptor: raise the limit with ulimit -n %d",
                  search->wanted_total + 64);
    else
        diag_hint(diag, "ask for fewer ports, or free memory and open files of this machine");
    return ROOST_ERR_LEASE;
}

/* Ports that could still be bound now: tried one by one. */
static int32_t count_free(struct lease_search *search)
{
    int32_t count = 0;
    for (int32_t port = 0; port < PORT_COUNT; port++) {
        int fd = -1;
        if (is_candidate(search, port) && port_socket_hold(port, false, &fd) == PORT_HELD) {
            close(fd);
            count++;
        }
    }
    return count;
}

/* The other holder that has most of the usable ports, or NULL. */
static const struct lease_holder *largest_holder(const struct lease_search *search)
{
    const struct lease_holder *largest = NULL;
    for (int32_t i = 0; i < search->books->holder_count; i++) {
        const struct lease_holder *holder = &search->books->holders[i];
        if (holder->port_count > (largest ? largest->port_count : 0))
            largest = holder;
    }
    return largest;
}

static void say_hint(const struct lease_search *search, const struct lease_holder *holder,
                     struct diag *diag)
{
    if (search->map.usable_count == 0)
        diag_hint(diag,
                  "the kernel's ephemeral range is %d-%d: make it smaller (sysctl "
                  "net.ipv4.ip_local_port_range=\"32768 60999\")",
                  search->map.ephemeral_first, search->map.ephemeral_last);
    else if (holder && holder->owner[0])
        diag_hint(diag, "ask for fewer ports, or end that run: roost stop %s", holder->owner);
    else
        diag_hint(diag, "ask for fewer ports, or end what uses them: ss -tulnp shows it");
}

static enum roost_code say_none(struct lease_search *search, int32_t count, struct diag *diag)
{
    struct text ranges = TEXT_INIT, holds = TEXT_INIT;
    const struct lease_holder *holder = largest_holder(search);
    port_map_show(&search->map, &ranges);
    if (holder && holder->owner[0])
        text_printf(&holds, "; run '%s' (process %d) holds %d", holder->owner, holder->pid,
                    holder->port_count);
    else if (holder)
        text_printf(&holds, "; process %d holds %d", holder->pid, holder->port_count);
    const char *in = text_string(&ranges), *by = text_string(&holds);
    if (in && by) {
        int32_t free_count = count_free(search);
        diag_error(diag, ROOST_ERR_LEASE, NOWHERE,
                   "no %d free port%s in a row, of %d asked in all: %d of %d ports %s free (%s)%s",
                   count, count == 1 ? "" : "s", search->wanted_total, free_count,
                   search->map.usable_count, free_count == 1 ? "is" : "are",
                   search->map.usable_count ? in : "the kernel leaves none", by);
        say_hint(search, holder, diag);
    } else {
        diag_nomem(diag);
    }
    enum roost_code code = in && by ? ROOST_ERR_LEASE : ROOST_ERR_MEMORY;
    text_release(&ranges);
    text_release(&holds);
    return code;
}

enum roost_code lease_search_take(struct lease_search *search, int32_t count, bool is_handed,
                                  int *fds, int32_t *out_first, struct diag *diag)
{
    int32_t start = search->first_try[count];
    while (start < PORT_COUNT) {
        int32_t first = port_of(search, start);
        int32_t blocked = bind_block(search, first, count, is_handed, fds);
        if (blocked < 0)
            return say_no_socket(search, errno, diag);
        if (blocked == 0) {
            search->first_try[count] = start + count;
            *out_first = first;
            return ROOST_OK;
        }
        start += blocked;
    }
    search->first_try[count] = PORT_COUNT;
    return say_none(search, count, diag);
}
