/* client_test.c - connections and a server in one process: threads that share a connection, requests that
 * are taken back, servers that go. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <roost/engine/registry.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "registry/namespaces.h"
#include "registry/server.h"
#include "rpc/control_socket.h"
#include "tests/unit.h"

enum { PATIENCE_MS = 60000 };

/* A server in a thread of its own. */
struct stage {
    char folder[64], variable[96];
    const char *env[2];
    int dir, stop;
    struct server *server;
    pthread_t thread;
};

static void *serve(void *context)
{
    struct stage *stage = context;
    struct timespec now;
    for (;;) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        (void)server_step(stage->server, (int64_t)now.tv_sec * 1000);
        struct pollfd fds[2] = {{server_fd(stage->server), POLLIN, 0}, {stage->stop, POLLIN, 0}};
        poll(fds, 2, -1);
        if (fds[1].revents)
            return NULL;
    }
}

static void stage_open(struct stage *stage)
{
    char path[96], file[NAMESPACE_FILE_MAX];
    struct diag diag = diag_start(NULL, NULL);
    snprintf(stage->folder, sizeof stage->folder, "/tmp/roost-client-XXXXXX");
    assert_non_null(mkdtemp(stage->folder));
    snprintf(stage->variable, sizeof stage->variable, "XDG_RUNTIME_DIR=%s", stage->folder);
    stage->env[0] = stage->variable;
    stage->env[1] = NULL;
    snprintf(path, sizeof path, "%s/roost", stage->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    stage->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    namespace_socket("here", file);
    int listener = control_listen(stage->dir, file);
    assert_true(listener >= 0);
    stage->server = server_new(listener);
    stage->stop = eventfd(0, EFD_CLOEXEC);
    assert_true(stage->server && stage->stop >= 0);
    assert_true(registry_set_view(
        server_registry(stage->server),
        SV("{\"nodes\":[{\"num_accelerators\":4}],\"master_ip\":\"10.0.0.1\"}"), &diag));
    assert_int_equal(pthread_create(&stage->thread, NULL, serve, stage), 0);
}

/* Ends the server; connections to it are lost. */
static void stage_stop(struct stage *stage)
{
    if (!stage->server)
        return;
    assert_int_equal(eventfd_write(stage->stop, 1), 0);
    assert_int_equal(pthread_join(stage->thread, NULL), 0);
    server_free(stage->server);
    stage->server = NULL;
}

static void stage_close(struct stage *stage)
{
    char path[128], file[NAMESPACE_FILE_MAX];
    stage_stop(stage);
    namespace_socket("here", file);
    (void)unlinkat(stage->dir, file, 0);
    close(stage->dir);
    close(stage->stop);
    snprintf(path, sizeof path, "%s/roost", stage->folder);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(stage->folder), 0);
}

static struct roost_registry_client *join(const struct stage *stage)
{
    struct roost_registry_client *registry = roost_registry_client_open(stage->env, "here", NULL);
    assert_non_null(registry);
    return registry;
}

static enum roost_code ask(struct roost_registry_client *registry, const char *request,
                           int32_t timeout, const char *expected)
{
    char *answer = NULL;
    enum roost_code code =
        roost_registry_client_call(registry, request, strlen(request), timeout, &answer, NULL);
    if (code == ROOST_OK && strcmp(answer, expected) != 0)
        fail_msg("%s: %s", request, answer);
    roost_answer_free(answer);
    return code;
}

#define GET_IP "{\"call\":\"NodeManager.get_master_ip\",\"args\":[]}"
#define IP "{\"value\":\"10.0.0.1\"}"
#define LOCK(name) "{\"call\":\"DeviceLockManager.acquire_devices\",\"args\":[\"" name "\",[0]]}"
#define UNLOCK(name) "{\"call\":\"DeviceLockManager.release_devices\",\"args\":[\"" name "\",[0]]}"
#define YES "{\"value\":true}"
#define DONE "{\"value\":null}"

