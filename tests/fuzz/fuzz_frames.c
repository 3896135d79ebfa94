/* fuzz_frames.c - a wicked worker, and a driver that makes calls meanwhile.
 *
 * The input is a row of steps: bytes to send in pieces of any size, frames that are nearly right, calls,
 * lives that end and begin. Whatever it is, the other worker is served, every call to the wicked one has at
 * most one outcome that never changes, and it has one when the worker's life has ended. An input that
 * starts with 'W' is sent to a worker instead, as if by its driver. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/frame.h"
#include "rpc/links.h"
#include "tests/fuzz/check.h"

enum { CALLS_MAX = 12, IDS_MAX = 16, LARGE = 200 * 1024, STEPS_MAX = 200 };

static struct {
    const uint8_t *at, *end;
    struct links *links;
    int wicked, good; /* their ends */
    int32_t life;
    struct roost_call *calls[CALLS_MAX];
    struct roost_outcome seen[CALLS_MAX];
    uint64_t ids[IDS_MAX]; /* of requests to the wicked one, as it got them */
    size_t id_count;
    struct frame_decoder requests;
} it;

static uint8_t take_byte(void)
{
    return it.at < it.end ? *it.at++ : 0;
}

static uint64_t take_number(void)
{
    uint64_t number = 0;
    for (uint8_t len = take_byte() % 9; len; len--)
        number = number << 8 | take_byte();
    return number;
}

/* --- sockets --- */

static int pair(int *out)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    *out = ends[1];
    return ends[0];
}

