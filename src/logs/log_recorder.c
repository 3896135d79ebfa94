/* log_recorder.c - looks at the sizes of logs in turns, and appends marks to the files of times.
 *
 * Words: a turn looks at some logs, a round at all of them. A note is growth that was seen and is not written
 * yet. After a round, no growth from before its start can turn up any more: notes of that time are sorted
 * and written. So the marks of a file are in the order of their times, however many turns a round has.
 *
 * A mark says how much a log has grown since the mark before, so `marked` changes only when a mark is on
 * disk. When a write fails, its marks are taken back as a whole. */
#include "logs/log_recorder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "logs/log_times.h"

struct recorded_log {
    int64_t seen;   /* its size at the last look */
    int64_t marked; /* its size by the marks on disk */
    int64_t looked; /* ms since 1970: no growth from now on is older */
};

struct recorded_process {
    int32_t component; /* into recorder->components, -1 = none yet */
    int32_t rank;
    bool is_active; /* it lives: its logs are looked at */
    struct recorded_log logs[LOG_STREAMS];
};

struct recorded_component {
    const char *name;
    bool is_off;    /* its file could not be made */
    int64_t len;    /* of the file */
    int64_t logged; /* bytes of its logs that marks stand for */
    int64_t last;   /* time of the last mark */
};

struct note {
    int64_t time, size;
    int64_t marked; /* recorded_log.marked before its mark */
    int32_t process, stream;
};

struct log_recorder {
    int run_dir;
    struct recorded_component *components;
    struct recorded_process *processes; /* by id */
    struct note *notes;
    int32_t component_count, component_room, process_room, active;
    int32_t note_count, note_room;
    int32_t hand;          /* the next process to look at */
    int32_t hand_end;      /* ids below this are in the round */
    int64_t round_started; /* ms since 1970 */
    bool is_in_round;
    int64_t due; /* monotonic ms */
};

enum { ROOM_FIRST = 16 };

static int64_t clock_now(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The clock that file systems use for the times of files: a write after this has no earlier time. */
static int64_t file_clock(void)
{
    return clock_now(CLOCK_REALTIME_COARSE);
}

struct log_recorder *log_recorder_new(int run_dir)
{
    struct log_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder)
        recorder->run_dir = run_dir;
    return recorder;
}

/* Room for `wanted` elements in an array that doubles; what is new is zero. */
static bool grow(void **array, int32_t wanted, int32_t *room, size_t size)
{
    if (wanted <= *room)
        return true;
    int64_t more = *room ? *room : ROOM_FIRST;
    while (more < wanted)
        more *= 2;
    char *grown = more <= INT32_MAX ? realloc(*array, (size_t)more * size) : NULL;
    if (!grown)
        return false;
    memset(grown + (size_t)*room * size, 0, (size_t)(more - *room) * size);
    *array = grown;
    *room = (int32_t)more;
    return true;
}

/* --- the file --- */

/* The file of a component: made, or opened to append. -1 = not possible. Links are not followed, and opening a
 * pipe does not wait: workers of this user may put anything there. */