TEST(a_request_has_its_answer)
{
    struct stage stage;
    struct roost_error err;
    char *answer;
    stage_open(&stage);
    struct roost_registry_client *registry = join(&stage);
    assert_int_equal(ask(registry, GET_IP, PATIENCE_MS, IP), ROOST_OK);
    assert_int_equal(ask(registry, "  " GET_IP " ", -1, IP), ROOST_OK);
    assert_int_equal(roost_registry_client_call(registry, "[]", 2, 0, &answer, &err),
                     ROOST_ERR_USAGE);
    CHECK_SAYS("not a request", err.message, "a request is a JSON object of one line, not '[]'");
    CHECK_SAYS("cure", err.hint, "NodeManager.get_nodes");
    assert_int_equal(roost_registry_client_call(registry, "{\n}", 3, 0, &answer, &err),
                     ROOST_ERR_USAGE);
    assert_int_equal(roost_registry_client_wait(registry, 12345, 0, &answer, &err),
                     ROOST_ERR_USAGE);
    CHECK_SAYS("no ticket", err.message, "there is no request 12345");
    CHECK_SAYS("cure", err.hint, "good for one answer");
    roost_registry_client_close(registry);
    stage_close(&stage);
}

TEST(an_answer_larger_than_a_request_may_be_comes_whole)
{
    struct stage stage;
    struct text view = TEXT_INIT;
    struct diag diag = diag_start(NULL, NULL);
    struct roost_error err;
    char *answer = NULL;
    stage_open(&stage);
    text_puts(&view, "{\"nodes\":[");
    for (int i = 0; i < 60000; i++)
        text_printf(&view, "%s{\"node_rank\":%d,\"num_accelerators\":8,\"address\":\"10.0.0.%d\"}",
                    i ? "," : "", i, i);
    text_puts(&view, "]}");
    /* The thread only reads it once it is asked. */
    assert_true(registry_set_view(server_registry(stage.server),
                                  (struct strview){view.bytes, view.len}, &diag));
    struct roost_registry_client *registry = join(&stage);
    static const char get[] = "{\"call\":\"NodeManager.get_nodes\",\"args\":[]}";
    assert_int_equal(
        roost_registry_client_call(registry, get, sizeof get - 1, PATIENCE_MS, &answer, &err),
        ROOST_OK);
    assert_true(strlen(answer) > 3 << 20);
    CHECK_SAYS("nodes", answer + strlen(answer) - 100, "\"node_rank\":59999");
    roost_answer_free(answer);
    roost_registry_client_close(registry);
    text_release(&view);
    stage_close(&stage);
}

struct work {
    struct roost_registry_client *registry;
    int index;
    _Atomic int *holders;
};

static void *work(void *context)
{
    static const char *const locks[] = {LOCK("t:0"), LOCK("t:1"), LOCK("t:2"), LOCK("t:3")};
    static const char *const unlocks[] = {UNLOCK("t:0"), UNLOCK("t:1"), UNLOCK("t:2"),
                                          UNLOCK("t:3")};
    struct work *it = context;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ask(it->registry, locks[it->index], -1, YES), ROOST_OK);
        assert_int_equal(atomic_fetch_add(it->holders, 1), 0);
        assert_int_equal(ask(it->registry, GET_IP, -1, IP), ROOST_OK);
        assert_int_equal(atomic_fetch_sub(it->holders, 1), 1);
        assert_int_equal(ask(it->registry, unlocks[it->index], -1, DONE), ROOST_OK);
    }
    return NULL;
}

