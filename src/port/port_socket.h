/* port_socket.h - binds one port, and tests whether a process listens on one. The only code that uses TCP
 * sockets. */
#ifndef PORT_PORT_SOCKET_H
#define PORT_PORT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

enum port_state {
    PORT_HELD, /* *out_fd holds it */
    PORT_TAKEN, /* another process has it, on some address, for TCP or UDP; or this user may not bind it */
    PORT_FAILED, /* no socket could be created: errno has the reason */
};

/* Binds `port` if it is free for TCP and UDP on every address. The socket does not listen. It holds all
 * addresses of IPv4 and IPv6, or only 127.0.0.1 if a process will inherit it (`is_handed`). */
enum port_state port_socket_hold(int32_t port, bool is_handed, int *out_fd);

/* Binds a port that this process has held before. Ignores connections of its last user that have not timed
 * out yet, and does not check UDP. */
enum port_state port_socket_hold_again(int32_t port, bool is_handed, int *out_fd);

/* Tests whether a process listens on a loopback port of this machine. It may take a while but never blocks:
 * start it, check it from a poll loop as often as you like, end it. */
struct port_probe {
    int32_t port;
    int fds[2]; /* to 127.0.0.1 and ::1: poll them for POLLOUT; -1 = answered */
};

enum port_answer {
    PORT_CLOSED,  /* no process listens: the probe is over, start a new one later */
    PORT_WAITING, /* no answer yet */
    PORT_OPEN,    /* a process listens: the probe is over */
};

enum port_answer port_probe_start(struct port_probe *probe, int32_t port);
enum port_answer port_probe_check(struct port_probe *probe);

/* Ends the probe; also allowed after an answer. */
void port_probe_end(struct port_probe *probe);

#endif
