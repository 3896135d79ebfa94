/* frame_test.c - a header is good or refused, and frames are found in any split of a stream. */
#include "rpc/frame.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/unit.h"

static const struct frame_limits from_worker = {FRAMES_OF_WORKER, 1000};
static const struct frame_limits from_driver = {FRAMES_OF_DRIVER, 1000};

static struct frame with(enum frame_type type, uint64_t len, uint32_t region)
{
    struct frame frame = frame_of(type, 1);
    frame.payload_len = len;
    frame.region = region;
    return frame;
}

TEST(good_headers_pass)
{
    const struct {
        const char *name;
        struct frame frame;
        const struct frame_limits *limits;
        uint64_t body;
    } rows[] = {
        {"ready", with(FRAME_READY, 0, 0), &from_worker, 0},
        {"refused", with(FRAME_REFUSED, 1000, 0), &from_worker, 1000},
        {"answer", with(FRAME_ANSWER, 7, 0), &from_worker, 7},
        {"release", with(FRAME_RELEASE, 0, 9), &from_worker, 0},
        {"call", with(FRAME_CALL, 5, 0), &from_driver, 5},
        {"call with a region", with(FRAME_CALL, 5, 3), &from_driver, 0},
        {"map", with(FRAME_MAP, 999, 3), &from_driver, 0},
        {"unmap", with(FRAME_UNMAP, 0, 3), &from_driver, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CHECK_FACT(rows[i].name, !frame_check(&rows[i].frame, rows[i].limits));
        CHECK_FACT(rows[i].name, frame_body_len(&rows[i].frame) == rows[i].body);
    }
    struct frame error = with(FRAME_ANSWER, 0, 0);
    error.flags = FRAME_FLAG_ERROR;
    assert_null(frame_check(&error, &from_worker));
    struct frame call = with(FRAME_CALL, 1, 0);
    call.method_len = FRAME_METHOD_MAX;
    assert_null(frame_check(&call, &from_driver));
    assert_int_equal(frame_body_len(&call), FRAME_METHOD_MAX + 1);
}

/* A good header with one field changed. */
#define BROKEN(name, says, type, limits, change)                                                   \
    do {                                                                                           \
        struct frame it = with(type, 0, 0);                                                        \
        change;                                                                                    \
        const char *why = frame_check(&it, &(limits));                                             \
        CHECK_FACT(name, why);                                                                     \
        CHECK_SAYS(name, why, says);                                                               \
    } while (0)

TEST(broken_headers_are_refused_with_what_is_wrong)
{
    BROKEN("magic", "not a frame", FRAME_READY, from_worker, it.magic ^= 1);
    BROKEN("version", "another version", FRAME_READY, from_worker, it.version++);
    BROKEN("type 0", "not its to send", FRAME_READY, from_worker, it.type = 0);
    BROKEN("type 8", "not its to send", FRAME_READY, from_worker, it.type = FRAME_TYPE_END);
    BROKEN("type 255", "not its to send", FRAME_READY, from_worker, it.type = 255);
    BROKEN("call", "not its to send", FRAME_CALL, from_worker, (void)0);
    BROKEN("answer", "not its to send", FRAME_ANSWER, from_driver, (void)0);
    BROKEN("life", "do not fit", FRAME_READY, from_worker, it.life = -1);
    BROKEN("zero", "do not fit", FRAME_READY, from_worker, it.zero = 1);
    BROKEN("flags", "do not fit", FRAME_READY, from_worker, it.flags = FRAME_FLAG_ERROR);
    BROKEN("more flags", "do not fit", FRAME_ANSWER, from_worker, it.flags = 2);
    BROKEN("method", "do not fit", FRAME_ANSWER, from_worker, it.method_len = 1);
    BROKEN("region", "do not fit", FRAME_ANSWER, from_worker, it.region = 1);
    BROKEN("no region", "do not fit", FRAME_RELEASE, from_worker, (void)0);
    BROKEN("payload", "do not fit", FRAME_UNMAP, from_driver, it.payload_len = it.region = 1);
    BROKEN("long method", "larger", FRAME_CALL, from_driver, it.method_len = FRAME_METHOD_MAX + 1);
    BROKEN("one more", "larger", FRAME_ANSWER, from_worker, it.payload_len = 1001);
    BROKEN("4 GiB", "larger", FRAME_ANSWER, from_worker, it.payload_len = UINT64_C(1) << 32);
    BROKEN("all", "larger", FRAME_ANSWER, from_worker, it.payload_len = UINT64_MAX);
}

/* What a decoder finds in a stream, as text: B begin with its length, bytes as they are, E end, X bad. */
struct seen {
    char text[512];
    size_t len;
};

static void feed(struct frame_decoder *decoder, const char *bytes, size_t len, struct seen *seen)
{
    struct frame_input in = {bytes, len}, piece;
    const char *why = NULL;
    for (;;) {
        switch (frame_next(decoder, &from_worker, &in, &piece, &why)) {
        case FRAME_NEED: assert_int_equal(in.len, 0); return;
        case FRAME_BEGIN: seen->text[seen->len++] = 'B'; break;
        case FRAME_BODY:
            assert_true(piece.len > 0);
            memcpy(seen->text + seen->len, piece.at, piece.len);
            seen->len += piece.len;
            break;
        case FRAME_END: seen->text[seen->len++] = 'E'; break;
        case FRAME_BAD:
            assert_non_null(why);
            seen->text[seen->len++] = 'X';
            return;
        }
    }
}

static size_t put(char *stream, size_t at, struct frame frame, const char *body)
{
    memcpy(stream + at, &frame, sizeof frame);
    memcpy(stream + at + sizeof frame, body, strlen(body));
    return at + sizeof frame + strlen(body);
}

TEST(frames_are_the_same_in_any_split)
{
    char stream[512];
    size_t len = put(stream, 0, with(FRAME_READY, 2, 0), "ok");
    len = put(stream, len, with(FRAME_ANSWER, 0, 0), "");
    len = put(stream, len, with(FRAME_ANSWER, 5, 0), "hello");
    len = put(stream, len, with(FRAME_RELEASE, 0, 1), "");
    for (size_t first = 0; first <= len; first++)
        for (size_t second = first; second <= len; second++) {
            struct frame_decoder decoder = {0};
            struct seen seen = {"", 0};
            feed(&decoder, stream, first, &seen);
            feed(&decoder, stream + first, second - first, &seen);
            feed(&decoder, stream + second, len - second, &seen);
            assert_string_equal(seen.text, "BokEBEBhelloEBE");
        }
}

TEST(bytes_that_begin_no_frame_are_found_out_at_once)
{
    struct frame_decoder decoder = {0};
    struct seen seen = {"", 0};
    char stream[128];
    size_t len = put(stream, 0, with(FRAME_READY, 2, 0), "ok");
    feed(&decoder, stream, len, &seen);
    feed(&decoder, "R", 1, &seen);
    assert_string_equal(seen.text, "BokE");
    feed(&decoder, "x", 1, &seen);
    assert_string_equal(seen.text, "BokEX");
}

TEST(nothing_of_a_body_comes_before_its_header_is_good)
{
    struct frame_decoder decoder = {0};
    struct seen seen = {"", 0};
    char stream[128];
    size_t len = put(stream, 0, with(FRAME_ANSWER, 1001, 0), "body");
    feed(&decoder, stream, len, &seen);
    assert_string_equal(seen.text, "X");
}

TEST(a_body_may_be_received_elsewhere)
{
    struct frame_decoder decoder = {0};
    struct seen seen = {"", 0};
    char stream[128];
    size_t len = put(stream, 0, with(FRAME_ANSWER, 10, 0), "abc");
    feed(&decoder, stream, len, &seen);
    frame_passed(&decoder, 6);
    feed(&decoder, "", 0, &seen);
    assert_string_equal(seen.text, "Babc");
    frame_passed(&decoder, 1);
    feed(&decoder, "", 0, &seen);
    assert_string_equal(seen.text, "BabcE");
}

RUN_TESTS(cmocka_unit_test(good_headers_pass),
          cmocka_unit_test(broken_headers_are_refused_with_what_is_wrong),
          cmocka_unit_test(frames_are_the_same_in_any_split),
          cmocka_unit_test(bytes_that_begin_no_frame_are_found_out_at_once),
          cmocka_unit_test(nothing_of_a_body_comes_before_its_header_is_good),
          cmocka_unit_test(a_body_may_be_received_elsewhere))
