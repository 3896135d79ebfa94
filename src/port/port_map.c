/* port_map.c - the ranges that leases come from.
 *
 * They lie outside the kernel's default range for outgoing connections (32768-60999), so that no connection
 * uses a leased port by chance. If the kernel is set to another range, that one counts. 10002-19999 is left
 * out, because Ray puts its workers there. Reads /proc, opens no socket. */
#include "port/port_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

enum { SETTING_MAX = 1 << 16, RANGES_SHOWN = 4 };

static const struct {
    int32_t first, last;
} lease_ranges[] = {{1024, 10001}, {20000, 32767}, {61000, PORT_MAX}};

static void drop(struct port_map *map, int32_t first, int32_t last)
{
    for (int32_t port = first; port <= last; port++) {
        map->usable_count -= map->is_usable[port];
        map->is_usable[port] = false;
    }
}

static bool read_port(struct strview text, int32_t *out)
{
    int64_t value;
    if (number_parse(text, PORT_MAX, &value) != NUMBER_OK)
        return false;
    *out = (int32_t)value;
    return true;
}

static struct strview without_newline(struct strview text)
{
    return text.len && text.at[text.len - 1] == '\n' ? sv_sub(text, 0, text.len - 1) : text;
}

bool port_map_read_ephemeral(struct port_map *map, struct strview text)
{
    int32_t first, last;
    text = sv_trim(without_newline(text));
    size_t gap = 0;
    while (gap < text.len && text.at[gap] != ' ' && text.at[gap] != '\t')
        gap++;
    if (!read_port(sv_sub(text, 0, gap), &first) ||
        !read_port(sv_sub(text, gap, text.len), &last) || first > last)
        return false;
    map->ephemeral_first = first;
    map->ephemeral_last = last;
    return true;
}

bool port_map_drop_reserved(struct port_map *map, struct strview text)
{
    text = without_newline(text);
    for (size_t at = 0; at < text.len;) {
        size_t end = sv_find(text, ',', at);
        struct strview entry = sv_sub(text, at, end);
        size_t dash = sv_find(entry, '-', 0);
        int32_t first, last;
        if (!read_port(sv_sub(entry, 0, dash), &first))
            return false;
        last = first;
        if (dash < entry.len && !read_port(sv_sub(entry, dash + 1, entry.len), &last))
            return false;
        drop(map, first, last);
        at = end + 1;
    }
    return true;
}

/* Settings are a page at most; what is longer is cut and then not understood. */
static struct strview read_setting(const char *proc, const char *name, char *buffer, size_t size)
{
    char path[512];
    size_t len = 0;
    int wanted = snprintf(path, sizeof path, "%s/sys/net/ipv4/%s", proc, name);
    int fd = wanted > 0 && (size_t)wanted < sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return (struct strview){buffer, 0};
    for (ssize_t got = 1; got > 0 && len < size; len += got > 0 ? (size_t)got : 0)
        got = read(fd, buffer + len, size - len);
    close(fd);
    return (struct strview){buffer, len};
}

void port_map_read(struct port_map *map, const char *proc)
{
    char text[SETTING_MAX];
    memset(map, 0, sizeof *map);
    for (size_t i = 0; i < sizeof lease_ranges / sizeof *lease_ranges; i++)
        for (int32_t port = lease_ranges[i].first; port <= lease_ranges[i].last; port++) {
            map->is_usable[port] = true;
            map->usable_count++;
        }
    map->ephemeral_first = 32768;
    map->ephemeral_last = 60999;
    (void)port_map_read_ephemeral(map,
                                  read_setting(proc, "ip_local_port_range", text, sizeof text));
    drop(map, map->ephemeral_first, map->ephemeral_last);
    (void)port_map_drop_reserved(map,
                                 read_setting(proc, "ip_local_reserved_ports", text, sizeof text));
}

void port_map_show(const struct port_map *map, struct text *out)
{
    int32_t shown = 0;
    for (int32_t port = 0; port < PORT_COUNT; port++) {
        if (!map->is_usable[port])
            continue;
        int32_t first = port;
        while (port < PORT_MAX && map->is_usable[port + 1])
            port++;
        if (shown++ < RANGES_SHOWN)
            text_printf(out, first == port ? "%s%d" : "%s%d-%d", shown > 1 ? ", " : "", first,
                        port);
    }
    if (shown > RANGES_SHOWN)
        text_printf(out, " and %d more ranges", shown - RANGES_SHOWN);
}
