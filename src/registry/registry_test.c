/* registry_test.c - workers, collectives, ports, the view, and every way a request can be wrong. */
#include "registry/registry.h"

#include <roost/engine/registry.h>
#include <roost/group.h>

#include "tests/registry_unit.h"

#define WORKER(name) "WorkerManager." name
#define GROUP(name) "CollectiveManager." name
#define NODE(name) "NodeManager." name
#define PORT(name) "PortLockManager." name

TEST(the_newest_registration_of_an_address_wins)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, WORKER("get_worker_info"), "\"actor:0\"", NOTHING);
    EXPECT(&it, 1, WORKER("register_worker"), "\"actor:0\", {\"node_port\": 1}", OK);
    EXPECT(&it, 2, WORKER("register_worker"), "\"actor:0\", {\"node_port\": 2}", OK);
    EXPECT(&it, 3, WORKER("get_worker_info"), "\"actor:0\"", "{\"value\":{\"node_port\":2}}");
    registry_owner_gone(it.registry, 1); /* the old one has nothing here any more */
    EXPECT(&it, 3, WORKER("get_worker_info"), "\"actor:0\"", "{\"value\":{\"node_port\":2}}");
    world_close(&it);
}

TEST(a_worker_is_forgotten_with_its_process_or_when_told_so)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, WORKER("register_worker"), "\"actor:0\", 1", OK);
    EXPECT(&it, 1, WORKER("register_worker"), "\"actor:0:1\", 2", OK);
    EXPECT(&it, 2, WORKER("register_worker"), "\"actor:1\", 3", OK);
    registry_owner_gone(it.registry, 1);
    EXPECT(&it, 2, WORKER("get_worker_info"), "\"actor:0\"", NOTHING);
    EXPECT(&it, 2, WORKER("get_worker_info"), "\"actor:0:1\"", NOTHING);
    EXPECT(&it, 2, WORKER("get_worker_info"), "\"actor:1\"", "{\"value\":3}");
    EXPECT(&it, 2, WORKER("unregister_worker"), "\"actor:1\"", YES);
    EXPECT(&it, 2, WORKER("unregister_worker"), "\"actor:1\"", NO);
    world_close(&it);
}

TEST(a_group_has_its_name_until_it_is_given_back_or_its_process_ends)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, WORKER("reserve_group"), "\"m\", 11", NOTHING);
    EXPECT(&it, 2, WORKER("reserve_group"), "\"m\", 12", "{\"value\":11}");
    EXPECT(&it, 1, WORKER("reserve_group"), "\"m\", 11", "{\"value\":11}");
    EXPECT(&it, 2, WORKER("reserve_group"), "\"n\", 12", NOTHING);
    EXPECT(&it, 2, WORKER("release_group"), "\"m\"", NO);
    EXPECT(&it, 1, WORKER("release_group"), "\"m\"", YES);
    EXPECT(&it, 1, WORKER("release_group"), "\"m\"", NO);
    EXPECT(&it, 2, WORKER("reserve_group"), "\"m\", 12", NOTHING);
    registry_owner_gone(it.registry, 2);
    EXPECT(&it, 1, WORKER("reserve_group"), "\"m\", 11", NOTHING);
    EXPECT(&it, 1, WORKER("reserve_group"), "\"n\", 11", NOTHING);
    world_close(&it);
}

#define RECORD "{\"address\": \"a:0\", \"ports\": {\"http\": 5}}"
#define KNOWN(state) "{\"address\":\"a:0\",\"ports\":{\"http\":5},\"state\":\"" state "\"}"

TEST(a_process_is_known_by_its_run_until_it_registers_itself)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 0, WORKER("add_processes"), "{\"a:0\": " RECORD ", \"a:1\": {}}", OK);
    EXPECT(&it, 1, WORKER("get_worker_info"), "\"a:0\"", "{\"value\":" KNOWN("waiting") "}");
    EXPECT(&it, 1, WORKER("get_worker_info"), "\"a:1\"", "{\"value\":{\"state\":\"waiting\"}}");
    EXPECT(&it, 0, WORKER("set_process_state"), "\"running\", [\"a:0\", \"no:1\"]", OK);
    EXPECT(&it, 1, WORKER("get_worker_info"), "\"a:0\"", "{\"value\":" KNOWN("running") "}");
    EXPECT(&it, 1, WORKER("register_worker"), "\"a:0\", {\"own\": 1}", OK);
    EXPECT(&it, 2, WORKER("get_worker_info"), "\"a:0\"", "{\"value\":{\"own\":1}}");
    EXPECT(&it, 0, WORKER("set_process_state"), "\"ended\", [\"a:0\"]", OK);
    registry_owner_gone(it.registry, 1); /* the run still knows it, and how it is */
    EXPECT(&it, 2, WORKER("get_worker_info"), "\"a:0\"", "{\"value\":" KNOWN("ended") "}");
    registry_owner_gone(it.registry, 0);
    EXPECT(&it, 2, WORKER("get_worker_info"), "\"a:0\"", NOTHING);
    world_close(&it);
}

