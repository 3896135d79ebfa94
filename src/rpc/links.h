/* links.h - a driver's sockets to the workers of one group, and the calls over them.
 *
 * The core of roost/group.h without processes. The caller passes connected sockets and reports the end of
 * lives, so that tests and fuzzers can play both sides. A link is a socket to one life of one rank.
 *
 * Links check each frame (frame.h) before they use a byte of its body. They cut a link that sends something
 * else, more than its limit, or an answer that no call waits for: its calls become unknown, and `on_cut`
 * reports it. Other links are not affected. Answers of an older life and second answers are counted and
 * dropped. A payload for several ranks, or a large one, is written once into shared memory (regions.h),
 * which is reused when every receiver has released it.
 *
 * Threads: every function takes the lock of the links, and a thread may take it twice. If several threads
 * wait, one of them reads for all; while none waits, a reader (call_reader.h) may read. Callbacks run with
 * the lock held: they may begin and end lives and look at states, but must neither wait nor call. The same
 * holds for a caller between links_lock and links_unlock. */
#ifndef RPC_LINKS_H
#define RPC_LINKS_H

#include <roost/group.h>

struct links;

struct links_options {
    int32_t rank_count;
    size_t outbox_max; /* bytes queued for one link before a call waits for room; 0 = 64 MiB */
    size_t answer_max; /* bytes of one answer; 0 = 4 GiB less one */
    /* After the end of a socket: how long to wait for links_end, which knows the reason better, before its
     * calls become unknown. 0 = 1,000; -1 = not at all. */
    int32_t close_grace_ms;
    /* Another descriptor to watch; -1 = none. When it is readable, on_other is called with the lock held and
     * reads everything; after the other side has closed, for the last time. */
    int other_fd;
    void (*on_other)(void *context);
    void (*on_cut)(void *context, int32_t rank, int32_t life, const char *why);
    void *context;
};

/* NULL without memory or descriptors. */
struct links *links_new(const struct links_options *options);

/* Closes every socket. */
void links_free(struct links *links);

/* A life of a rank has begun: takes its socket. Calls that were made before go to this life. */
bool links_add(struct links *links, int32_t rank, int32_t life, int32_t pid, int fd);

/* A life has ended, or will never begin: reads its last answers, then its other calls become unknown, with
 * `why` as the reason. Later calls are not run, with the same reason. */
void links_end(struct links *links, int32_t rank, int32_t life, const char *why);

enum link_state { LINK_STARTING, LINK_READY, LINK_REFUSED, LINK_ENDED };
/* `out_bytes` (may be NULL) is what the worker sent with READY or REFUSED; valid until the rank's next life. */
enum link_state links_state(struct links *links, int32_t rank, struct roost_bytes *out_bytes);

/* Whether the rank refused to serve in this life, which may be over, and what it sent as the reason. */
bool links_refusal(struct links *links, int32_t rank, struct roost_bytes *out_bytes);

/* Waits until `is_enough(context)`, which is called with the lock held after every change. False when the
 * time is up. */
bool links_wait(struct links *links, int32_t timeout_ms, bool (*is_enough)(void *), void *context);

/* The lock, for a caller whose own data on_other changes. */
void links_lock(struct links *links);
void links_unlock(struct links *links);

int links_fd(const struct links *links);
void links_pump(struct links *links);

/* Writes to the eventfd `fd`, which it borrows, after every change, whichever thread has read it. False
 * without memory. */
bool links_listen(struct links *links, int fd);
void links_unlisten(struct links *links, int fd);

/* Sets the eventfd of the background reader, which the links borrow; -1 = there is none. They write to it
 * when requests have no answer and no thread waits: once, until links_look finds nothing to do. */
void links_set_reader(struct links *links, int fd);

/* Background poll. It reads only if no other thread has read since the previous poll, so that a thread which
 * calls and then waits is not disturbed. `*seen` holds the read counter of the previous poll. */
enum links_look {
    LOOK_NOTHING, /* no request lacks an answer, or a thread waits: the eventfd tells when to poll again */
    LOOK_LATER, /* another thread has read: poll again after a while */
    LOOK_READ,  /* no other thread reads: poll again when links_fd is readable */
};
enum links_look links_look(struct links *links, uint64_t *seen);

struct roost_call *links_call(struct links *links, const struct roost_call_options *options,
                              struct roost_error *err);

struct links_counts {
    uint64_t answers, dropped_late, dropped_twice, cut;
};
struct links_counts links_counts(struct links *links);

#endif
