/* frame.c - makes and checks headers, and finds frames in a stream that arrives in any pieces. */
#include "rpc/frame.h"

#include <string.h>

enum { MAGIC = 0x4c435352 /* "RSCL" */, VERSION = 1 };

struct frame frame_of(enum frame_type type, int32_t life)
{
    return (struct frame){.magic = MAGIC, .version = VERSION, .type = (uint8_t)type, .life = life};
}

static bool has_region(const struct frame *frame)
{
    return frame->type == FRAME_MAP || frame->type == FRAME_RELEASE || frame->type == FRAME_UNMAP;
}

const char *frame_check(const struct frame *frame, const struct frame_limits *limits)
{
    unsigned flags = frame->type == FRAME_ANSWER ? FRAME_FLAG_ERROR : 0;
    if (frame->magic != MAGIC)
        return "it sent what is not a frame";
    if (frame->version != VERSION)
        return "it speaks another version of frames";
    if (frame->type >= FRAME_TYPE_END || !(limits->types & 1U << frame->type))
        return "it sent a frame that is not its to send";
    if (frame->life < 0 || frame->zero != 0 || (frame->flags & ~flags) ||
        (frame->type != FRAME_CALL && frame->method_len) ||
        (frame->type != FRAME_CALL && has_region(frame) != (frame->region != 0)) ||
        (frame->payload_len && (frame->type == FRAME_RELEASE || frame->type == FRAME_UNMAP)))
        return "it sent a frame with fields that do not fit together";
    if (frame->method_len > FRAME_METHOD_MAX || frame->payload_len > limits->payload_max)
        return "it sent a frame that is larger than allowed";
    return NULL;
}

uint64_t frame_body_len(const struct frame *frame)
{
    return frame->method_len + (frame->region ? 0 : frame->payload_len);
}

/* Bytes of no frame are found out at once, not only when there are enough for a header. */
static bool starts_right(const struct frame_decoder *decoder)
{
    static const uint32_t magic = MAGIC;
    size_t len = decoder->have < sizeof magic ? decoder->have : sizeof magic;
    return memcmp(&decoder->frame, &magic, len) == 0;
}

static enum frame_step open_frame(struct frame_decoder *decoder, const struct frame_limits *limits,
                                  struct frame_input *in, const char **out_why)
{
    size_t len = FRAME_SIZE - decoder->have;
    len = in->len < len ? in->len : len;
    if (len)
        memcpy((char *)&decoder->frame + decoder->have, in->at, len);
    decoder->have += (uint32_t)len;
    in->at += len;
    in->len -= len;
    if (decoder->have < FRAME_SIZE && starts_right(decoder))
        return FRAME_NEED;
    const char *why = frame_check(&decoder->frame, limits);
    if (why) {
        *out_why = why;
        return FRAME_BAD;
    }
    decoder->is_open = true;
    decoder->left = frame_body_len(&decoder->frame);
    return FRAME_BEGIN;
}

enum frame_step frame_next(struct frame_decoder *decoder, const struct frame_limits *limits,
                           struct frame_input *in, struct frame_input *out_piece,
                           const char **out_why)
{
    if (!decoder->is_open)
        return open_frame(decoder, limits, in, out_why);
    if (decoder->left == 0) {
        decoder->is_open = false;
        decoder->have = 0;
        return FRAME_END;
    }
    if (in->len == 0)
        return FRAME_NEED;
    size_t len = in->len < decoder->left ? in->len : (size_t)decoder->left;
    *out_piece = (struct frame_input){in->at, len};
    in->at += len;
    in->len -= len;
    decoder->left -= len;
    return FRAME_BODY;
}

void frame_passed(struct frame_decoder *decoder, size_t len)
{
    decoder->left -= len;
}
