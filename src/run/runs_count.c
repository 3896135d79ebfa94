/* runs_count.c - counts the processes of each component of a run by state: from the answer of a living run, or
 * from the records of a run that has ended. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "run/runs.h"
#include "supervise/record.h"
#include "json/json_reader.h"

enum { RECORDS_MAX = 1 << 30, NO_OUTCOME = 0xff };

const char *const run_count_words[RUN_COUNT_KINDS] = {
    "waiting", "running", "restarting", "ended", "stopped", "done", "failed", "killed", "lost"};

static struct run_counts *find(struct run_counts *counts, int32_t count, struct strview name)
{
    for (int32_t i = 0; i < count; i++)
        if (sv_is(name, counts[i].name))
            return &counts[i];
    return NULL;
}

/* --- a living run --- */

static const char *copy(struct run_list *list, struct strview text)
{
    const char *out = arena_copy(&list->arena, text);
    return out ? out : "";
}

/* One object of "components"; false at the end of the array. */
static bool read_answered(struct run_list *list, struct json_reader *reader,
                          struct run_counts *counts, int32_t count)
{
    struct diag diag = {0};
    struct json_event event = json_next(reader, &diag);
    struct run_counts read = {.is_known = true, .state = ""};
    struct run_counts *found = NULL;
    if (event.kind != JSON_OBJECT)
        return false;
    while ((event = json_next(reader, &diag)).kind == JSON_KEY) {
        bool is_name = sv_is(event.text, "name"), is_state = sv_is(event.text, "state");
        int kind = 0;
        while (kind < RUN_COUNT_KINDS && !sv_is(event.text, run_count_words[kind]))
            kind++;
        event = json_next(reader, &diag);
        int64_t value;
        if (is_name && event.kind == JSON_STRING)
            found = find(counts, count, event.text);
        else if (is_state && event.kind == JSON_STRING)
            read.state = copy(list, event.text);
        else if (kind < RUN_COUNT_KINDS && json_int(event, 0, INT32_MAX, &value))
            read.count[kind] = (int32_t)value;
        else if (json_skip(reader, &diag) != ROOST_OK)
            return false;
    }
    if (found) {
        read.name = found->name;
        read.world_size = found->world_size;
        read.nodes = found->nodes;
        *found = read;
    }
    return event.kind == JSON_OBJECT_END;
}

static void count_answered(struct run_list *list, struct strview status, struct run_counts *counts,
                           int32_t count)
{
    struct diag diag = {0};
    struct json_limits limits = {.max_bytes = SIZE_MAX};
    struct json_reader *reader = json_reader_from_text("status", status, &limits);
    struct json_event event;
    if (reader && json_next(reader, &diag).kind == JSON_OBJECT)
        while ((event = json_next(reader, &diag)).kind == JSON_KEY) {
            bool is_ours = sv_is(event.text, "components");
            if (is_ours && json_next(reader, &diag).kind == JSON_ARRAY) {
                while (read_answered(list, reader, counts, count))
                    continue;
                break;
            }
            if (json_skip(reader, &diag) != ROOST_OK)
                break;
        }
    json_reader_free(reader);
}

/* --- a run that has ended --- */

/* The outcome of every process, in the order of the components; NO_OUTCOME = it has no record. */
struct outcomes {
    struct run_counts *counts;
    int32_t count;
    uint8_t *of_process;
};

static void note(struct outcomes *it, const struct record_name *name, enum record_outcome how)
{
    size_t first = 0;
    for (int32_t i = 0; i < it->count; i++) {
        if (strcmp(it->counts[i].name, name->component) == 0 && name->rank >= 0 &&
            name->rank < it->counts[i].world_size) {
            it->of_process[first + (size_t)name->rank] = (uint8_t)how; /* the last life counts */
            return;
        }
        first += (size_t)it->counts[i].world_size;
    }
}

static void read_lines(struct outcomes *it, struct strview records)
{
    for (size_t at = 0; at < records.len;) {
        size_t end = sv_find(records, '\n', at);
        struct record_name name;
        enum record_outcome how;
        if (record_read_outcome(sv_sub(records, at, end), &name, &how))
            note(it, &name, how);
        at = end + 1;
    }
}

static void sum_up(struct outcomes *it, const struct run_entry *entry)
{
    static const enum run_count kinds[] = {[RECORD_DONE] = RUN_COUNT_DONE,
                                           [RECORD_FAILED] = RUN_COUNT_FAILED,
                                           [RECORD_KILLED] = RUN_COUNT_KILLED,
                                           [RECORD_LOST] = RUN_COUNT_LOST};
    size_t at = 0;
    for (int32_t i = 0; i < it->count; i++) {
        struct run_counts *counts = &it->counts[i];
        for (int32_t p = 0; p < counts->world_size; p++, at++) {
            uint8_t how = it->of_process[at];
            /* In a run that is done, roost stopped nothing but services, which count as done. */
            if (how == RECORD_KILLED && entry->state == RUN_DONE)
                how = RECORD_DONE;
            counts->count[how == NO_OUTCOME ? RUN_COUNT_WAITING : kinds[how]]++;
        }
        counts->is_known = true;
        counts->state = counts->count[RUN_COUNT_FAILED]   ? "failed"
                        : counts->count[RUN_COUNT_LOST]   ? "lost"
                        : counts->count[RUN_COUNT_KILLED] ? "stopped"
                        : counts->count[RUN_COUNT_DONE]   ? "done"
                                                          : "blocked";
    }
}

static void count_recorded(const struct run_entry *entry, struct run_counts *counts, int32_t count)
{
    struct stat info;
    size_t size = 1;
    for (int32_t i = 0; i < count; i++)
        size += (size_t)counts[i].world_size;
    int dir = open(entry->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd =
        dir >= 0 ? openat(dir, RUN_RECORDS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) : -1;
    bool is_good = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                   info.st_size <= RECORDS_MAX && size <= RECORDS_MAX;
    char *bytes = is_good ? malloc((size_t)info.st_size + 1) : NULL;
    struct outcomes it = {counts, count, bytes ? malloc(size) : NULL};
    ssize_t len = it.of_process ? file_read_at(fd, bytes, (size_t)info.st_size, 0) : -1;
    if (len >= 0) {
        memset(it.of_process, NO_OUTCOME, size);
        read_lines(&it, (struct strview){bytes, (size_t)len});
        sum_up(&it, entry);
    }
    free(it.of_process);
    free(bytes);
    if (fd >= 0)
        close(fd);
    if (dir >= 0)
        close(dir);
}

/* --- either --- */

struct run_counts *runs_count(struct run_list *list, const struct run_entry *entry,
                              struct strview status)
{
    struct run_counts *counts =
        arena_zeroed(&list->arena, struct run_counts, (int64_t)entry->member_count + 1);
    for (int32_t i = 0; counts && i < entry->member_count; i++)
        counts[i] = (struct run_counts){.name = entry->members[i].name,
                                        .world_size = entry->members[i].world_size,
                                        .nodes = entry->members[i].nodes,
                                        .state = ""};
    if (!counts)
        return NULL;
    if (status.len)
        count_answered(list, status, counts, entry->member_count);
    else if (entry->has_end)
        count_recorded(entry, counts, entry->member_count);
    return counts;
}
