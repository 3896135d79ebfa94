/* Lease files and kernel settings: what is written is read back, anything else is refused. */
#include "port/lease_file.h"

#include "tests/unit.h"

static uint16_t holder_of_port[PORT_COUNT];

TEST(what_is_written_is_read_back)
{
    struct text text = TEXT_INIT;
    struct lease_holder self = {.owner = "run-1", .pid = 4711}, got;
    lease_file_start(&text, &self);
    lease_file_block(&text, 20000, 4);
    lease_file_block(&text, 65535, 1);
    lease_file_end(&text);
    memset(holder_of_port, 0, sizeof holder_of_port);
    assert_true(lease_file_read((struct strview){text.bytes, text.len}, 7, &got, holder_of_port));
    assert_string_equal(got.owner, "run-1");
    assert_int_equal(got.pid, 4711);
    assert_int_equal(got.port_count, 5);
    for (int32_t port = 0; port < PORT_COUNT; port++) {
        bool is_held = (port >= 20000 && port < 20004) || port == 65535;
        assert_int_equal(holder_of_port[port], is_held ? 7 : 0);
    }
    text_release(&text);
}

TEST(a_file_that_was_cut_anywhere_is_refused)
{
    const struct strview whole = SV("roost ports 1\nrun -\npid 1\nports 20000 4\nports 3 1\nend\n");
    struct lease_holder got;
    for (size_t len = 0; len <= whole.len; len++) {
        memset(holder_of_port, 0, sizeof holder_of_port);
        assert_int_equal(lease_file_read(sv_sub(whole, 0, len), 1, &got, holder_of_port),
                         len == whole.len);
    }
}

TEST(a_file_that_roost_would_not_write_is_refused)
{
    const char *const table[] = {
        "roost ports 2\nrun -\npid 1\nend\n",
        "roost ports 1\nrun \npid 1\nend\n",
        "roost ports 1\nrun a b\npid 1\nend\n",
        "roost ports 1\nrun ../x\npid 1\nend\n",
        "roost ports 1\nrun -\npid 0\nend\n",
        "roost ports 1\nrun -\npid 99999999999\nend\n",
        "roost ports 1\nrun -\npid -1\nend\n",
        "roost ports 1\nrun -\npid 1 \nend\n",
        "roost ports 1\nrun -\npid 1\nports 0 1\nend\n",
        "roost ports 1\nrun -\npid 1\nports 020 1\nend\n",
        "roost ports 1\nrun -\npid 1\nports +20 1\nend\n",
        "roost ports 1\nrun -\npid 1\nports 20\nend\n",
        "roost ports 1\nrun -\npid 1\nports 20 0\nend\n",
        "roost ports 1\nrun -\npid 1\nports 65535 2\nend\n",
        "roost ports 1\nrun -\npid 1\nports 65536 1\nend\n",
        "roost ports 1\nrun -\npid 1\nports 20 1 \nend\n",
        "roost ports 1\nrun -\npid 1\nports 20 2\nports 21 1\nend\n",
        "roost ports 1\nrun -\npid 1\nend\nports 20 1\n",
        "roost ports 1\nrun -\npid 1\nend\n\n",
        "roost ports 1\r\nrun -\r\npid 1\r\nend\r\n",
        "",
    };
    for (size_t i = 0; i < ROWS(table); i++) {
        struct lease_holder got;
        memset(holder_of_port, 0, sizeof holder_of_port);
        CHECK_FACT(table[i], !lease_file_read(sv_from(table[i]), 1, &got, holder_of_port));
    }
}

static struct port_map map;

TEST(ports_of_the_kernel_are_not_for_leases)
{
    const struct {
        const char *text;
        bool is_read;
        int32_t first, last;
    } ranges[] = {
        {"32768\t60999\n", true, 32768, 60999},
        {"1024 65525", true, 1024, 65525},
        {"5\t5\n", true, 5, 5},
        {"9 8\n", false, 1, 2},
        {"1 65536\n", false, 1, 2},
        {"", false, 1, 2},
        {"7\n", false, 1, 2},
        {"a b\n", false, 1, 2},
        {"1 2 3\n", false, 1, 2},
    };
    for (size_t i = 0; i < ROWS(ranges); i++) {
        map = (struct port_map){.ephemeral_first = 1, .ephemeral_last = 2};
        CHECK_FACT(ranges[i].text,
                   port_map_read_ephemeral(&map, sv_from(ranges[i].text)) == ranges[i].is_read);
        CHECK_FACT(ranges[i].text, map.ephemeral_first == ranges[i].first);
        CHECK_FACT(ranges[i].text, map.ephemeral_last == ranges[i].last);
    }
}

TEST(reserved_ports_are_left_out)
{
    const struct {
        const char *text, *shown;
        bool is_read;
    } table[] = {
        {"\n", "1024-10001, 20000-32767, 61000-65535", true},
        {"", "1024-10001, 20000-32767, 61000-65535", true},
        {"20000\n", "1024-10001, 20001-32767, 61000-65535", true},
        {"1024-10000,20001-65535\n", "10001, 20000", true},
        {"1026,1028,1030,1032\n", "1024-1025, 1027, 1029, 1031 and 3 more ranges", true},
        {"x\n", "1024-10001, 20000-32767, 61000-65535", false},
        {"5-x\n", "1024-10001, 20000-32767, 61000-65535", false},
        {"0-65535\n", "", true},
    };
    for (size_t i = 0; i < ROWS(table); i++) {
        struct text shown = TEXT_INIT;
        port_map_read(&map, "/nowhere");
        assert_int_equal(map.usable_count, 8978 + 12768 + 4536);
        CHECK_FACT(table[i].text,
                   port_map_drop_reserved(&map, sv_from(table[i].text)) == table[i].is_read);
        port_map_show(&map, &shown);
        const char *got = text_string(&shown);
        CHECK_TEXT(table[i].text, got, table[i].shown);
        text_release(&shown);
    }
}

RUN_TESTS(cmocka_unit_test(what_is_written_is_read_back),
          cmocka_unit_test(a_file_that_was_cut_anywhere_is_refused),
          cmocka_unit_test(a_file_that_roost_would_not_write_is_refused),
          cmocka_unit_test(ports_of_the_kernel_are_not_for_leases),
          cmocka_unit_test(reserved_ports_are_left_out))
