/* peers_test.c - words for other components, and the names of their variables. */
#include "config/peers.h"

#include "base/text.h"
#include "tests/unit.h"

TEST(a_word_is_read_from_the_right)
{
    static const struct {
        const char *name, *read; /* kind component rank port; "" = it has no form */
    } rows[] = {
        {"rollout.0.host", "host rollout 0 "},
        {"rollout.12.port.http", "port rollout 12 http"},
        {"rollout.addresses.http", "addresses rollout  http"},
        {"a.b.0.port.http", "port a.b 0 http"},
        {"a.b.0.host", "host a.b 0 "},
        {"a.0.host", "host a 0 "},
        {"0.0.host", "host 0 0 "},
        {"x.addresses.0.port.http", "port x.addresses 0 http"},
        {"x.port.0.host", "host x.port 0 "},
        {"x.0.port.host", "port x 0 host"}, /* a port may be called host */
        {"x.addresses.host", "addresses x  host"},
        {"rollout.host", ""},
        {"rollout.x.host", ""},
        {"rollout.0.port", ""},
        {"rollout.0.port.", ""},
        {"rollout.addresses.", ""},
        {"rollout.port.http", ""},
        {"rollout..port.http", ""},
        {"rollout.-1.host", ""},
        {"rollout.+1.host", ""},
        {".0.host", ""},
        {"0.host", ""},
        {"rollout.0.ports.http", ""},
        {".", ""},
        {"...", ""},
    };
    static const char *const kinds[] = {"host", "port", "addresses"};
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text out = TEXT_INIT;
        struct peer_word word;
        CHECK_FACT(rows[i].name, peer_is_meant(sv_from(rows[i].name)));
        if (peer_read(sv_from(rows[i].name), &word)) {
            text_puts(&out, kinds[word.kind]);
            text_char(&out, ' ');
            text_put(&out, word.component);
            text_char(&out, ' ');
            text_put(&out, word.rank);
            text_char(&out, ' ');
            text_put(&out, word.port);
        }
        CHECK_TEXT(rows[i].name, text_string(&out), rows[i].read);
        text_release(&out);
    }
    assert_false(peer_is_meant(SV("RANK")));
    assert_false(peer_is_meant(SV("")));
}

TEST(a_variable_has_capitals_digits_and_underscores)
{
    struct arena arena = ARENA_INIT;
    static const struct {
        const char *component, *port, *variable;
    } rows[] = {
        {"rollout", "http", "ROOST_ADDRESSES_ROLLOUT_HTTP"},
        {"a.b-c_d", "dist_init", "ROOST_ADDRESSES_A_B_C_D_DIST_INIT"},
        {"Env2", "H", "ROOST_ADDRESSES_ENV2_H"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_TEXT(rows[i].component,
                   peer_variable(&arena, sv_from(rows[i].component), sv_from(rows[i].port)),
                   rows[i].variable);
    arena_release(&arena);
}

RUN_TESTS(cmocka_unit_test(a_word_is_read_from_the_right),
          cmocka_unit_test(a_variable_has_capitals_digits_and_underscores), )