TEST(workers_are_listed_by_rank_however_they_are_known)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, WORKER("get_group_names"), "", "{\"value\":[]}");
    EXPECT(&it, 0, WORKER("add_processes"), "{\"b:10\": {}, \"b:9\": {}, \"a:0\": {}}", OK);
    EXPECT(&it, 1, WORKER("register_worker"), "\"b:9\", 9", OK);
    EXPECT(&it, 1, WORKER("register_worker"), "\"b:9:1\", 91", OK);
    EXPECT(&it, 1, WORKER("register_worker"), "\"bb:0\", 0", OK);
    EXPECT(&it, 1, WORKER("get_workers"), "\"b\"", "{\"value\":[9,91,{\"state\":\"waiting\"}]}");
    EXPECT(&it, 1, WORKER("get_workers"), "\"c\"", "{\"value\":[]}");
    EXPECT(&it, 1, WORKER("get_group_names"), "", "{\"value\":[\"a\",\"b\",\"bb\"]}");
    CHECK_SAYS("name", call(&it, 1, WORKER("get_workers"), "\"b:9\""),
               "cannot be the name of a group");
    world_close(&it);
}

TEST(what_are_no_processes_changes_nothing)
{
    static const char *const rows[][3] = {
        {"add_processes", "1", "not processes of a run: it must be an object"},
        {"add_processes", "{\"a:0\": {}, \"a:1\": 1}", "a record must be an object"},
        {"add_processes", "{\"a:0\": {}, \"a:x\": {}}", "is not the address of a worker"},
        {"set_process_state", "1, []",
         "the state of WorkerManager.set_process_state must be a text"},
        {"set_process_state", "\"idle\", []", "a process cannot be 'idle'"},
        {"set_process_state", "\"ended\", 1", "addresses must be an array"},
        {"set_process_state", "\"ended\", [\"b:0\", 1]", "an address must be a text"},
    };
    struct world it;
    char name[64];
    world_open(&it);
    EXPECT(&it, 0, WORKER("add_processes"), "{\"b:0\": {}}", OK);
    for (size_t i = 0; i < ROWS(rows); i++) {
        snprintf(name, sizeof name, WORKER("%s"), rows[i][0]);
        CHECK_SAYS(rows[i][1], call(&it, 0, name, rows[i][1]), rows[i][2]);
    }
    EXPECT(&it, 1, WORKER("get_worker_info"), "\"a:0\"", NOTHING);
    EXPECT(&it, 1, WORKER("get_worker_info"), "\"b:0\"", "{\"value\":{\"state\":\"waiting\"}}");
    world_close(&it);
}

TEST(thousands_of_workers_are_told_apart)
{
    struct world it;
    char args[64], expected[64];
    world_open(&it);
    for (int i = 0; i < 3000; i++) {
        snprintf(args, sizeof args, "\"w:%d\", %d", i, i);
        CHECK_TEXT(args, call(&it, (uint64_t)(i % 7), WORKER("register_worker"), args), OK);
    }
    registry_owner_gone(it.registry, 3);
    for (int i = 0; i < 3000; i++) {
        snprintf(args, sizeof args, "\"w:%d\"", i);
        snprintf(expected, sizeof expected, "{\"value\":%d}", i);
        CHECK_TEXT(args, call(&it, 0, WORKER("get_worker_info"), args),
                   i % 7 == 3 ? NOTHING : expected);
    }
    world_close(&it);
}

