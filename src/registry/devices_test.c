/* devices_test.c - locks of devices: order, ends of owners, and no waiting for each other. */
#include "tests/registry_unit.h"

#define ACQUIRE "DeviceLockManager.acquire_devices"
#define RELEASE "DeviceLockManager.release_devices"
#define LATER ""

TEST(a_free_device_is_had_at_once_and_again)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0, 1]", YES);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [1]", YES);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", []", YES);
    EXPECT(&it, 1, RELEASE, "\"a:0\", [1]", OK); /* one release, however often it was acquired */
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [1]", YES);
    world_close(&it);
}

TEST(who_comes_first_is_served_first)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0]", YES);
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [0]", LATER);
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [0]", LATER);
    EXPECT_TOLD(&it, "");
    EXPECT(&it, 1, RELEASE, "\"a:0\", [0]", OK);
    EXPECT_TOLD(&it, "2 {\"value\":true}\n");
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0]", LATER); /* behind who waits already */
    EXPECT(&it, 2, RELEASE, "\"b:0\", [0]", OK);
    EXPECT_TOLD(&it, "3 {\"value\":true}\n");
    EXPECT(&it, 3, RELEASE, "\"c:0\", [0]", OK);
    EXPECT_TOLD(&it, "1 {\"value\":true}\n");
    world_close(&it);
}

TEST(several_devices_are_had_all_at_once_or_not_at_all)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [1]", YES);
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [0, 1]", LATER);
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [0]", LATER); /* b:0 came first */
    EXPECT(&it, 4, ACQUIRE, "\"d:0\", [2]", YES);   /* nobody's */
    EXPECT(&it, 1, RELEASE, "\"a:0\", [1]", OK);
    EXPECT_TOLD(&it, "2 {\"value\":true}\n");
    EXPECT(&it, 2, RELEASE, "\"b:0\", [0, 1]", OK);
    EXPECT_TOLD(&it, "3 {\"value\":true}\n");
    world_close(&it);
}

TEST(who_holds_something_does_not_wait_for_who_waits_for_it)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0]", YES);
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [0, 1]", LATER);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [1]", YES);
    EXPECT(&it, 1, RELEASE, "\"a:0\", [0, 1]", OK);
    EXPECT_TOLD(&it, "2 {\"value\":true}\n");
    world_close(&it);
}

TEST(a_dead_owner_holds_nothing_and_waits_for_nothing)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0, 1]", YES);
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [0]", LATER);
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [0, 2]", LATER);
    EXPECT(&it, 4, ACQUIRE, "\"d:0\", [2]", LATER);
    registry_owner_gone(it.registry, 3); /* it stood before d:0 */
    EXPECT_TOLD(&it, "4 {\"value\":true}\n");
    registry_owner_gone(it.registry, 1);
    EXPECT_TOLD(&it, "2 {\"value\":true}\n");
    EXPECT(&it, 5, ACQUIRE, "\"e:0\", [1]", YES);
    EXPECT(&it, 5, ACQUIRE, "\"e:0\", [0]", LATER);
    registry_owner_gone(it.registry, 2);
    EXPECT_TOLD(&it, "5 {\"value\":true}\n");
    world_close(&it);
}

TEST(only_the_holder_releases_and_wholly)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0, 1]", YES);
    const char *answer = call(&it, 2, RELEASE, "\"b:0\", [0]");
    CHECK_SAYS("another", answer,
               "\"code\":\"access\",\"message\":\"device 0 of node 0 is held by a:0");
    CHECK_SAYS("cure", answer, "only the worker that acquired a device can release it");
    CHECK_SAYS("same name", call(&it, 2, RELEASE, "\"a:0\", [0]"), "is held by a:0");
    CHECK_SAYS("same owner", call(&it, 1, RELEASE, "\"a:1\", [0]"), "is held by a:0");
    CHECK_SAYS("nobody", call(&it, 1, RELEASE, "\"a:0\", [0, 2]"), "is held by nobody");
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [0]", LATER); /* nothing was released by these */
    world_close(&it);
}

