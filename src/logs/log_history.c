/* log_history.c - reads logs mark by mark.
 *
 * A walk goes over all marks. Those before its start only add up: they tell how much of a log is older. The
 * first mark of a log that is shown places the tail at the start of the line that it ends. Bytes without a
 * mark are "rests", one per log; they stand behind all marks. */
#include "logs/log_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/search.h"
#include "logs/line_reader.h"
#include "logs/log_merge.h"
#include "logs/log_tail_internal.h"

struct past_log {
    int64_t size;    /* when the history was made: it ends there */
    int64_t written; /* ms since 1970: the last write */
    int64_t marked;  /* by the marks of this walk so far */
    bool is_placed;  /* the tail stands where this walk begins to show the log */
};

struct log_history {
    struct log_tail *tail;
    struct log_history_options options;
    struct log_merge *merge;
    struct past_log *logs; /* by number of the tail's stream */
    int32_t *rests;        /* streams, in their order; counted by the first walk */
    int32_t rest_count, rest_hand;
    int32_t log_count, filled;
    bool has_times;
    int64_t mark, start; /* of this walk: the next mark, and the first that is shown */
    /* What is being shown: */
    int32_t stream; /* -1 = nothing */
    int64_t until;
};

/* --- making one --- */

static void look(struct log_history *history, int32_t stream)
{
    struct log_tail *tail = history->tail;
    const struct tail_rank *rank = &tail->ranks[stream / LOG_STREAMS];
    struct past_log *log = &history->logs[stream];
    struct stat info;
    if (history->options.leaves_out[stream % LOG_STREAMS] ||
        log_file_look(tail->run_dir, tail->components[rank->component].name, rank->rank,
                      (enum log_stream)(stream % LOG_STREAMS), &info) ||
        !S_ISREG(info.st_mode))
        return;
    log->size = info.st_size;
    log->written = (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
    if (log->written < 0 || log->written > TIMES_TIME_MAX)
        log->written = 0;
    history->filled += log->size > 0;
}

/* Whether a log of this component has bytes. */
static bool has_bytes(const struct log_history *history, int32_t component)
{
    for (int32_t i = 0; i < history->log_count; i++)
        if (history->logs[i].size > 0 &&
            history->tail->ranks[i / LOG_STREAMS].component == component)
            return true;
    return false;
}

/* The files of times first, then the sizes: the marks are then of bytes that are counted. */
static bool prepare(struct log_history *history)
{
    struct log_tail *tail = history->tail;
    bool *has_file = calloc((size_t)tail->component_count + 1, sizeof *has_file),
         is_good = has_file;
    for (int32_t c = 0; is_good && c < tail->component_count; c++)
        is_good = log_merge_add(history->merge, tail->components[c].name, c, &has_file[c]);
    for (int32_t i = 0; is_good && i < history->log_count; i++)
        look(history, i);
    history->has_times = true;
    for (int32_t c = 0; is_good && c < tail->component_count; c++)
        if (!has_file[c] && has_bytes(history, c))
            history->has_times = false;
    free(has_file);
    return is_good;
}

struct log_history *log_history_new(struct log_tail *tail,
                                    const struct log_history_options *options)
{
    struct log_history *history = calloc(1, sizeof *history);
    if (!history)
        return NULL;
    history->tail = tail;
    history->options = *options;
    history->log_count = tail->rank_count * LOG_STREAMS;
    history->merge = log_merge_new(options->run_dir);
    history->logs = calloc((size_t)history->log_count + 1, sizeof *history->logs);
    history->rests = calloc((size_t)history->log_count + 1, sizeof *history->rests);
    if (!history->merge || !history->logs || !history->rests || !prepare(history)) {
        log_history_free(history);
        return NULL;
    }
    log_history_start(history, 0);
    return history;
}

void log_history_free(struct log_history *history)
{
    if (!history)
        return;
    log_merge_free(history->merge);
    free(history->logs);
    free(history->rests);
    free(history);
}

bool log_history_has_times(const struct log_history *history)
{
    return history->has_times;
}

int32_t log_history_logs(const struct log_history *history)
{
    return history->filled;
}

int32_t log_history_damaged(const struct log_history *history)
{
    int32_t component = log_merge_damaged(history->merge);
    return component < 0 ? -1 : history->tail->components[component].index;
}

/* --- walking --- */

void log_history_start(struct log_history *history, int64_t mark)
{
    log_merge_rewind(history->merge);
    for (int32_t i = 0; i < history->log_count; i++) {
        history->logs[i].marked = 0;
        history->logs[i].is_placed = false;
    }
    history->mark = 0;
    history->start = mark;
    history->stream = -1;
    history->rest_count = -1;
}

static int by_time_of_write(const void *a, const void *b, void *ctx)
{
    const struct log_history *history = ctx;
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    int64_t one = history->logs[left].written, other = history->logs[right].written;
    if (history->has_times && one != other)
        return one < other ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void find_rests(struct log_history *history)
{
    history->rest_count = history->rest_hand = 0;
    for (int32_t i = 0; i < history->log_count; i++)
        if (history->logs[i].marked < history->logs[i].size)
            history->rests[history->rest_count++] = i;
    qsort_r(history->rests, (size_t)history->rest_count, sizeof *history->rests, by_time_of_write,
            history);
}

/* Some bytes of one log: up to `until`, written at `time`. */
struct step {
    int32_t stream;
    int64_t from, until, time;
};

/* The next step of the files of times; false after the last. */
static bool next_marked(struct log_history *history, struct step *out)
{
    struct times_mark mark;
    int32_t component;
    while (history->has_times && log_merge_next(history->merge, &component, &mark)) {
        int32_t rank = tail_find_rank(history->tail, component, mark.rank);
        if (rank < 0)
            continue;
        struct past_log *log = &history->logs[rank * LOG_STREAMS + (int32_t)mark.stream];
        int64_t from = log->marked, until;
        if (__builtin_add_overflow(from, mark.growth, &until) || until < 0)
            until = 0;
        log->marked = until > log->size ? log->size : until;
        if (log->marked <= from)
            continue;
        *out = (struct step){.stream = rank * LOG_STREAMS + (int32_t)mark.stream,
                             .from = from,
                             .until = log->marked,
                             .time = mark.time};
        return true;
    }
    return false;
}

static bool next_step(struct log_history *history, struct step *out)
{
    if (history->rest_count < 0) {
        if (next_marked(history, out))
            return true;
        find_rests(history);
    }
    if (history->rest_hand == history->rest_count)
        return false;
    int32_t stream = history->rests[history->rest_hand++];
    struct past_log *log = &history->logs[stream];
    *out = (struct step){
        .stream = stream, .from = log->marked, .until = log->size, .time = log->written};
    log->marked = log->size;
    return true;
}

/* The next step that is not older than asked for. */
static bool next_wanted(struct log_history *history, struct step *out)
{
    while (next_step(history, out))
        if (out->time >= history->options.since)
            return true;
    return false;
}

int64_t log_history_marks(struct log_history *history)
{
    struct step step;
    int64_t count = 0;
    log_history_start(history, 0);
    while (next_wanted(history, &step))
        count++;
    log_history_start(history, 0);
    return count;
}

/* The tail goes on at the start of the line that has the byte before `offset`. */
static void place(struct log_history *history, int32_t stream, int64_t offset)
{
    if (history->logs[stream].is_placed)
        return;
    history->logs[stream].is_placed = true;
    tail_place(history->tail, stream, offset);
}

/* Logs of which nothing was shown: the tail follows them from here, too. */
static void place_others(struct log_history *history)
{
    for (int32_t i = 0; i < history->log_count; i++)
        place(history, i, history->logs[i].size);
    history->tail->time = 0;
}

bool log_history_read(struct log_history *history, log_sink sink, void *ctx)
{
    struct step step;
    for (;;) {
        if (history->stream < 0) {
            if (!next_wanted(history, &step))
                break;
            if (history->mark++ < history->start)
                continue;
            place(history, step.stream, step.from);
            history->stream = step.stream;
            history->until = step.until;
            history->tail->time = step.time;
        }
        bool is_end =
            !history->options.is_followed && history->until == history->logs[history->stream].size;
        if (!tail_read_until(history->tail, history->stream, history->until, is_end, sink, ctx))
            return false;
        history->stream = -1;
    }
    if (history->options.is_followed)
        place_others(history);
    return true;
}