TEST(addresses_are_a_name_and_ranks)
{
    static const char *const good[] = {"G", "G:0", "G:3:1", "a.b-c_1:2147483647"};
    static const struct {
        const char *text, *says, *hint;
    } bad[] = {
        {"", "'' cannot be the name of a group", "letters, digits"},
        {":0", "cannot be the name of a group", "letters, digits"},
        {"a b:0", "'a b' cannot be the name of a group", "letters, digits"},
        {"G:", "'G:' is not the address of a worker", "actor:0"},
        {"G:x", "'G:x' is not the address of a worker", "actor:0"},
        {"G:-1", "is not the address of a worker", "actor:0"},
        {"G:01", "is not the address of a worker", "actor:0"},
        {"G:2147483648", "is not the address of a worker", "actor:0"},
        {"G:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0", "is not the address", "actor:0"},
    };
    struct roost_error err;
    for (size_t i = 0; i < ROWS(good); i++)
        CHECK_FACT(good[i], roost_address_check(good[i], &err) == ROOST_OK);
    for (size_t i = 0; i < ROWS(bad); i++) {
        CHECK_FACT(bad[i].text, roost_address_check(bad[i].text, &err) == ROOST_ERR_NAME);
        CHECK_SAYS(bad[i].text, err.message, bad[i].says);
        CHECK_SAYS(bad[i].text, err.hint, bad[i].hint);
    }
    assert_int_equal(roost_group_name_check("a:0", &err), ROOST_ERR_NAME);
    CHECK_SAYS("a:0", err.message, "'a:0' cannot be the name of a group");
    CHECK_SAYS("a:0", err.hint, "leave out the ':'");
}

#define PAIR                                                                                       \
    "{\"group_name\": \"pair\", \"workers\": [\"a:0\", {\"rank\": 1, \"address\": \"a:1\"}]}"

TEST(a_collective_group_keeps_its_members)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, GROUP("get_collective_group"), "\"pair\"", NOTHING);
    EXPECT(&it, 1, GROUP("register_collective_group"), PAIR, OK);
    EXPECT(&it, 2, GROUP("register_collective_group"),
           "{\"more\": 1, \"workers\": [\"a:0\", \"a:1\"], \"group_name\": \"pair\"}", OK);
    EXPECT(&it, 2, GROUP("get_collective_group"), "\"pair\"",
           "{\"value\":{\"more\":1,\"workers\":[\"a:0\",\"a:1\"],\"group_name\":\"pair\"}}");
    EXPECT(&it, 2, GROUP("register_collective_group"),
           "{\"group_name\": \"pair\", \"workers\": [\"a:1\", \"a:0\"]}",
           "{\"error\":{\"code\":\"usage\",\"message\":\"the collective group 'pair' is registered "
           "with other members\",\"hint\":\"choose another name, or register the same workers in "
           "the same order\"}}");
    registry_owner_gone(it.registry, 1); /* the other one still has it */
    EXPECT(&it, 3, GROUP("register_collective_group"), PAIR, OK);
    registry_owner_gone(it.registry, 2);
    registry_owner_gone(it.registry, 3);
    EXPECT(&it, 4, GROUP("get_collective_group"), "\"pair\"", NOTHING);
    world_close(&it);
}

TEST(master_ports_are_set_told_and_reset)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, GROUP("get_master_port_info"), "\"g\"", NOTHING);
    EXPECT(&it, 1, GROUP("set_master_port_info"), "\"g\", 29500", OK);
    EXPECT(&it, 2, GROUP("get_master_port_info"), "\"g\"", "{\"value\":29500}");
    EXPECT(&it, 2, GROUP("reset_master_port_info"), "\"g\"", OK);
    EXPECT(&it, 2, GROUP("get_master_port_info"), "\"g\"", NOTHING);
    EXPECT(&it, 1, GROUP("set_master_port_info"), "\"g\", [\"10.0.0.1\", 1]", OK);
    registry_owner_gone(it.registry, 1);
    EXPECT(&it, 2, GROUP("get_master_port_info"), "\"g\"", NOTHING);
    world_close(&it);
}

