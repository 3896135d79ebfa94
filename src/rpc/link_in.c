/* link_in.c - receives from a worker: checks each frame, then takes it as an answer or as its READY or
 * REFUSED.
 *
 * Small frames pass through the links' scratch; the rest of a large body is received at its final place.
 * Memory for a body grows as its bytes arrive, never by the length that a header announces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rpc/links_internal.h"

enum {
    BODY_STEP = 256 << 10, /* the least to grow by */
    DIRECT_MIN = 16 << 10, /* a rest of this size is not worth a copy */
};

/* --- bodies --- */

/* Room for `more` bytes of a body, all of which the header promised. */
static bool body_reserve(struct link *link, size_t more)
{
    size_t wanted = link->body_len + more;
    if (wanted <= link->body_cap)
        return true;
    uint64_t whole = frame_body_len(&link->in.frame);
    size_t cap = 2 * link->body_cap > BODY_STEP ? 2 * link->body_cap : BODY_STEP;
    cap = cap > whole ? (size_t)whole : cap;
    cap = cap > wanted ? cap : wanted;
    char *body = realloc(link->body, cap);
    if (!body)
        return false;
    link->body = body;
    link->body_cap = cap;
    return true;
}

static void body_drop(struct link *link)
{
    free(link->body);
    link->body = NULL;
    link->body_len = link->body_cap = 0;
    link->is_kept = false;
}

/* The rest of the body is skipped; its request is told at the end. */
static void body_fail(struct link *link)
{
    body_drop(link);
    link->has_short = true;
}

static void body_add(struct link *link, struct frame_input piece)
{
    if (!link->is_kept)
        return;
    if (!body_reserve(link, piece.len)) {
        body_fail(link);
        return;
    }
    memcpy(link->body + link->body_len, piece.at, piece.len);
    link->body_len += piece.len;
}

/* --- frames --- */

static void begin_answer(struct link *link)
{
    struct links *links = link->links;
    const struct slot *slot = link_slot(link, link->in.frame.call);
    uint64_t sequence = link->in.frame.call >> SLOT_BITS;
    if (slot)
        link->is_kept = slot->call != NULL;
    else if (sequence == 0 || sequence > link->sequence)
        link_cut(link, "it answered a call that it was not asked");
    else
        links->counts.dropped_twice++;
}

/* A good header is here: decides what its body is for. */
static void begin_frame(struct link *link)
{
    const struct frame *frame = &link->in.frame;
    link->is_kept = link->has_short = false;
    if (frame->life > link->life)
        link_cut(link, "it spoke for a life that has not begun");
    else if (frame->life != link->life)
        link->links->counts.dropped_late += frame->type == FRAME_ANSWER;
    else if (frame->type == FRAME_ANSWER)
        begin_answer(link);
    else if (frame->type == FRAME_RELEASE) {
        if (!link_release_region(link, frame->region))
            link_cut(link, "it gave back memory that it was not given");
    } else if (link->state != LINK_STARTING)
        link_cut(link, "it said twice whether it is ready");
    else
        link->is_kept = true;
}

static void end_answer(struct link *link)
{
    struct slot *slot = link_slot(link, link->in.frame.call);
    if (!slot)
        return; /* a second one; counted */
    struct roost_call *call = slot->call;
    size_t index = slot->index;
    link_free_slot(link, slot);
    if (!call) {
        link->links->counts.dropped_late++;
        return;
    }
    link->links->counts.answers++;
    if (link->has_short) {
        call_lose(call, index, ROOST_OUTCOME_UNKNOWN, "there was no memory for its answer");
        return;
    }
    bool is_error = link->in.frame.flags & FRAME_FLAG_ERROR;
    call_settle(call, index, is_error ? ROOST_OUTCOME_ERROR : ROOST_OUTCOME_VALUE, link->body,
                link->body_len);
    link->body = NULL;
}

static void end_frame(struct link *link)
{
    const struct frame *frame = &link->in.frame;
    bool is_word = frame->type == FRAME_READY || frame->type == FRAME_REFUSED;
    if (frame->life == link->life && frame->type == FRAME_ANSWER) {
        end_answer(link);
    } else if (frame->life == link->life && is_word) {
        free(link->said);
        link->said = link->body;
        link->said_len = link->body_len;
        link->body = NULL;
        link->state = frame->type == FRAME_READY ? LINK_READY : LINK_REFUSED;
        link->has_refused = frame->type != FRAME_READY;
        link->links->has_changed = true;
    }
    body_drop(link);
}

/* Takes frames out of what was received. A cut link has no descriptor: nothing more is taken of it, nor for
 * another life that has begun in its place. */
static void decode(struct link *link, const char *bytes, size_t len)
{
    struct frame_input in = {bytes, len}, piece;
    const char *why = NULL;
    for (uint32_t epoch = link->epoch; link->fd >= 0 && link->epoch == epoch;) {
        switch (frame_next(&link->in, &link->links->limits, &in, &piece, &why)) {
        case FRAME_BEGIN: begin_frame(link); break;
        case FRAME_BODY: body_add(link, piece); break;
        case FRAME_END: end_frame(link); break;
        case FRAME_BAD: link_cut(link, why); return;
        case FRAME_NEED: return;
        }
    }
}

/* --- the socket --- */

/* A reset says, once, that the other side has gone without reading all of ours; what it had sent before is
 * still here. */
static ssize_t receive(int fd, void *at, size_t len)
{
    ssize_t got;
    do
        got = recv(fd, at, len, MSG_DONTWAIT);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    return got;
}

/* What comes no more is not watched any longer; its end is near. */
static void close_in(struct link *link)
{
    (void)links_watch(link->links, EPOLL_CTL_DEL, link->fd, 0, (struct mark){0, 0});
    link->is_closed = true;
    link_deafen(link);
}

/* Where the next bytes go: a large rest of a body to its place, all else to the scratch. */
static bool is_direct(struct link *link)
{
    if (!link->is_kept || link->in.left < DIRECT_MIN)
        return false;
    if (body_reserve(link, DIRECT_MIN))
        return true;
    body_fail(link);
    return false;
}

void link_receive(struct link *link, size_t budget)
{
    char *scratch = link->links->scratch;
    while (link->fd >= 0 && !link->is_closed && budget) {
        bool goes_direct = is_direct(link);
        char *into = goes_direct ? link->body + link->body_len : scratch;
        size_t len = goes_direct ? link->body_cap - link->body_len : SCRATCH_SIZE;
        ssize_t got = receive(link->fd, into, len);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            close_in(link);
        if (got <= 0)
            return;
        if (goes_direct) {
            link->body_len += (size_t)got;
            frame_passed(&link->in, (size_t)got);
        }
        decode(link, scratch, goes_direct ? 0 : (size_t)got);
        if ((size_t)got < len) /* there was no more */
            return;
        budget -= (size_t)got < budget ? (size_t)got : budget;
    }
}
