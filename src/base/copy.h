/* copy.h - memcpy for payloads that are too large for any cache. */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>

/* As memcpy. Large copies bypass the caches: the destination is not loaded first, and cached data is not
 * evicted. */
void copy_bytes(void *into, const void *from, size_t len);

#endif
