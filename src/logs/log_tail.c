/* log_tail.c - the queue of streams to read, and reading them in turns.
 *
 * Reads files of a run directory and calls a sink; knows no terminal and changes nothing. Keeps: a stream is
 * in the queue at most once; every byte is passed on in order, and not again once the sink has taken it;
 * nothing that was read is stored. */
#include "logs/log_tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/search.h"
#include "logs/line_reader.h"
#include "logs/log_tail_internal.h"

enum { READ_MAX = 16 * LOG_CHUNK_MAX, ROOM_FIRST = 16 };

static struct log_tail *make(int run_dir, bool has_watches, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct log_tail *tail = calloc(1, sizeof *tail);
    if (tail) {
        tail->run_dir = run_dir;
        tail->queue_first = tail->queue_last = QUEUE_END;
        tail->notify = -1;
        if (has_watches)
            watch_init(tail);
        tail->buffer = malloc(LOG_CHUNK_MAX);
    }
    if (!tail || !tail->buffer || !slots_init(tail)) {
        log_tail_free(tail);
        diag_nomem(&diag);
        return NULL;
    }
    return tail;
}

struct log_tail *log_tail_new(int run_dir, struct roost_error *err)
{
    return make(run_dir, true, err);
}

struct log_tail *log_tail_new_still(int run_dir, struct roost_error *err)
{
    return make(run_dir, false, err);
}

void log_tail_free(struct log_tail *tail)
{
    if (!tail)
        return;
    slots_release(tail);
    watch_release(tail);
    free(tail->components);
    free(tail->ranks);
    free(tail->buffer);
    free(tail);
}

/* --- the queue --- */

void tail_queue(struct log_tail *tail, int32_t stream)
{
    struct tail_stream *it = tail_stream(tail, stream);
    if (it->next != NOT_QUEUED || it->is_refused)
        return;
    it->next = QUEUE_END;
    if (tail->queue_last == QUEUE_END)
        tail->queue_first = stream;
    else
        tail_stream(tail, tail->queue_last)->next = stream;
    tail->queue_last = stream;
    tail->queued++;
}

static int32_t take_first(struct log_tail *tail)
{
    int32_t stream = tail->queue_first;
    struct tail_stream *it = tail_stream(tail, stream);
    tail->queue_first = it->next;
    if (it->next == QUEUE_END)
        tail->queue_last = QUEUE_END;
    it->next = NOT_QUEUED;
    tail->queued--;
    return stream;
}

static void put_first(struct log_tail *tail, int32_t stream)
{
    tail_stream(tail, stream)->next = tail->queue_first;
    if (tail->queue_last == QUEUE_END)
        tail->queue_last = stream;
    tail->queue_first = stream;
    tail->queued++;
}

/* --- adding --- */

/* Room for one more in an array that doubles. */
static bool grow(void **array, int32_t count, int32_t *room, size_t size)
{
    if (count < *room)
        return true;
    if (*room > INT32_MAX / (2 * LOG_STREAMS))
        return false;
    int32_t wanted = *room ? *room * 2 : ROOM_FIRST;
    void *grown = realloc(*array, (size_t)wanted * size);
    if (!grown)
        return false;
    *array = grown;
    *room = wanted;
    return true;
}

/* The entry of a component; ranks of one come together, so the last one is looked at first. */
static int32_t find_component(struct log_tail *tail, const char *name, int32_t index)
{
    for (int32_t i = tail->component_count - 1; i >= 0; i--)
        if (tail->components[i].index == index && strcmp(tail->components[i].name, name) == 0)
            return i;
    void *array = tail->components;
    if (!grow(&array, tail->component_count, &tail->component_room, sizeof *tail->components))
        return -1;
    tail->components = array;
    struct tail_component *it = &tail->components[tail->component_count];
    *it = (struct tail_component){.index = index, .first = tail->rank_count};
    memcpy(it->name, name, strlen(name));
    return tail->component_count++;
}

/* Starts behind what is there now. */
static void skip_present(struct log_tail *tail, struct tail_rank *rank)
{
    for (int stream = 0; stream < LOG_STREAMS; stream++) {
        struct stat info;
        if (log_file_look(tail->run_dir, tail->components[rank->component].name, rank->rank,
                          (enum log_stream)stream, &info) == 0)
            rank->streams[stream].offset = info.st_size;
    }
}

