/* port_socket.h - binding one port, and asking whether somebody answers on one: the door to TCP. */
#ifndef PORT_PORT_SOCKET_H
#define PORT_PORT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

enum port_state {
    PORT_HELD,   /* *out_fd holds it */
    PORT_TAKEN,  /* somebody has it, on some address, for TCP or UDP; or it is not for this user */
    PORT_FAILED, /* no socket to be had: errno says why */
};

/* Binds `port` when it is free for TCP and UDP on every address. The socket does not listen; it holds
 * all addresses of IPv4 and IPv6, or only 127.0.0.1 when it is to be handed on. */
enum port_state port_socket_hold(int32_t port, bool is_handed, int *out_fd);

/* Binds a port again that was ours: connections of its last user that have not timed out yet do not
 * count, and nobody is asked about UDP. */
enum port_state port_socket_hold_again(int32_t port, bool is_handed, int *out_fd);

/* Whether a process listens on a port of this machine's loopback: a question that takes its time and
 * never blocks. Start it, look at it from a poll loop as often as you like, end it. */
struct port_probe {
    int32_t port;
    int fds[2]; /* to 127.0.0.1 and ::1: poll them for POLLOUT; -1 = answered */
};

enum port_answer {
    PORT_CLOSED,  /* nobody listens: ended, start a new probe later */
    PORT_WAITING, /* no answer yet */
    PORT_OPEN,    /* somebody does: ended */
};

enum port_answer port_probe_start(struct port_probe *probe, int32_t port);
enum port_answer port_probe_check(struct port_probe *probe);

/* Gives the question up; also fine after an answer. */
void port_probe_end(struct port_probe *probe);

#endif
