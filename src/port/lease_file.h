/* lease_file.h - the file in which one holder records its leases.
 *
 *   roost ports 1          the format
 *   run 20260115-0a1b2c    the run that holds them; "-" = not known
 *   pid 4711
 *   ports 20000 4          a block: its first port and how many
 *   end                    the file is complete
 */
#ifndef PORT_LEASE_FILE_H
#define PORT_LEASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strview.h"
#include "base/text.h"
#include "port/port_map.h"

enum { LEASE_OWNER_MAX = 64, LEASE_FILE_MAX = 1 << 20 };

/* A holder of leases. */
struct lease_holder {
    char owner[LEASE_OWNER_MAX]; /* "" = not known */
    int32_t pid;
    int32_t port_count;
};

void lease_file_start(struct text *text, const struct lease_holder *holder);
void lease_file_block(struct text *text, int32_t first, int32_t count);
void lease_file_end(struct text *text);

/* Reads a file and writes `mark` (not 0) into `holder_of_port` [PORT_COUNT] for each of its ports. False
 * for any text that the three functions above would not write; the marks made so far stay then. */
bool lease_file_read(struct strview text, uint16_t mark, struct lease_holder *out,
                     uint16_t *holder_of_port);

#endif
