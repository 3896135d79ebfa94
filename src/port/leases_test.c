/* Leases seen from one process: what is leased, how it is held, and every way to be refused. */
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "port/port_socket.h"
#include "tests/port_unit.h"

static bool has_own_network;

/* Ten ports, 65526-65535: every number can be checked. */
static struct roost_port_options ten_ports(void)
{
    return (struct roost_port_options){
        .dir = in_world("leases"), .owner = "run-a", .proc = fake_proc("1024\t65525\n", "\n")};
}

TEST(blocks_are_consecutive_and_start_at_the_base)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 21000};
    const struct roost_port_want wants[] = {{1, false}, {4, false}, {2, true}, {1, false}};
    int before = count_open_files();
    struct roost_leases *leases = roost_leases_new(&options, wants, 4, &err);
    assert_non_null(leases);
    for (size_t i = 0; i < 4; i++)
        for (int32_t k = 0; k < wants[i].count; k++) {
            int fd = roost_leases_fd(leases, i, k), is_listening = 1;
            struct sockaddr_storage at;
            socklen_t len = sizeof at, int_len = sizeof is_listening;
            assert_true(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
            assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
            assert_int_equal(ntohs(((struct sockaddr_in *)&at)->sin_port),
                             roost_leases_port(leases, i) + k);
            assert_true(at.ss_family == AF_INET6 || wants[i].is_handed);
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &int_len);
            assert_int_equal(is_listening, 0);
        }
    if (has_own_network) {
        assert_int_equal(roost_leases_port(leases, 0), 21000);
        assert_int_equal(roost_leases_port(leases, 1), 21001);
        assert_int_equal(roost_leases_port(leases, 2), 21005);
        assert_int_equal(roost_leases_port(leases, 3), 21007);
    }
    assert_int_equal(roost_leases_port(leases, 4), -1);
    assert_int_equal(roost_leases_fd(leases, 4, 0), -1);
    assert_int_equal(roost_leases_fd(leases, 1, 4), -1);
    assert_int_equal(count_lease_files(options.dir), 1);
    roost_leases_free(leases);
    assert_int_equal(count_lease_files(options.dir), 0);
    assert_int_equal(count_open_files(), before);
    roost_leases_free(NULL);
}

TEST(a_fork_that_frees_its_copy_takes_nothing_from_the_holder)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 21000};
    const struct roost_port_want want = {1, false};
    struct roost_leases *leases = roost_leases_new(&options, &want, 1, &err);
    assert_non_null(leases);
    int32_t port = roost_leases_port(leases, 0);
    roost_leases_release(leases, 0); /* from here on the books alone keep others away */
    pid_t child = fork();
    if (child == 0) {
        roost_leases_free(leases);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_lease_files(options.dir), 1);
    struct roost_leases *other = roost_leases_new(&options, &want, 1, &err);
    assert_non_null(other);
    assert_int_not_equal(roost_leases_port(other, 0), port);
    roost_leases_free(other);
    roost_leases_free(leases);
    assert_int_equal(count_lease_files(options.dir), 0);
}

TEST(no_wants_need_no_ports)
{
    struct roost_error err;
    struct roost_leases *leases =
        roost_leases_new(&(struct roost_port_options){.dir = "/nowhere"}, NULL, 0, &err);
    assert_non_null(leases);
    assert_int_equal(roost_leases_port(leases, 0), -1);
    roost_leases_free(leases);
}

TEST(the_search_goes_up_from_the_base_and_round)
{
    struct roost_error err;
    struct roost_port_options options = ten_ports();
    options.base = 65533;
    const struct roost_port_want wants[] = {{2, false}, {3, false}, {1, false}, {4, false}};
    const int32_t expected[] = {65533, 65526, 65535, 65529};
    struct roost_leases *leases = roost_leases_new(&options, wants, 4, &err);
    assert_true(leases || !has_own_network);
    for (size_t i = 0; leases && has_own_network && i < 4; i++)
        assert_int_equal(roost_leases_port(leases, i), expected[i]);
    roost_leases_free(leases);
}

