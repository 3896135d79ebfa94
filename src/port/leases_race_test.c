/* Leases of many processes: sixty-four at once, killed ones, stopped ones, thieves, and a machine with
 * ten ports. Everything waits on pipes and exits, nothing on time. */
#include <poll.h>
#include <sys/file.h>

#include "tests/port_unit.h"

static bool has_own_network;

enum { LAUNCHERS = 64, WANTS = 3 };

struct got {
    int32_t first[WANTS], count[WANTS];
};

/* A process that leases, tells what it has, and keeps it until `go` is closed. */
static pid_t start_launcher(const struct roost_port_options *options, int start, int tell, int go)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    die_with_parent();
    struct roost_error err;
    struct got got = {{0}, {1, 1 + (int32_t)getpid() % 4, 2}};
    struct roost_port_want wants[WANTS];
    char byte;
    for (int i = 0; i < WANTS; i++)
        wants[i] = (struct roost_port_want){got.count[i], i == 2};
    if (read(start, &byte, 1) != 0) /* all of them at once */
        _exit(2);
    struct roost_leases *leases = roost_leases_new(options, wants, WANTS, &err);
    if (!leases) {
        fprintf(stderr, "# %s\n", err.message);
        _exit(3);
    }
    for (size_t i = 0; i < WANTS; i++) {
        got.first[i] = roost_leases_port(leases, i);
        roost_leases_release(leases, i); /* only the books keep them apart now */
    }
    if (write(tell, &got, sizeof got) != sizeof got || read(go, &byte, 1) != 0)
        _exit(4);
    roost_leases_free(leases);
    _exit(0);
}

struct pipes {
    int start[2], tell[2], go[2];
};

static void open_pipes(struct pipes *pipes)
{
    assert_int_equal(pipe2(pipes->start, O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipes->tell, O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipes->go, O_CLOEXEC), 0);
}

static pid_t launch(const struct roost_port_options *options, struct pipes *pipes)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0)
        return child;
    close(pipes->start[1]);
    close(pipes->go[1]);
    close(pipes->tell[0]);
    pid_t inner = start_launcher(options, pipes->start[0], pipes->tell[1], pipes->go[0]);
    _exit(inner > 0 && status_of(inner) == 0 ? 0 : 1);
}

TEST(sixty_four_launchers_at_once_never_meet)
{
    static bool is_seen[65536];
    struct roost_port_options options = {
        .dir = in_world("leases"), .base = 28000, .owner = "many", .wait_ms = 120000};
    struct pipes pipes;
    pid_t children[LAUNCHERS];
    open_pipes(&pipes);
    for (int i = 0; i < LAUNCHERS; i++)
        children[i] = launch(&options, &pipes);
    close(pipes.tell[1]);
    close(pipes.start[1]);
    int told = 0;
    for (struct got got; read(pipes.tell[0], &got, sizeof got) == sizeof got; told++) {
        for (int i = 0; i < WANTS; i++)
            for (int32_t port = got.first[i]; port < got.first[i] + got.count[i]; port++) {
                assert_false(is_seen[port]);
                is_seen[port] = true;
            }
        if (told + 1 == LAUNCHERS)
            close(pipes.go[1]);
    }
    assert_int_equal(told, LAUNCHERS);
    for (int i = 0; i < LAUNCHERS; i++)
        assert_int_equal(status_of(children[i]), 0);
    assert_int_equal(count_lease_files(options.dir), 0);
    close(pipes.start[0]);
    close(pipes.tell[0]);
    close(pipes.go[0]);
}

TEST(a_killed_holder_leaves_nothing_to_clean)
{
    struct roost_port_options options = {.dir = in_world("leases"), .base = 29000};
    struct roost_error err;
    int32_t first = 0;
    for (int i = 0; i < 20; i++) {
        struct pipes pipes;
        struct got got;
        open_pipes(&pipes);
        close(pipes.start[1]);
        pid_t child = start_launcher(&options, pipes.start[0], pipes.tell[1], pipes.go[0]);
        assert_int_equal(read(pipes.tell[0], &got, sizeof got), sizeof got);
        first = first ? first : got.first[0];
        assert_int_equal(got.first[0], first); /* what the last one had is free again */
        assert_int_equal(count_lease_files(options.dir), 1);
        kill(child, SIGKILL);
        assert_true(WIFSIGNALED(status_of(child)));
        int *ends[] = {pipes.start, pipes.tell, pipes.go};
        for (int k = 0; k < 3; k++) {
            close(ends[k][0]);
            if (k > 0)
                close(ends[k][1]);
        }
    }
    struct roost_leases *leases = lease(&options, 1, &err);
    assert_non_null(leases);
    assert_int_equal(roost_leases_port(leases, 0), first);
    assert_int_equal(count_lease_files(options.dir), 1);
    roost_leases_free(leases);
}

/* Killed at any moment: while it waits, has the lock, binds, writes, gives back. */
TEST(a_launcher_killed_at_any_moment_blocks_nobody)
{
    struct roost_port_options options = {.dir = in_world("leases"), .base = 29500};
    struct roost_error err;
    const char *soak = getenv("ROOST_SOAK");
    int rounds = soak && *soak == '1' ? 5000 : 200;
    for (int i = 0; i < rounds; i++) {
        int tell[2];
        char byte;
        assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
        pid_t child = fork();
        if (child == 0) {
            die_with_parent();
            for (bool is_told = false;; is_told = true) {
                roost_leases_free(lease(&options, 2, &err));
                if (!is_told && write(tell[1], "", 1) != 1)
                    _exit(1);
            }
        }
        assert_int_equal(read(tell[0], &byte, 1), 1);
        for (volatile int spin = 0; spin < i * 500; spin++)
            continue;
        kill(child, SIGKILL);
        assert_true(WIFSIGNALED(status_of(child)));
        close(tell[0]);
        close(tell[1]);
        struct roost_leases *leases = lease(&options, 2, &err);
        assert_non_null(leases);
        assert_int_equal(count_lease_files(options.dir), 1);
        roost_leases_free(leases);
    }
}