TEST(a_device_has_a_number_in_the_cluster_and_one_on_its_node)
{
    static const char *const bad[][2] = {
        {"\"a:0\", [6]", "\"code\":\"fit\",\"message\":\"there is no device 6"},
        {"\"a:0\", [[0, 4]]", "there is no device [0, 4]"},
        {"\"a:0\", [[2, 0]]", "there is no device [2, 0]"},
        {"\"a:0\", [-1]", "there is no device -1"},
        {"\"a:0\", [1.5]", "there is no device 1.5"},
        {"\"a:0\", [\"0\"]", "must be an array of at most"},
        {"\"a:0\", [[0]]", "must be an array of at most"},
        {"\"a:0\", [[0, 1, 2]]", "must be an array of at most"},
        {"\"a:0\", 0", "must be an array of at most"},
        {"\"a b\", [0]", "cannot be the name of a group"},
    };
    struct world it;
    struct diag diag = diag_start(NULL, NULL);
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [5]", YES);
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [[1, 1]]", LATER);
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [[1, 0]]", YES);
    EXPECT(&it, 3, RELEASE, "\"c:0\", [4]", OK);
    for (size_t i = 0; i < ROWS(bad); i++)
        CHECK_SAYS(bad[i][0], call(&it, 4, ACQUIRE, bad[i][0]), bad[i][1]);
    CHECK_SAYS("cure", call(&it, 4, ACQUIRE, "\"a:0\", [6]"), "the cluster has devices 0 to 5");
    assert_true(
        registry_set_view(it.registry, SV("{\"nodes\":[{\"num_accelerators\":0}]}"), &diag));
    CHECK_SAYS("cure", call(&it, 4, ACQUIRE, "\"a:0\", [0]"), "the cluster has no accelerators");
    assert_true(registry_set_view(it.registry, SV("{}"), &diag));
    EXPECT(&it, 4, ACQUIRE, "\"d:0\", [100, [7, 3]]", YES);
    CHECK_SAYS("cure", call(&it, 4, ACQUIRE, "\"a:0\", [-1]"), "devices are whole numbers from 0");
    world_close(&it);
}

TEST(a_request_that_waits_can_be_taken_back)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0]", YES);
    CHECK_TEXT("waits", ask(&it, 2, "{\"id\":7,\"call\":\"" ACQUIRE "\",\"args\":[\"b:0\",[0,1]]}"),
               LATER);
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [1]", LATER);
    EXPECT(&it, 3, "Registry.cancel", "7", NO); /* it is another's */
    EXPECT(&it, 2, "Registry.cancel", "7", YES);
    EXPECT_TOLD(&it, "3 {\"value\":true}\n");
    EXPECT(&it, 2, "Registry.cancel", "7", NO);
    CHECK_TEXT("again", ask(&it, 2, "{\"id\":8,\"call\":\"" ACQUIRE "\",\"args\":[\"b:0\",[0]]}"),
               LATER);
    EXPECT(&it, 1, RELEASE, "\"a:0\", [0]", OK);
    EXPECT_TOLD(&it, "2 {\"id\":8,\"value\":true}\n");
    world_close(&it);
}

TEST(a_request_that_was_served_can_be_undone_and_what_was_held_before_it_stays)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0]", YES);
    EXPECT(&it, 2, ACQUIRE, "\"b:0\", [1]", YES);
    CHECK_TEXT("waits", ask(&it, 2, "{\"id\":7,\"call\":\"" ACQUIRE "\",\"args\":[\"b:0\",[0,1]]}"),
               LATER);
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [0]", LATER);
    EXPECT(&it, 1, RELEASE, "\"a:0\", [0]", OK);
    EXPECT_TOLD(&it, "2 {\"id\":7,\"value\":true}\n");
    EXPECT(&it, 3, "Registry.undo", "7", OK); /* it is another's */
    EXPECT_TOLD(&it, "");
    EXPECT(&it, 2, "Registry.undo", "7", OK);
    EXPECT_TOLD(&it, "3 {\"value\":true}\n");
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [1]", LATER);
    EXPECT(&it, 2, RELEASE, "\"b:0\", [1]", OK);
    EXPECT_TOLD(&it, "3 {\"value\":true}\n");
    EXPECT(&it, 2, "Registry.undo", "7", OK); /* nothing of it is left */
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0]", LATER);
    world_close(&it);
}

TEST(a_port_that_was_locked_before_is_not_undone)
{
    static const char again[] =
        "{\"id\":4,\"call\":\"PortLockManager.acquire\",\"args\":[0,\"a:0\",5000]}";
    static const char first[] =
        "{\"id\":3,\"call\":\"PortLockManager.acquire\",\"args\":[0,\"a:0\",5000]}";
    struct world it;
    world_open(&it);
    CHECK_TEXT("first", ask(&it, 1, first), "{\"id\":3,\"value\":true}");
    CHECK_TEXT("again", ask(&it, 1, again), "{\"id\":4,\"value\":true}");
    EXPECT(&it, 1, "Registry.undo", "4", OK);
    EXPECT(&it, 2, "PortLockManager.acquire", "0, \"b:0\", 5000", NO);
    EXPECT(&it, 1, "Registry.undo", "3", OK);
    EXPECT(&it, 2, "PortLockManager.acquire", "0, \"b:0\", 5000", YES);
    world_close(&it);
}

