/* ports_test.c - ports are leased without memory. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/nomem/nomem.h"

/* Leases beside a living holder: taken, let go, held again, given back; then more than there are. */
static struct result run_leases(const struct scenario *unused)
{
    static const struct roost_port_want wants[] = {{1, false}, {3, false}, {1, true}};
    static const struct roost_port_want too_many[] = {{300, false}};
    struct roost_port_options options = {
        .dir = path_in_folder(0, "leases"), .owner = "nomem", .proc = folder};
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    struct roost_leases *holder = roost_leases_new(&options, wants, 1, &err);
    struct roost_leases *leases = holder ? roost_leases_new(&options, wants, 3, &err) : NULL;
    result.code = err.code;
    if (leases) {
        roost_leases_release(leases, 1);
        result.code = roost_leases_hold(leases, 1, &err);
        struct roost_leases *none = roost_leases_new(&options, too_many, 1, &err);
        /* It is said which: too many, or no memory to find out. */
        result.code = first_of(result.code, none                           ? ROOST_ERR_BUG
                                            : err.code == ROOST_ERR_MEMORY ? err.code
                                                                           : ROOST_OK);
        result.plan = 1;
        roost_leases_free(none);
    }
    roost_leases_free(leases);
    roost_leases_free(holder);
    return result;
}

TEST(any_allocation_may_fail_while_ports_are_leased)
{
    /* A kernel that leaves two hundred ports, so that looking at all of them is quick. */
    static const char *const parts[] = {"sys", "sys/net", "sys/net/ipv4"};
    for (size_t i = 0; i < ROWS(parts); i++)
        assert_int_equal(mkdir(path_in_folder(0, parts[i]), 0700), 0);
    FILE *range = fopen(path_in_folder(0, "sys/net/ipv4/ip_local_port_range"), "w");
    assert_non_null(range);
    fputs("1024 65335\n", range);
    fclose(range);
    int before = dup(0);
    close(before);
    check_scenario("leases", run_leases, NULL);
    int after = dup(0);
    close(after);
    unlink(path_in_folder(0, "sys/net/ipv4/ip_local_port_range"));
    for (size_t i = ROWS(parts); i-- > 0;)
        assert_int_equal(rmdir(path_in_folder(0, parts[i])), 0);
    assert_int_equal(before, after); /* nothing was left open */
    assert_int_equal(unlink(path_in_folder(0, "leases/ports.lock")), 0);
    assert_int_equal(rmdir(path_in_folder(0, "leases")), 0); /* and no lease file */
}

RUN_IN_FOLDER(cmocka_unit_test(any_allocation_may_fail_while_ports_are_leased))