/* Everybody who could have a port already, and everybody who could try to get a held one. */
TEST(a_port_that_anybody_has_is_not_leased_and_a_held_one_nobody_gets)
{
    struct in_addr any = {htonl(INADDR_ANY)}, loopback = {htonl(INADDR_LOOPBACK)};
    const struct {
        const char *name;
        int family, type;
        const void *at;
        bool is_reused, is_v6_only, listens;
    } table[] = {
        {"IPv4 listener", AF_INET, SOCK_STREAM, &any, true, false, true},
        {"IPv4, only bound", AF_INET, SOCK_STREAM, &any, true, false, false},
        {"IPv4 loopback listener", AF_INET, SOCK_STREAM, &loopback, true, false, true},
        {"IPv4 loopback, only bound", AF_INET, SOCK_STREAM, &loopback, false, false, false},
        {"IPv6 listener", AF_INET6, SOCK_STREAM, &in6addr_any, true, true, true},
        {"IPv6, both families", AF_INET6, SOCK_STREAM, &in6addr_any, true, false, true},
        {"IPv6, only bound", AF_INET6, SOCK_STREAM, &in6addr_any, false, true, false},
        {"IPv6 loopback", AF_INET6, SOCK_STREAM, &in6addr_loopback, true, true, true},
        {"UDP", AF_INET, SOCK_DGRAM, &any, false, false, false},
        {"UDP loopback", AF_INET, SOCK_DGRAM, &loopback, true, false, false},
        {"UDP IPv6", AF_INET6, SOCK_DGRAM, &in6addr_any, false, true, false},
    };
    struct roost_error err;
    for (size_t i = 0; i < ROWS(table); i++) {
        struct roost_port_options options = {.dir = in_world("leases"), .base = 22000};
        struct roost_leases *leases = lease(&options, 1, &err);
        assert_non_null(leases);
        int32_t port = roost_leases_port(leases, 0);
        int thief = bind_to(table[i].family, table[i].type, table[i].at, port, table[i].is_reused,
                            table[i].is_v6_only);
        CHECK_FACT(table[i].name, (thief >= 0) == (table[i].type == SOCK_DGRAM));
        if (thief >= 0)
            close(thief);
        roost_leases_release(leases, 0);
        assert_int_equal(roost_leases_fd(leases, 0, 0), -1);
        int owner = bind_to(table[i].family, table[i].type, table[i].at, port, table[i].is_reused,
                            table[i].is_v6_only);
        CHECK_FACT(table[i].name, owner >= 0 && (!table[i].listens || listen(owner, 1) == 0));
        roost_leases_free(leases);
        options.base = port;
        leases = lease(&options, 1, &err);
        CHECK_FACT(table[i].name, leases && roost_leases_port(leases, 0) != port);
        roost_leases_free(leases);
        close(owner);
    }
}

TEST(released_ports_are_still_leased)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 23000};
    struct roost_leases *first = lease(&options, 3, &err);
    assert_non_null(first);
    roost_leases_release(first, 0);
    struct roost_leases *second = lease(&options, 3, &err);
    assert_non_null(second);
    assert_true(roost_leases_port(second, 0) >= roost_leases_port(first, 0) + 3);
    roost_leases_free(first);
    roost_leases_free(second);
}

/* A server that closes first leaves its side of the connection in TIME_WAIT. */
static void serve_once(int32_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char byte;
    int server = bind_loopback(port, true), client = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(server >= 0 && listen(server, 1) == 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    int accepted = accept(server, NULL, NULL);
    close(accepted);
    assert_int_equal(read(client, &byte, 1), 0);
    close(client);
    close(server);
}

TEST(a_port_is_held_again_between_two_lives)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 24000, .owner = "r"};
    struct roost_leases *leases = lease(&options, 2, &err);
    assert_non_null(leases);
    int32_t port = roost_leases_port(leases, 0);
    for (int life = 0; life < 3; life++) {
        roost_leases_release(leases, 0);
        serve_once(port);
        assert_int_equal(roost_leases_hold(leases, 0, &err), ROOST_OK);
        assert_true(roost_leases_fd(leases, 0, 0) >= 0 && roost_leases_fd(leases, 0, 1) >= 0);
        for (int is_reused = 0; is_reused < 2; is_reused++)
            assert_int_equal(bind_loopback(port, is_reused), -1);
    }
    assert_int_equal(roost_leases_hold(leases, 0, &err), ROOST_OK); /* held already */
    roost_leases_release(leases, 0);
    int thief = bind_loopback(port + 1, true);
    assert_true(thief >= 0 && listen(thief, 1) == 0);
    assert_int_equal(roost_leases_hold(leases, 0, &err), ROOST_ERR_LEASE);
    CHECK_SAYS("thief", err.message, "of run 'r' is in use by another process");
    CHECK_SAYS("thief", err.hint, "ss -tanp 'sport = :");
    assert_int_equal(roost_leases_fd(leases, 0, 0), -1); /* nothing new is held */
    close(thief);
    assert_int_equal(roost_leases_hold(leases, 0, &err), ROOST_OK);
    assert_int_equal(roost_leases_hold(leases, 1, &err), ROOST_ERR_USAGE);
    CHECK_SAYS("no such want", err.message, "there is no want 1: these leases have 1");
    roost_leases_free(leases);
}

