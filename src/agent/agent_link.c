/* agent_link.c - a socket for programs that are not this library, the bridge and its processes on the
 * nodes. Files travel as bytes. */
#include <roost/engine/agent.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/socket_pair.h"
#include "supervise/messages.h"

struct roost_agent_link {
    int fd; /* -1 = closed */
    struct message inbox;
    void *map; /* of the file that came with it */
    size_t map_len;
};

struct roost_agent_link *roost_agent_link_new(int fd)
{
    struct roost_agent_link *link = calloc(1, sizeof *link);
    if (link)
        link->fd = fd;
    else if (fd >= 0)
        close(fd);
    return link;
}

static void forget_file(struct roost_agent_link *link)
{
    if (link->map)
        munmap(link->map, link->map_len);
    link->map = NULL;
    link->map_len = 0;
}

static enum roost_link_result be_closed(struct roost_agent_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    return ROOST_LINK_CLOSED;
}

/* The descriptor stays open: a caller that polls it would not wake if it were closed. */
static enum roost_link_result be_over(struct roost_agent_link *link)
{
    socket_pair_end(link->fd);
    return ROOST_LINK_CLOSED;
}

void roost_agent_link_free(struct roost_agent_link *link)
{
    if (!link)
        return;
    forget_file(link);
    (void)be_closed(link);
    free(link);
}

int roost_agent_link_fd(const struct roost_agent_link *link)
{
    return link->fd;
}

/* A memory file of these bytes, -1 without memory. */
static int write_file(const char *bytes, size_t len)
{
    int fd = memfd_create("roost-message", MFD_CLOEXEC);
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

enum roost_link_result roost_agent_link_send(struct roost_agent_link *link,
                                             const struct roost_agent_message *message)
{
    if (link->fd < 0)
        return ROOST_LINK_CLOSED;
    int file = message->file ? write_file(message->file, message->file_len) : -1;
    if (message->file && file < 0)
        return be_over(link);
    enum socket_pair_result result =
        socket_pair_send(link->fd, message->type, message->body, message->len, file);
    if (file >= 0)
        close(file);
    if (result == SOCKET_PAIR_OK)
        return ROOST_LINK_DONE;
    return result == SOCKET_PAIR_AGAIN ? ROOST_LINK_LATER : be_over(link);
}

/* The bytes of a file, which may be none; it takes the descriptor. A pidfd, too, may come along: it is
 * nothing to carry elsewhere. */
static const void *take_file(struct roost_agent_link *link, int fd)
{
    struct stat info;
    const void *bytes = NULL;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        size_t len = (size_t)info.st_size;
        void *map = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        if (map != MAP_FAILED) {
            link->map = map;
            link->map_len = len;
        }
        bytes = len == 0 ? "" : link->map;
    }
    close(fd);
    return bytes;
}

enum roost_link_result roost_agent_link_receive(struct roost_agent_link *link,
                                                struct roost_agent_message *out)
{
    forget_file(link);
    if (link->fd < 0)
        return ROOST_LINK_CLOSED;
    enum socket_pair_result result = socket_pair_receive(link->fd, &link->inbox);
    if (result == SOCKET_PAIR_AGAIN)
        return ROOST_LINK_LATER;
    if (result != SOCKET_PAIR_OK)
        return be_closed(link);
    const void *file = link->inbox.fd >= 0 ? take_file(link, link->inbox.fd) : NULL;
    *out = (struct roost_agent_message){.type = link->inbox.type,
                                        .body = link->inbox.body,
                                        .len = link->inbox.len,
                                        .file = file,
                                        .file_len = link->map_len};
    return ROOST_LINK_DONE;
}
