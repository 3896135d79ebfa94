/* links.h - a driver's channels to the workers of one group, and the calls over them.
 *
 * The core of roost/group.h without processes: it is given connected sockets and told of deaths, so that
 * tests and fuzzers can be both sides. A link is a channel to one life of one rank.
 *
 * Frames (frame.h) are checked before a byte of their body is used. A link that sends what is no frame,
 * more than its cap, or an answer to a call it was not asked is cut: its calls are unknown, `on_cut` is
 * told, and nobody else notices. Answers of an older life, and second answers, are counted and dropped.
 * A payload for several ranks, or a large one, is written once into shared memory (regions.h) that is used
 * again when every receiver has given it back.
 *
 * Threads: every function takes the lock of the links, which a thread may take again. Of several threads
 * that wait one reads for all; while none does, a reader (reader.h) may. Callbacks run with the lock held: they may begin and end lives and look at
 * states, but neither wait nor call. Nor may who holds the lock by links_lock. */
#ifndef RPC_LINKS_H
#define RPC_LINKS_H

#include <roost/group.h>

struct links;

struct links_options {
    int32_t rank_count;
    size_t outbox_max; /* bytes queued for one link before a call waits for room; 0 = 64 MiB */
    size_t answer_max; /* bytes of one answer; 0 = 4 GiB less one */
    /* How long after a channel's end links_end is waited for, which tells better what happened, before
     * its calls are unknown; 0 = 1,000, -1 = not at all. */
    int32_t close_grace_ms;
    /* Also watched; -1 = none. Readable: on_other is called, with the lock held, and takes all there is;
     * when the other side has closed, for the last time. */
    int other_fd;
    void (*on_other)(void *context);
    void (*on_cut)(void *context, int32_t rank, int32_t life, const char *why);
    void *context;
};

struct links *links_new(
    const struct links_options *options); /* NULL without memory or descriptors */
void links_free(struct links *links);     /* closes every channel */

/* A life of a rank has begun: takes its socket. Calls made before it go to it, once it is there. */
bool links_add(struct links *links, int32_t rank, int32_t life, int32_t pid, int fd);

/* A life has ended (or will never begin): what it still answered is read first, then its calls are
 * unknown, with `why`. Calls from now on are not run, with the same words. */
void links_end(struct links *links, int32_t rank, int32_t life, const char *why);

enum link_state { LINK_STARTING, LINK_READY, LINK_REFUSED, LINK_ENDED };
/* `out_bytes` (may be NULL): what the worker said with READY or REFUSED; good until the rank's next life. */
enum link_state links_state(struct links *links, int32_t rank, struct roost_bytes *out_bytes);

/* Whether the rank said in this life, which may be over, that it cannot serve, and its words for it. */
bool links_refusal(struct links *links, int32_t rank, struct roost_bytes *out_bytes);

/* Waits until `is_enough(context)`, which is asked with the lock held after every change, or the time is
 * up: false. */
bool links_wait(struct links *links, int32_t timeout_ms, bool (*is_enough)(void *), void *context);

/* The lock, for who keeps something beside the links that on_other changes. */
void links_lock(struct links *links);
void links_unlock(struct links *links);

int links_fd(const struct links *links);
void links_pump(struct links *links);

/* `fd`, an eventfd, is borrowed and written to after every change, whoever has read of it. False without
 * memory. */
bool links_listen(struct links *links, int fd);
void links_unlisten(struct links *links, int fd);

/* `fd`, an eventfd, is borrowed and written to when requests have no answer and nobody waits: once, until
 * links_look finds nothing to do. -1 = it is no more. */
void links_set_reader(struct links *links, int fd);
/* A look of who reads while nobody waits. It reads only when nobody else has since the look before, whose
 * *seen that is: those who call and then wait are not disturbed. */
enum links_look {
    LOOK_NOTHING, /* there are no requests without an answer, or somebody waits: links tell */
    LOOK_LATER,   /* others have read: look again after a while */
    LOOK_READ,    /* nobody else reads: look again when links_fd is readable */
};
enum links_look links_look(struct links *links, uint64_t *seen);

struct roost_call *links_call(struct links *links, const struct roost_call_options *options,
                              struct roost_error *err);

struct links_counts {
    uint64_t answers, dropped_late, dropped_twice, cut;
};
struct links_counts links_counts(struct links *links);

#endif