/* An answer, if there is one: loopback answers at once, but for a busy machine. */
static enum port_answer ask(struct port_probe *probe, int32_t port)
{
    enum port_answer answer = port_probe_start(probe, port);
    for (int i = 0; i < 40 && answer == PORT_WAITING; i++) {
        (void)poll(NULL, 0, 5);
        answer = port_probe_check(probe);
    }
    return answer;
}

TEST(a_handed_socket_serves_one_life_after_the_other)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 24500};
    struct roost_leases *leases =
        roost_leases_new(&options, &(struct roost_port_want){1, true}, 1, &err);
    assert_non_null(leases);
    struct port_probe probe;
    assert_int_equal(ask(&probe, roost_leases_port(leases, 0)), PORT_CLOSED);
    for (int life = 0; life < 2; life++) {
        pid_t child = fork();
        if (child == 0)
            _exit(listen(roost_leases_fd(leases, 0, 0), 8) == 0 ? 0 : 1);
        assert_int_equal(status_of(child), 0);
        assert_int_equal(roost_leases_hold(leases, 0, &err), ROOST_OK);
        assert_int_equal(ask(&probe, roost_leases_port(leases, 0)), PORT_OPEN);
    }
    roost_leases_free(leases);
}

TEST(a_probe_tells_who_listens_without_waiting)
{
    struct port_probe probe;
    int server = bind_loopback(25000, true);
    int before = count_open_files();
    assert_true(server >= 0);
    assert_int_equal(ask(&probe, 25000), PORT_CLOSED); /* only bound */
    listen(server, 1);
    assert_int_equal(ask(&probe, 25000), PORT_OPEN);
    enum port_answer answer =
        PORT_OPEN; /* nobody accepts: the queue fills, and then it must wait */
    for (int i = 0; i < 10 && answer == PORT_OPEN; i++)
        answer = ask(&probe, 25000);
    assert_int_equal(answer, PORT_WAITING);
    port_probe_end(&probe);
    port_probe_end(&probe);
    assert_int_equal(count_open_files(), before);
    close(server);
    server = bind_to(AF_INET6, SOCK_STREAM, &in6addr_loopback, 25001, true, true);
    assert_true(server >= 0 && listen(server, 1) == 0);
    assert_int_equal(ask(&probe, 25001), PORT_OPEN);
    close(server);
    assert_int_equal(ask(&probe, 0), PORT_CLOSED);
    assert_int_equal(ask(&probe, 65536), PORT_CLOSED);
}

/* --- refusals --- */

TEST(a_range_that_is_full_is_said_with_its_numbers)
{
    struct roost_error err;
    struct roost_port_options options = ten_ports();
    struct roost_leases *first = lease(&options, 7, &err);
    if (!has_own_network) { /* others may use some of the ten */
        roost_leases_free(first);
        first = NULL;
    }
    options.owner = "run-b";
    assert_null(lease(&options, 11, &err));
    assert_int_equal(err.code, ROOST_ERR_LEASE);
    CHECK_SAYS("too many", err.message, "no 11 free ports in a row, of 11 asked in all: ");
    CHECK_SAYS("too many", err.message, "of 10 ports are free (65526-65535)");
    if (first) {
        assert_null(lease(&options, 4, &err));
        CHECK_SAYS("too few left", err.message,
                   "no 4 free ports in a row, of 4 asked in all: 3 of 10 ports are free "
                   "(65526-65535); run 'run-a' (process ");
    }
    roost_leases_free(first);
}

