/* link_out.c - sends to a worker: at once if the socket takes the bytes, else it queues them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rpc/links_internal.h"

#define OUTBOX_MAX ((size_t)64 << 20)

enum { RETRY_MS = 5 };

enum sent {
    SENT_SOME,
    SENT_FULL,  /* no room now; the kernel will tell */
    SENT_LATER, /* no room now; nobody will tell */
    SENT_GONE,
};

/* One send, with a descriptor unless that is -1. */
static enum sent send_vectors(int socket, struct iovec *vectors, size_t count, int fd,
                              size_t *out_len)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *item = CMSG_FIRSTHDR(&message);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(item), &fd, sizeof fd);
    }
    for (;;) {
        ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        *out_len = sent > 0 ? (size_t)sent : 0;
        if (sent >= 0)
            return SENT_SOME;
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN)
            return SENT_FULL;
        /* Too many descriptors of this user are on their way, or the kernel has no memory. */
        return errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM ? SENT_LATER
                                                                            : SENT_GONE;
    }
}

void link_drop_out(struct link *link)
{
    while (link->out_first) {
        struct out_frame *next = link->out_first->next;
        free(link->out_first);
        link->out_first = next;
    }
    link->out_last = NULL;
    link->out_bytes = 0;
}

bool link_has_room(const struct link *link, size_t len)
{
    size_t max = link->links->options.outbox_max ? link->links->options.outbox_max : OUTBOX_MAX;
    return link->out_bytes == 0 || (link->out_bytes <= max && len <= max - link->out_bytes);
}

static void watch_out(struct link *link, bool is_wanted)
{
    if (link->fd < 0 || link->is_closed || link->is_watched_out == is_wanted)
        return;
    uint32_t events = EPOLLIN | (is_wanted ? EPOLLOUT : 0U);
    struct mark mark = {link->rank, link->epoch};
    if (links_watch(link->links, EPOLL_CTL_MOD, link->fd, events, mark))
        link->is_watched_out = is_wanted;
}

/* What to do after a send that did not take all. */
static void wait_out(struct link *link, enum sent sent)
{
    if (sent == SENT_GONE)
        link_deafen(link);
    else if (sent == SENT_LATER)
        links_set_timer(link->links, &link->timer, timers_deadline(RETRY_MS));
    else
        watch_out(link, true);
}

/* Keeps a copy of all behind the first `sent` bytes. */
static bool keep(struct link *link, const struct iovec *vectors, size_t count, size_t sent, int fd)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        len += vectors[i].iov_len;
    struct out_frame *frame = malloc(sizeof *frame + len - sent);
    if (!frame)
        return false;
    *frame = (struct out_frame){.len = len - sent, .fd = fd};
    for (size_t i = 0; i < count; i++) {
        size_t skipped = sent < vectors[i].iov_len ? sent : vectors[i].iov_len;
        sent -= skipped;
        if (vectors[i].iov_len > skipped)
            memcpy(frame->bytes + at, (const char *)vectors[i].iov_base + skipped,
                   vectors[i].iov_len - skipped);
        at += vectors[i].iov_len - skipped;
    }
    if (link->out_last)
        link->out_last->next = frame;
    else
        link->out_first = frame;
    link->out_last = frame;
    link->out_bytes += frame->len;
    return true;
}

bool link_put(struct link *link, const struct iovec *vectors, size_t count, int fd)
{
    size_t len = 0, sent_len = 0;
    if (link->is_deaf)
        return true;
    for (size_t i = 0; i < count; i++)
        len += vectors[i].iov_len;
    if (link->fd < 0 || link->out_first)
        return keep(link, vectors, count, 0, fd);
    struct iovec first[VECTORS_MAX];
    size_t first_count = count < VECTORS_MAX ? count : VECTORS_MAX;
    memcpy(first, vectors, first_count * sizeof *first);
    enum sent sent = send_vectors(link->fd, first, first_count, fd, &sent_len);
    if (sent_len == len)
        return true;
    if (sent == SENT_GONE) {
        link_deafen(link);
        return true; /* its end tells what became of it */
    }
    if (!keep(link, vectors, count, sent_len, sent_len ? -1 : fd)) {
        if (sent_len)
            link_cut(link, "there was no memory for the rest of a request to it");
        return false;
    }
    wait_out(link, sent == SENT_SOME ? SENT_FULL : sent);
    return true;
}

