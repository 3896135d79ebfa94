/* stream.h - starting and ending a rendering: a streamed text around the caller's write function. */
#ifndef RENDER_STREAM_H
#define RENDER_STREAM_H

#include <roost/render.h>

#include "base/text.h"

/* A caller's write function, and whether it ever refused. */
struct stream {
    struct text text;
    roost_write_fn write;
    void *ctx;
    bool was_refused;
};

/* The stream must not move between start and end. */
void stream_start(struct stream *stream, roost_write_fn write, void *ctx);

/* Flushes, frees and tells how it went. */
enum roost_code stream_end(struct stream *stream);

#endif
