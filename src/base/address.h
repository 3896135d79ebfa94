/* address.h - the order of hosts: IPv4 by value, then IPv6 by value, then names in natural order
 * (node2 before node10). Never asks DNS. */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include "base/strview.h"

enum address_kind { ADDRESS_IPV4, ADDRESS_IPV6, ADDRESS_NAME, ADDRESS_NONE };

struct address {
    enum address_kind kind;
    unsigned char bytes[16]; /* IPv4 in the first four */
    struct strview text;     /* the name, or the zone of an IPv6 address; borrowed */
};

/* Reads "10.0.0.1", "fe80::1%eth0" or "[::1]"; any other text is a name. An IPv4-mapped IPv6 address is
 * read as its IPv4 address. An empty text is ADDRESS_NONE, which sorts last. */
struct address address_read(struct strview text);

/* <0, 0, >0: a total order. */
int address_compare(const struct address *a, const struct address *b);

/* Natural order of texts: runs of digits by value, the rest by bytes; 0 only for equal texts. */
int natural_compare(struct strview a, struct strview b);

#endif