TEST(the_run_that_fills_a_range_is_named)
{
    struct roost_error err;
    char expected[160];
    struct roost_port_options options = ten_ports();
    struct roost_leases *first = lease(&options, has_own_network ? 9 : 1, &err);
    assert_non_null(first);
    options.owner = "run-b";
    struct roost_leases *second = has_own_network ? lease(&options, 1, &err) : NULL;
    const struct roost_port_want wants[] = {{1, false}, {10, false}};
    assert_null(roost_leases_new(&options, wants, 2, &err));
    assert_int_equal(err.code, ROOST_ERR_LEASE);
    snprintf(expected, sizeof expected, "; run 'run-a' (process %d) holds %d", (int)getpid(),
             has_own_network ? 9 : 1);
    CHECK_SAYS("holder", err.message, expected);
    CHECK_SAYS("holder", err.message, " of 11 asked in all: ");
    CHECK_SAYS("holder", err.hint, "roost stop run-a");
    assert_int_equal(count_lease_files(options.dir), second ? 2 : 1); /* nothing half-done */
    roost_leases_free(first);
    roost_leases_free(second);
}

TEST(a_kernel_that_keeps_all_ports_is_said)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"),
                                         .proc = fake_proc("1024\t65535\n", "\n")};
    assert_null(lease(&options, 1, &err));
    assert_int_equal(err.code, ROOST_ERR_LEASE);
    assert_string_equal(err.message, "no 1 free port in a row, of 1 asked in all: 0 of 0 ports are "
                                     "free (the kernel leaves none)");
    CHECK_SAYS("hint", err.hint, "the kernel's ephemeral range is 1024-65535: make it smaller");
}

TEST(wrong_options_are_refused)
{
    const struct {
        const char *said;
        struct roost_port_options options;
        int32_t count;
        enum roost_code code;
    } table[] = {
        {"base port 65536 is not a port", {.base = 65536}, 1, ROOST_ERR_USAGE},
        {"base port -1 is not a port", {.base = -1}, 1, ROOST_ERR_USAGE},
        {"want 0 asks for 0 ports", {0}, 0, ROOST_ERR_USAGE},
        {"want 0 asks for -5 ports", {0}, -5, ROOST_ERR_USAGE},
        {"'a b' cannot be the owner", {.owner = "a b"}, 1, ROOST_ERR_NAME},
        {"more than 65535 ports", {0}, 65536, ROOST_ERR_LEASE},
        {"more than 65535 ports", {0}, INT32_MAX, ROOST_ERR_LEASE},
    };
    for (size_t i = 0; i < ROWS(table); i++) {
        struct roost_error err;
        struct roost_port_options options = table[i].options;
        options.dir = in_world("leases");
        assert_null(lease(&options, table[i].count, &err));
        CHECK_FACT(table[i].said, err.code == table[i].code && err.hint[0]);
        CHECK_SAYS(table[i].said, err.message, table[i].said);
        assert_null(lease(&options, table[i].count, NULL));
    }
}

TEST(descriptors_are_counted_before_anything_is_touched)
{
    struct roost_error err;
    struct rlimit old, small;
    getrlimit(RLIMIT_NOFILE, &old);
    small = (struct rlimit){64, old.rlim_max};
    struct roost_port_options options = {.dir = in_world("leases")};
    setrlimit(RLIMIT_NOFILE, &small);
    struct roost_leases *leases = lease(&options, 100, &err);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_null(leases);
    assert_int_equal(err.code, ROOST_ERR_LEASE);
    CHECK_SAYS("limit", err.message,
               "holding 100 ports needs 108 open files, but the limit is 64 and ");
    CHECK_SAYS("limit", err.hint, "ulimit -n 1");
    assert_int_equal(access(options.dir, F_OK), -1);
}

/* With the limit in the middle of the work every step fails in turn: cleanly, and all is given back. */
TEST(running_out_of_descriptors_anywhere_is_clean)
{
    struct roost_error err;
    struct rlimit old;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 26000};
    int before = count_open_files();
    getrlimit(RLIMIT_NOFILE, &old);
    for (rlim_t limit = 3; limit < 40; limit++) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, old.rlim_max});
        struct roost_leases *leases = lease(&options, 4, &err);
        setrlimit(RLIMIT_NOFILE, &old);
        assert_true(leases || (err.code == ROOST_ERR_LEASE && err.message[0] && err.hint[0]) ||
                    err.code == ROOST_ERR_IO);
        roost_leases_free(leases);
        assert_int_equal(count_open_files(), before);
    }
    assert_int_equal(count_lease_files(options.dir), 0);
}

