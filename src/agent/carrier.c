/* carrier.c - a channel for programs that are not this library: files travel as bytes. */
#include <roost/part.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/channel.h"
#include "supervise/messages.h"

struct roost_carrier {
    int fd; /* -1 = closed */
    struct message inbox;
    void *map; /* of the file that came with it */
    size_t map_len;
};

struct roost_carrier *roost_carrier_new(int fd)
{
    struct roost_carrier *carrier = calloc(1, sizeof *carrier);
    if (carrier)
        carrier->fd = fd;
    else if (fd >= 0)
        close(fd);
    return carrier;
}

static void forget_file(struct roost_carrier *carrier)
{
    if (carrier->map)
        munmap(carrier->map, carrier->map_len);
    carrier->map = NULL;
    carrier->map_len = 0;
}

static enum roost_carried be_closed(struct roost_carrier *carrier)
{
    if (carrier->fd >= 0)
        close(carrier->fd);
    carrier->fd = -1;
    return ROOST_CARRIED_CLOSED;
}

/* The descriptor stays: whoever waits for it would not wake if it were closed. */
static enum roost_carried be_over(struct roost_carrier *carrier)
{
    channel_end(carrier->fd);
    return ROOST_CARRIED_CLOSED;
}

void roost_carrier_free(struct roost_carrier *carrier)
{
    if (!carrier)
        return;
    forget_file(carrier);
    (void)be_closed(carrier);
    free(carrier);
}

int roost_carrier_fd(const struct roost_carrier *carrier)
{
    return carrier->fd;
}

/* A memory file of these bytes, -1 without memory. */
static int write_file(const char *bytes, size_t len)
{
    int fd = memfd_create("roost-parcel", MFD_CLOEXEC);
    for (size_t done = 0; fd >= 0 && done < len;) {
        ssize_t more = write(fd, bytes + done, len - done);
        if (more <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)more;
    }
    return fd;
}

enum roost_carried roost_carrier_send(struct roost_carrier *carrier,
                                      const struct roost_parcel *parcel)
{
    if (carrier->fd < 0)
        return ROOST_CARRIED_CLOSED;
    int file = parcel->file ? write_file(parcel->file, parcel->file_len) : -1;
    if (parcel->file && file < 0)
        return be_over(carrier);
    enum channel_result result =
        channel_send(carrier->fd, parcel->type, parcel->body, parcel->len, file);
    if (file >= 0)
        close(file);
    if (result == CHANNEL_OK)
        return ROOST_CARRIED_DONE;
    return result == CHANNEL_AGAIN ? ROOST_CARRIED_LATER : be_over(carrier);
}

/* The bytes of a file, which may be none; it takes the descriptor. A pidfd, too, may come along: it is
 * nothing to carry elsewhere. */
static const void *take_file(struct roost_carrier *carrier, int fd)
{
    struct stat info;
    const void *bytes = NULL;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        size_t len = (size_t)info.st_size;
        void *map = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        if (map != MAP_FAILED) {
            carrier->map = map;
            carrier->map_len = len;
        }
        bytes = len == 0 ? "" : carrier->map;
    }
    close(fd);
    return bytes;
}

enum roost_carried roost_carrier_receive(struct roost_carrier *carrier, struct roost_parcel *out)
{
    forget_file(carrier);
    if (carrier->fd < 0)
        return ROOST_CARRIED_CLOSED;
    enum channel_result result = channel_receive(carrier->fd, &carrier->inbox);
    if (result == CHANNEL_AGAIN)
        return ROOST_CARRIED_LATER;
    if (result != CHANNEL_OK)
        return be_closed(carrier);
    const void *file = carrier->inbox.fd >= 0 ? take_file(carrier, carrier->inbox.fd) : NULL;
    *out = (struct roost_parcel){.type = carrier->inbox.type,
                                 .body = carrier->inbox.body,
                                 .len = carrier->inbox.len,
                                 .file = file,
                                 .file_len = carrier->map_len};
    return ROOST_CARRIED_DONE;
}
