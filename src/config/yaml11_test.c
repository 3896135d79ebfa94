/* yaml11_test.c - what OmegaConf makes of plain scalars; tests/python compares with it. */
#include "config/yaml11.h"

#include "tests/tree_unit.h"

TEST(plain_scalars_are_typed_as_omegaconf_types_them)
{
    static const struct {
        const char *text;
        enum yaml11_kind kind;
        const char *as_text;
    } rows[] = {
        {"", YAML11_NULL, "None"},
        {"~", YAML11_NULL, "None"},
        {"null", YAML11_NULL, "None"},
        {"nULL", YAML11_TEXT, ""},
        {"yes", YAML11_BOOL, "True"},
        {"On", YAML11_BOOL, "True"},
        {"TRUE", YAML11_BOOL, "True"},
        {"off", YAML11_BOOL, "False"},
        {"No", YAML11_BOOL, "False"},
        {"y", YAML11_TEXT, ""},
        {"yEs", YAML11_TEXT, ""},
        {"0", YAML11_INT, "0"},
        {"7", YAML11_INT, "7"},
        {"-7", YAML11_INT, "-7"},
        {"+7", YAML11_INT, "7"},
        {"007", YAML11_INT, "7"},
        {"010", YAML11_INT, "8"},
        {"08", YAML11_TEXT, ""},
        {"0x10", YAML11_INT, "16"},
        {"-0xFf", YAML11_INT, "-255"},
        {"0b101", YAML11_INT, "5"},
        {"0x", YAML11_TEXT, ""},
        {"1_0", YAML11_INT, "10"},
        {"1:0", YAML11_INT, "60"},
        {"1:30:00", YAML11_INT, "5400"},
        {"-1:0", YAML11_INT, "-60"},
        {"0:0", YAML11_TEXT, ""},
        {"1:60", YAML11_TEXT, ""},
        {"1:", YAML11_TEXT, ""},
        {"2:0-1", YAML11_TEXT, ""},
        {"1:0,2:1", YAML11_TEXT, ""},
        {"2001-12-14", YAML11_TEXT, ""},
        {"0-3", YAML11_TEXT, ""},
        {"9223372036854775807", YAML11_INT, "9223372036854775807"},
        {"9223372036854775808", YAML11_INT, ""},
        {"-9223372036854775807", YAML11_INT, "-9223372036854775807"},
        {"-9223372036854775808", YAML11_INT, ""},
        {"-0x8000000000000000", YAML11_INT, ""},
        {"99999999999999999999:0", YAML11_INT, ""},
        {"1.5", YAML11_FLOAT, ""},
        {".5", YAML11_FLOAT, ""},
        {"1.", YAML11_FLOAT, ""},
        {"1e3", YAML11_FLOAT, ""},
        {"-1.5E+3", YAML11_FLOAT, ""},
        {".inf", YAML11_FLOAT, ""},
        {"-.INF", YAML11_FLOAT, ""},
        {".nan", YAML11_FLOAT, ""},
        {".", YAML11_TEXT, ""},
        {"e3", YAML11_TEXT, ""},
        {"1e", YAML11_TEXT, ""},
        {"-", YAML11_TEXT, ""},
        {"1.2.3", YAML11_TEXT, ""},
        {"actor", YAML11_TEXT, ""},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct yaml11 reading = yaml11_read(sv_from(rows[i].text));
        CHECK_FACT(rows[i].text, reading.kind == rows[i].kind);
        CHECK_TEXT(rows[i].text, reading.as_text, rows[i].as_text);
    }
}

/* The warning about the value of `a`, or "". */
static void check_warning(const char *yaml, void (*warn)(const struct node *, struct diag *),
                          const char *phrase)
{
    struct loaded loaded;
    load_text(&loaded, sv_from(yaml));
    warn(node_get(loaded.root, SV("a")), &loaded.diag);
    CHECK_FACT(yaml, roost_report_errors(loaded.report) == 0);
    CHECK_FACT(yaml, roost_report_count(loaded.report) == (phrase[0] != '\0'));
    if (phrase[0]) {
        const struct roost_diagnostic *it = roost_report_at(loaded.report, 0);
        CHECK_FACT(yaml, it->warning == ROOST_WARN_READING);
        CHECK_SAYS(yaml, it->message, phrase);
    }
    load_release(&loaded);
}

TEST(a_scalar_that_others_read_otherwise_is_warned_about)
{
    static const char *const rows[][2] = {
        {"a: yes", "'yes' is True"},
        {"a: null", "'null' is None"},
        {"a: 1:0", "'1:0' is 60"},
        {"a: 010", "'010' is 8"},
        {"a: 1.50", "is a number"},
        {"a: +7", "'+7' is 7"},
        {"a: 7", ""},
        {"a: -7", ""},
        {"a: 'yes'", ""},
        {"a: \"010\"", ""},
        {"a: actor", ""},
        {"a: 0-3", ""},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_warning(rows[i][0], yaml11_warn, rows[i][1]);
}

TEST(a_number_is_warned_about_only_when_its_value_differs)
{
    static const char *const rows[][2] = {
        {"a: 007", ""},   {"a: +7", ""}, {"a: 010", "'010' is 8"}, {"a: 1:0", "'1:0' is 60"},
        {"a: '010'", ""}, {"a: 8", ""},  {"a: all", ""},           {"a: 0-3", ""},
        {"a: 2:0-1", ""},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_warning(rows[i][0], yaml11_warn_number, rows[i][1]);
}

RUN_TESTS(cmocka_unit_test(plain_scalars_are_typed_as_omegaconf_types_them),
          cmocka_unit_test(a_scalar_that_others_read_otherwise_is_warned_about),
          cmocka_unit_test(a_number_is_warned_about_only_when_its_value_differs))
