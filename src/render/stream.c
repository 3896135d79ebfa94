/* stream.c - see stream.h. */
#include "render/stream.h"

static bool pass_on(void *ctx, const char *bytes, size_t len)
{
    struct stream *stream = ctx;
    stream->was_refused = !stream->write(stream->ctx, bytes, len);
    return !stream->was_refused;
}

void stream_start(struct stream *stream, roost_write_fn write, void *ctx)
{
    *stream =
        (struct stream){.text = {.flush = pass_on, .ctx = stream}, .write = write, .ctx = ctx};
}

enum roost_code stream_end(struct stream *stream)
{
    bool is_good = text_finish(&stream->text);
    text_release(&stream->text);
    return is_good ? ROOST_OK : stream->was_refused ? ROOST_ERR_IO : ROOST_ERR_MEMORY;
}
