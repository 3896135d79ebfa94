/* links_internal.h - the structs of links, shared by links.c (the object), link.c (a socket), link_out.c and
 * link_in.c (its two directions), links_wait.c (threads that wait), question.c and calls.c.
 *
 * Words: a link is the socket to one rank, in the life it has now. A slot of a link is a request that was
 * sent, or will be, and has no answer yet; the id of a request names its slot and, since slots are used
 * again, the place in the row of all requests of the link. A slot whose call is gone is kept until the
 * answer comes, so that a late answer is told from a second one, and both from one to no request. */
#ifndef RPC_LINKS_INTERNAL_H
#define RPC_LINKS_INTERNAL_H

#include <pthread.h>
#include <sys/uio.h>

#include "rpc/frame.h"
#include "rpc/links.h"
#include "rpc/regions.h"
#include "rpc/spin.h"
#include "rpc/timers.h"

enum {
    SLOT_BITS = 24,
    SLOT_NONE = (1 << SLOT_BITS) - 1, /* no slot has this number */
    SCRATCH_SIZE = 64 << 10,
    VECTORS_MAX = 32,             /* pieces of one send */
    SHARE_MIN = 128 << 10,        /* a payload of this size goes by shared memory */
    SHARE_SEVERAL_MIN = 32 << 10, /* the same for one that goes to several ranks */
};

struct slot {
    struct roost_call *call; /* NULL = nobody waits for it, or the slot is free */
    uint64_t sequence;       /* 0 = free */
    uint32_t index;          /* of the outcome in the call; of a free slot: the next free one */
    bool is_unsent;          /* nothing of it has gone anywhere: the socket had closed before */
};

/* Bytes that wait for room in the socket. */
struct out_frame {
    struct out_frame *next;
    size_t len, sent;
    int fd; /* goes with the first byte; -1 = none. Borrowed from a region in use */
    char bytes[];
};

/* A region that the worker of a link has mapped. */
struct link_map {
    struct region *region;
    uint32_t uses;
};

struct link {
    struct links *links;
    int32_t rank;
    int32_t life;   /* 0 = the first one has not begun */
    int fd;         /* -1 = not there yet, or closed */
    uint32_t epoch; /* of `fd`: what the kernel tells of an older one is not for this one */
    enum link_state state;
    bool is_deaf;   /* nothing reaches the worker any more; what it has sent is still read */
    bool is_closed; /* nothing comes any more */
    bool is_watched_out;
    bool is_kept;   /* the body that is being received is wanted */
    bool has_short; /* but there was no memory for it */
    struct frame_decoder in;
    char *body; /* the body that is being received */
    size_t body_len, body_cap;
    char *said; /* with READY or REFUSED */
    bool has_refused;
    size_t said_len;
    char *why; /* it ended; NULL = no memory for the words */
    struct out_frame *out_first, *out_last;
    size_t out_bytes;
    struct slot *slots;
    uint32_t slot_cap, slot_free, slot_used;
    uint64_t sequence; /* of the last request */
    struct link_map *maps;
    uint32_t map_count, map_cap;
    struct timer timer; /* deaf: until its end is told; otherwise: until sending is tried again */
    uint64_t marked;    /* the last call that named this rank */
};

struct waiter {
    struct waiter *next, **back;
    bool (*is_enough)(void *context);
    void *context;
    bool is_done;
    bool has_cond;
    pthread_cond_t cond;
};

struct links {
    pthread_mutex_t lock; /* recursive: callbacks run with it held */
    struct links_options options;
    struct frame_limits limits;
    int poll_fd, wake_fd, timer_fd;
    int64_t timer_at;  /* what timer_fd is set to; 0 = not */
    struct link *link; /* [rank_count] */
    struct timers timers;
    struct regions regions;
    struct waiter *waiters;
    struct waiter *leader; /* the one that reads for all */
    int64_t leader_until;  /* when it gives up; -1 = never */
    bool is_asleep;        /* the leader, in the kernel */
    struct spin spin;      /* the leader's */
    int cores;             /* that this process may use */
    uint64_t asked;        /* requests of all links that have no answer yet */
    bool has_changed;      /* since waiters were last asked */
    uint64_t reads;        /* how often somebody has looked for what has come */
    int reader_fd;         /* tells who reads while nobody waits; -1 = there is none */
    bool is_noticed;       /* it was told, and looks until there is nothing to read */
    int *listeners;        /* [listener_count] descriptors that tell event loops of changes */
    size_t listener_count;
    uint64_t call_count;
    struct links_counts counts;
    char *scratch; /* [SCRATCH_SIZE] what was received last */
};

