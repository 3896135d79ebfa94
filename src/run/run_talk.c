/* run_talk.c - messages between the driver and a supervisor that has no worker yet. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "rpc/socket_pair.h"
#include "run/run_start.h"
#include "supervise/clock.h"

enum { ANSWER_MS = 60000 };

static int stop_fd(const struct run_start *start)
{
    const struct roost_run_options *options = start->options;
    return options->stop_fd > 0 && options->is_stopped ? options->stop_fd : -1;
}

/* Whether the caller does not want the run any more; reports it. */
static bool is_given_up(struct run_start *start)
{
    const struct roost_run_options *options = start->options;
    int fd = stop_fd(start);
    if (fd < 0 || poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0) <= 0 ||
        !options->is_stopped(options->stop_ctx))
        return false;
    diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE, "stopped before it began");
    diag_hint(start->diag, "nothing of it is left");
    return true;
}

/* Waits until the socket is ready for that, or the caller may want to stop. */
static void wait_for(const struct run_start *start, short events, int64_t left)
{
    struct pollfd fds[2] = {{start->run->socket, events, 0}, {stop_fd(start), POLLIN, 0}};
    (void)poll(fds, 2, left < INT_MAX ? (int)left : INT_MAX);
}

/* Whether the message is the supervisor's reason not to begin; reports it. */
static bool is_refused(struct run_start *start)
{
    struct roost_error err;
    const struct message *inbox = &start->run->inbox;
    if (inbox->type != MSG_REFUSED || inbox->len != sizeof err)
        return false;
    memcpy(&err, inbox->body, sizeof err);
    diag_again(start->diag, &err);
    return true;
}

bool run_start_expect_until(struct run_start *start, enum message_type type, int64_t deadline,
                            bool *is_late)
{
    struct roost_run *run = start->run;
    *is_late = false;
    for (;;) {
        enum socket_pair_result result = socket_pair_receive(run->socket, &run->inbox);
        if (result == SOCKET_PAIR_OK && run->inbox.type == type)
            return true;
        if (result == SOCKET_PAIR_OK && is_refused(start))
            return false;
        if (result != SOCKET_PAIR_AGAIN) {
            diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE,
                       "the guardian of the run ended before it began");
            diag_hint(start->diag, "is `program` the roost program that came with this library?");
            return false;
        }
        int64_t left = deadline - clock_ms();
        *is_late = left <= 0;
        if (*is_late || is_given_up(start))
            return false;
        wait_for(start, POLLIN, left);
    }
}

bool run_start_expect(struct run_start *start, enum message_type type)
{
    bool is_late;
    if (run_start_expect_until(start, type, clock_ms() + ANSWER_MS, &is_late))
        return true;
    if (is_late) {
        diag_error(start->diag, ROOST_ERR_TIMEOUT, NOWHERE,
                   "the supervisor of the run gives no answer");
        diag_hint(start->diag, "the machine is very busy: try again");
    }
    return false;
}

bool run_start_report_socket(struct run_start *start)
{
    int error = errno;
    /* The supervisor may have refused, and gone, while the driver was sending: its last message comes
     * after the first failure to read, which shows that something was lost on the way to it. */
    for (int i = 0; i < 3; i++)
        if (socket_pair_receive(start->run->socket, &start->run->inbox) == SOCKET_PAIR_OK &&
            is_refused(start))
            return false;
    diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE, "cannot reach the supervisor of the run: %s",
               strerror(error));
    diag_hint(start->diag, "try again");
    return false;
}

bool run_start_send_file(struct run_start *start, enum message_type type, const void *body,
                         size_t len, int file)
{
    enum socket_pair_result result = SOCKET_PAIR_FAILED;
    bool is_stopped = false;
    while (file >= 0 && !is_stopped &&
           (result = socket_pair_send(start->run->socket, (uint16_t)type, body, len, file)) ==
               SOCKET_PAIR_AGAIN) {
        wait_for(start, POLLOUT, 1000);
        is_stopped = is_given_up(start);
    }
    int error = errno;
    if (file >= 0)
        close(file);
    errno = error;
    return result == SOCKET_PAIR_OK || (!is_stopped && run_start_report_socket(start));
}
