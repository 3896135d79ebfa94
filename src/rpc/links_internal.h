/* links_internal.h - the structs of links, shared by links.c (the object), link.c (a socket), link_out.c and
 * link_in.c (its two directions), links_wait.c (threads that wait), question.c and calls.c.
 *
 * Words: a link is the socket to one rank in its current life. A slot of a link is a request that was sent,
 * or will be, and has no answer yet. The id of a request names its slot and its sequence number in the link,
 * because slots are reused. A slot whose call is gone is kept until the answer arrives. So the link can
 * distinguish a late answer, a second answer, and an answer to no request. */
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
    struct roost_call *call; /* NULL = its call is gone, or the slot is free */
    uint64_t sequence;       /* 0 = free */
    uint32_t index;          /* of the outcome in the call; of a free slot: the next free one */
    bool is_unsent;          /* no byte of it was sent: the socket had closed before */
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
    int fd;         /* -1 = not open yet, or closed */
    uint32_t epoch; /* of `fd`: kernel events about an older one are ignored */
    enum link_state state;
    bool is_deaf;   /* nothing can be sent to the worker any more; its data is still read */
    bool is_closed; /* nothing can be received any more */
    bool is_watched_out;
    bool is_kept;   /* the body that is being received will be used */
    bool has_short; /* but there was no memory for it */
    struct frame_decoder in;
    char *body; /* the body that is being received */
    size_t body_len, body_cap;
    char *said; /* the payload of READY or REFUSED */
    bool has_refused;
    size_t said_len;
    char *why; /* the reason of its end; NULL = no memory for it */
    struct out_frame *out_first, *out_last;
    size_t out_bytes;
    struct slot *slots;
    uint32_t slot_cap, slot_free, slot_used;
    uint64_t sequence; /* of the last request */
    struct link_map *maps;
    uint32_t map_count, map_cap;
    struct timer timer; /* deaf: until its end is reported; otherwise: until the next try to send */
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
    int64_t timer_at;  /* the time that timer_fd is set to; 0 = not set */
    struct link *link; /* [rank_count] */
    struct timers timers;
    struct regions regions;
    struct waiter *waiters;
    struct waiter *leader; /* the one that reads for all */
    int64_t leader_until;  /* when it gives up; -1 = never */
    bool is_asleep;        /* the leader sleeps in the kernel */
    struct spin spin;      /* the leader's */
    int cores;             /* that this process may use */
    uint64_t asked;        /* requests of all links that have no answer yet */
    bool has_changed;      /* since the waiters were last checked */
    uint64_t reads;        /* how often a thread has read the sockets */
    int reader_fd;         /* eventfd of the background reader; -1 = there is none */
    bool is_noticed;       /* the reader was notified, and polls until there is nothing to read */
    int *listeners;        /* [listener_count] eventfds that notify event loops of changes */
    size_t listener_count;
    uint64_t call_count;
    struct links_counts counts;
    char *scratch; /* [SCRATCH_SIZE] the last received bytes */
};

struct outcome {
    int32_t rank;
    uint8_t kind;  /* enum roost_outcome_kind */
    uint32_t slot; /* SLOT_NONE = no request */
    char *bytes;   /* the answer, or the reason in words */
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

/* Ends a life: the outcome of its requests is unknown, and its memory is freed. */
void link_end(struct link *link, const char *why);
/* The same for a link that broke the rules; calls on_cut. */
void link_cut(struct link *link, const char *why);
/* Nothing can be sent any more. links_end will soon report the end with a better reason; if it does not, the
 * link is cut. */
void link_deafen(struct link *link);

/* Room for one more request; false without memory. */
bool link_reserve(struct link *link);
/* The id of a new request; call link_reserve before. */
uint64_t link_ask(struct link *link, struct roost_call *call, size_t index);
/* The slot of a request that waits for its answer; NULL = no such request. */
struct slot *link_slot(struct link *link, uint64_t id);
void link_free_slot(struct link *link, struct slot *slot);

/* --- link_out.c --- */

/* Sends, and queues what the socket does not take now; `fd` goes with the first byte. False without memory;
 * if a part was already sent, the link is cut. */
bool link_put(struct link *link, const struct iovec *vectors, size_t count, int fd);
/* Sends queued bytes. */
void link_flush(struct link *link);
void link_drop_out(struct link *link);
/* Whether `len` more bytes fit into the queue of the link. */
bool link_has_room(const struct link *link, size_t len);

/* Adds a use of `region` by the link's worker. *out_is_new: the worker does not know it yet, so MAP must be
 * sent. False without memory. */
bool link_use_region(struct link *link, struct region *region, bool *out_is_new);
/* Undoes link_use_region when nothing was sent. */
void link_unuse_region(struct link *link, struct region *region, bool was_new);
/* The worker has released one use; false when it has none. */
bool link_release_region(struct link *link, uint32_t id);
/* Drops all uses of a life that has ended. */
void link_drop_regions(struct link *link);
/* Unmaps and frees idle regions beyond the limit. */
void links_trim_regions(struct links *links);

/* --- link_in.c --- */

/* Receives what has arrived, at most about `budget` bytes. */
void link_receive(struct link *link, size_t budget);

/* --- question.c --- */

/* What is asked of every rank of a call; method and pieces are borrowed. */
struct question {
    const char *method;
    size_t method_len, payload_len;
    const struct roost_bytes *pieces; /* of the payload; at most as many as one send takes */
    size_t piece_count;
    struct region *region; /* has a copy of the payload; NULL = the payload is sent in the frame */
    struct roost_bytes flat; /* the payload in one piece, if it came in too many */
};

/* False without memory. Call it, and question_release, without the lock: it may copy a large payload into
 * shared memory. */
bool question_init(struct question *question, struct links *links,
                   const struct roost_call_options *options);
void question_release(struct question *question, struct links *links);
/* The most bytes that are sent to one rank. */
size_t question_len(const struct question *question);
/* Asks a link that has room for one more request; false without memory. */
bool question_send(const struct question *question, struct link *link, struct roost_call *call,
                   size_t index);

/* --- calls.c --- */

/* Decides an outcome; takes `bytes`. */
void call_settle(struct roost_call *call, size_t index, enum roost_outcome_kind kind, char *bytes,
                 size_t len);
/* A copy; NULL without memory. */
char *copy_words(const char *words);
/* Decides an outcome that has only a reason; copies `why`. */
void call_lose(struct roost_call *call, size_t index, enum roost_outcome_kind kind,
               const char *why);

/* --- links_wait.c --- */

/* Waits. Call it with the lock held once; it releases the lock while it sleeps. `deadline` -1 = none. */
bool links_wait_held(struct links *links, int64_t deadline, bool (*is_enough)(void *),
                     void *context);
/* Notifies waiting threads of changes, then unlocks. */
void links_leave(struct links *links);
/* Sets a timer, so that links_fd becomes readable when it is due. */
void links_set_timer(struct links *links, struct timer *timer, int64_t at);
/* Handles what has arrived, without waiting. */
void links_pump_held(struct links *links);

/* Identifies the socket of an epoll event; a negative rank is one of MARK_... */
struct mark {
    int32_t rank;
    uint32_t epoch;
};
enum { MARK_WAKE = -1, MARK_OTHER = -2, MARK_TIMER = -3 };
/* `how` as epoll_ctl. */
bool links_watch(struct links *links, int how, int fd, uint32_t events, struct mark mark);

#endif
