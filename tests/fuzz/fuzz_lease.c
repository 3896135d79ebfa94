/* fuzz_lease.c - any bytes, as a lease file and as the kernel's two settings. What is taken for a lease
 * file is one that the writer could have written, with each of its ports marked. */
#include "port/lease_file.h"
#include "tests/fuzz/check.h"

static uint16_t holder_of_port[PORT_COUNT];
static struct port_map map;

static void check_lease_file(struct strview text)
{
    struct lease_holder holder;
    int32_t marked = 0;
    memset(holder_of_port, 0, sizeof holder_of_port);
    if (!lease_file_read(text, 3, &holder, holder_of_port))
        return;
    for (int32_t port = 0; port < PORT_COUNT; port++) {
        CHECK(holder_of_port[port] == 0 || holder_of_port[port] == 3);
        marked += holder_of_port[port] == 3;
    }
    CHECK(marked == holder.port_count && holder.pid > 0 && holder_of_port[0] == 0);
    CHECK(!holder.owner[0] || is_name(sv_from(holder.owner)));

    /* The lines again, from what was understood of each: the same bytes. */
    struct text again = TEXT_INIT;
    lease_file_start(&again, &holder);
    size_t at = again.len;
    for (size_t end; at < text.len && sv_starts(sv_sub(text, at, text.len), "ports ");
         at = end + 1) {
        int first = 0, count = 0;
        end = sv_find(text, '\n', at);
        char line[64] = "";
        CHECK(end < text.len && end - at < sizeof line);
        memcpy(line, text.at + at, end - at);
        CHECK(sscanf(line, "ports %d %d", &first, &count) == 2);
        lease_file_block(&again, first, count);
    }
    lease_file_end(&again);
    CHECK(!again.has_failed && sv_equal((struct strview){again.bytes, again.len}, text));
    text_release(&again);
}

static void check_map(struct strview text)
{
    struct text shown = TEXT_INIT;
    int32_t usable = 0;
    port_map_read(&map, "/nowhere");
    if (port_map_read_ephemeral(&map, text))
        CHECK(map.ephemeral_first >= 0 && map.ephemeral_first <= map.ephemeral_last &&
              map.ephemeral_last <= PORT_MAX);
    (void)port_map_drop_reserved(&map, text);
    for (int32_t port = 0; port < PORT_COUNT; port++)
        usable += map.is_usable[port];
    CHECK(usable == map.usable_count);
    port_map_show(&map, &shown);
    CHECK(text_string(&shown));
    text_release(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of its own, so that a byte read behind the end is seen. */
    char *bytes = malloc(size ? size : 1);
    CHECK(bytes);
    if (size)
        memcpy(bytes, data, size);
    check_lease_file((struct strview){bytes, size});
    check_map((struct strview){bytes, size});
    free(bytes);
    return 0;
}