bool log_tail_add(struct log_tail *tail, const char *component, int32_t component_index,
                  int32_t rank, bool from_start)
{
    if (!is_name(sv_from(component)) || rank < 0)
        return false;
    int32_t owner = find_component(tail, component, component_index);
    void *array = tail->ranks;
    if (owner < 0 || !grow(&array, tail->rank_count, &tail->rank_room, sizeof *tail->ranks)) {
        tail->ranks = array;
        return false;
    }
    tail->ranks = array;
    struct tail_rank *it = &tail->ranks[tail->rank_count];
    *it = (struct tail_rank){.component = owner, .rank = rank, .watch = WATCH_REFUSED};
    for (int stream = 0; stream < LOG_STREAMS; stream++)
        it->streams[stream] = (struct tail_stream){.next = NOT_QUEUED, .slot = NO_SLOT, .seen = -1};
    if (!from_start)
        skip_present(tail, it);
    if (!watch_add(tail, tail->rank_count))
        return false;
    struct tail_component *its = &tail->components[owner];
    if (its->first + its->rising == tail->rank_count &&
        (its->rising == 0 || tail->ranks[tail->rank_count - 1].rank < rank))
        its->rising++;
    tail->rank_count++;
    /* What was written before the watch was there is found by a first read. */
    for (int32_t stream = 0; stream < LOG_STREAMS; stream++)
        tail_queue(tail, (tail->rank_count - 1) * LOG_STREAMS + stream);
    return true;
}

/* --- asking --- */

int log_tail_fd(const struct log_tail *tail)
{
    return tail->rank_count > 0 && log_tail_unwatched(tail) == (size_t)tail->rank_count
               ? -1
               : tail->notify;
}

size_t log_tail_unwatched(const struct log_tail *tail)
{
    return (size_t)(tail->rank_count - tail->watched - tail->without_directory);
}

int log_tail_timeout(const struct log_tail *tail)
{
    if (tail->queued > 0)
        return 0;
    if (tail->watched == tail->rank_count && !tail->checks_all)
        return -1;
    int64_t left = tail->poll_due - watch_now();
    return left < 0 ? 0 : left > POLL_MS ? POLL_MS : (int)left;
}

int32_t log_tail_rest(struct log_tail *tail, struct log_rest *out)
{
    int32_t count = 0;
    int64_t most = 0;
    for (int32_t i = tail->queue_first; i != QUEUE_END; i = tail_stream(tail, i)->next) {
        const struct tail_rank *rank = &tail->ranks[i / LOG_STREAMS];
        const struct tail_component *component = &tail->components[rank->component];
        enum log_stream stream = (enum log_stream)(i % LOG_STREAMS);
        struct stat info;
        if (log_file_look(tail->run_dir, component->name, rank->rank, stream, &info) != 0 ||
            info.st_size <= rank->streams[stream].offset)
            continue;
        int64_t bytes = info.st_size - rank->streams[stream].offset;
        count++;
        if (bytes > most)
            *out = (struct log_rest){component->index, rank->rank, stream, bytes};
        most = bytes > most ? bytes : most;
    }
    return count;
}

bool log_tail_trouble(const struct log_tail *tail, struct log_trouble *out)
{
    if (tail->trouble.error)
        *out = tail->trouble;
    return tail->trouble.error != 0;
}

/* --- reading --- */

enum visit { VISIT_DONE, VISIT_MORE, VISIT_STOPPED };

/* Nothing behind the offset: the file was cut, or this is its end. */
static enum visit visit_end(struct log_tail *tail, struct tail_stream *it, int fd)
{
    struct stat info;
    (void)tail;
    if (fstat(fd, &info) == 0 && info.st_size < it->offset) {
        it->offset = 0;
        it->memo = 0;
        return VISIT_MORE;
    }
    return VISIT_DONE;
}

static struct log_chunk describe(struct log_tail *tail, int32_t stream)
{
    const struct tail_rank *rank = &tail->ranks[stream / LOG_STREAMS];
    return (struct log_chunk){
        .component_index = tail->components[rank->component].index,
        .rank = rank->rank,
        .stream = (enum log_stream)(stream % LOG_STREAMS),
        .bytes = tail->buffer,
        .memo = &tail_stream(tail, stream)->memo,
    };
}

/* Reads one chunk of a stream, up to `limit`, and hands it on. */
static enum visit visit(struct log_tail *tail, int32_t stream, int64_t limit, log_sink sink,
                        void *ctx, size_t *spent)
{
    struct tail_stream *it = tail_stream(tail, stream);
    int fd = slots_open(tail, stream);
    if (fd < 0)
        return VISIT_DONE;
    int64_t left = limit - it->offset;
    size_t size = left < 0 ? 0 : left < LOG_CHUNK_MAX ? (size_t)left : LOG_CHUNK_MAX;
    ssize_t got = file_read_at(fd, tail->buffer, size, it->offset);
    if (got < 0) {
        slots_refuse(tail, stream, errno);
        return VISIT_DONE;
    }
    if (got == 0 && visit_end(tail, it, fd) == VISIT_MORE)
        return VISIT_MORE;
    bool is_last = got < LOG_CHUNK_MAX;
    struct log_chunk chunk = describe(tail, stream);
    chunk.len = (size_t)got;
    chunk.is_end = it->is_ending && is_last;
    it->seen = it->offset + got;
    if (got == 0 && !chunk.is_end)
        return VISIT_DONE;
    *spent += chunk.len;
    size_t taken = chunk.len;
    bool goes_on = sink(ctx, &chunk, &taken);
    if (goes_on && (chunk.is_end || (taken == 0 && !is_last)))
        taken = chunk.len; /* a sink that takes nothing must not hold us here */
    it->offset += (int64_t)taken;
    if (!goes_on)
        return VISIT_STOPPED;
    it->is_ending = it->is_ending && !is_last;
    return is_last ? VISIT_DONE : VISIT_MORE;
}

