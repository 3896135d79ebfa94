/* frame.h - the frames on a socket between a driver and a worker: a header, which is checked, then a body.
 *
 * The socket is a stream, so a frame may arrive in any pieces; a decoder takes them as they arrive. It
 * returns no byte of a body before it has checked the header. Both ends are on one machine, so numbers are
 * in its byte order.
 *
 *   READY, REFUSED   worker: it serves, or cannot; the payload is what the worker reports about itself
 *   CALL             driver: a method and its payload, which is in the body or in a region
 *   ANSWER           worker: the value, or with FRAME_FLAG_ERROR the error, of a call
 *   MAP              driver: a region of shared memory, with its descriptor
 *   RELEASE          worker: one use of a region is over
 *   UNMAP            driver: a region is no longer needed */
#ifndef RPC_FRAME_H
#define RPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_type {
    FRAME_READY = 1,
    FRAME_REFUSED,
    FRAME_CALL,
    FRAME_ANSWER,
    FRAME_MAP,
    FRAME_RELEASE,
    FRAME_UNMAP,
    FRAME_TYPE_END,
};

enum { FRAME_FLAG_ERROR = 1 };
enum { FRAME_METHOD_MAX = 1024, FRAME_SIZE = 40 };

/* The types that each side sends, as bits. */
enum {
    FRAMES_OF_WORKER = 1 << FRAME_READY | 1 << FRAME_REFUSED | 1 << FRAME_ANSWER |
        1 << FRAME_RELEASE,
    FRAMES_OF_DRIVER = 1 << FRAME_CALL | 1 << FRAME_MAP | 1 << FRAME_UNMAP,
};

/* The header, as it is sent. */
struct frame {
    uint32_t magic;
    uint8_t version;
    uint8_t type;
    uint16_t flags;
    int32_t life; /* the life of the worker that sends or receives it; 0 = the one that reads it */
    uint32_t method_len;
    uint64_t call;        /* chosen by the driver; an answer repeats it */
    uint64_t payload_len; /* of MAP: the size of the region */
    uint32_t region;      /* where the payload is; 0 = in the body */
    uint32_t zero;
};
_Static_assert(sizeof(struct frame) == FRAME_SIZE, "no padding goes over the socket");

/* A header that passes the check; the caller sets the other fields. */
struct frame frame_of(enum frame_type type, int32_t life);

#define FRAME_ANSWER_MAX ((uint64_t)UINT32_MAX) /* bytes; what is longer is taken for garbage */

struct frame_limits {
    unsigned types;       /* FRAMES_OF_... */
    uint64_t payload_max; /* of one body */
};

/* NULL when the header is good, otherwise what is wrong with it. */
const char *frame_check(const struct frame *frame, const struct frame_limits *limits);

/* Bytes after the header: the method, then the payload unless it is in a region. */
uint64_t frame_body_len(const struct frame *frame);

/* Bytes that were received and not taken yet. */
struct frame_input {
    const char *at;
    size_t len;
};

/* All zero at the start of a stream. */
struct frame_decoder {
    struct frame frame; /* good from FRAME_BEGIN to FRAME_END */
    uint32_t have;      /* bytes of the header that have arrived */
    bool is_open;
    uint64_t left; /* bytes of the body that have not arrived */
};

enum frame_step {
    FRAME_NEED,  /* more bytes: all were taken */
    FRAME_BEGIN, /* a good header is in `frame` */
    FRAME_BODY,  /* *out_piece are the next bytes of the body, borrowed from the input */
    FRAME_END,   /* the body is complete */
    FRAME_BAD,   /* not a frame; *out_why has the reason. The stream cannot be used any more */
};

/* Takes the next step; `in` advances by the bytes taken. */
enum frame_step frame_next(struct frame_decoder *decoder, const struct frame_limits *limits,
                           struct frame_input *in, struct frame_input *out_piece,
                           const char **out_why);

/* Tells the decoder that the caller has received `len` bytes of the body itself; at most `left`. */
void frame_passed(struct frame_decoder *decoder, size_t len);

#endif
