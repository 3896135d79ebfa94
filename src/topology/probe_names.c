/* probe_names.c - the only place that asks the system's resolver, and only if the caller requests it: a plan
 * must not depend on the current answers of a name server. */
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include <roost/bundle.h>

#include "base/address.h"

/* The address as text; false when it is neither IPv4 nor IPv6. */
static bool write_address(const struct addrinfo *info, char *out, size_t size)
{
    return getnameinfo(info->ai_addr, info->ai_addrlen, out, (socklen_t)size, NULL, 0,
                       NI_NUMERICHOST) == 0;
}

bool roost_resolve_system(void *ctx, const char *name, char *out, size_t size)
{
    (void)ctx;
    struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
    char best[64] = "", found[64];
    if (getaddrinfo(name, NULL, &hints, &list) != 0)
        return false;
    for (const struct addrinfo *it = list; it; it = it->ai_next) {
        if (!write_address(it, found, sizeof found))
            continue;
        struct address a = address_read(sv_from(found)), b = address_read(sv_from(best));
        if (address_compare(&a, &b) < 0)
            memcpy(best, found, sizeof best);
    }
    freeaddrinfo(list);
    size_t len = strlen(best);
    if (len == 0 || len >= size)
        return false;
    memcpy(out, best, len + 1);
    return true;
}