TEST(a_lock_that_a_stopped_process_keeps_is_said_with_its_pid)
{
    struct roost_error err;
    struct roost_port_options options = {
        .dir = in_world("leases"), .base = 30000, .owner = "r", .wait_ms = 50};
    char expected[64];
    roost_leases_free(lease(&options, 1, &err)); /* makes the directory */
    pid_t child = fork();
    if (child == 0) {
        die_with_parent();
        int fd = open(in_world("leases/ports.lock"), O_RDWR | O_CLOEXEC);
        flock(fd, LOCK_EX);
        dprintf(fd, "%d x\n", (int)getpid());
        kill(getpid(), SIGSTOP);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    int before = count_open_files();
    assert_null(lease(&options, 1, &err));
    assert_int_equal(count_open_files(), before);
    assert_int_equal(err.code, ROOST_ERR_TIMEOUT);
    CHECK_SAYS("stopped", err.message, "waited 50 ms for the port leases in '/tmp/roost-port-");
    snprintf(expected, sizeof expected, "process %d has them locked", (int)child);
    CHECK_SAYS("stopped", err.message, expected);
    snprintf(expected, sizeof expected, "kill -CONT %d", (int)child);
    CHECK_SAYS("stopped", err.hint, expected);
    assert_int_equal(truncate(in_world("leases/ports.lock"), 0), 0);
    assert_null(lease(&options, 1, &err));
    CHECK_SAYS("unsigned", err.message, "another process has them locked");
    CHECK_SAYS("unsigned", err.hint, "fuser -v ");
    kill(child, SIGKILL);
    status_of(child);
    struct roost_leases *leases = lease(&options, 1, &err);
    assert_non_null(leases);
    roost_leases_free(leases);
}

/* A thief of another user, who knows nothing of our books, tries all ports without pause. */
TEST(a_thief_gets_no_port_that_is_held)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .base = 31000};
    int stop[2];
    assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
    pid_t thief = fork();
    if (thief == 0) {
        die_with_parent();
        struct pollfd ended = {.fd = stop[0], .events = POLLIN};
        close(stop[1]);
        for (int32_t port = 31000; poll(&ended, 1, 0) == 0;
             port = port == 31015 ? 31000 : port + 1) {
            int fd = bind_loopback(port, true);
            if (fd >= 0) {
                listen(fd, 1);
                close(fd);
            }
        }
        _exit(0);
    }
    for (int round = 0; round < 100; round++) {
        struct roost_leases *leases =
            roost_leases_new(&options, (struct roost_port_want[]){{3, false}, {1, true}}, 2, &err);
        assert_non_null(leases);
        for (int32_t i = 0; i < 4; i++) {
            size_t want = i < 3 ? 0 : 1;
            int32_t port = roost_leases_port(leases, want) + (i < 3 ? i : 0);
            assert_true(roost_leases_fd(leases, want, i < 3 ? i : 0) >= 0);
            assert_int_equal(bind_loopback(port, true), -1);
        }
        assert_int_equal(listen(roost_leases_fd(leases, 1, 0), 1), 0); /* nobody was faster */
        roost_leases_free(leases);
    }
    close(stop[0]);
    close(stop[1]);
    assert_int_equal(status_of(thief), 0);
}

/* The real thing where namespaces are allowed: the kernel of this network keeps all but ten ports for
 * itself. Elsewhere the same with a made-up /proc. */
TEST(ten_ports_are_all_leased_and_the_eleventh_is_refused)
{
    struct roost_error err;
    struct roost_port_options options = {.dir = in_world("leases"), .owner = "small"};
    int fd =
        has_own_network ? open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC) : -1;
    bool is_set = fd >= 0 && write(fd, "1024 65525", 10) == 10;
    if (fd >= 0)
        close(fd);
    if (!is_set)
        options.proc = fake_proc("1024\t65525\n", "\n");
    struct roost_leases *held[10] = {NULL};
    int count = 0;
    while (count < 10 && (held[count] = lease(&options, 1, &err)))
        assert_true(roost_leases_port(held[count++], 0) >= 65526);
    assert_true(count == 10 || !has_own_network);
    assert_null(lease(&options, 1, &err));
    assert_int_equal(err.code, ROOST_ERR_LEASE);
    CHECK_SAYS("full", err.message, ": 0 of 10 ports are free (65526-65535)");
    if (count == 10)
        CHECK_SAYS("full", err.message, "; run 'small' (process ");
    while (count > 0)
        roost_leases_free(held[--count]);
    assert_int_equal(count_lease_files(options.dir), 0);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, drop_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(sixty_four_launchers_at_once_never_meet),
        IN_A_WORLD(a_killed_holder_leaves_nothing_to_clean),
        IN_A_WORLD(a_launcher_killed_at_any_moment_blocks_nobody),
        IN_A_WORLD(a_lock_that_a_stopped_process_keeps_is_said_with_its_pid),
        IN_A_WORLD(a_thief_gets_no_port_that_is_held),
        IN_A_WORLD(ten_ports_are_all_leased_and_the_eleventh_is_refused),
    };
    has_own_network = enter_own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