TEST(the_view_is_told_as_it_was_given)
{
    struct world it;
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    world_open(&it);
    EXPECT(&it, 1, NODE("get_nodes"), "",
           "{\"value\":[{\"node_rank\":0,\"num_accelerators\":4},{\"num_accelerators\":2}]}");
    EXPECT(&it, 1, NODE("get_node_groups"), "", "{\"value\":[]}");
    EXPECT(&it, 1, NODE("get_cluster_config"), "", NOTHING);
    EXPECT(&it, 1, NODE("get_master_ip"), "", "{\"value\":\"10.0.0.1\"}");
    EXPECT(&it, 1, NODE("get_master_port"), "", "{\"value\":29500}");
    CHECK_SAYS("view", call(&it, 1, NODE("get_view"), ""), "\"config\":\"a: 1\\n\"");
    CHECK_SAYS("differ", call(&it, 1, NODE("get_num_gpus_per_node"), ""),
               "nodes differ in their accelerators: node 0 has 4, node 1 has 2");
    CHECK_SAYS("cure", text_string(&it.answer), "ask each node");
    assert_true(registry_set_master_port(it.registry, 1234, &diag));
    EXPECT(&it, 1, NODE("get_master_port"), "", "{\"value\":1234}");
    assert_true(registry_set_view(
        it.registry, SV("{\"nodes\":[{\"num_accelerators\":8},{\"num_accelerators\":8}]}"), &diag));
    EXPECT(&it, 1, NODE("get_num_gpus_per_node"), "", "{\"value\":8}");
    assert_true(registry_set_view(it.registry, SV("{}"), &diag));
    CHECK_SAYS("none", call(&it, 1, NODE("get_num_gpus_per_node"), ""), "no node is known here");
    CHECK_SAYS("cure", text_string(&it.answer), "started without a cluster");
    world_close(&it);
}

TEST(what_is_no_view_changes_nothing)
{
    static const char *const bad[][2] = {
        {"[]", "not a view of a cluster: it must be an object"},
        {"{\"nodes\": 1}", "\"nodes\" must be an array"},
        {"{\"nodes\": [1]}", "a node must be an object"},
        {"{\"nodes\": [{\"num_accelerators\": -1}]}", "must be a whole number"},
        {"{\"nodes\": [", "ends"},
        {"", "empty"},
    };
    struct world it;
    world_open(&it);
    for (size_t i = 0; i < ROWS(bad); i++) {
        struct roost_error err;
        struct diag diag = diag_start(NULL, &err);
        CHECK_FACT(bad[i][0], !registry_set_view(it.registry, sv_from(bad[i][0]), &diag));
        CHECK_FACT(bad[i][0], err.message[0] != '\0');
        if (i < 4) {
            CHECK_SAYS(bad[i][0], err.message, bad[i][1]);
            CHECK_SAYS(bad[i][0], err.hint, "as in a snapshot");
        }
    }
    EXPECT(&it, 1, NODE("get_master_port"), "", "{\"value\":29500}");
    world_close(&it);
}

TEST(a_port_belongs_to_one_worker_until_it_ends)
{
    struct world it;
    world_open(&it);
    EXPECT(&it, 1, PORT("acquire"), "0, \"a:0\", 5000", YES);
    EXPECT(&it, 1, PORT("acquire"), "0, \"a:0\", 5000", YES);
    EXPECT(&it, 1, PORT("acquire"), "0, \"a:1\", 5000", NO);
    EXPECT(&it, 2, PORT("acquire"), "0, \"a:0\", 5000", NO);
    EXPECT(&it, 2, PORT("acquire"), "1, \"a:0\", 5000", YES);
    CHECK_SAYS("another's", call(&it, 2, PORT("release"), "0, \"a:0\", 5000"),
               "\"code\":\"access\",\"message\":\"port 0:5000 is held by 'a:0', not by 'a:0'");
    CHECK_SAYS("cure", text_string(&it.answer), "only the worker that acquired a port");
    EXPECT(&it, 1, PORT("release"), "0, \"a:0\", 5000", OK);
    EXPECT(&it, 1, PORT("release"), "0, \"a:0\", 5000", OK);
    EXPECT(&it, 2, PORT("acquire"), "0, \"a:0\", 5000", YES);
    registry_owner_gone(it.registry, 2);
    EXPECT(&it, 1, PORT("acquire"), "1, \"b\", 5000", YES);
    EXPECT(&it, 1, PORT("acquire"), "0, \"b\", 5000", YES);
    world_close(&it);
}

TEST(an_answer_has_the_number_of_its_request)
{
    struct world it;
    world_open(&it);
    CHECK_TEXT("id", ask(&it, 1, "{\"id\":7,\"call\":\"NodeManager.get_master_ip\",\"args\":[]}"),
               "{\"id\":7,\"value\":\"10.0.0.1\"}");
    CHECK_SAYS("id", ask(&it, 1, "{\"id\":8,\"call\":\"Nobody.knows\",\"args\":[]}"),
               "{\"id\":8,\"error\":{\"code\":\"usage\",\"message\":\"there is no call "
               "'Nobody.knows'\"");
    world_close(&it);
}