static int open_file(const struct log_recorder *recorder, const char *component, int flags)
{
    struct stat info;
    int dir = openat(recorder->run_dir, component, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -1;
    int fd =
        openat(dir, TIMES_FILE,
               O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, 0600);
    close(dir);
    if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static void make_file(const struct log_recorder *recorder, struct recorded_component *it)
{
    int fd = open_file(recorder, it->name, O_CREAT | O_EXCL);
    it->is_off = fd < 0 || !file_write(fd, TIMES_MAGIC, TIMES_MAGIC_LEN);
    it->len = TIMES_MAGIC_LEN;
    if (fd >= 0)
        close(fd);
}

/* Appends all of it or nothing. */
static bool append(const struct log_recorder *recorder, struct recorded_component *it,
                   const struct text *bytes)
{
    int fd = open_file(recorder, it->name, 0);
    if (fd < 0)
        return false;
    bool is_good = file_write(fd, bytes->bytes, bytes->len);
    if (is_good)
        it->len += (int64_t)bytes->len;
    else if (ftruncate(fd, it->len) != 0)
        it->is_off = true; /* half a mark stays: nothing may follow it */
    close(fd);
    return is_good;
}

/* --- notes --- */

static struct recorded_component *component_of(struct log_recorder *recorder,
                                               const struct note *note)
{
    return &recorder->components[recorder->processes[note->process].component];
}

static struct recorded_log *log_of(struct log_recorder *recorder, const struct note *note)
{
    return &recorder->processes[note->process].logs[note->stream];
}

static int compare(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int by_component_and_time(const void *a, const void *b, void *ctx)
{
    const struct note *left = a, *right = b;
    const struct log_recorder *recorder = ctx;
    const struct recorded_process *one = &recorder->processes[left->process];
    const struct recorded_process *other = &recorder->processes[right->process];
    int order = compare(one->component, other->component);
    order = order ? order : compare(left->time, right->time);
    order = order ? order : compare(one->rank, other->rank);
    order = order ? order : compare(left->stream, right->stream);
    return order ? order : compare(left->size, right->size);
}

/* One mark for each note, as far as there is room. */
static void put_marks(struct log_recorder *recorder, struct note *notes, int32_t count,
                      struct text *out)
{
    struct recorded_component *it = component_of(recorder, notes);
    for (int32_t i = 0; i < count; i++) {
        struct recorded_log *log = log_of(recorder, &notes[i]);
        struct times_mark mark = {.time = notes[i].time,
                                  .rank = recorder->processes[notes[i].process].rank,
                                  .stream = (enum log_stream)notes[i].stream,
                                  .growth = notes[i].size - log->marked};
        int64_t logged = it->logged + (mark.growth > 0 ? mark.growth : 0);
        uint8_t bytes[TIMES_MARK_MAX];
        size_t len = times_put(bytes, it->last, &mark);
        notes[i].marked = log->marked;
        if (it->len + (int64_t)(out->len + len) > RECORDER_ROOM + logged / RECORDER_SHARE)
            continue;
        text_append(out, (const char *)bytes, len);
        it->logged = logged;
        it->last = mark.time;
        log->marked = notes[i].size;
    }
}

/* Writes the notes of one component. */
static void write_notes(struct log_recorder *recorder, struct note *notes, int32_t count)
{
    struct recorded_component *it = component_of(recorder, notes), before = *it;
    struct text out = TEXT_INIT;
    if (it->is_off)
        return;
    put_marks(recorder, notes, count, &out);
    if (out.has_failed || (out.len > 0 && !append(recorder, it, &out))) {
        it->logged = before.logged;
        it->last = before.last;
        for (int32_t i = count - 1; i >= 0; i--) /* a log may have several: its first is right */
            log_of(recorder, &notes[i])->marked = notes[i].marked;
    }
    text_release(&out);
}

/* Writes all notes of before `until`, and keeps the rest. */
static void settle(struct log_recorder *recorder, int64_t until)
{
    struct note *notes = recorder->notes;
    int32_t due = 0;
    for (int32_t i = 0; i < recorder->note_count; i++) {
        if (notes[i].time >= until)
            continue;
        struct note note = notes[i];
        notes[i] = notes[due];
        notes[due++] = note;
    }
    if (due == 0)
        return;
    qsort_r(notes, (size_t)due, sizeof *notes, by_component_and_time, recorder);
    for (int32_t first = 0, last; first < due; first = last) {
        const struct recorded_component *owner = component_of(recorder, &notes[first]);
        for (last = first; last < due && component_of(recorder, &notes[last]) == owner;)
            last++;
        write_notes(recorder, notes + first, last - first);
    }
    recorder->note_count -= due;
    memmove(notes, notes + due, (size_t)recorder->note_count * sizeof *notes);
}

/* --- looking --- */

/* When a log that has grown since the look before was last written to: as the file system says, if that can be
 * true. Its clock may be another machine's, or a worker may have set the time of the file. */
static int64_t time_of_growth(const struct recorded_log *log, const struct stat *info, int64_t now)
{
    int64_t time = (int64_t)info->st_mtim.tv_sec * 1000 + info->st_mtim.tv_nsec / 1000000;
    return time >= log->looked && time <= now ? time : now;
}

/* Without memory, the growth belongs to the next note. */
static void add_note(struct log_recorder *recorder, const struct note *note)
{
    void *notes = recorder->notes;
    if (!grow(&notes, recorder->note_count + 1, &recorder->note_room, sizeof *note))
        return;
    recorder->notes = notes;
    recorder->notes[recorder->note_count++] = *note;
}

static void look_at(struct log_recorder *recorder, int32_t id)
{
    struct recorded_process *process = &recorder->processes[id];
    const char *name = recorder->components[process->component].name;
    for (int32_t stream = 0; stream < LOG_STREAMS; stream++) {
        struct recorded_log *log = &process->logs[stream];
        struct stat info;
        int64_t before = file_clock();
        if (log_file_look(recorder->run_dir, name, process->rank, (enum log_stream)stream, &info))
            continue;
        if (info.st_size != log->seen && info.st_size != 0) {
            struct note note = {.time = time_of_growth(log, &info, file_clock()),
                                .size = info.st_size,
                                .process = id,
                                .stream = stream};
            add_note(recorder, &note);
            before = note.time > before ? note.time : before;
        }
        log->seen = info.st_size;
        log->looked = before;
    }
}

void log_recorder_begin(struct log_recorder *recorder, int32_t id, const char *component,
                        int32_t rank)
{
    void *array = recorder ? recorder->processes : NULL;
    if (!recorder || id < 0 ||
        !grow(&array, id + 1, &recorder->process_room, sizeof *recorder->processes))
        return;
    recorder->processes = array;
    struct recorded_process *process = &recorder->processes[id];
    int32_t last = recorder->component_count - 1;
    while (last >= 0 && strcmp(recorder->components[last].name, component) != 0)
        last--;
    if (last < 0) {
        array = recorder->components;
        if (!grow(&array, recorder->component_count + 1, &recorder->component_room,
                  sizeof *recorder->components))
            return;
        recorder->components = array;
        last = recorder->component_count++;
        recorder->components[last].name = component;
        make_file(recorder, &recorder->components[last]);
    }
    process->component = last;
    process->rank = rank;
    /* What was written before, while nobody looked, is noted as of now: marks stay in the order of time. */
    for (int stream = 0; !process->is_active && stream < LOG_STREAMS; stream++)
        process->logs[stream].looked = file_clock();
    recorder->active += !process->is_active;
    process->is_active = true;
    if (id >= recorder->hand_end)
        recorder->hand_end = id + 1;
}

void log_recorder_end(struct log_recorder *recorder, int32_t id)
{
    if (!recorder || id < 0 || id >= recorder->process_room || !recorder->processes[id].is_active)
        return;
    look_at(recorder, id);
    recorder->processes[id].is_active = false;
    recorder->active--;
}

/* Some of a round; true when it is complete. */
static bool turn(struct log_recorder *recorder)
{
    int32_t left = RECORDER_LOOKS / LOG_STREAMS;
    if (!recorder->is_in_round) {
        int64_t now = file_clock();
        if (now < recorder->round_started) /* the clock was set back: notes are of another time */
            settle(recorder, INT64_MAX);
        recorder->round_started = now;
        recorder->is_in_round = true;
        recorder->hand = 0;
    }
    for (; recorder->hand < recorder->hand_end && left > 0; recorder->hand++) {
        if (!recorder->processes[recorder->hand].is_active)
            continue;
        look_at(recorder, recorder->hand);
        left--;
    }
    return recorder->hand == recorder->hand_end;
}

int64_t log_recorder_tick(struct log_recorder *recorder)
{
    if (!recorder || (recorder->active == 0 && recorder->note_count == 0))
        return -1;
    int64_t now = clock_now(CLOCK_MONOTONIC);
    if (now < recorder->due)
        return recorder->due - now;
    recorder->due = now + RECORDER_MS;
    if (turn(recorder)) {
        settle(recorder, recorder->round_started);
        recorder->is_in_round = false;
    }
    return RECORDER_MS;
}

void log_recorder_free(struct log_recorder *recorder)
{
    if (!recorder)
        return;
    settle(recorder, INT64_MAX);
    free(recorder->components);
    free(recorder->processes);
    free(recorder->notes);
    free(recorder);
}
