/* fuzz_registry.c - any lines, as requests of some owners to the managers.
 * Lines are requests; the first byte says of whom, '!' that an owner ends, '=' that a view comes. Every
 * answer is one line of JSON with a value or an error, and nobody is told what it does not wait for. */
#include "registry/registry.h"
#include "tests/fuzz/check.h"

enum { OWNERS = 4 };

struct world {
    int waiting[OWNERS];
};

static void check_answer(struct strview answer)
{
    struct text text = TEXT_INIT;
    CHECK(answer.len > 2 && !memchr(answer.at, '\n', answer.len));
    text_put(&text, answer);
    check_json(&text);
    CHECK(strstr(text_string(&text), "\"value\":") || strstr(text_string(&text), "\"error\":"));
    text_release(&text);
}

static void tell_later(void *context, uint64_t owner, struct strview answer)
{
    struct world *world = context;
    CHECK(owner < OWNERS && world->waiting[owner] > 0);
    world->waiting[owner]--;
    check_answer(answer);
}

static void serve(struct registry *registry, struct world *world, struct strview line)
{
    struct diag diag = diag_start(NULL, NULL);
    struct strview rest = sv_sub(line, 1, line.len);
    uint64_t owner = (unsigned char)line.at[0] % OWNERS;
    if (line.at[0] == '=') {
        (void)registry_set_view(registry, rest, &diag);
    } else if (line.at[0] == '!') {
        owner = rest.len ? (unsigned char)rest.at[0] % OWNERS : 0;
        world->waiting[owner] = 0;
        registry_owner_gone(registry, owner);
    } else {
        struct text out = TEXT_INIT;
        bool is_cancel =
            memmem(rest.at, rest.len, "Registry", 8) || memchr(rest.at, '\\', rest.len);
        if (registry_answer(registry, owner, rest, &out) == REGISTRY_WAITING) {
            world->waiting[owner]++;
            CHECK(out.len == 0);
        } else {
            check_answer((struct strview){out.bytes, out.len});
            if (is_cancel && strstr(text_string(&out), "\"value\":true") && world->waiting[owner])
                world->waiting[owner]--;
        }
        text_release(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {0};
    struct registry *registry = registry_new(tell_later, &world);
    struct strview left = {(const char *)data, size};
    CHECK(registry);
    while (left.len) {
        size_t end = sv_find(left, '\n', 0);
        if (end > 0)
            serve(registry, &world, sv_sub(left, 0, end));
        left = sv_sub(left, end < left.len ? end + 1 : end, left.len);
    }
    for (uint64_t owner = 0; owner < OWNERS; owner++) {
        world.waiting[owner] = 0;
        registry_owner_gone(registry, owner);
    }
    registry_free(registry);
    return 0;
}
