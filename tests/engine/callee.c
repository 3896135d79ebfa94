/* callee.c - a worker that is called while it is being killed. `note` appends "RANK CALL\n" to the file
 * NOTES in one write, the checker's own word for what has run, and answers with a number that only this rank
 * gives to this call. */
#include <fcntl.h>
#include <inttypes.h>
#include <roost/roost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct notes {
    int fd;
    int64_t rank;
};

static void note(struct roost_request *request, void *context)
{
    const struct notes *notes = context;
    struct roost_bytes payload = roost_request_payload(request);
    struct roost_error err;
    int64_t call = -1;
    char line[64];
    if (payload.len >= sizeof call)
        memcpy(&call, payload.at, sizeof call);
    int len = snprintf(line, sizeof line, "%" PRId64 " %" PRId64 "\n", notes->rank, call);
    if (write(notes->fd, line, (size_t)len) != len)
        abort();
    int64_t answer = call * 1000 + notes->rank;
    if (roost_request_reply(request, &(struct roost_bytes){&answer, sizeof answer}, 1, &err) !=
        ROOST_OK)
        exit(0); /* the driver has gone */
    roost_request_free(request);
}

int main(void)
{
    struct roost_error err;
    struct notes notes = {open(getenv("NOTES"), O_WRONLY | O_APPEND | O_CLOEXEC),
                          strtoll(getenv("RANK"), NULL, 10)};
    struct roost_worker *worker = roost_worker_open((const char *const *)environ, &err);
    if (notes.fd < 0 || !worker || roost_worker_on(worker, "note", note, &notes, &err) != ROOST_OK)
        return 1;
    enum roost_code code = roost_worker_serve(worker, &err);
    roost_worker_free(worker);
    return code == ROOST_OK ? 0 : 1;
}
