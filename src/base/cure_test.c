/* cure_test.c - every cure, and no cure that does not fit its errno. */
#include "base/cure.h"

#include <errno.h>

#include "tests/unit.h"

static const struct {
    int error;
    const char *place, *descriptor, *null;
} cures[] = {
#define LIMIT "raise the limit of open files: ulimit -n"
#define MACHINE "raise the machine's limit of open files: sysctl fs.file-max"
#define MEMORY "free some memory"
#define NODE "let this system have it: mknod -m 666 /dev/null c 1 3"
    {EMFILE, LIMIT, LIMIT, LIMIT},
    {ENFILE, MACHINE, MACHINE, MACHINE},
    {ENOMEM, MEMORY, MEMORY, MEMORY},
    {ENOBUFS, MEMORY, MEMORY, MEMORY},
    {ENOSPC, "free some space there, or set X", "", NODE},
    {EDQUOT, "free some space there, or set X", "", NODE},
    {EISDIR, "remove what stands in its place, or set X", "", NODE},
    {ENOTDIR, "remove what stands in its place, or set X", "", NODE},
    {ENOTEMPTY, "remove what stands in its place, or set X", "", NODE},
    {EEXIST, "remove what stands in its place, or set X", "", NODE},
    {EADDRINUSE, "remove what stands in its place, or set X", "", NODE},
    {ELOOP, "remove what stands in its place, or set X", "", NODE},
    {EACCES, "choose a directory that you can write: set X", "", NODE},
    {EPERM, "choose a directory that you can write: set X", "", NODE},
    {EROFS, "choose a directory that you can write: set X", "", NODE},
    {ENOENT, "set X", "", NODE},
    {ENXIO, "set X", "", NODE},
    {EIO, "set X", "", NODE},
};

TEST(every_errno_has_its_cure)
{
    for (size_t i = 0; i < sizeof cures / sizeof *cures; i++) {
        assert_string_equal(cure_of_place(cures[i].error, "set X").text, cures[i].place);
        assert_string_equal(cure_of_descriptor(cures[i].error).text, cures[i].descriptor);
        assert_string_equal(cure_of_null(cures[i].error).text, cures[i].null);
    }
}

RUN_TESTS(cmocka_unit_test(every_errno_has_its_cure))
