/* memory_test.c - what a registry remembers can be told, and another made of it answers the same. */
#include "registry/registry.h"

#include <roost/engine/registry.h>

#include "tests/registry_unit.h"

#define PAIR "{\"group_name\": \"pair:0\", \"workers\": [\"actor:0\", \"actor:1\"]}"

static bool ask_other(void *context, uint64_t owner, struct strview request)
{
    struct world *other = context;
    other->answer.len = 0;
    enum registry_result result = registry_answer(other->registry, owner, request, &other->answer);
    return result == REGISTRY_ANSWERED && !strstr(text_string(&other->answer), "\"error\"");
}

static void open_same(struct world *other, const struct world *world)
{
    world_open(other);
    assert_true(registry_tell(world->registry, ask_other, other));
}

TEST(a_registry_made_of_what_another_told_answers_as_that_one)
{
    struct world it, other;
    world_open(&it);
    EXPECT(&it, 1, "WorkerManager.register_worker", "\"actor:0\", {\"at\": \"a\\\"b\\u00e9\"}", OK);
    EXPECT(&it, 2, "WorkerManager.register_worker", "\"actor:1\", 2", OK);
    EXPECT(&it, 2, "WorkerManager.unregister_worker", "\"actor:1\"", YES);
    EXPECT(&it, 4, "WorkerManager.add_processes", "{\"env:0\": {\"rank\": 0}, \"env:1\": {}}", OK);
    EXPECT(&it, 4, "WorkerManager.set_process_state", "\"running\", [\"env:0\"]", OK);
    EXPECT(&it, 1, "CollectiveManager.register_collective_group", PAIR, OK);
    EXPECT(&it, 2, "CollectiveManager.register_collective_group", PAIR, OK);
    EXPECT(&it, 1, "CollectiveManager.set_master_port_info", "\"pair:0\", 29500", OK);
    EXPECT(&it, 2, "PortLockManager.acquire", "1, \"actor:1\", 5000", YES);
    EXPECT(&it, 1, "WorkerManager.reserve_group", "\"actor\", 77", NOTHING);
    EXPECT(&it, 1, "DeviceLockManager.acquire_devices", "\"actor:0\", [0, [1, 1]]", YES);
    EXPECT(&it, 2, "DeviceLockManager.acquire_devices", "\"actor:1\", [0]", "");
    open_same(&other, &it);
    EXPECT(&other, 3, "WorkerManager.get_worker_info", "\"actor:0\"",
           "{\"value\":{\"at\":\"a\\\"b\xc3\xa9\"}}");
    EXPECT(&other, 3, "WorkerManager.get_worker_info", "\"actor:1\"", NOTHING);
    EXPECT(&other, 3, "WorkerManager.get_workers", "\"env\"",
           "{\"value\":[{\"rank\":0,\"state\":\"running\"},{\"state\":\"waiting\"}]}");
    registry_owner_gone(other.registry, 4);
    EXPECT(&other, 3, "WorkerManager.get_workers", "\"env\"", "{\"value\":[]}");
    EXPECT(&other, 3, "CollectiveManager.get_master_port_info", "\"pair:0\"", "{\"value\":29500}");
    EXPECT(&other, 3, "PortLockManager.acquire", "1, \"actor:3\", 5000", NO);
    EXPECT(&other, 2, "WorkerManager.reserve_group", "\"actor\", 78", "{\"value\":77}");
    EXPECT(&other, 2, "PortLockManager.acquire", "1, \"actor:1\", 5000", YES);
    /* Who waited asks again, and waits for who has it. */
    EXPECT(&other, 2, "DeviceLockManager.acquire_devices", "\"actor:1\", [5]", "");
    registry_owner_gone(other.registry, 1);
    assert_string_equal(text_string(&other.told), "2 {\"value\":true}\n");
    /* A group lives as long as one of those that registered it. */
    assert_string_not_equal(call(&other, 3, "CollectiveManager.get_collective_group", "\"pair:0\""),
                            NOTHING);
    registry_owner_gone(other.registry, 2);
    EXPECT(&other, 3, "CollectiveManager.get_collective_group", "\"pair:0\"", NOTHING);
    world_close(&other);
    world_close(&it);
}

TEST(an_empty_registry_tells_nothing_and_questions_change_nothing)
{
    struct world it, other;
    world_open(&it);
    EXPECT(&it, 1, "WorkerManager.get_worker_info", "\"actor:0\"", NOTHING);
    EXPECT(&it, 1, "DeviceLockManager.acquire_devices", "\"actor:0\", [0]", YES);
    uint64_t changes = registry_changes(it.registry);
    EXPECT(&it, 2, "DeviceLockManager.acquire_devices", "\"actor:1\", [0]", "");
    EXPECT(&it, 1, "PortLockManager.release", "0, \"actor:0\", 5000", OK);
    EXPECT(&it, 1, "WorkerManager.unregister_worker", "\"actor:0\"", NO);
    assert_int_equal(registry_changes(it.registry), changes);
    registry_owner_gone(it.registry, 2);
    assert_int_equal(registry_changes(it.registry), changes);
    registry_owner_gone(it.registry, 1);
    assert_true(registry_changes(it.registry) > changes);
    open_same(&other, &it);
    EXPECT(&other, 2, "DeviceLockManager.acquire_devices", "\"actor:1\", [0]", YES);
    world_close(&other);
    world_close(&it);
}

static bool count_one(void *context, uint64_t owner, const char *request, size_t len)
{
    (void)owner;
    (void)request;
    *(size_t *)context += len;
    return false;
}

TEST(telling_ends_when_it_is_told_so)
{
    struct roost_error err;
    char *answer;
    size_t told = 0;
    struct roost_registry *it = roost_registry_new(NULL, 0, NULL, NULL, &err);
    assert_non_null(it);
    for (int i = 0; i < 2; i++) {
        char request[96];
        int len = snprintf(request, sizeof request,
                           "{\"call\":\"WorkerManager.register_worker\",\"args\":[\"a:%d\",1]}", i);
        assert_int_equal(roost_registry_answer(it, 1, request, (size_t)len, &answer, &err),
                         ROOST_OK);
        roost_answer_free(answer);
    }
    assert_int_equal(roost_registry_changes(it), 2);
    assert_int_equal(roost_registry_tell(it, count_one, &told, &err), ROOST_ERR_MEMORY);
    assert_int_equal(told,
                     strlen("{\"call\":\"WorkerManager.register_worker\",\"args\":[\"a:0\",1]}"));
    roost_registry_free(it);
}

RUN_TESTS(cmocka_unit_test(a_registry_made_of_what_another_told_answers_as_that_one),
          cmocka_unit_test(an_empty_registry_tells_nothing_and_questions_change_nothing),
          cmocka_unit_test(telling_ends_when_it_is_told_so))
