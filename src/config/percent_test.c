/* percent_test.c - the pieces of texts with %{NAME}. */
#include "config/percent.h"

#include "base/text.h"
#include "tests/unit.h"

TEST(a_text_falls_into_its_pieces)
{
    /* Text as it is, [names], and a ? where a name has no end. */
    static const struct {
        const char *text, *pieces;
        bool is_used;
    } rows[] = {
        {"", "", false},      {"plain", "plain|", false},      {"100%", "100%|", false},
        {"%x", "%x|", false}, {"%{RANK}", "[RANK]", true},     {"a%{B}c%{D}", "a|[B]c|[D]", true},
        {"%%", "%|", true},   {"%%{RANK}", "%|{RANK}|", true}, {"%%%{A}%", "%|[A]%|", true},
        {"%{}", "[]", true},  {"a%{RANK", "a|?RANK", true},    {"%{A%{B}}", "[A%{B]}|", true},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text out = TEXT_INIT;
        struct strview rest = sv_from(rows[i].text);
        struct piece piece;
        while (percent_next(&rest, &piece)) {
            text_puts(&out, piece.kind == PIECE_NAME ? "[" : piece.kind == PIECE_OPEN ? "?" : "");
            text_put(&out, piece.text);
            text_puts(&out, piece.kind == PIECE_NAME ? "]" : piece.kind == PIECE_TEXT ? "|" : "");
        }
        CHECK_TEXT(rows[i].text, text_string(&out), rows[i].pieces);
        CHECK_FACT(rows[i].text, percent_is_used(sv_from(rows[i].text)) == rows[i].is_used);
        text_release(&out);
    }
}

TEST(a_port_is_found_by_its_variables)
{
    struct port_want ports[] = {{.name = "http"}, {.name = "dist_init"}, {.name = "H"}};
    struct launch_config launch = {.ports = ports, .port_count = 3};
    static const struct {
        const char *name;
        int32_t port;
        bool is_count;
    } rows[] = {
        {"ROOST_PORT_HTTP", 0, false},
        {"ROOST_PORT_HTTP_COUNT", 0, true},
        {"ROOST_PORT_DIST_INIT", 1, false},
        {"ROOST_PORT_H", 2, false},
        {"ROOST_PORT_H_COUNT", 2, true},
        {"ROOST_PORT_HTTPS", -1, false},
        {"ROOST_PORT_http", -1, false},
        {"ROOST_PORT_", -1, false},
        {"HTTP", -1, false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        bool is_count = false;
        int32_t port = percent_find_port(&launch, sv_from(rows[i].name), &is_count);
        CHECK_FACT(rows[i].name, port == rows[i].port);
        CHECK_FACT(rows[i].name, port < 0 || is_count == rows[i].is_count);
    }
    assert_int_equal(percent_find_port(NULL, SV("ROOST_PORT_HTTP"), &(bool){false}), -1);
}

RUN_TESTS(cmocka_unit_test(a_text_falls_into_its_pieces),
          cmocka_unit_test(a_port_is_found_by_its_variables), )
