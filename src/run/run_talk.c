/* run_talk.c - the driver and a supervisor that has not begun yet. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "rpc/channel.h"
#include "run/run_birth.h"
#include "supervise/clock.h"

enum { ANSWER_MS = 60000 };

static int stop_fd(const struct birth *birth)
{
    const struct roost_run_options *options = birth->options;
    return options->stop_fd > 0 && options->is_stopped ? options->stop_fd : -1;
}

/* Whoever wanted the run does not want it any more. */
static bool is_given_up(struct birth *birth)
{
    const struct roost_run_options *options = birth->options;
    int fd = stop_fd(birth);
    if (fd < 0 || poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0) <= 0 ||
        !options->is_stopped(options->stop_ctx))
        return false;
    diag_error(birth->diag, ROOST_ERR_ENGINE, NOWHERE, "stopped before it began");
    diag_hint(birth->diag, "nothing of it is left");
    return true;
}

/* Until the channel is ready for that, or somebody may want to stop. */
static void wait_for(const struct birth *birth, short events, int64_t left)
{
    struct pollfd fds[2] = {{birth->run->channel, events, 0}, {stop_fd(birth), POLLIN, 0}};
    (void)poll(fds, 2, left < INT_MAX ? (int)left : INT_MAX);
}

/* Whether what came is the supervisor's reason not to begin; says it. */
static bool is_refused(struct birth *birth)
{
    struct roost_error err;
    const struct message *inbox = &birth->run->inbox;
    if (inbox->type != MSG_REFUSED || inbox->len != sizeof err)
        return false;
    memcpy(&err, inbox->body, sizeof err);
    diag_again(birth->diag, &err);
    return true;
}

bool birth_expect_until(struct birth *birth, enum message_type type, int64_t deadline,
                        bool *is_late)
{
    struct roost_run *run = birth->run;
    *is_late = false;
    for (;;) {
        enum channel_result result = channel_receive(run->channel, &run->inbox);
        if (result == CHANNEL_OK && run->inbox.type == type)
            return true;
        if (result == CHANNEL_OK && is_refused(birth))
            return false;
        if (result != CHANNEL_AGAIN) {
            diag_error(birth->diag, ROOST_ERR_ENGINE, NOWHERE,
                       "the guardian of the run ended before it began");
            diag_hint(birth->diag, "is `program` the roost program that came with this library?");
            return false;
        }
        int64_t left = deadline - clock_ms();
        *is_late = left <= 0;
        if (*is_late || is_given_up(birth))
            return false;
        wait_for(birth, POLLIN, left);
    }
}

bool birth_expect(struct birth *birth, enum message_type type)
{
    bool is_late;
    if (birth_expect_until(birth, type, clock_ms() + ANSWER_MS, &is_late))
        return true;
    if (is_late) {
        diag_error(birth->diag, ROOST_ERR_TIMEOUT, NOWHERE,
                   "the supervisor of the run gives no answer");
        diag_hint(birth->diag, "the machine is very busy: try again");
    }
    return false;
}

bool birth_say_channel(struct birth *birth)
{
    int error = errno;
    /* It may have refused, and gone, while it was being told: its last word is behind the first failure
     * to read, which tells that something was lost on the way to it. */
    for (int i = 0; i < 3; i++)
        if (channel_receive(birth->run->channel, &birth->run->inbox) == CHANNEL_OK &&
            is_refused(birth))
            return false;
    diag_error(birth->diag, ROOST_ERR_ENGINE, NOWHERE, "cannot reach the supervisor of the run: %s",
               strerror(error));
    diag_hint(birth->diag, "try again");
    return false;
}

bool birth_send_file(struct birth *birth, enum message_type type, const void *body, size_t len,
                     int file)
{
    enum channel_result result = CHANNEL_FAILED;
    bool is_stopped = false;
    while (file >= 0 && !is_stopped &&
           (result = channel_send(birth->run->channel, (uint16_t)type, body, len, file)) ==
               CHANNEL_AGAIN) {
        wait_for(birth, POLLOUT, 1000);
        is_stopped = is_given_up(birth);
    }
    int error = errno;
    if (file >= 0)
        close(file);
    errno = error;
    return result == CHANNEL_OK || (!is_stopped && birth_say_channel(birth));
}