/* The frames of one send: a descriptor goes with the first byte, so its frame is the first. */
static size_t gather(const struct link *link, struct iovec vectors[VECTORS_MAX], int *out_fd)
{
    size_t count = 0;
    *out_fd = -1;
    for (struct out_frame *at = link->out_first; at && count < VECTORS_MAX; at = at->next) {
        int fd = at->sent ? -1 : at->fd;
        if (fd >= 0 && count > 0)
            break;
        if (fd >= 0)
            *out_fd = fd;
        vectors[count++] = (struct iovec){at->bytes + at->sent, at->len - at->sent};
    }
    return count;
}

static void forget_sent(struct link *link, size_t len)
{
    link->out_bytes -= len;
    for (struct out_frame *frame; len && (frame = link->out_first);) {
        size_t left = frame->len - frame->sent;
        if (len < left) {
            frame->sent += len;
            return;
        }
        len -= left;
        link->out_first = frame->next;
        if (!link->out_first)
            link->out_last = NULL;
        free(frame);
    }
}

void link_flush(struct link *link)
{
    while (link->out_first && link->fd >= 0) {
        struct iovec vectors[VECTORS_MAX];
        int fd;
        size_t len, count = gather(link, vectors, &fd);
        enum sent sent = send_vectors(link->fd, vectors, count, fd, &len);
        if (sent != SENT_SOME) {
            wait_out(link, sent);
            return;
        }
        forget_sent(link, len);
        link->links->has_changed = true; /* there may be room now */
    }
    watch_out(link, false);
}

/* --- regions --- */

bool link_use_region(struct link *link, struct region *region, bool *out_is_new)
{
    uint32_t i = 0;
    while (i < link->map_count && link->maps[i].region != region)
        i++;
    *out_is_new = i == link->map_count;
    if (*out_is_new && i == link->map_cap) {
        uint32_t cap = link->map_cap ? 2 * link->map_cap : 2;
        struct link_map *maps = realloc(link->maps, cap * sizeof *maps);
        if (!maps)
            return false;
        link->maps = maps;
        link->map_cap = cap;
    }
    if (*out_is_new) {
        link->maps[link->map_count++] = (struct link_map){region, 0};
        region->maps++;
    }
    link->maps[i].uses++;
    region->uses++;
    return true;
}

void link_unuse_region(struct link *link, struct region *region, bool was_new)
{
    uint32_t i = 0;
    while (link->maps[i].region != region)
        i++;
    link->maps[i].uses--;
    region->uses--;
    if (!was_new)
        return;
    link->maps[i] = link->maps[--link->map_count];
    region->maps--;
}

bool link_release_region(struct link *link, uint32_t id)
{
    for (uint32_t i = 0; i < link->map_count; i++)
        if (link->maps[i].region->id == id && link->maps[i].uses) {
            link->maps[i].uses--;
            regions_drop(&link->links->regions, link->maps[i].region, 1);
            link->links->has_changed = true;
            links_trim_regions(link->links);
            return true;
        }
    return false;
}

void link_drop_regions(struct link *link)
{
    for (uint32_t i = 0; i < link->map_count; i++) {
        link->maps[i].region->maps--;
        regions_drop(&link->links->regions, link->maps[i].region, link->maps[i].uses);
    }
    free(link->maps);
    link->maps = NULL;
    link->map_count = link->map_cap = 0;
    links_trim_regions(link->links);
}

static void unmap(struct link *link, struct region *region)
{
    for (uint32_t i = 0; i < link->map_count; i++)
        if (link->maps[i].region == region) {
            link->maps[i] = link->maps[--link->map_count];
            region->maps--;
            /* A worker that gives back what it was not sent yet does not get it. */
            for (struct out_frame *at = link->out_first; at; at = at->next)
                at->fd = at->fd == region->fd ? -1 : at->fd;
            struct frame frame = frame_of(FRAME_UNMAP, link->life);
            frame.region = region->id;
            struct iovec vector = {&frame, sizeof frame};
            /* Without memory the worker keeps a mapping that is never used again. */
            (void)link_put(link, &vector, 1, -1);
            return;
        }
}

void links_trim_regions(struct links *links)
{
    for (struct region *region; (region = regions_surplus(&links->regions));) {
        for (int32_t rank = 0; region->maps && rank < links->options.rank_count; rank++)
            unmap(&links->link[rank], region);
        region_free(region);
    }
}
