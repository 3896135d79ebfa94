/* registry_unit.h - a registry to ask in tests: requests and answers as texts, told answers as a list. */
#ifndef TESTS_REGISTRY_UNIT_H
#define TESTS_REGISTRY_UNIT_H

#include <stdio.h>
#include <stdlib.h>

#include "registry/registry.h"
#include "tests/unit.h"

struct world {
    struct registry *registry;
    struct text told; /* "owner answer" lines */
    struct text answer;
};

static void keep_told(void *context, uint64_t owner, struct strview answer)
{
    struct world *world = context;
    text_printf(&world->told, "%d %.*s\n", (int)owner, (int)answer.len, answer.at);
}

/* A cluster of two nodes, with four accelerators and with two. */
static inline void world_open(struct world *world)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    *world = (struct world){.told = TEXT_INIT, .answer = TEXT_INIT};
    world->registry = registry_new(keep_told, world);
    assert_non_null(world->registry);
    assert_true(registry_set_view(
        world->registry,
        SV("{\"nodes\": [{\"node_rank\": 0, \"num_accelerators\": 4}, {\"num_accelerators\": 2}], "
           "\"node_groups\": [], \"config\": \"a: 1\\n\", \"master_ip\": \"10.0.0.1\", "
           "\"master_port\": 29500, \"more\": [1, {}]}"),
        &diag));
}

static inline void world_close(struct world *world)
{
    registry_free(world->registry);
    text_release(&world->told);
    text_release(&world->answer);
}

/* The answer, "" when it comes later. Good until the next. */
static inline const char *ask(struct world *world, uint64_t owner, const char *request)
{
    world->answer.len = 0;
    if (registry_answer(world->registry, owner, sv_from(request), &world->answer) ==
        REGISTRY_WAITING)
        assert_int_equal(world->answer.len, 0);
    return text_string(&world->answer);
}

/* `ask` with the call and its arguments. */
static inline const char *call(struct world *world, uint64_t owner, const char *name,
                               const char *args)
{
    char request[4096];
    snprintf(request, sizeof request, "{\"call\": \"%s\", \"args\": [%s]}", name, args);
    return ask(world, owner, request);
}

#define EXPECT(world, owner, name, args, expected)                                                 \
    CHECK_TEXT(name " " args, call(world, owner, name, args), expected)

/* What was told since, and forgets it. */
#define EXPECT_TOLD(world, expected)                                                               \
    do {                                                                                           \
        CHECK_TEXT("told", text_string(&(world)->told), expected);                                 \
        (world)->told.len = 0;                                                                     \
    } while (0)

#define OK "{\"value\":null}"
#define YES "{\"value\":true}"
#define NO "{\"value\":false}"
#define NOTHING OK

#endif
