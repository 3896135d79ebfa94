/* lost.c - a slot for each process, which the supervisor writes when a life begins. The guardian, the
 * driver or `roost ps` reads it when the supervisor was killed.
 *
 * Slots divide the pages of a file, so that a writer that is killed leaves each slot as it was or as it
 * should be. Slots are compared with the records: the supervisor may have written a record just before
 * it was killed. */
#include "supervise/lost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "supervise/clock.h"
#include "supervise/record.h"

enum { SLOT_LEN = 128, FILE_MAX = 1 << 30 };

struct slot {
    struct record_name name; /* life 0 = no life has begun */
    bool is_recorded;
    int64_t started_at;
};

_Static_assert(sizeof(struct slot) <= SLOT_LEN, "a slot stays within its share of a page");

int lost_open(int run_dir, int32_t process_count)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(run_dir, LOST_FILE, flags, 0600);
    off_t room = (off_t)SLOT_LEN * (process_count + 1);
    if (fd < 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, room) == 0 ||
        (errno != ENOSPC && errno != EDQUOT))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

void lost_note(int fd, int32_t index, const char *component, const struct roost_event *event)
{
    union {
        struct slot slot;
        char bytes[SLOT_LEN];
    } out = {.bytes = {0}};
    out.slot =
        (struct slot){.name = record_name(component, event), .started_at = event->started_at};
    (void)file_write_at(fd, &out, SLOT_LEN, (int64_t)SLOT_LEN * index); /* there is room */
}

void lost_forget(int run_dir)
{
    (void)unlinkat(run_dir, LOST_FILE, 0);
}

/* --- reading --- */

/* The whole of a file; *out_len bytes. NULL when it cannot be read. */
static char *read_all(int fd, size_t *out_len)
{
    struct stat info;
    *out_len = 0;
    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size < 0 || info.st_size > FILE_MAX)
        return NULL;
    char *bytes = malloc((size_t)info.st_size + 1);
    ssize_t len = bytes ? file_read_at(fd, bytes, (size_t)info.st_size, 0) : -1;
    *out_len = len > 0 ? (size_t)len : 0;
    return bytes;
}

static int by_name(const void *a, const void *b)
{
    const struct slot *left = a, *right = b;
    return record_compare(&left->name, &right->name);
}

/* The lives that had begun, in the order of their names; NULL when that cannot be read. */
static struct slot *read_slots(int run_dir, size_t *out_count)
{
    int fd = openat(run_dir, LOST_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    size_t len = 0, count = 0;
    char *bytes = read_all(fd, &len);
    struct slot *slots = bytes ? calloc(len / SLOT_LEN + 1, sizeof *slots) : NULL;
    for (size_t at = 0; slots && at + SLOT_LEN <= len; at += SLOT_LEN) {
        memcpy(&slots[count], bytes + at, sizeof *slots);
        slots[count].name.component[sizeof slots->name.component - 1] = '\0';
        count += slots[count].name.life > 0;
    }
    if (slots)
        qsort(slots, count, sizeof *slots, by_name);
    free(bytes);
    if (fd >= 0)
        close(fd);
    *out_count = count;
    return slots;
}

/* Marks the lives that have a record, and whether the run has its end. A last line without a newline is
 * cut off. False when the records cannot be read. */
static bool mark_recorded(int records, struct slot *slots, size_t count, bool *has_end)
{
    size_t len;
    char *bytes = read_all(records, &len);
    bool is_read = bytes != NULL;
    const char *last = bytes ? memrchr(bytes, '\n', len) : NULL;
    size_t whole = last ? (size_t)(last - bytes) + 1 : 0;
    if (bytes && whole < len)
        (void)!ftruncate(records, (off_t)whole);
    for (size_t at = 0; at < whole;) {
        size_t line = (size_t)((char *)memchr(bytes + at, '\n', whole - at) - (bytes + at)) + 1;
        struct slot key = {0};
        *has_end = *has_end || record_is_end((struct strview){bytes + at, line});
        struct slot *found =
            count && record_read_name((struct strview){bytes + at, line}, &key.name)
                ? bsearch(&key, slots, count, sizeof *slots, by_name)
                : NULL;
        if (found)
            found->is_recorded = true;
        at += line;
    }
    free(bytes);
    return is_read;
}

/* False on a full disk: the next process that looks may have better luck. */
static bool write_line(int records, struct text *line)
{
    bool is_written = !line->has_failed && file_write(records, line->bytes, line->len);
    text_release(line);
    return is_written;
}

static bool write_lost(int records, const struct slot *slot)
{
    struct text line = TEXT_INIT;
    struct roost_event event = {.rank = slot->name.rank,
                                .life = slot->name.life,
                                .pid = slot->name.pid,
                                .exit_code = -1,
                                .end = ROOST_END_LOST,
                                .started_at = slot->started_at,
                                .ended_at = clock_read(CLOCK_REALTIME)};
    record_put_life(&line, slot->name.component, &event);
    return write_line(records, &line);
}

/* Under a lock: of several programs that find the same run, one writes. */
static void complete(int run_dir, int records, enum lost_end kind)
{
    size_t count = 0;
    (void)flock(records, LOCK_EX);
    struct slot *slots = read_slots(run_dir, &count);
    bool has_end = false, is_read = mark_recorded(records, slots, count, &has_end);
    bool is_done = slots && is_read;
    for (size_t i = 0; is_done && i < count; i++)
        is_done = slots[i].is_recorded || write_lost(records, &slots[i]);
    if (is_done)
        lost_forget(run_dir);
    struct text end = TEXT_INIT;
    struct roost_event lost = {.component = -1,
                               .exit_code = -1,
                               .code = ROOST_ERR_ENGINE,
                               .ended_at = clock_read(CLOCK_REALTIME)};
    if (kind == LOST_END_CRASHED)
        record_put_crash(&end);
    else if (kind == LOST_END_FAILED)
        record_put_end(&end, true, &lost);
    if (end.len && is_read && !has_end)
        (void)write_line(records, &end);
    text_release(&end);
    free(slots);
}

void lost_record(int run_dir, enum lost_end kind)
{
    int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    if (kind == LOST_END_CRASHED) /* the run may have been killed before it made the file */
        flags |= O_CREAT;
    int records = openat(run_dir, RUN_RECORDS, flags, 0600);
    if (records < 0)
        return;
    complete(run_dir, records, kind);
    close(records);
}
