/* socket_pair.h - messages between the processes of one run, over an inherited socketpair.
 *
 * Such a socket has no name, no port and no listener: a process has its descriptor only if another process
 * passed it on. Messages keep their boundaries (SOCK_SEQPACKET) and may carry one descriptor. The receiver
 * checks magic, version, type and length before it uses a byte of the body. No function blocks. */
#ifndef RPC_SOCKET_PAIR_H
#define RPC_SOCKET_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOCKET_PAIR_BODY_MAX = 32 * 1024 };

enum socket_pair_result {
    SOCKET_PAIR_OK,
    SOCKET_PAIR_AGAIN,  /* nothing to read now, or no room to write */
    SOCKET_PAIR_CLOSED, /* the other side is gone */
    SOCKET_PAIR_BAD,    /* the received bytes are not a message of roost */
    SOCKET_PAIR_FAILED, /* errno has the reason */
};

struct message {
    uint16_t type;
    uint32_t len;
    int fd; /* -1 = none; the receiver owns it */
    char body[SOCKET_PAIR_BODY_MAX];
};

/* Two ends, close-on-exec and non-blocking; false with errno. */
bool socket_pair_open(int out[2]);

/* Two ends of a stream, for calls (links.h, roost/worker.h): close-on-exec; false with errno. */
bool socket_pair_stream(int out[2]);

/* Sends a message; `fd` (-1 = none) is passed along and stays the caller's. */
enum socket_pair_result socket_pair_send(int socket, uint16_t type, const void *body, size_t len,
                                         int fd);

/* The same with several descriptors, for a receiver that is not this library: at most 8. */
enum socket_pair_result socket_pair_send_many(int socket, uint16_t type, const void *body,
                                              size_t len, const int *fds, int fd_count);

/* Takes one message. */
enum socket_pair_result socket_pair_receive(int socket, struct message *out);

/* Shuts the socket down: the other side sees this one as gone, and threads that wait here wake up. Messages
 * that were sent before can still be received. */
void socket_pair_end(int socket);

#endif