TEST(threads_share_a_connection_and_wait_for_each_other)
{
    enum { THREADS = 4 };
    struct stage stage;
    pthread_t threads[THREADS];
    struct work works[THREADS];
    _Atomic int holders = 0;
    stage_open(&stage);
    struct roost_registry_client *registry = join(&stage);
    for (int i = 0; i < THREADS; i++) {
        works[i] = (struct work){registry, i, &holders};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &works[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    roost_registry_client_close(registry);
    stage_close(&stage);
}

TEST(a_request_whose_time_is_up_is_taken_back)
{
    struct stage stage;
    struct roost_error err;
    char *answer = NULL;
    stage_open(&stage);
    struct roost_registry_client *holder = join(&stage), *other = join(&stage),
                                 *third = join(&stage);
    assert_int_equal(ask(holder, LOCK("h:0"), -1, YES), ROOST_OK);
    assert_int_equal(
        roost_registry_client_call(other, LOCK("o:0"), strlen(LOCK("o:0")), 1, &answer, &err),
        ROOST_ERR_TIMEOUT);
    CHECK_SAYS("time", err.message,
               "a device that was asked for in namespace 'here' is still taken by another");
    CHECK_SAYS("cure", err.hint, "once its holder releases it");
    assert_null(answer);
    assert_int_equal(ask(holder, UNLOCK("h:0"), -1, DONE), ROOST_OK);
    assert_int_equal(ask(third, LOCK("t:0"), PATIENCE_MS, YES), ROOST_OK);
    assert_int_equal(ask(other, GET_IP, PATIENCE_MS, IP), ROOST_OK);
    roost_registry_client_close(third); /* what it held is free */
    assert_int_equal(ask(other, LOCK("o:0"), PATIENCE_MS, YES), ROOST_OK);
    roost_registry_client_close(holder);
    roost_registry_client_close(other);
    stage_close(&stage);
}

TEST(a_request_that_was_answered_cannot_be_taken_back)
{
    struct stage stage;
    struct roost_error err;
    char *answer = NULL;
    int64_t ticket;
    stage_open(&stage);
    struct roost_registry_client *registry = join(&stage);
    assert_int_equal(
        roost_registry_client_ask(registry, LOCK("a:0"), strlen(LOCK("a:0")), &ticket, &err),
        ROOST_OK);
    assert_int_equal(roost_registry_client_cancel(registry, ticket, &answer, &err), ROOST_OK);
    assert_string_equal(answer, YES);
    roost_answer_free(answer);
    roost_registry_client_close(registry);
    stage_close(&stage);
}

TEST(managers_that_go_are_said_to_be_gone)
{
    struct stage stage;
    struct roost_error err;
    char *answer;
    stage_open(&stage);
    struct roost_registry_client *registry = join(&stage);
    stage_stop(&stage);
    assert_int_equal(
        roost_registry_client_call(registry, GET_IP, sizeof GET_IP - 1, -1, &answer, &err),
        ROOST_ERR_ENGINE);
    CHECK_SAYS("gone", err.message, "the managers of namespace 'here' are gone");
    CHECK_SAYS("cure", err.hint, "make a new Cluster");
    roost_registry_client_close(registry);
    assert_null(roost_registry_client_open(stage.env, "here", &err));
    assert_int_equal(err.code, ROOST_ERR_ENGINE);
    CHECK_SAYS("none", err.message, "no managers live in namespace 'here'");
    stage_close(&stage);
}

TEST(a_forked_process_needs_a_connection_of_its_own)
{
    struct stage stage;
    struct roost_error err;
    char *answer;
    stage_open(&stage);
    struct roost_registry_client *registry = join(&stage);
    pid_t child = fork();
    if (child == 0) {
        bool is_refused = roost_registry_client_call(registry, GET_IP, sizeof GET_IP - 1, -1,
                                                     &answer, &err) == ROOST_ERR_USAGE &&
                          strstr(err.message, "belongs to the process that opened it") &&
                          strstr(err.hint, "open one of its own");
        roost_registry_client_close(registry);
        _exit(is_refused ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(ask(registry, GET_IP, PATIENCE_MS, IP), ROOST_OK);
    roost_registry_client_close(registry);
    stage_close(&stage);
}

TEST(namespaces_are_listed_while_somebody_answers)
{
    struct stage stage;
    struct roost_namespace names[2];
    struct roost_error err;
    stage_open(&stage);
    assert_int_equal(roost_namespace_list(stage.env, names, 2), 1);
    assert_string_equal(names[0].name, "here");
    assert_int_equal(roost_namespace_list(stage.env, NULL, 0), 1);
    assert_null(roost_registry_client_open(stage.env, "there", &err));
    CHECK_SAYS("living", err.hint, "living: here");
    stage_stop(&stage);
    assert_int_equal(roost_namespace_list(stage.env, names, 2), 0);
    stage_close(&stage);
}

RUN_TESTS(cmocka_unit_test(a_request_has_its_answer),
          cmocka_unit_test(an_answer_larger_than_a_request_may_be_comes_whole),
          cmocka_unit_test(threads_share_a_connection_and_wait_for_each_other),
          cmocka_unit_test(a_request_whose_time_is_up_is_taken_back),
          cmocka_unit_test(a_request_that_was_answered_cannot_be_taken_back),
          cmocka_unit_test(managers_that_go_are_said_to_be_gone),
          cmocka_unit_test(a_forked_process_needs_a_connection_of_its_own),
          cmocka_unit_test(namespaces_are_listed_while_somebody_answers))
