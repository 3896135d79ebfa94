/* channel.h - messages between the processes of one run, over an inherited socketpair.
 *
 * A channel has no name, no port and no listener: who has the descriptor was given it. Messages keep
 * their boundaries (SOCK_SEQPACKET), may carry one descriptor, and are checked (magic, version, type,
 * length) before a byte of their body is used. Nothing here blocks. */
#ifndef RPC_CHANNEL_H
#define RPC_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHANNEL_BODY_MAX = 32 * 1024 };

enum channel_result {
    CHANNEL_OK,
    CHANNEL_AGAIN,  /* nothing to read now, or no room to write */
    CHANNEL_CLOSED, /* the other side is gone */
    CHANNEL_BAD,    /* what came is not a message of ours */
    CHANNEL_FAILED, /* errno says why */
};

struct message {
    uint16_t type;
    uint32_t len;
    int fd; /* -1 = none; the receiver owns it */
    char body[CHANNEL_BODY_MAX];
};

/* Two ends, close-on-exec and non-blocking; false with errno. */
bool channel_pair(int out[2]);

/* Two ends of a stream, for calls (links.h, roost/worker.h): close-on-exec; false with errno. */
bool channel_stream(int out[2]);

/* Sends a message; `fd` (-1 = none) is passed along and stays the caller's. */
enum channel_result channel_send(int channel, uint16_t type, const void *body, size_t len, int fd);

/* The same with several descriptors, for a receiver that is not this library: at most 8. */
enum channel_result channel_send_many(int channel, uint16_t type, const void *body, size_t len,
                                      const int *fds, int fd_count);

/* Takes one message. */
enum channel_result channel_receive(int channel, struct message *out);

/* To the other side this one is gone, and whoever waits here wakes; what it had said before can still be
 * received. */
void channel_end(int channel);

#endif
