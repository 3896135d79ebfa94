/* call_reader.h - one thread that reads for many links while no other thread waits on them
 * (roost/group.h, roost_call_reader).
 *
 * A worker stops when its socket is full and no thread reads its answers; then it also keeps others
 * waiting. Links wake the reader when requests have no answer, and it reads for those links that no other
 * thread has read for a while. A thread that calls and then waits does not notice it. */
#ifndef RPC_CALL_READER_H
#define RPC_CALL_READER_H

#include "rpc/links.h"

/* False without memory. */
bool reader_add(struct roost_call_reader *reader, struct links *links);
/* When this returns, the reader no longer touches the links. Do not call it with their lock held. */
void reader_remove(struct roost_call_reader *reader, struct links *links);

#endif
