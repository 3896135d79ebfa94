/* adder.c - a worker in C: answers `add` with the sum of its rank and what it is sent, and fails at `fail`.
 * It is started and called by group.c.
 *
 * Build:  cc adder.c $(pkg-config --cflags --libs roost) -o adder */
#include <inttypes.h>
#include <roost/roost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static void add(struct roost_request *request, void *context)
{
    struct roost_bytes payload = roost_request_payload(request);
    int64_t number = 0;
    struct roost_error err;
    if (payload.len == sizeof number)
        memcpy(&number, payload.at, sizeof number);
    number += *(const int64_t *)context;
    if (roost_request_reply(request, &(struct roost_bytes){&number, sizeof number}, 1, &err) !=
        ROOST_OK)
        fprintf(stderr, "adder: %s\n", err.message);
    roost_request_free(request);
}

static void fail(struct roost_request *request, void *context)
{
    const char *why = "it was asked to";
    struct roost_error err;
    (void)context;
    if (roost_request_fail(request, &(struct roost_bytes){why, strlen(why)}, 1, &err) != ROOST_OK)
        fprintf(stderr, "adder: %s\n", err.message);
    roost_request_free(request);
}

int main(void)
{
    struct roost_error err;
    int64_t rank = strtoll(getenv("RANK") ? getenv("RANK") : "0", NULL, 10);
    struct roost_worker *worker = roost_worker_open((const char *const *)environ, &err);
    enum roost_code code = worker ? ROOST_OK : err.code;
    if (code == ROOST_OK)
        code = roost_worker_on(worker, "add", add, &rank, &err);
    if (code == ROOST_OK)
        code = roost_worker_on(worker, "fail", fail, NULL, &err);
    if (code == ROOST_OK)
        code = roost_worker_serve(worker, &err);
    if (code != ROOST_OK)
        fprintf(stderr, "adder: %s\n", err.message);
    roost_worker_free(worker);
    return code == ROOST_OK ? 0 : 1;
}