TEST(one_owner_waits_a_thousand_times_at_most)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, ACQUIRE, "\"a:0\", [0]", YES);
    for (int i = 0; i < 1024; i++)
        EXPECT(&it, 2, ACQUIRE, "\"b:0\", [0]", LATER);
    CHECK_SAYS("full", call(&it, 2, ACQUIRE, "\"b:0\", [0]"), "1024 requests of one process wait");
    CHECK_SAYS("full", text_string(&it.answer), "wait for some of them first");
    EXPECT(&it, 3, ACQUIRE, "\"c:0\", [0]", LATER);
    registry_owner_gone(it.registry, 2);
    EXPECT_TOLD(&it, "");
    registry_owner_gone(it.registry, 1);
    EXPECT_TOLD(&it, "3 {\"value\":true}\n");
    world_close(&it);
}

/* Many owners, random wishes: nobody has what another has, and when all release all were served. */
TEST(in_any_order_nobody_has_what_another_has_and_everybody_is_served)
{
    enum { OWNERS = 40, ROUNDS = 4000, DEVICES = 6 };
    struct world it;
    int holder[DEVICES], phase[OWNERS] = {0}; /* 0 = idle, 1 = waits, 2 = holds */
    int wants[OWNERS][2];
    unsigned seed = 12345;
    int served = 0, asked = 0;
    world_open(&it);
    for (int d = 0; d < DEVICES; d++)
        holder[d] = -1;
    for (int round = 0; round < ROUNDS || served < asked; round++) {
        seed = seed * 1103515245u + 12345u;
        int owner = (int)(seed >> 16) % OWNERS;
        char args[64];
        if (phase[owner] == 0 && round < ROUNDS) {
            wants[owner][0] = (int)(seed >> 8) % DEVICES;
            wants[owner][1] = (int)(seed >> 11) % DEVICES;
            snprintf(args, sizeof args, "\"w:%d\", [%d, %d]", owner, wants[owner][0],
                     wants[owner][1]);
            asked++;
            phase[owner] = 1;
            if (strcmp(call(&it, (uint64_t)owner, ACQUIRE, args), YES) == 0)
                text_printf(&it.told, "%d \n", owner);
        } else if (phase[owner] == 2) {
            holder[wants[owner][0]] = holder[wants[owner][1]] = -1;
            phase[owner] = 0;
            snprintf(args, sizeof args, "\"w:%d\", [%d, %d]", owner, wants[owner][0],
                     wants[owner][1]);
            if (seed & 0x10000)
                registry_owner_gone(it.registry, (uint64_t)owner);
            else
                CHECK_TEXT(args, call(&it, (uint64_t)owner, RELEASE, args), OK);
        }
        char *line = it.told.len ? (char *)text_string(&it.told) : NULL;
        for (char *rest = line; rest && *rest; rest = strchr(rest, '\n') + 1) {
            int lucky = (int)strtol(rest, NULL, 10);
            assert_int_equal(phase[lucky], 1);
            for (int i = 0; i < 2; i++) {
                assert_true(holder[wants[lucky][i]] == -1 || holder[wants[lucky][i]] == lucky);
                holder[wants[lucky][i]] = lucky;
            }
            phase[lucky] = 2;
            served++;
        }
        it.told.len = 0;
    }
    assert_int_equal(served, asked);
    world_close(&it);
}

RUN_TESTS(
    cmocka_unit_test(a_free_device_is_had_at_once_and_again),
    cmocka_unit_test(who_comes_first_is_served_first),
    cmocka_unit_test(several_devices_are_had_all_at_once_or_not_at_all),
    cmocka_unit_test(who_holds_something_does_not_wait_for_who_waits_for_it),
    cmocka_unit_test(a_dead_owner_holds_nothing_and_waits_for_nothing),
    cmocka_unit_test(only_the_holder_releases_and_wholly),
    cmocka_unit_test(a_device_has_a_number_in_the_cluster_and_one_on_its_node),
    cmocka_unit_test(a_request_that_waits_can_be_taken_back),
    cmocka_unit_test(a_request_that_was_served_can_be_undone_and_what_was_held_before_it_stays),
    cmocka_unit_test(a_port_that_was_locked_before_is_not_undone),
    cmocka_unit_test(one_owner_waits_a_thousand_times_at_most),
    cmocka_unit_test(in_any_order_nobody_has_what_another_has_and_everybody_is_served))