TEST(a_directory_or_file_that_is_not_ours_alone_is_refused)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases")};
    mkdir(options.dir, 0755);
    chmod(options.dir, 0755);
    assert_null(lease(&options, 1, &err));
    assert_int_equal(err.code, ROOST_ERR_ACCESS);
    CHECK_SAYS("mode", err.message, "can be reached by others (mode 0755)");
    chmod(options.dir, 0700);
    assert_int_equal(symlink("/etc/passwd", in_world("leases/1.0.ports")), 0);
    assert_null(lease(&options, 1, &err));
    CHECK_SAYS("link", err.message, "a symbolic link");
    unlink(in_world("leases/1.0.ports"));
    assert_int_equal(symlink("/etc/passwd", in_world("leases/ports.lock.x")), 0);
    rename(in_world("leases/ports.lock.x"), in_world("leases/ports.lock"));
    assert_null(lease(&options, 1, &err));
    CHECK_SAYS("lock", err.message, "a symbolic link");
}

TEST(books_that_a_living_process_has_spoiled_are_refused)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 27000};
    roost_leases_free(lease(&options, 1, &err));
    int fd = open(in_world("leases/7.0.ports"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, "roost ports 1\nrun x\n", 20) == 20);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_null(lease(&options, 1, &err));
    assert_int_equal(err.code, ROOST_ERR_IO);
    assert_string_equal(err.message, "the port leases in '7.0.ports' cannot be read");
    close(fd); /* nobody has it any more: it is cleared away */
    struct roost_leases *leases = lease(&options, 1, &err);
    assert_non_null(leases);
    assert_int_equal(count_lease_files(options.dir), 1);
    roost_leases_free(leases);
}

TEST(thousands_of_wants_are_leased_at_once)
{
    struct roost_error err;
    enum { WANTS = 3000 };
    static struct roost_port_want wants[WANTS];
    static bool is_seen[65536];
    struct roost_port_options options = {.dir = in_world("leases"), .base = 61000};
    int32_t total = 0;
    for (int i = 0; i < WANTS; i++)
        total += wants[i].count = 1 + i % 3;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct roost_leases *leases = roost_leases_new(&options, wants, WANTS, &err);
    if (!leases) { /* a machine with fewer descriptors says so */
        CHECK_SAYS("limit", err.message, "open files");
        assert_true(limit.rlim_cur < (rlim_t)total + 64);
        return;
    }
    for (size_t i = 0; i < WANTS; i++)
        for (int32_t k = 0; k < wants[i].count; k++) {
            int32_t port = roost_leases_port(leases, i) + k;
            assert_true(port >= 1024 && !is_seen[port]);
            is_seen[port] = true;
        }
    roost_leases_free(leases);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, drop_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(blocks_are_consecutive_and_start_at_the_base),
        IN_A_WORLD(a_fork_that_frees_its_copy_takes_nothing_from_the_holder),
        IN_A_WORLD(no_wants_need_no_ports),
        IN_A_WORLD(the_search_goes_up_from_the_base_and_round),
        IN_A_WORLD(a_port_that_anybody_has_is_not_leased_and_a_held_one_nobody_gets),
        IN_A_WORLD(released_ports_are_still_leased),
        IN_A_WORLD(a_port_is_held_again_between_two_lives),
        IN_A_WORLD(a_handed_socket_serves_one_life_after_the_other),
        IN_A_WORLD(a_probe_tells_who_listens_without_waiting),
        IN_A_WORLD(a_range_that_is_full_is_said_with_its_numbers),
        IN_A_WORLD(the_run_that_fills_a_range_is_named),
        IN_A_WORLD(a_kernel_that_keeps_all_ports_is_said),
        IN_A_WORLD(wrong_options_are_refused),
        IN_A_WORLD(descriptors_are_counted_before_anything_is_touched),
        IN_A_WORLD(running_out_of_descriptors_anywhere_is_clean),
        IN_A_WORLD(a_directory_or_file_that_is_not_ours_alone_is_refused),
        IN_A_WORLD(books_that_a_living_process_has_spoiled_are_refused),
        IN_A_WORLD(thousands_of_wants_are_leased_at_once),
    };
    has_own_network = enter_own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