/* One chunk of every stream in the queue, until READ_MAX bytes. True when something is left. */
static bool read_queue(struct log_tail *tail, log_sink sink, void *ctx)
{
    size_t spent = 0;
    for (int32_t left = tail->queued; left > 0 && spent < READ_MAX; left--) {
        int32_t stream = take_first(tail);
        switch (visit(tail, stream, INT64_MAX, sink, ctx, &spent)) {
        case VISIT_MORE: tail_queue(tail, stream); break;
        case VISIT_STOPPED: put_first(tail, stream); return true;
        case VISIT_DONE: break;
        }
    }
    return tail->queued > 0;
}

bool tail_read_until(struct log_tail *tail, int32_t stream, int64_t limit, bool is_end,
                     log_sink sink, void *ctx)
{
    struct tail_stream *it = tail_stream(tail, stream);
    size_t spent = 0;
    enum visit result = VISIT_MORE;
    it->is_ending = is_end;
    while (result == VISIT_MORE && it->offset < limit && !it->is_refused)
        result = visit(tail, stream, limit, sink, ctx, &spent);
    it->is_ending = false;
    return result != VISIT_STOPPED;
}

void tail_place(struct log_tail *tail, int32_t stream, int64_t offset)
{
    struct tail_stream *it = tail_stream(tail, stream);
    int64_t from = offset > LOG_LINE_MAX ? offset - LOG_LINE_MAX : 0;
    int fd = offset > 0 ? slots_open(tail, stream) : -1;
    ssize_t got = fd >= 0 ? file_read_at(fd, tail->buffer, (size_t)(offset - from), from) : 0;
    const char *last = got > 0 ? memrchr(tail->buffer, '\n', (size_t)got) : NULL;
    it->offset = last ? from + (last + 1 - tail->buffer) : from == 0 ? 0 : offset;
    it->memo = 0;
    it->seen = -1;
}

int64_t log_tail_time(const struct log_tail *tail)
{
    return tail->time;
}

bool log_tail_read(struct log_tail *tail, log_sink sink, void *ctx)
{
    watch_drain(tail);
    watch_poll(tail);
    return read_queue(tail, sink, ctx);
}

static void end_stream(struct log_tail *tail, int32_t stream)
{
    tail_stream(tail, stream)->is_ending = true;
    tail_queue(tail, stream);
}

int32_t tail_find_rank(const struct log_tail *tail, int32_t component, int32_t rank)
{
    const struct tail_component *it = &tail->components[component];
    int32_t found = it->first + SEARCH(it->rising, at, tail->ranks[it->first + at].rank < rank);
    for (int32_t i = found; i < tail->rank_count; i++) { /* the first, unless it came later */
        if (tail->ranks[i].component == component && tail->ranks[i].rank == rank)
            return i;
        if (i == found && i < it->first + it->rising)
            i = it->first + it->rising - 1;
    }
    return -1;
}

static int32_t find_rank(const struct log_tail *tail, int32_t component_index, int32_t rank)
{
    for (int32_t c = 0; c < tail->component_count; c++) {
        int32_t found =
            tail->components[c].index == component_index ? tail_find_rank(tail, c, rank) : -1;
        if (found >= 0)
            return found;
    }
    return -1;
}

void log_tail_end(struct log_tail *tail, int32_t component_index, int32_t rank)
{
    int32_t found = find_rank(tail, component_index, rank);
    for (int32_t stream = 0; found >= 0 && stream < LOG_STREAMS; stream++)
        end_stream(tail, found * LOG_STREAMS + stream);
}

bool log_tail_finish(struct log_tail *tail, log_sink sink, void *ctx)
{
    if (!tail->is_finishing) {
        tail->is_finishing = true;
        for (int32_t stream = 0; stream < tail->rank_count * LOG_STREAMS; stream++)
            end_stream(tail, stream);
    }
    return !read_queue(tail, sink, ctx);
}
