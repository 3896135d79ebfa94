/* call_speed.c - what a call costs beside the sockets it goes over: a round trip of 64 bytes to one worker,
 * a call to 256 workers and back, each against the bare loop over socketpairs with the same processes. */
#include <fcntl.h>
#include <roost/roost.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "rpc/links.h"

enum {
    SIZE = 64,
    ROUNDS = 21,
    TRIPS = 2000, /* of a round */
    WORKERS = 256,
    TURNS = 12, /* of a round */
};
static const double TRIP_TARGET = 1.5, FAN_TARGET = 1.5;

static void must(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "call_speed: cannot %s\n", what);
    exit(2);
}

/* --- workers --- */

static void bare(int fd)
{
    char bytes[SIZE];
    while (recv(fd, bytes, sizeof bytes, 0) == SIZE)
        if (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) != SIZE)
            break;
}

static void echo(struct roost_request *request, void *context)
{
    struct roost_bytes bytes = roost_request_payload(request);
    (void)context;
    (void)!roost_request_reply(request, &bytes, 1, NULL);
    roost_request_free(request);
}

static void serve(int fd)
{
    struct roost_worker *worker = roost_worker_new(fd, 1, NULL);
    must(worker && roost_worker_on(worker, "echo", echo, NULL, NULL) == ROOST_OK, "serve");
    (void)!roost_worker_serve(worker, NULL);
    roost_worker_free(worker);
}

/* A process that runs `work`; returns this side of its socket. */
static int spawn(void (*work)(int))
{
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "make a socket");
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        (void)close_range(3, (unsigned)ends[1] - 1, 0);
        (void)close_range((unsigned)ends[1] + 1, ~0U, 0);
        work(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

/* --- round trips --- */

static void trip_bare(int fd)
{
    char bytes[SIZE] = "";
    must(send(fd, bytes, SIZE, MSG_NOSIGNAL) == SIZE && recv(fd, bytes, SIZE, 0) == SIZE,
         "talk to a bare worker");
}

/* One call to all of them. */
static void trip_call(struct links *links)
{
    static const char bytes[SIZE];
    struct roost_bytes piece = {bytes, SIZE};
    struct roost_call_options options = {.method = "echo", .bytes = &piece, .byte_count = 1};
    struct roost_call *call = links_call(links, &options, NULL);
    must(call && roost_call_wait(call, 60000), "call");
    for (size_t i = 0; i < roost_call_count(call); i++)
        must(roost_call_outcome(call, i).bytes.len == SIZE, "get an answer");
    roost_call_free(call);
}

static void fan_bare(const int *fds)
{
    char bytes[SIZE] = "";
    for (int i = 0; i < WORKERS; i++)
        must(send(fds[i], bytes, SIZE, MSG_NOSIGNAL) == SIZE, "send to a bare worker");
    for (int i = 0; i < WORKERS; i++)
        must(recv(fds[i], bytes, SIZE, 0) == SIZE, "hear a bare worker");
}

static struct links *links_of(int32_t count)
{
    struct links_options options = {.rank_count = count, .other_fd = -1};
    struct links *links = links_new(&options);
    must(links, "make links");
    for (int32_t rank = 0; rank < count; rank++)
        must(links_add(links, rank, 1, 1, spawn(serve)), "add a worker");
    return links;
}

struct ratio {
    double bare_us, call_us, value;
};

static struct ratio compare_trips(void)
{
    double raw[ROUNDS], ours[ROUNDS];
    int fd = spawn(bare);
    struct links *links = links_of(1);
    for (int round = -2; round < ROUNDS; round++) { /* two to warm up */
        double start = now_seconds();
        for (int i = 0; i < TRIPS; i++)
            trip_bare(fd);
        double middle = now_seconds();
        for (int i = 0; i < TRIPS; i++)
            trip_call(links);
        double end = now_seconds();
        raw[round < 0 ? 0 : round] = (middle - start) * 1e6 / TRIPS;
        ours[round < 0 ? 0 : round] = (end - middle) * 1e6 / TRIPS;
    }
    links_free(links);
    close(fd);
    struct ratio ratio = {median(raw, ROUNDS), median(ours, ROUNDS), 0};
    ratio.value = ratio.call_us / ratio.bare_us;
    return ratio;
}

static struct ratio compare_fans(void)
{
    double raw[ROUNDS], ours[ROUNDS];
    int fds[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        fds[i] = spawn(bare);
    struct links *links = links_of(WORKERS);
    for (int round = -2; round < ROUNDS; round++) {
        double start = now_seconds();
        for (int i = 0; i < TURNS; i++)
            fan_bare(fds);
        double middle = now_seconds();
        for (int i = 0; i < TURNS; i++)
            trip_call(links);
        double end = now_seconds();
        raw[round < 0 ? 0 : round] = (middle - start) * 1e6 / TURNS;
        ours[round < 0 ? 0 : round] = (end - middle) * 1e6 / TURNS;
    }
    links_free(links);
    for (int i = 0; i < WORKERS; i++)
        close(fds[i]);
    struct ratio ratio = {median(raw, ROUNDS), median(ours, ROUNDS), 0};
    ratio.value = ratio.call_us / ratio.bare_us;
    return ratio;
}

/* --- memory --- */

/* --- the answer --- */

static void put_measure(const char *name, double value, double target, const char *end)
{
    printf("  {\"name\": \"%s\", \"value\": %.2f, \"target\": %.1f, \"at_most\": true, \"ok\": "
           "%s}%s\n",
           name, value, target, value <= target ? "true" : "false", end);
}

/* Both sides of every pair on one core. The kernel leaves two processes that talk where they are, together
 * or apart, and waking another core takes several times what all the rest does: that lot would decide. */
static void stay_on_one_core(void)
{
    cpu_set_t cores;
    must(sched_getaffinity(0, sizeof cores, &cores) == 0, "ask for the cores");
    size_t core = 0;
    while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, &cores))
        core++;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    must(sched_setaffinity(0, sizeof cores, &cores) == 0, "stay on one core");
}

int main(void)
{
    stay_on_one_core();
    struct ratio trip = compare_trips(), fan = compare_fans();
    while (wait(NULL) > 0)
        continue;
    bool is_good = trip.value <= TRIP_TARGET && fan.value <= FAN_TARGET;
    printf("{\"bench\": \"call_speed\", \"bytes\": %d, \"workers\": %d, \"rounds\": %d,\n"
           " \"trip_us\": %.2f, \"bare_trip_us\": %.2f, \"fan_us\": %.1f, \"bare_fan_us\": %.1f,\n"
           " \"measures\": [\n",
           SIZE, WORKERS, ROUNDS, trip.call_us, trip.bare_us, fan.call_us, fan.bare_us);
    put_measure("call / bare ping-pong", trip.value, TRIP_TARGET, ",");
    put_measure("call to 256 / bare loop", fan.value, FAN_TARGET, "],");
    printf(" \"ok\": %s}\n", is_good ? "true" : "false");
    return 0;
}
