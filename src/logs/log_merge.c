/* log_merge.c - walks files of times side by side; a heap has the component with the earliest mark on top.
 *
 * A file is opened for each piece that is read of it: a run may have more components than there are
 * descriptors. */
#include "logs/log_merge.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strview.h"

enum { PIECE = 8192, ROOM_FIRST = 8 };

struct merged {
    char name[64];
    int32_t index;  /* the caller's */
    int64_t limit;  /* of its file, when it was added */
    int64_t from;   /* place of the piece in the file */
    size_t len, at; /* of the piece, and where its next mark is */
    uint8_t *piece; /* [PIECE] */
    struct times_mark head;
};

struct log_merge {
    int run_dir;
    struct merged *files;
    int32_t *heap; /* into files: those that have a head */
    int32_t count, room, heap_count;
    int32_t damaged;
    bool is_begun;
};

struct log_merge *log_merge_new(int run_dir)
{
    struct log_merge *merge = calloc(1, sizeof *merge);
    if (merge) {
        merge->run_dir = run_dir;
        merge->damaged = -1;
    }
    return merge;
}

void log_merge_free(struct log_merge *merge)
{
    if (!merge)
        return;
    for (int32_t i = 0; i < merge->count; i++)
        free(merge->files[i].piece);
    free(merge->files);
    free(merge->heap);
    free(merge);
}

int32_t log_merge_damaged(const struct log_merge *merge)
{
    return merge->damaged;
}

/* --- one file --- */

/* Workers own the folder: no link is followed, and a pipe is not waited for. */
static int open_times(const struct log_merge *merge, const char *component, struct stat *out_info)
{
    int dir = openat(merge->run_dir, component, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -1;
    int fd = openat(dir, TIMES_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    close(dir);
    if (fd >= 0 && (fstat(fd, out_info) != 0 || !S_ISREG(out_info->st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Reads the piece at it->from + it->at. */
static void read_piece(const struct log_merge *merge, struct merged *it)
{
    struct stat info;
    it->from += (int64_t)it->at;
    it->at = it->len = 0;
    int64_t left = it->limit - it->from;
    int fd = left > 0 ? open_times(merge, it->name, &info) : -1;
    if (fd < 0)
        return;
    ssize_t got = file_read_at(fd, it->piece, left < PIECE ? (size_t)left : PIECE, it->from);
    it->len = got > 0 ? (size_t)got : 0;
    close(fd);
}

/* Puts the next mark of a file into its head; false when there is none. */
static bool advance(struct log_merge *merge, struct merged *it)
{
    size_t used = 0;
    enum times_result result =
        times_get(it->piece + it->at, it->len - it->at, it->head.time, &it->head, &used);
    if (result == TIMES_PART) {
        read_piece(merge, it);
        result = times_get(it->piece, it->len, it->head.time, &it->head, &used);
    }
    it->at += used;
    /* A mark that is not whole is the last one of a recorder that was killed, or is still being written. */
    if (result == TIMES_BAD && merge->damaged < 0)
        merge->damaged = it->index;
    return result == TIMES_OK;
}

bool log_merge_add(struct log_merge *merge, const char *component, int32_t component_index,
                   bool *out_has_file)
{
    struct stat info;
    char magic[TIMES_MAGIC_LEN];
    *out_has_file = false;
    if (merge->count == merge->room) {
        int32_t room = merge->room ? merge->room * 2 : ROOM_FIRST;
        struct merged *files = realloc(merge->files, (size_t)room * sizeof *files);
        merge->files = files ? files : merge->files;
        int32_t *heap = realloc(merge->heap, (size_t)room * sizeof *heap);
        merge->heap = heap ? heap : merge->heap;
        if (!files || !heap)
            return false;
        merge->room = room;
    }
    int fd = is_name(sv_from(component)) ? open_times(merge, component, &info) : -1;
    if (fd < 0)
        return true;
    bool is_ours = file_read_at(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                   memcmp(magic, TIMES_MAGIC, sizeof magic) == 0;
    close(fd);
    if (!is_ours)
        return true;
    struct merged it = {.index = component_index, .limit = info.st_size, .piece = malloc(PIECE)};
    if (!it.piece)
        return false;
    memcpy(it.name, component, strlen(component) + 1);
    merge->files[merge->count++] = it;
    *out_has_file = true;
    return true;
}

/* --- the heap --- */

static bool is_before(const struct log_merge *merge, int32_t a, int32_t b)
{
    const struct merged *left = &merge->files[a], *right = &merge->files[b];
    return left->head.time != right->head.time ? left->head.time < right->head.time : a < b;
}

static void sift_down(struct log_merge *merge, int32_t at)
{
    for (;;) {
        int32_t child = 2 * at + 1, *heap = merge->heap;
        if (child >= merge->heap_count)
            return;
        if (child + 1 < merge->heap_count && is_before(merge, heap[child + 1], heap[child]))
            child++;
        if (!is_before(merge, heap[child], heap[at]))
            return;
        int32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static void begin(struct log_merge *merge)
{
    merge->is_begun = true;
    merge->heap_count = 0;
    for (int32_t i = 0; i < merge->count; i++) {
        struct merged *it = &merge->files[i];
        it->from = TIMES_MAGIC_LEN;
        it->at = it->len = 0;
        it->head = (struct times_mark){0};
        if (advance(merge, it))
            merge->heap[merge->heap_count++] = i;
    }
    for (int32_t i = merge->heap_count / 2 - 1; i >= 0; i--)
        sift_down(merge, i);
}

void log_merge_rewind(struct log_merge *merge)
{
    merge->is_begun = false;
}

bool log_merge_next(struct log_merge *merge, int32_t *component_index, struct times_mark *out)
{
    if (!merge->is_begun)
        begin(merge);
    if (merge->heap_count == 0)
        return false;
    struct merged *top = &merge->files[merge->heap[0]];
    *component_index = top->index;
    *out = top->head;
    if (!advance(merge, top))
        merge->heap[0] = merge->heap[--merge->heap_count];
    sift_down(merge, 0);
    return true;
}
