/* rendezvous.c - a collective formed by the environment alone, as torch.distributed forms one: rank 0
 * listens at MASTER_ADDR:MASTER_PORT, the others find it there, and all of them sum their ranks.
 *
 * Run it by rendezvous.yaml. Every rank prints what the sum is; one that learns anything else, or nobody in
 * time, ends with 1. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000, TRY_AGAIN_MS = 20 };

static int fail(const char *what)
{
    fprintf(stderr, "rendezvous: %s: %s\n", what, strerror(errno));
    exit(1);
}

static const char *want(const char *name)
{
    const char *value = getenv(name);
    if (!value) {
        fprintf(stderr, "rendezvous: %s is not set\n", name);
        exit(1);
    }
    return value;
}

static struct sockaddr_in master(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtol(want("MASTER_PORT"), NULL, 10))};
    if (inet_pton(AF_INET, want("MASTER_ADDR"), &at.sin_addr) != 1)
        fail("MASTER_ADDR is not an address");
    return at;
}

static void take(int fd, int64_t *out)
{
    if (recv(fd, out, sizeof *out, MSG_WAITALL) != (ssize_t)sizeof *out)
        fail("receive");
}

static void give(int fd, int64_t value)
{
    if (send(fd, &value, sizeof value, MSG_NOSIGNAL) != (ssize_t)sizeof value)
        fail("send");
}

/* Rank 0: hears everybody, then tells everybody. */
static int64_t gather(int world_size)
{
    struct sockaddr_in at = master();
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    int *peers = calloc((size_t)world_size, sizeof *peers);
    int64_t sum = 0, value;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!peers || listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(listener, world_size) != 0)
        fail("listen");
    for (int i = 1; i < world_size; i++) {
        struct pollfd fd = {listener, POLLIN, 0};
        if (poll(&fd, 1, PATIENCE_MS) != 1 || (peers[i] = accept(listener, NULL, NULL)) < 0)
            fail("a rank did not come");
        take(peers[i], &value);
        sum += value;
    }
    for (int i = 1; i < world_size; i++)
        give(peers[i], sum);
    free(peers);
    return sum;
}

static int64_t join(int rank)
{
    struct sockaddr_in at = master();
    int64_t sum;
    for (int waited = 0;; waited += TRY_AGAIN_MS) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
            give(fd, rank);
            take(fd, &sum);
            close(fd);
            return sum;
        }
        if (waited > PATIENCE_MS)
            fail("connect");
        close(fd);
        poll(NULL, 0, TRY_AGAIN_MS); /* rank 0 may not listen yet */
    }
}

int main(void)
{
    int rank = (int)strtol(want("RANK"), NULL, 10);
    int world_size = (int)strtol(want("WORLD_SIZE"), NULL, 10);
    int64_t sum = rank == 0 ? gather(world_size) : join(rank);
    printf("rank %d of %d: the ranks sum up to %" PRId64 "\n", rank, world_size, sum);
    return sum == (int64_t)world_size * (world_size - 1) / 2 ? 0 : 1;
}
