/* address_test.c - what is an address, and the one order of hosts. */
#include "base/address.h"

#include "tests/unit.h"

TEST(addresses_are_told_from_names)
{
    static const struct {
        const char *text;
        enum address_kind kind;
    } rows[] = {
        {"10.0.0.1", ADDRESS_IPV4},
        {"::ffff:10.0.0.1", ADDRESS_IPV4}, /* maps an IPv4 one */
        {"[::ffff:10.0.0.1]", ADDRESS_IPV4},
        {"::1", ADDRESS_IPV6},
        {"[::1]", ADDRESS_IPV6},
        {"fe80::1%eth0", ADDRESS_IPV6},
        {"[fe80::1%eth0]", ADDRESS_IPV6},
        {"10.0.0", ADDRESS_NAME},
        {"10.0.0.256", ADDRESS_NAME},
        {"[10.0.0.1]", ADDRESS_NAME},
        {"node1", ADDRESS_NAME},
        {"a:b", ADDRESS_NAME},
        {"1234567890123456789012345678901234567890123456", ADDRESS_NAME},
        {"", ADDRESS_NONE},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_FACT(rows[i].text, address_read(sv_from(rows[i].text)).kind == rows[i].kind);
    assert_int_equal(address_read(SV("10.0.0.1\0")).kind, ADDRESS_NAME);
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

TEST(hosts_come_by_value_then_by_natural_names_and_nameless_ones_last)
{
    static const char *const rising[] = {
        "0.0.0.0",      "9.255.255.255", "10.0.0.1",
        "10.0.0.2",     "10.0.0.9",      "10.0.0.10",
        "10.0.1.0",     "100.0.0.0",     "::",
        "::1",          "fe80::1",       "fe80::1%eth0",
        "fe80::1%eth2", "fe80::1%eth10", "fe80::2",
        "ff02::1",      "10.0.0",        "Node1",
        "node",         "node-1",        "node01",
        "node1",        "node2",         "node2a",
        "node10",       "node10.rack2",  "node10.rack10",
        "nodes",        "\xc3\xa9",      "",
    };
    for (size_t i = 0; i < ROWS(rising); i++) {
        for (size_t k = 0; k < ROWS(rising); k++) {
            struct address a = address_read(sv_from(rising[i]));
            struct address b = address_read(sv_from(rising[k]));
            if (sign(address_compare(&a, &b)) != (i > k) - (i < k))
                fail_msg("'%s' and '%s' are in the wrong order", rising[i], rising[k]);
        }
    }
}

TEST(forms_of_one_address_are_equal)
{
    static const char *const rows[][2] = {
        {"::1", "[::1]"},
        {"10.0.0.1", "::ffff:10.0.0.1"},
        {"::1", "0:0:0:0:0:0:0:1"},
        {"FE80::A", "fe80::a"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct address a = address_read(sv_from(rows[i][0]));
        struct address b = address_read(sv_from(rows[i][1]));
        CHECK_FACT(rows[i][0], address_compare(&a, &b) == 0);
    }
}

TEST(natural_order_is_total_and_equal_only_for_equal_texts)
{
    static const char *const words[] = {"",   "0",  "00",  "1",  "01",  "10",   "2",
                                        "a",  "a0", "a00", "a1", "a01", "a1b",  "a01a",
                                        "a/", "a:", "A",   "b",  "a10", "a9a9", "a9a10"};
    enum { COUNT = ROWS(words) };
    int order[COUNT][COUNT];
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < COUNT; k++)
            order[i][k] = sign(natural_compare(sv_from(words[i]), sv_from(words[k])));
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < COUNT; k++) {
            CHECK_FACT(words[i], order[i][k] == -order[k][i]);
            CHECK_FACT(words[i], (order[i][k] == 0) == (i == k));
            for (size_t m = 0; m < COUNT; m++)
                CHECK_FACT(words[i], order[i][k] >= 0 || order[k][m] >= 0 || order[i][m] < 0);
        }
    }
}

TEST(numbers_in_names_compare_by_value_however_long)
{
    assert_true(natural_compare(SV("n99999999999999999999998"), SV("n99999999999999999999999")) <
                0);
    assert_true(natural_compare(SV("n9"), SV("n10")) < 0);
    assert_true(natural_compare(SV("n09"), SV("n10")) < 0);
    assert_true(natural_compare(SV("n1x9"), SV("n1x10")) < 0);
}

RUN_TESTS(cmocka_unit_test(addresses_are_told_from_names),
          cmocka_unit_test(hosts_come_by_value_then_by_natural_names_and_nameless_ones_last),
          cmocka_unit_test(forms_of_one_address_are_equal),
          cmocka_unit_test(natural_order_is_total_and_equal_only_for_equal_texts),
          cmocka_unit_test(numbers_in_names_compare_by_value_however_long))
