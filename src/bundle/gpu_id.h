/* gpu_id.h - the order of device ids on one node. Ids are opaque: a number, a UUID, a MIG id or
 * anything else that a node calls its devices by. */
#ifndef BUNDLE_GPU_ID_H
#define BUNDLE_GPU_ID_H

#include "base/strview.h"

/* In sort order. */
enum gpu_kind {
    GPU_BELOW,    /* a number too low for 64 bits, sorted by its text */
    GPU_NEGATIVE, /* a number below 0 */
    GPU_NUMBER,
    GPU_ABOVE,  /* a number too high for 64 bits, sorted by its text */
    GPU_LISTED, /* sorted by its place among the visible devices */
    GPU_TEXT,   /* sorted by its bytes */
};

struct gpu_key {
    enum gpu_kind kind;
    uint64_t value;      /* equal for keys that are sorted by text */
    struct strview text; /* compared when the values are equal; borrowed */
};

/* `visible` is the node's list, "GPU-a,GPU-b"; empty = not known. */
struct gpu_key gpu_key_read(struct strview id, struct strview visible);

/* <0, 0, >0: a total order. */
int gpu_key_compare(const struct gpu_key *a, const struct gpu_key *b);

#endif
