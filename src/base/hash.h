/* hash.h - FNV-1a: equal bytes give equal numbers on every machine. An attacker who chooses the bytes can
 * choose the number. Use it for tables of roost's own words and to detect accidents, not against attacks. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(14695981039346656037)

/* Continues from `hash`; start with HASH_START. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

#endif
