/* json_input.c - the bytes of a document and where they are.
 * Reads into one fixed buffer and clamps it to the byte limit, so the limit is met at the same byte
 * however the stream is cut. Counts lines as source.c does: the line that an error shows must be the
 * line that it names. Columns come from offsets, so plain text costs nothing to count. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json_reader_internal.h"

bool json_fail(struct json_reader *reader, enum roost_code code)
{
    reader->code = code;
    return false;
}

static ssize_t ask(struct json_reader *reader, char *buf, size_t cap)
{
    ssize_t got;
    do
        got = reader->read(reader->ctx, buf, cap);
    while (got < 0 && errno == EINTR);
    assert(got <= (ssize_t)cap);
    return got;
}

static bool fetch(struct json_reader *reader, struct diag *diag)
{
    size_t kept = (size_t)(reader->end - reader->at);
    memmove(reader->buffer, reader->at, kept);
    reader->at = reader->buffer;
    reader->end = reader->buffer + kept;

    size_t allowed = reader->limits.max_bytes - reader->taken;
    size_t room = sizeof reader->buffer - kept;
    char beyond;
    ssize_t got = allowed ? ask(reader, reader->buffer + kept, allowed < room ? allowed : room)
                          : ask(reader, &beyond, 1);
    if (got < 0) {
        int error = errno;
        diag_error(diag, ROOST_ERR_IO, (struct place){.source = &reader->source}, "cannot read: %s",
                   strerror(error));
        if (error == EISDIR)
            diag_hint(diag, "name a file in that folder");
        return json_fail(reader, ROOST_ERR_IO);
    }
    if (got > 0 && !allowed) {
        diag_error(diag, ROOST_ERR_LIMIT, json_place(reader),
                   "the document is larger than %zu bytes", reader->limits.max_bytes);
        diag_hint(diag, "leave out what its reader does not need");
        return json_fail(reader, ROOST_ERR_LIMIT);
    }
    reader->end += got;
    reader->taken += (size_t)got;
    reader->is_drained = got == 0;
    return true;
}

bool json_fill(struct json_reader *reader, size_t count, struct diag *diag)
{
    while ((size_t)(reader->end - reader->at) < count && !reader->is_drained)
        if (!fetch(reader, diag))
            return false;
    return true;
}

static void start_line(struct json_reader *reader)
{
    reader->line++;
    reader->line_start = json_chars(reader);
}

bool json_skip_all_blanks(struct json_reader *reader, struct diag *diag)
{
    for (;;) {
        const char *at = reader->at;
        while (at < reader->end && (*at == ' ' || *at == '\t'))
            at++;
        reader->at = at;
        if (at == reader->end && !reader->is_drained) {
            if (!json_fill(reader, 1, diag))
                return false;
            continue;
        }
        if (at == reader->end || (*at != '\n' && *at != '\r'))
            return true;
        if (*at == '\r' && !json_fill(reader, 2, diag))
            return false;
        bool is_pair = reader->end - reader->at > 1 && memcmp(reader->at, "\r\n", 2) == 0;
        reader->at += is_pair ? 2 : 1;
        start_line(reader);
    }
}

void json_step_over(struct json_reader *reader, size_t len)
{
    const char *at = reader->at;
    reader->at += len;
    reader->continuation += len - 1;
    if ((len == 2 && memcmp(at, "\xc2\x85", 2) == 0) ||
        (len == 3 && memcmp(at, "\xe2\x80", 2) == 0 && (at[2] == '\xa8' || at[2] == '\xa9')))
        start_line(reader);
}

bool json_keep(struct json_reader *reader, struct strview piece, const char *noun,
               struct place start, struct diag *diag)
{
    if (piece.len > reader->limits.max_string - reader->scratch.len) {
        diag_error(diag, ROOST_ERR_LIMIT, start, "this %s is longer than %zu bytes", noun,
                   reader->limits.max_string);
        diag_hint(diag, "shorten it");
        return json_fail(reader, ROOST_ERR_LIMIT);
    }
    text_put(&reader->scratch, piece);
    return reader->scratch.has_failed ? json_fail(reader, diag_nomem(diag)) : true;
}

bool json_character(struct json_reader *reader, size_t *out_len, struct diag *diag)
{
    if (!json_fill(reader, 4, diag))
        return false;
    *out_len = utf8_next(reader->at, reader->end, NULL);
    if (*out_len)
        return true;
    enum roost_code code = diag_error(diag, ROOST_ERR_SYNTAX, json_place(reader),
                                      "byte 0x%02x is not UTF-8", (unsigned)json_peek(reader));
    diag_hint(diag, "save the document as UTF-8");
    return json_fail(reader, code);
}
