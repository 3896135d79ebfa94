/* screen_out.c - a buffer of a fixed size in front of a descriptor that must not make us wait.
 *
 * Standard output belongs to others too, so its flags are not ours to change: a pipe or terminal is
 * opened once more through /proc, which gives a description of our own. Where that is refused we ask
 * poll first and write no more than a pipe takes at once. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/screen/screen_internal.h"

bool out_init(struct screen_out *out, int fd)
{
    struct stat info;
    *out = (struct screen_out){.fd = fd, .bytes = malloc(OUT_SIZE)};
    if (!out->bytes)
        return false;
    out->is_terminal = isatty(fd);
    if (fstat(fd, &info) != 0 || S_ISREG(info.st_mode))
        return true;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)
                  ? open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                  : -1;
    out->is_own = own >= 0;
    out->can_block = own < 0;
    out->fd = own >= 0 ? own : fd;
    return true;
}

void out_release(struct screen_out *out)
{
    if (out->is_own)
        close(out->fd);
    free(out->bytes);
}

/* How much of `len` bytes may be written now: 0 when it would wait. */
static size_t may_write(const struct screen_out *out, size_t len)
{
    if (!out->can_block)
        return len;
    struct pollfd polled = {.fd = out->fd, .events = POLLOUT};
    if (poll(&polled, 1, 0) <= 0)
        return 0;
    return len < PIPE_BUF ? len : PIPE_BUF;
}

bool out_flush(struct screen_out *out)
{
    while (out->sent < out->used && !out->error) {
        size_t len = may_write(out, out->used - out->sent);
        ssize_t done = len ? write(out->fd, out->bytes + out->sent, len) : -1;
        if (done < 0 && len && errno == EINTR)
            continue;
        if (done < 0 && (!len || errno == EAGAIN)) {
            out->is_blocked = true;
            return false;
        }
        if (done < 0) {
            out->error = errno;
            break;
        }
        out->sent += (size_t)done;
        if (out->is_own && out->sent < out->used) { /* a short write: it is full, no need to ask */
            out->is_blocked = true;
            return false;
        }
    }
    out->sent = out->used = 0;
    out->is_blocked = false;
    return true;
}

bool out_has_room(struct screen_out *out)
{
    if (OUT_SIZE - out->used >= LINE_ROOM)
        return true;
    if (out_flush(out))
        return true;
    /* Part of it went out: move the rest to the front, once it is little. */
    if (out->used - out->sent <= WRITE_AT) {
        memmove(out->bytes, out->bytes + out->sent, out->used - out->sent);
        out->used -= out->sent;
        out->sent = 0;
    }
    return OUT_SIZE - out->used >= LINE_ROOM;
}

void out_add(struct screen_out *out, const char *bytes, size_t len)
{
    if (out->error || len > OUT_SIZE - out->used)
        return;
    memcpy(out->bytes + out->used, bytes, len);
    out->used += len;
}