struct outcome {
    int32_t rank;
    uint8_t kind;  /* enum roost_outcome_kind */
    uint32_t slot; /* SLOT_NONE = no request */
    char *bytes;   /* the answer, or the words */
    size_t len;
};

struct roost_call {
    struct links *links;
    struct timer timer;
    int32_t timeout_ms;
    size_t count, pending;
    struct outcome outcomes[];
};

/* --- link.c --- */

void link_init(struct link *link, struct links *links, int32_t rank);

/* Ends a life: its requests are unknown, its memory is given back. */
void link_end(struct link *link, const char *why);
/* The same for what it did itself; tells on_cut. */
void link_cut(struct link *link, const char *why);
/* Nothing can be sent any more. Its end will be told in a moment, with better words; if not, it is cut. */
void link_deafen(struct link *link);

/* Room for one more request; false without memory. */
bool link_reserve(struct link *link);
/* The id of a new request; there was room. */
uint64_t link_ask(struct link *link, struct roost_call *call, size_t index);
/* The slot of an id that waits for its answer; NULL = none does. */
struct slot *link_slot(struct link *link, uint64_t id);
void link_free_slot(struct link *link, struct slot *slot);

/* --- link_out.c --- */

/* Sends, or keeps what does not fit now; `fd` goes with the first byte. False without memory: a link of
 * which a part was sent is cut then. */
bool link_put(struct link *link, const struct iovec *vectors, size_t count, int fd);
/* Sends what was kept. */
void link_flush(struct link *link);
void link_drop_out(struct link *link);
/* Whether the worker is not too far behind for `len` more bytes. */
bool link_has_room(const struct link *link, size_t len);

/* Makes `region` known to the link's worker: *out_is_new when it must be sent. False without memory. */
bool link_use_region(struct link *link, struct region *region, bool *out_is_new);
/* Takes that back: it was not sent. */
void link_unuse_region(struct link *link, struct region *region, bool was_new);
/* The worker gives one use back; false when it has none. */
bool link_release_region(struct link *link, uint32_t id);
/* All uses of a life that has ended. */
void link_drop_regions(struct link *link);
/* Gives back what is too much. */
void links_trim_regions(struct links *links);

/* --- link_in.c --- */

/* Takes what has come, at most about `budget` bytes. */
void link_receive(struct link *link, size_t budget);

/* --- question.c --- */

/* What is asked of every rank of a call; method and pieces are borrowed. */
struct question {
    const char *method;
    size_t method_len, payload_len;
    const struct roost_bytes *pieces; /* of the payload; at most as many as one send takes */
    size_t piece_count;
    struct region *region;   /* where the payload is, too; NULL = it goes along */
    struct roost_bytes flat; /* the payload in one piece, if it came in too many */
};

/* False without memory. Called without the lock, as release is: a payload that is shared is copied here. */
bool question_init(struct question *question, struct links *links,
                   const struct roost_call_options *options);
void question_release(struct question *question, struct links *links);
/* At most so many bytes are sent to a rank. */
size_t question_len(const struct question *question);
/* Asks a link that has room for one more request; false without memory. */
bool question_send(const struct question *question, struct link *link, struct roost_call *call,
                   size_t index);

/* --- calls.c --- */

/* An outcome; `bytes` is taken. */
void call_settle(struct roost_call *call, size_t index, enum roost_outcome_kind kind, char *bytes,
                 size_t len);
/* NULL without memory. */
char *copy_words(const char *words);
/* An outcome in words, which are copied. */
void call_lose(struct roost_call *call, size_t index, enum roost_outcome_kind kind,
               const char *why);

/* --- links_wait.c --- */

/* Waits with the lock held once, and gives it away meanwhile. `deadline` -1 = none. */
bool links_wait_held(struct links *links, int64_t deadline, bool (*is_enough)(void *),
                     void *context);
/* Tells those who wait of what has changed, then unlocks. */
void links_leave(struct links *links);
/* Sets a timer, so that links_fd tells of it. */
void links_set_timer(struct links *links, struct timer *timer, int64_t at);
/* Takes what has come, without waiting. */
void links_pump_held(struct links *links);

/* Whose socket the kernel tells of; a negative rank is one of MARK_... */
struct mark {
    int32_t rank;
    uint32_t epoch;
};
enum { MARK_WAKE = -1, MARK_OTHER = -2, MARK_TIMER = -3 };
/* `how` as epoll_ctl. */
bool links_watch(struct links *links, int how, int fd, uint32_t events, struct mark mark);

#endif
