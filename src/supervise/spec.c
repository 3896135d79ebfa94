/* spec.c - the bytes between driver and supervisor: 32-bit numbers, strings with their NUL, and lists of
 * strings. No pointers, no padding, nothing that depends on the address of the mapping. */
#include "supervise/spec.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void spec_put_int(struct text *out, int32_t value)
{
    char bytes[sizeof value];
    memcpy(bytes, &value, sizeof value);
    text_append(out, bytes, sizeof bytes);
}

void spec_put_string(struct text *out, struct strview value)
{
    text_put(out, value);
    text_char(out, '\0');
}

void spec_put_list(struct text *out, const char *const *strings)
{
    int32_t count = 0, len = 0;
    for (const char *const *it = strings; it && *it; it++) {
        count++;
        len += (int32_t)strlen(*it) + 1;
    }
    spec_put_int(out, count);
    spec_put_int(out, len);
    for (int32_t i = 0; i < count; i++)
        text_append(out, strings[i], strlen(strings[i]) + 1);
}

struct cursor {
    const char *at, *end;
    bool is_bad;
};

static int32_t get_int(struct cursor *cursor)
{
    int32_t value = 0;
    if ((size_t)(cursor->end - cursor->at) < sizeof value) {
        cursor->is_bad = true;
        return 0;
    }
    memcpy(&value, cursor->at, sizeof value);
    cursor->at += sizeof value;
    return value;
}

/* A number from 0 to max. */
static int32_t get_count(struct cursor *cursor, int64_t max)
{
    int32_t value = get_int(cursor);
    if (value < 0 || value > max) {
        cursor->is_bad = true;
        return 0;
    }
    return value;
}

static const char *get_string(struct cursor *cursor)
{
    size_t left = (size_t)(cursor->end - cursor->at);
    const char *string = cursor->at;
    const char *nul = left ? memchr(string, '\0', left) : NULL;
    if (!nul) {
        cursor->is_bad = true;
        return "";
    }
    cursor->at = nul + 1;
    return string;
}

static struct spec_list get_list(struct cursor *cursor)
{
    int64_t left = cursor->end - cursor->at;
    int32_t count = get_count(cursor, left), len = get_count(cursor, left);
    struct spec_list list = {cursor->at, (uint32_t)count, (uint32_t)len};
    const char *end = cursor->at + len;
    if (end > cursor->end || cursor->is_bad) {
        cursor->is_bad = true;
        return (struct spec_list){cursor->at, 0, 0};
    }
    struct cursor inside = {cursor->at, end, false};
    for (int32_t i = 0; i < count; i++)
        (void)get_string(&inside);
    if (inside.is_bad || inside.at != end)
        cursor->is_bad = true;
    cursor->at = end;
    return list;
}

static void get_process(struct cursor *cursor, struct spec_process *out)
{
    out->argv = get_list(cursor);
    out->env = get_list(cursor);
    out->cwd = get_string(cursor);
    out->ready_what = get_string(cursor);
    out->ready_port = get_count(cursor, UINT16_MAX);
    out->first_want = get_count(cursor, INT32_MAX);
    out->want_count = get_count(cursor, INT32_MAX - out->first_want);
    out->rank = get_count(cursor, INT32_MAX);
    out->agent = get_count(cursor, INT32_MAX);
    if (out->argv.count == 0)
        cursor->is_bad = true;
}

static void get_component(struct cursor *cursor, struct spec_component *out)
{
    out->name = get_string(cursor);
    out->base_env = get_list(cursor);
    out->long_env = get_list(cursor);
    out->after = get_list(cursor);
    out->forker = get_list(cursor);
    if (out->forker.count > FORKER_WORDS_MAX)
        cursor->is_bad = true;
    out->own = get_list(cursor);
    out->restart = (enum spec_restart)get_count(cursor, SPEC_RESTART_ON_FAILURE);
    out->restart_max = get_count(cursor, INT32_MAX);
    out->ready = (enum spec_ready)get_count(cursor, SPEC_READY_LINE);
    out->ready_timeout = get_count(cursor, INT32_MAX);
    out->is_service = get_count(cursor, 1) == 1;
    out->process_count = get_count(cursor, cursor->end - cursor->at);
}

static bool read_all(struct spec *spec, struct cursor *cursor)
{
    int64_t left = cursor->end - cursor->at;
    spec->component_count = get_count(cursor, left);
    spec->process_count = get_count(cursor, left);
    spec->components = arena_zeroed(&spec->arena, struct spec_component, spec->component_count);
    spec->processes = arena_zeroed(&spec->arena, struct spec_process, spec->process_count);
    if (!spec->components || !spec->processes)
        return false;
    int32_t first = 0;
    for (int32_t c = 0; c < spec->component_count && !cursor->is_bad; c++) {
        struct spec_component *component = &spec->components[c];
        get_component(cursor, component);
        component->first_process = first;
        if (component->process_count > spec->process_count - first)
            return false;
        for (int32_t p = 0; p < component->process_count && !cursor->is_bad; p++)
            get_process(cursor, &spec->processes[first++]);
    }
    return !cursor->is_bad && first == spec->process_count && cursor->at == cursor->end;
}

/* Maps the file, which it takes; NULL when that cannot be. */
static void *map_file(int fd, size_t *out_len)
{
    struct stat info;
    void *map = MAP_FAILED;
    if (fstat(fd, &info) == 0 && info.st_size > 0) {
        *out_len = (size_t)info.st_size;
        map = mmap(NULL, *out_len, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

bool spec_open(struct spec *spec, int fd)
{
    *spec = (struct spec){.arena = ARENA_INIT};
    spec->map = map_file(fd, &spec->map_len);
    bool is_good = spec->map != NULL;
    if (is_good) {
        struct cursor cursor = {spec->map, (const char *)spec->map + spec->map_len, false};
        is_good = read_all(spec, &cursor);
    }
    if (!is_good)
        spec_release(spec);
    return is_good;
}

bool bridge_spec_open(struct bridge_spec *spec, int fd)
{
    *spec = (struct bridge_spec){0};
    spec->map = map_file(fd, &spec->map_len);
    if (!spec->map)
        return false;
    struct cursor cursor = {spec->map, (const char *)spec->map + spec->map_len, false};
    spec->words = get_list(&cursor);
    spec->env = get_list(&cursor);
    spec->nodes = get_list(&cursor);
    spec->join = get_list(&cursor);
    if (!cursor.is_bad && spec->words.count > 0 && spec->join.count == 1)
        return true;
    bridge_spec_release(spec);
    return false;
}

void bridge_spec_release(struct bridge_spec *spec)
{
    if (spec->map)
        munmap(spec->map, spec->map_len);
    *spec = (struct bridge_spec){0};
}

const char *spec_string(const struct spec_list *list, int32_t index)
{
    const char *string = list->first;
    for (int32_t i = 0; i < index; i++)
        string = spec_next(string);
    return string;
}

void spec_release(struct spec *spec)
{
    if (spec->map)
        munmap(spec->map, spec->map_len);
    arena_release(&spec->arena);
    *spec = (struct spec){.arena = ARENA_INIT};
}
