/* run_page.c - reads run.json and the end of records.jsonl. An older roost may have written them, or they may be
 * incomplete: a field that cannot be read counts as missing, never as an error. */
#include "run/run_page.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "json/json_reader.h"

enum { TAIL_MAX = 512, MEMBERS_MAX = 1 << 16 };

static const char *copy(struct run_list *list, struct strview text)
{
    const char *out = arena_copy(&list->arena, text);
    return out ? out : "";
}

struct run_entry run_page_empty(struct run_list *list, const char *id, const char *path)
{
    return (struct run_entry){.id = copy(list, sv_from(id)),
                              .path = copy(list, sv_from(path)),
                              .config = "",
                              .components = "",
                              .cgroup = "",
                              .boot_id = "",
                              .nodes = -1,
                              .exit_status = -1};
}

/* --- the page --- */

static void read_int(struct json_event event, int32_t *out)
{
    int64_t value;
    if (json_int(event, 0, INT32_MAX, &value))
        *out = (int32_t)value;
}

/* One object of the array; false at its end. */
static bool read_member(struct run_list *list, struct json_reader *reader, struct run_member *out)
{
    struct diag diag = {0};
    struct json_event event = json_next(reader, &diag);
    *out = (struct run_member){.name = "", .nodes = -1};
    if (event.kind != JSON_OBJECT)
        return false;
    while ((event = json_next(reader, &diag)).kind == JSON_KEY) {
        bool is_name = sv_is(event.text, "name"), is_size = sv_is(event.text, "world_size");
        bool is_nodes = sv_is(event.text, "nodes");
        event = json_next(reader, &diag);
        if (is_name && event.kind == JSON_STRING)
            out->name = copy(list, event.text);
        else if (is_size)
            read_int(event, &out->world_size);
        else if (is_nodes)
            read_int(event, &out->nodes);
        else if (json_skip(reader, &diag) != ROOST_OK)
            return false;
    }
    return event.kind == JSON_OBJECT_END;
}

/* The components, their names, and their processes together. */
static void read_members(struct run_list *list, struct json_reader *reader, struct run_entry *entry)
{
    struct text names = TEXT_INIT;
    struct run_member member, *members = NULL;
    int32_t count = 0, room = 0;
    while (count < MEMBERS_MAX && read_member(list, reader, &member)) {
        if (count == room) {
            room = room ? 2 * room : 8;
            struct run_member *more = realloc(members, (size_t)room * sizeof *more);
            if (!more)
                break;
            members = more;
        }
        members[count++] = member;
        entry->world_size += member.world_size;
        text_printf(&names, "%s%s", names.len ? ", " : "", member.name);
    }
    struct run_member *kept = arena_array(&list->arena, struct run_member, count + 1);
    if (kept && count)
        memcpy(kept, members, (size_t)count * sizeof *kept);
    entry->members = kept;
    entry->member_count = kept ? count : 0;
    free(members);
    const char *text = text_string(&names);
    entry->components = text ? copy(list, sv_from(text)) : "";
    text_release(&names);
}

/* Seconds, with up to nine digits after the point: 1794831890.376128603. */
static void read_started(struct strview text, struct run_entry *entry)
{
    size_t at = 0;
    for (; at < text.len && text.at[at] != '.'; at++)
        continue;
    entry->started = strtoll(text.at, NULL, 10);
    entry->started_ns = 0;
    for (int32_t unit = 100000000; unit && ++at < text.len; unit /= 10) {
        if (text.at[at] < '0' || text.at[at] > '9')
            break; /* not as it was written */
        entry->started_ns += unit * (text.at[at] - '0');
    }
}

/* The value of one key, of which `event` is the beginning. False after a fault. */
static bool read_value(struct run_list *list, struct json_reader *reader, const char *key,
                       struct json_event event, struct run_entry *entry)
{
    struct diag diag = {0};
    if (strcmp(key, "run") == 0 && event.kind == JSON_STRING)
        entry->is_copy = !sv_is(event.text, entry->id);
    else if (strcmp(key, "config") == 0 && event.kind == JSON_STRING)
        entry->config = copy(list, event.text);
    else if (strcmp(key, "cgroup") == 0 && event.kind == JSON_STRING)
        entry->cgroup = copy(list, event.text);
    else if (strcmp(key, "boot_id") == 0 && event.kind == JSON_STRING)
        entry->boot_id = copy(list, event.text);
    else if (strcmp(key, "guardian_pid") == 0)
        read_int(event, &entry->guardian);
    else if (strcmp(key, "supervisor_pid") == 0)
        read_int(event, &entry->supervisor);
    else if (strcmp(key, "nodes") == 0)
        read_int(event, &entry->nodes);
    else if (strcmp(key, "started") == 0 && event.kind == JSON_NUMBER)
        read_started(event.text, entry);
    else if (strcmp(key, "components") == 0 && event.kind == JSON_ARRAY)
        read_members(list, reader, entry);
    else
        return json_skip(reader, &diag) == ROOST_OK;
    return true;
}

void run_page_read(struct run_list *list, struct strview page, struct run_entry *entry)
{
    struct diag diag = {0};
    struct json_reader *reader = json_reader_from_text(RUN_PAGE, page, NULL);
    struct json_event event;
    bool is_good = reader && json_next(reader, &diag).kind == JSON_OBJECT;
    while (is_good && (event = json_next(reader, &diag)).kind == JSON_KEY) {
        char key[24];
        snprintf(key, sizeof key, "%.*s", (int)event.text.len, event.text.at);
        is_good = read_value(list, reader, key, json_next(reader, &diag), entry);
    }
    json_reader_free(reader);
}

/* --- the end --- */

/* The number after `key`; `otherwise` when there is none. */
static int64_t find_number(const char *line, const char *key, int64_t otherwise)
{
    const char *at = strstr(line, key);
    char *end;
    int64_t value = at ? strtoll(at + strlen(key), &end, 10) : otherwise;
    return at && (end == at + strlen(key) || value < 0) ? otherwise : value;
}

struct run_end run_end_read(int dir)
{
    struct run_end out = {.state = RUN_CRASHED, .status = -1};
    char tail[TAIL_MAX + 1];
    int fd = openat(dir, RUN_RECORDS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    off_t from = size > TAIL_MAX ? size - TAIL_MAX : 0;
    ssize_t got = size > 0 ? file_read_at(fd, tail, TAIL_MAX, from) : 0;
    tail[got > 0 ? got : 0] = '\0';
    char *line = strstr(tail, "{\"end\":true");
    out.is_known = line != NULL;
    if (line) {
        struct stat info;
        bool is_crashed = strstr(line, "\"crashed\":true") != NULL;
        out.state = is_crashed                        ? RUN_CRASHED
                    : strstr(line, "\"signal\":")     ? RUN_STOPPED
                    : strstr(line, "\"failed\":true") ? RUN_FAILED
                                                      : RUN_DONE;
        out.status = (int32_t)find_number(line, "\"status\":", out.state == RUN_DONE ? 0 : -1);
        /* When a run crashed is not known. What was written last is the closest there is. */
        bool is_found = is_crashed && fstat(fd, &info) == 0;
        out.ended = find_number(line, "\"ended\":", is_found ? info.st_mtim.tv_sec : 0);
    }
    if (fd >= 0)
        close(fd);
    return out;
}

void run_end_put(const struct run_end *end, struct run_entry *entry)
{
    entry->state = end->state;
    entry->has_end = end->is_known;
    entry->exit_status = end->status;
    entry->ended = end->ended;
}
