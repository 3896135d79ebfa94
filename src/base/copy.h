/* copy.h - copies that are too large for any cache. */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>

/* As memcpy. Large copies go past the caches: what is written is not read into them first, and what is in
 * them stays. */
void copy_bytes(void *into, const void *from, size_t len);

#endif
