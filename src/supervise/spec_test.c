/* spec_test.c - what is to be run, cut and twisted in every place. */
#include "supervise/spec.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit.h"

static void put_process(struct text *out, const char *program, int32_t first_want)
{
    spec_put_list(out, (const char *const[]){program, "--rank", "0", NULL});
    spec_put_list(out, (const char *const[]){"RANK=0", "EMPTY=", NULL});
    spec_put_string(out, sv_from("/tmp"));
    spec_put_string(out, sv_from(""));
    spec_put_int(out, 20000);
    spec_put_int(out, first_want);
    spec_put_int(out, 1);
    spec_put_int(out, first_want);
    spec_put_int(out, 0);
}

static void put_component(struct text *out, const char *name, int32_t process_count)
{
    spec_put_string(out, sv_from(name));
    spec_put_list(out, (const char *const[]){"PATH=/bin", NULL});
    spec_put_list(out, (const char *const[]){"LONG=value", NULL});
    spec_put_list(out, (const char *const[]){"other", NULL});
    spec_put_list(out, (const char *const[]){"warm", "--up", NULL});
    spec_put_list(out, (const char *const[]){"RANK", "ROOST_PORT_*", NULL});
    spec_put_int(out, SPEC_RESTART_ON_FAILURE);
    spec_put_int(out, 3);
    spec_put_int(out, SPEC_READY_PORT);
    spec_put_int(out, 30);
    spec_put_int(out, 1);
    spec_put_int(out, process_count);
    for (int32_t i = 0; i < process_count; i++)
        put_process(out, "/bin/true", i);
}

static struct text example(void)
{
    struct text out = TEXT_INIT;
    spec_put_int(&out, 2);
    spec_put_int(&out, 3);
    put_component(&out, "actor", 2);
    put_component(&out, "other", 1);
    assert_false(out.has_failed);
    return out;
}

static bool open_bytes(struct spec *spec, const char *bytes, size_t len)
{
    int fd = memfd_create("spec", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    return spec_open(spec, fd);
}

TEST(a_spec_is_read_as_it_was_written)
{
    struct text bytes = example();
    struct spec spec;
    assert_true(open_bytes(&spec, bytes.bytes, bytes.len));
    assert_int_equal(spec.component_count, 2);
    assert_int_equal(spec.process_count, 3);
    assert_string_equal(spec.components[1].name, "other");
    assert_int_equal(spec.components[1].first_process, 2);
    assert_int_equal(spec.components[0].restart, SPEC_RESTART_ON_FAILURE);
    assert_int_equal(spec.components[0].restart_max, 3);
    assert_true(spec.components[0].is_service);
    assert_string_equal(spec_string(&spec.components[0].long_env, 0), "LONG=value");
    assert_string_equal(spec.components[0].after.first, "other");
    assert_int_equal(spec.components[0].forker.count, 2);
    assert_string_equal(spec.components[0].forker.first, "warm");
    assert_int_equal(spec.components[0].own.count, 2);
    assert_string_equal(spec_next(spec.components[0].own.first), "ROOST_PORT_*");
    const struct spec_process *process = &spec.processes[1];
    assert_int_equal(process->argv.count, 3);
    assert_string_equal(spec_next(process->argv.first), "--rank");
    assert_string_equal(spec_next(process->env.first), "EMPTY=");
    assert_string_equal(process->cwd, "/tmp");
    assert_int_equal(process->ready_port, 20000);
    assert_int_equal(process->first_want, 1);
    spec_release(&spec);
    text_release(&bytes);
}

TEST(a_spec_that_is_cut_anywhere_is_refused)
{
    struct text bytes = example();
    struct spec spec;
    for (size_t len = 0; len < bytes.len; len++)
        assert_false(open_bytes(&spec, bytes.bytes, len));
    text_char(&bytes, 'x'); /* and one with something behind it */
    assert_false(open_bytes(&spec, bytes.bytes, bytes.len));
    text_release(&bytes);
}

TEST(no_changed_byte_leads_out_of_a_spec)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct text bytes = example();
    for (size_t at = 0; at < bytes.len; at++) {
        char old = bytes.bytes[at];
        for (size_t i = 0; i < ROWS(values); i++) {
            struct spec spec;
            bytes.bytes[at] = (char)values[i];
            if (!open_bytes(&spec, bytes.bytes, bytes.len))
                continue;
            for (int32_t p = 0; p < spec.process_count; p++)
                assert_true(spec.processes[p].argv.count > 0 && spec.processes[p].first_want >= 0);
            spec_release(&spec);
        }
        bytes.bytes[at] = old;
    }
    text_release(&bytes);
}

RUN_TESTS(cmocka_unit_test(a_spec_is_read_as_it_was_written),
          cmocka_unit_test(a_spec_that_is_cut_anywhere_is_refused),
          cmocka_unit_test(no_changed_byte_leads_out_of_a_spec))