TEST(what_is_no_request_is_answered_with_its_fault)
{
    static const char *const rows[][2] = {
        {"", "syntax"},
        {"nonsense", "syntax"},
        {"{\"call\":", "syntax"},
        {"[]", "not a request: it must be an object"},
        {"{}", "it needs \\\"call\\\" and \\\"args\\\""},
        {"{\"call\": 1}", "\\\"call\\\" must be a text"},
        {"{\"id\": -1}", "\\\"id\\\" must be a whole number"},
        {"{\"id\": \"1\"}", "\\\"id\\\" must be a whole number"},
        {"{\"args\": {}}", "\\\"args\\\" must be an array"},
        {"{\"args\": [1, 2, 3, 4]}", "too many \\\"args\\\""},
        {"{\"other\": 1}", "its keys are \\\"id\\\", \\\"call\\\" and \\\"args\\\""},
        {"{\"call\": \"NodeManager.get_nodes\"}", "it needs"},
        {"{\"call\": \"NodeManager.get_nodes\", \"args\": []} x", "syntax"},
        {"{\"call\": \"NodeManager.get_nodes\", \"args\": [1]}",
         "NodeManager.get_nodes takes 0 arguments, not 1"},
        {"{\"call\": \"Registry.cancel\", \"args\": []}", "takes 1 argument, not 0"},
        {"{\"call\": \"Registry.undo\", \"args\": [-1]}", "the id of Registry.undo must be"},
        {"{\"call\": \"Registry.cancel\", \"args\": [\"1\"]}",
         "the id of Registry.cancel must be a whole number from 0 to 9223372036854775807"},
        {"{\"call\": \"WorkerManager.get_worker_info\", \"args\": [0]}",
         "the address of WorkerManager.get_worker_info must be a text"},
        {"{\"call\": \"WorkerManager.register_worker\", \"args\": [\"a b:0\", {}]}",
         "'a b' cannot be the name of a group"},
        {"{\"call\": \"CollectiveManager.get_collective_group\", \"args\": [0]}", "the name of"},
        {"{\"call\": \"CollectiveManager.set_master_port_info\", \"args\": [\"\", 1]}",
         "the name of a collective group has 1 to 4096 bytes, not 0"},
        {"{\"call\": \"PortLockManager.acquire\", \"args\": [0, \"a\", 0]}", "the port of"},
        {"{\"call\": \"PortLockManager.acquire\", \"args\": [0, \"a\", 65536]}", "from 1 to 65535"},
        {"{\"call\": \"PortLockManager.acquire\", \"args\": [-1, \"a\", 1]}", "the node rank of"},
        {"{\"call\": \"PortLockManager.acquire\", \"args\": [2, \"a\", 1]}", "there is no node 2"},
        {"{\"call\": \"PortLockManager.acquire\", \"args\": [0, 1, 1]}", "the worker's name of"},
        {"{\"call\": \"PortLockManager.acquire\", \"args\": [0, \"\", 1]}",
         "a worker's name has 1 to 255 bytes, not 0"},
    };
    struct world it;
    world_open(&it);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *answer = ask(&it, 1, rows[i][0]);
        CHECK_SAYS(rows[i][0], answer, "{\"error\":{\"code\":");
        CHECK_SAYS(rows[i][0], answer, rows[i][1]);
        CHECK_FACT(rows[i][0], !strstr(answer, "\"hint\":\"\"") || i < 3 || i == 12);
    }
    world_close(&it);
}

