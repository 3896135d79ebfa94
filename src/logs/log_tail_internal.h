/* log_tail_internal.h - the structs of a tail, shared by log_tail.c, log_watch.c and log_slots.c.
 *
 * A stream is queued when it has to be read: after an event of its directory, when polling finds that it has
 * grown, or because it had more than one chunk. */
#ifndef LOGS_LOG_TAIL_INTERNAL_H
#define LOGS_LOG_TAIL_INTERNAL_H

#include <sys/types.h>

#include "logs/log_tail.h"

enum {
    NOT_QUEUED = -2,
    QUEUE_END = -1,
    NO_SLOT = -1,
    WATCH_NO_DIRECTORY = -1, /* will be tried again */
    WATCH_REFUSED = -2,      /* the system gives none */
    POLL_MS = 100,
    POLL_FILES = 1000, /* looked at in one round: bounds what a tail without watches costs */
};

struct tail_stream {
    int64_t offset; /* of the first byte not taken */
    int64_t seen;   /* size when it was last read; -1 = look again */
    ino_t inode;    /* 0 = not opened yet */
    int32_t next;   /* in the queue */
    int32_t slot;
    uint32_t memo;
    bool is_refused;
    bool is_ending; /* hand on with is_end what is there */
};

struct tail_rank {
    int32_t component; /* into tail->components */
    int32_t rank;
    int32_t watch; /* or WATCH_* */
    struct tail_stream streams[LOG_STREAMS];
};

struct tail_component {
    char name[64];
    int32_t index;  /* the caller's */
    int32_t first;  /* of its ranks */
    int32_t rising; /* so many ranks from there on are its own, and in rising order */
};

struct tail_slot {
    int fd; /* -1 = free */
    int32_t stream;
};

struct log_tail {
    int run_dir;
    int notify; /* -1 = none */
    struct tail_component *components;
    struct tail_rank *ranks;
    int32_t component_count, component_room, rank_count, rank_room;
    int32_t *rank_of_watch; /* -1 = not ours */
    int32_t watch_room;
    int32_t watched, without_directory; /* ranks */
    int32_t queue_first, queue_last, queued;
    struct tail_slot *slots;
    int32_t slot_count, slot_hand;
    int32_t poll_hand;
    int64_t poll_due; /* monotonic ms */
    bool
        checks_all; /* the next round looks at every file: events were lost, or descriptors short */
    bool is_finishing;
    struct log_trouble trouble;
    int64_t time; /* see log_tail_time */
    char *buffer;
};

/* Streams are numbered through: rank * LOG_STREAMS + stream. */
static inline struct tail_stream *tail_stream(struct log_tail *tail, int32_t stream)
{
    return &tail->ranks[stream / LOG_STREAMS].streams[stream % LOG_STREAMS];
}

void tail_queue(struct log_tail *tail, int32_t stream);

/* The place of a rank in tail->ranks, -1 = none. `component` is a place in tail->components. */
int32_t tail_find_rank(const struct log_tail *tail, int32_t component, int32_t rank);

/* Passes on a stream up to `limit`, with is_end if asked for. False when the sink wants no more for now. */
bool tail_read_until(struct log_tail *tail, int32_t stream, int64_t limit, bool is_end,
                     log_sink sink, void *ctx);

/* Goes on at the start of the line that has the byte before `offset`; at `offset` when that line is longer
 * than LOG_LINE_MAX so far. */
void tail_place(struct log_tail *tail, int32_t stream, int64_t offset);

/* log_slots.c: the descriptors. */
bool slots_init(struct log_tail *tail);
void slots_release(struct log_tail *tail);
/* A descriptor of the stream, kept by its slot; -1 when it cannot be had now. */
int slots_open(struct log_tail *tail, int32_t stream);
void slots_close(struct log_tail *tail, int32_t stream);
/* Remembers that the stream cannot be read; it is left alone from here. */
void slots_refuse(struct log_tail *tail, int32_t stream, int error);

/* log_watch.c: what tells that files grew. */
void watch_init(struct log_tail *tail);
void watch_release(struct log_tail *tail);
/* Tries to watch the rank; false when there is no memory. */
bool watch_add(struct log_tail *tail, int32_t rank);
/* Queues the streams that events name. */
void watch_drain(struct log_tail *tail);
/* Queues what has changed among files without a watch, when a round is due. */
void watch_poll(struct log_tail *tail);
int64_t watch_now(void);

#endif
