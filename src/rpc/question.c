/* question.c - the request that a call sends to every rank: a method and its payload. The payload is sent to
 * each rank, or shared by all in memory. */
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "rpc/links_internal.h"

enum { PIECES_MAX = VECTORS_MAX - 3 }; /* beside two headers and the method */

static void copy_pieces(char *into, const struct roost_bytes *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        copy_bytes(into, pieces[i].at, pieces[i].len);
        into += pieces[i].len;
    }
}

/* Below, sending a copy to each is faster than the memory's way there and back (bench/call_speed.c). */
static bool is_worth_sharing(size_t len, size_t ranks)
{
    return len >= SHARE_MIN || (ranks > 1 && len >= SHARE_SEVERAL_MIN);
}

/* A payload in shared memory is copied once, whatever the number of its readers; others go on meanwhile. */
static void share(struct links *links, struct question *question)
{
    links_lock(links);
    question->region = regions_take(&links->regions, question->payload_len);
    links_leave(links);
    if (question->region)
        copy_pieces(question->region->at, question->pieces, question->piece_count);
}

bool question_init(struct question *question, struct links *links,
                   const struct roost_call_options *options)
{
    size_t ranks = options->ranks ? options->rank_count : (size_t)links->options.rank_count;
    *question = (struct question){.method = options->method,
                                  .method_len = strlen(options->method),
                                  .pieces = options->bytes,
                                  .piece_count = options->byte_count};
    for (size_t i = 0; i < options->byte_count; i++)
        if (__builtin_add_overflow(question->payload_len, options->bytes[i].len,
                                   &question->payload_len))
            return false;
    if (is_worth_sharing(question->payload_len, ranks))
        share(links, question);
    if (question->region || question->piece_count <= PIECES_MAX)
        return true;
    char *bytes = malloc(question->payload_len ? question->payload_len : 1);
    if (!bytes)
        return false;
    copy_pieces(bytes, question->pieces, question->piece_count);
    question->flat = (struct roost_bytes){bytes, question->payload_len};
    question->pieces = &question->flat;
    question->piece_count = 1;
    return true;
}

void question_release(struct question *question, struct links *links)
{
    free((void *)(uintptr_t)question->flat.at);
    if (!question->region)
        return;
    links_lock(links);
    regions_drop(&links->regions, question->region, 1);
    links_trim_regions(links);
    links_leave(links);
}

static size_t put_payload(const struct question *question, struct iovec *vectors)
{
    size_t count = 0;
    for (size_t i = 0; i < question->piece_count; i++)
        if (question->pieces[i].len)
            vectors[count++] =
                (struct iovec){(void *)(uintptr_t)question->pieces[i].at, question->pieces[i].len};
    return count;
}

size_t question_len(const struct question *question)
{
    return 2 * FRAME_SIZE + question->method_len + (question->region ? 0 : question->payload_len);
}

bool question_send(const struct question *question, struct link *link, struct roost_call *call,
                   size_t index)
{
    struct iovec vectors[VECTORS_MAX];
    size_t count = 0;
    bool is_new = false;
    int fd = -1; /* of a region that the worker does not have yet */
    struct region *region = link->is_deaf ? NULL : question->region;
    if (region && !link_use_region(link, region, &is_new))
        return false;
    struct frame map = frame_of(FRAME_MAP, link->life), frame = frame_of(FRAME_CALL, link->life);
    if (is_new) {
        map.region = region->id;
        map.payload_len = region->size;
        fd = region->fd;
        vectors[count++] = (struct iovec){&map, sizeof map};
    }
    frame.method_len = (uint32_t)question->method_len;
    frame.payload_len = question->payload_len;
    frame.region = region ? region->id : 0;
    frame.call = link_ask(link, call, index);
    vectors[count++] = (struct iovec){&frame, sizeof frame};
    if (question->method_len)
        vectors[count++] =
            (struct iovec){(void *)(uintptr_t)question->method, question->method_len};
    if (!region)
        count += put_payload(question, vectors + count);
    bool is_put = link_put(link, vectors, count, fd);
    struct slot *slot = link_slot(link, frame.call);
    if (slot) /* or the link has just ended */
        slot->is_unsent = link->is_deaf;
    if (is_put)
        return true;
    if (region && link->state != LINK_ENDED)
        link_unuse_region(link, region, is_new);
    return false;
}
