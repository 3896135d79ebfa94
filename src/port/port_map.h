/* port_map.h - which ports of this machine may be leased at all. */
#ifndef PORT_PORT_MAP_H
#define PORT_PORT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strview.h"
#include "base/text.h"

enum { PORT_MAX = 65535, PORT_COUNT = PORT_MAX + 1, PORT_BASE = 20000 };

struct port_map {
    bool is_usable[PORT_COUNT];
    int32_t usable_count;
    int32_t ephemeral_first, ephemeral_last; /* the kernel's range for outgoing connections */
};

/* The ranges of port_map.c without the kernel's ephemeral range and reserved ports, which it reads from
 * <proc>/sys/net/ipv4. A setting that cannot be read has the kernel's default. */
void port_map_read(struct port_map *map, const char *proc);

/* Read the two settings as the kernel prints them: "32768\t60999\n" and "8080,9000-9010\n". False for any
 * other text; some ports may have been removed from the map then. */
bool port_map_read_ephemeral(struct port_map *map, struct strview text);
bool port_map_drop_reserved(struct port_map *map, struct strview text);

/* Appends the first few ranges of usable ports, for messages: "1024-10001, 20000-32767". */
void port_map_show(const struct port_map *map, struct text *out);

#endif