TEST(what_is_no_collective_group_is_refused)
{
    static const char *const rows[][2] = {
        {"1", "not a collective group: it must be an object"},
        {"{}", "\\\"group_name\\\" must be a text"},
        {"{\"group_name\": 1}", "\\\"group_name\\\" must be a text"},
        {"{\"group_name\": \"g\"}", "\\\"workers\\\" is missing"},
        {"{\"group_name\": \"g\", \"workers\": 1}", "\\\"workers\\\" must be an array"},
        {"{\"group_name\": \"g\", \"workers\": [1]}", "a worker needs an address"},
        {"{\"group_name\": \"g\", \"workers\": [{}]}", "a worker needs an address"},
        {"{\"group_name\": \"g\", \"workers\": [\"a:x\"]}", "is not the address of a worker"},
        {"{\"group_name\": \"\", \"workers\": []}", "has 1 to 4096 bytes, not 0"},
    };
    struct world it;
    world_open(&it);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *answer = call(&it, 1, GROUP("register_collective_group"), rows[i][0]);
        CHECK_SAYS(rows[i][0], answer, rows[i][1]);
    }
    EXPECT(&it, 1, GROUP("get_collective_group"), "\"g\"", NOTHING);
    world_close(&it);
}

TEST(the_managers_keep_no_more_than_they_can)
{
    enum { BIG = 60000, PIECES = 16 };
    struct world it;
    struct text request = TEXT_INIT;
    int kept = 0;
    world_open(&it);
    for (const char *answer = OK; strcmp(answer, OK) == 0 && kept < 400; kept++) {
        request.len = 0;
        text_printf(&request, "{\"call\":\"WorkerManager.register_worker\",\"args\":[\"w:%d\",[",
                    kept);
        for (int i = 0; i < PIECES; i++) {
            text_puts(&request, i ? ",\"" : "\"");
            text_repeat(&request, 'x', BIG);
            text_char(&request, '"');
        }
        text_puts(&request, "]]}");
        answer = ask(&it, 1, text_string(&request));
    }
    CHECK_SAYS("full", text_string(&it.answer), "the managers keep 256 MiB already");
    CHECK_SAYS("full", text_string(&it.answer), "register less");
    registry_owner_gone(it.registry, 1);
    assert_string_equal(ask(&it, 2, text_string(&request)), OK);
    text_release(&request);
    world_close(&it);
}

static void count_told(void *context, uint64_t owner, const char *answer, size_t len)
{
    *(int *)context += (int)(owner + (len > 0 && answer[0] == '{'));
}

TEST(a_program_can_have_managers_of_its_own)
{
    struct roost_error err;
    int told = 0;
    char *answer;
    assert_null(roost_registry_new("1", 1, count_told, &told, &err));
    assert_int_equal(err.code, ROOST_ERR_USAGE);
    struct roost_registry *it = roost_registry_new(NULL, 0, count_told, &told, &err);
    assert_non_null(it);
    static const char lock[] =
        "{\"call\":\"DeviceLockManager.acquire_devices\",\"args\":[\"a:0\",[0]]}";
    assert_int_equal(roost_registry_answer(it, 1, lock, sizeof lock - 1, &answer, &err), ROOST_OK);
    assert_string_equal(answer, YES);
    roost_answer_free(answer);
    assert_int_equal(roost_registry_answer(it, 2, lock, sizeof lock - 1, &answer, &err), ROOST_OK);
    assert_null(answer);
    roost_registry_owner_gone(it, 1);
    assert_int_equal(told, 3);
    roost_registry_free(it);
}

RUN_TESTS(cmocka_unit_test(the_newest_registration_of_an_address_wins),
          cmocka_unit_test(a_worker_is_forgotten_with_its_process_or_when_told_so),
          cmocka_unit_test(a_group_has_its_name_until_it_is_given_back_or_its_process_ends),
          cmocka_unit_test(a_process_is_known_by_its_run_until_it_registers_itself),
          cmocka_unit_test(workers_are_listed_by_rank_however_they_are_known),
          cmocka_unit_test(what_are_no_processes_changes_nothing),
          cmocka_unit_test(thousands_of_workers_are_told_apart),
          cmocka_unit_test(addresses_are_a_name_and_ranks),
          cmocka_unit_test(a_collective_group_keeps_its_members),
          cmocka_unit_test(master_ports_are_set_told_and_reset),
          cmocka_unit_test(the_view_is_told_as_it_was_given),
          cmocka_unit_test(what_is_no_view_changes_nothing),
          cmocka_unit_test(a_port_belongs_to_one_worker_until_it_ends),
          cmocka_unit_test(an_answer_has_the_number_of_its_request),
          cmocka_unit_test(what_is_no_request_is_answered_with_its_fault),
          cmocka_unit_test(what_is_no_collective_group_is_refused),
          cmocka_unit_test(the_managers_keep_no_more_than_they_can),
          cmocka_unit_test(a_program_can_have_managers_of_its_own))
