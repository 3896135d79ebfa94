/* managers_test.c - managers answer without memory. */
#include <roost/engine/registry.h>

#include "tests/nomem/nomem.h"

/* Managers asked for everything they do: the answers, and those that come later. */
static void hash_later(void *context, uint64_t owner, const char *answer, size_t len)
{
    uint64_t *hash = context;
    *hash = (*hash ^ owner) * UINT64_C(1099511628211);
    hash_bytes(hash, answer, len);
}

static struct result run_managers(const struct scenario *unused)
{
    static const char view[] = "{\"nodes\": [{\"num_accelerators\": 4, \"id\": \"a\"}], "
                               "\"node_groups\": [], \"config\": \"x\", \"master_ip\": null}";
    static const struct {
        uint64_t owner;
        const char *request;
    } requests[] = {
        {1, "{\"id\":1,\"call\":\"WorkerManager.register_worker\",\"args\":[\"a:0\",{\"b\":[1]}]}"},
        {2, "{\"call\":\"WorkerManager.register_worker\",\"args\":[\"a:0\",{\"b\":[2]}]}"},
        {2, "{\"call\":\"WorkerManager.get_worker_info\",\"args\":[\"a:0\"]}"},
        {1, "{\"call\":\"CollectiveManager.register_collective_group\",\"args\":"
            "[{\"group_name\":\"g\",\"workers\":[\"a:0\",{\"address\":\"a:1\"}]}]}"},
        {2, "{\"call\":\"CollectiveManager.register_collective_group\",\"args\":"
            "[{\"group_name\":\"g\",\"workers\":[\"a:0\",\"a:1\"]}]}"},
        {2, "{\"call\":\"CollectiveManager.get_collective_group\",\"args\":[\"g\"]}"},
        {2, "{\"call\":\"CollectiveManager.set_master_port_info\",\"args\":[\"g\",1]}"},
        {1, "{\"call\":\"PortLockManager.acquire\",\"args\":[0,\"a:0\",5000]}"},
        {1, "{\"call\":\"DeviceLockManager.acquire_devices\",\"args\":[\"a:0\",[0,[0,1]]]}"},
        {2, "{\"id\":9,\"call\":\"DeviceLockManager.acquire_devices\",\"args\":[\"a:1\",[1]]}"},
        {1, "{\"call\":\"DeviceLockManager.release_devices\",\"args\":[\"a:0\",[0,1]]}"},
        {3, "{\"call\":\"NodeManager.get_view\",\"args\":[]}"},
        {3, "{\"call\":\"Nobody.knows\",\"args\":[]}"},
    };
    struct roost_error err;
    struct result result = {0};
    (void)unused;
    struct roost_registry *managers =
        roost_registry_new(view, sizeof view - 1, hash_later, &result.plan, &err);
    result.code = managers ? ROOST_OK : err.code;
    for (size_t i = 0; i < ROWS(requests) && result.code == ROOST_OK; i++) {
        char *answer = NULL;
        result.code = roost_registry_answer(managers, requests[i].owner, requests[i].request,
                                            strlen(requests[i].request), &answer, &err);
        if (answer && strstr(answer, "\"code\":\"memory\""))
            result.code = ROOST_ERR_MEMORY; /* nothing has changed, as the sanitizers can tell */
        if (answer)
            hash_bytes(&result.plan, answer, strlen(answer));
        roost_answer_free(answer);
    }
    if (managers)
        roost_registry_owner_gone(managers, 1);
    roost_registry_free(managers);
    return result;
}

TEST(any_allocation_may_fail_while_managers_answer)
{
    check_scenario("managers", run_managers, NULL);
}

RUN_TESTS(cmocka_unit_test(any_allocation_may_fail_while_managers_answer))