static void say(int fd, const void *bytes, size_t len)
{
    if (fd >= 0)
        (void)!send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void begin_life(void)
{
    if (it.wicked >= 0)
        close(it.wicked);
    it.id_count = 0;
    it.requests = (struct frame_decoder){0};
    CHECK(links_add(it.links, 0, ++it.life, 1, pair(&it.wicked)));
}

/* What the driver sent the wicked worker: good frames, whatever that has done. */
static void hear_requests(void)
{
    static char bytes[8192];
    static const struct frame_limits limits = {FRAMES_OF_DRIVER, UINT32_MAX};
    const char *why = NULL;
    ssize_t got;
    while (it.wicked >= 0 && (got = recv(it.wicked, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        struct frame_input in = {bytes, (size_t)got}, piece;
        for (enum frame_step step; (step = frame_next(&it.requests, &limits, &in, &piece, &why));) {
            CHECK(step != FRAME_BAD);
            if (step == FRAME_BEGIN && it.requests.frame.type == FRAME_CALL)
                it.ids[it.id_count++ % IDS_MAX] = it.requests.frame.call;
        }
    }
}

static uint64_t some_id(void)
{
    uint8_t which = take_byte();
    return it.id_count ? it.ids[which % (it.id_count < IDS_MAX ? it.id_count : IDS_MAX)] : which;
}

/* --- what must hold --- */

static struct roost_call *call(int32_t rank, size_t len)
{
    static const char bytes[LARGE];
    struct roost_bytes piece = {bytes, len};
    struct roost_call_options options = {
        .method = "method", .bytes = &piece, .byte_count = 1, .ranks = &rank, .rank_count = 1};
    struct roost_call *made = links_call(it.links, &options, NULL);
    CHECK(made);
    return made;
}

/* The good worker answers, and is heard. */
static void check_good(void)
{
    struct frame frame;
    char body[64];
    struct roost_call *made = call(1, 8);
    CHECK(recv(it.good, &frame, sizeof frame, 0) == sizeof frame && frame.type == FRAME_CALL);
    CHECK(recv(it.good, body, sizeof body, 0) == (ssize_t)frame_body_len(&frame));
    struct frame answer = frame_of(FRAME_ANSWER, 1);
    answer.call = frame.call;
    answer.payload_len = 4;
    memcpy(body, &answer, sizeof answer);
    memcpy(body + sizeof answer, "fine", 4);
    say(it.good, body, sizeof answer + 4);
    CHECK(roost_call_wait(made, 10000));
    struct roost_outcome outcome = roost_call_outcome(made, 0);
    CHECK(outcome.kind == ROOST_OUTCOME_VALUE && outcome.bytes.len == 4);
    CHECK(memcmp(outcome.bytes.at, "fine", 4) == 0);
    roost_call_free(made);
}

/* Outcomes are decided once. */
static void check_calls(bool are_done)
{
    for (int i = 0; i < CALLS_MAX; i++) {
        if (!it.calls[i])
            continue;
        bool is_done = roost_call_is_done(it.calls[i]);
        struct roost_outcome now = roost_call_outcome(it.calls[i], 0), before = it.seen[i];
        CHECK(is_done == (now.kind != ROOST_OUTCOME_PENDING) && (is_done || !are_done));
        if (before.kind != ROOST_OUTCOME_PENDING)
            CHECK(now.kind == before.kind && now.bytes.at == before.bytes.at &&
                  now.bytes.len == before.bytes.len && now.why == before.why);
        bool is_lost = now.kind == ROOST_OUTCOME_UNKNOWN || now.kind == ROOST_OUTCOME_NOT_RUN;
        CHECK(is_lost == (now.why[0] != '\0'));
        it.seen[i] = now;
    }
}

static void count_cut(void *context, int32_t rank, int32_t life, const char *why)
{
    (void)context;
    CHECK(rank == 0 && life == it.life && why[0]);
}

/* --- steps --- */

static void send_nearly_right(void)
{
    struct frame frame = frame_of((enum frame_type)(take_byte() % 9), it.life);
    uint8_t changes = take_byte();
    char bytes[sizeof frame + 256];
    frame.call = some_id();
    frame.flags = take_byte() & 1 && frame.type == FRAME_ANSWER;
    frame.region = frame.type >= FRAME_MAP ? 1 : 0;
    if (changes & 1)
        frame.call = take_number();
    if (changes & 2)
        frame.life = (int32_t)take_number();
    if (changes & 4)
        frame.payload_len = take_number();
    else if (frame.type <= FRAME_ANSWER)
        frame.payload_len = take_byte();
    if (changes & 8)
        frame.region = (uint32_t)take_number();
    if (changes & 16)
        ((uint8_t *)&frame)[take_byte() % sizeof frame] ^= take_byte();
    size_t len = frame_body_len(&frame) < 256 ? (size_t)frame_body_len(&frame) : 256;
    memcpy(bytes, &frame, sizeof frame);
    memset(bytes + sizeof frame, 'b', len);
    size_t split = changes & 32 ? take_byte() % (sizeof frame + len) : 0;
    say(it.wicked, bytes, split);
    links_pump(it.links);
    say(it.wicked, bytes + split, sizeof frame + len - split);
}

static void make_call(size_t len)
{
    for (int i = 0; i < CALLS_MAX; i++)
        if (!it.calls[i]) {
            it.calls[i] = call(0, len);
            it.seen[i] = (struct roost_outcome){.kind = ROOST_OUTCOME_PENDING};
            return;
        }
}

static void free_call(int which)
{
    roost_call_free(it.calls[which]);
    it.calls[which] = NULL;
}

static void step(void)
{
    uint8_t what = take_byte();
    size_t len;
    switch (what % 10) {
    case 0: /* bytes as they are */
        len = take_byte();
        len = len < (size_t)(it.end - it.at) ? len : (size_t)(it.end - it.at);
        say(it.wicked, it.at, len);
        it.at += len;
        break;
    case 1: make_call(take_byte()); break;
    case 2:
    case 3: send_nearly_right(); break;
    case 4: free_call(take_byte() % CALLS_MAX); break;
    case 5:
        links_end(it.links, 0, it.life, "ended");
        check_calls(true);
        begin_life();
        break;
    case 6: make_call(LARGE); break;
    case 7:
        if (it.wicked >= 0)
            shutdown(it.wicked, what & 16 ? SHUT_WR : SHUT_RD);
        break;
    case 8:
        if (it.wicked >= 0)
            close(it.wicked);
        it.wicked = -1;
        break;
    case 9: check_good(); break;
    }
    links_pump(it.links);
    hear_requests();
    check_calls(false);
}

static void run_driver(void)
{
    struct links_options options = {.rank_count = 2,
                                    .answer_max = 1 << 20,
                                    .outbox_max = 1 << 20,
                                    .close_grace_ms = take_byte() & 1 ? -1 : 60000,
                                    .other_fd = -1,
                                    .on_cut = count_cut};
    it.links = links_new(&options);
    it.wicked = -1;
    it.life = 0;
    CHECK(it.links && links_add(it.links, 1, 1, 1, pair(&it.good)));
    if (take_byte() & 1)
        make_call(3); /* before there is anybody */
    begin_life();
    for (int i = 0; i < STEPS_MAX && it.at < it.end; i++)
        step();
    check_good();
    links_end(it.links, 0, it.life, "ended");
    check_calls(true);
    for (int i = 0; i < CALLS_MAX; i++)
        free_call(i);
    links_free(it.links);
    close(it.good);
    if (it.wicked >= 0)
        close(it.wicked);
}

/* --- the other direction --- */

static void run_worker(void)
{
    int driver, ours = pair(&driver);
    int memory = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(memory >= 0 && ftruncate(memory, 8192) == 0);
    struct roost_worker *worker = roost_worker_new(ours, 1, NULL);
    enum roost_code code = ROOST_OK;
    CHECK(worker);
    while (it.at < it.end && code == ROOST_OK) {
        char control[CMSG_SPACE(sizeof(int))] = {0};
        uint8_t what = take_byte();
        size_t len = (size_t)(it.end - it.at) < what ? (size_t)(it.end - it.at) : what;
        struct iovec part = {(void *)(uintptr_t)it.at, len};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        if (what & 1) {
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            struct cmsghdr *item = CMSG_FIRSTHDR(&message);
            *item = (struct cmsghdr){CMSG_LEN(sizeof memory), SOL_SOCKET, SCM_RIGHTS};
            memcpy(CMSG_DATA(item), &memory, sizeof memory);
        }
        (void)!sendmsg(driver, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        it.at += len;
        struct roost_request *request = NULL;
        while ((code = roost_worker_next(worker, 0, &request, NULL)) == ROOST_OK && request) {
            struct roost_bytes bytes = roost_request_payload(request);
            size_t sum = strlen(roost_request_method(request));
            for (size_t i = 0; i < bytes.len; i++)
                sum += ((const unsigned char *)bytes.at)[i];
            CHECK(sum < SIZE_MAX);
            roost_request_free(request);
            char answers[4096];
            while (recv(driver, answers, sizeof answers, MSG_DONTWAIT) > 0)
                continue;
        }
    }
    roost_worker_free(worker);
    close(driver);
    close(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    it.at = data;
    it.end = data + size;
    if (size && data[0] == 'W') {
        it.at++;
        run_worker();
    } else {
        run_driver();
    }
    return 0;
}
