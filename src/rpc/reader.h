/* reader.h - one thread's reading for many links, while nobody waits on them (roost/group.h, roost_reader).
 *
 * A worker whose answers nobody reads stops when its socket is full, also for what others wait for. The
 * reader is told when requests are unattended, and reads for links of which nobody else has for a while:
 * who calls and then waits does not notice it. */
#ifndef RPC_READER_H
#define RPC_READER_H

#include "rpc/links.h"

/* False without memory. */
bool reader_add(struct roost_reader *reader, struct links *links);
/* The reader does not touch the links any more when this returns. Not with their lock held. */
void reader_remove(struct roost_reader *reader, struct links *links);

#endif
