/* file_test.c - files are written and read whole, at their place. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit.h"

TEST(what_is_written_is_read_again_at_its_place)
{
    char bytes[16] = {0};
    int fd = memfd_create("file", MFD_CLOEXEC);
    assert_true(file_write(fd, "hello", 5) && file_write(fd, " you", 4));
    assert_true(file_write_at(fd, "J", 1, 0));
    assert_true(file_write(fd, "", 0));
    assert_int_equal(file_read_at(fd, bytes, 5, 0), 5);
    assert_string_equal(bytes, "Jello");
    assert_int_equal(file_read_at(fd, bytes, sizeof bytes, 6), 3); /* less only at the end */
    assert_int_equal(file_read_at(fd, bytes, sizeof bytes, 9), 0);
    assert_int_equal(file_read_at(fd, bytes, sizeof bytes, 90), 0);
    close(fd);
}

TEST(what_cannot_be_written_or_read_is_told_by_errno)
{
    char byte;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_false(file_write(full, "x", 1));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(file_read_at(full, &byte, 1, 0), -1);
    assert_int_equal(errno, EBADF);
    close(full);
}

RUN_TESTS(cmocka_unit_test(what_is_written_is_read_again_at_its_place),
          cmocka_unit_test(what_cannot_be_written_or_read_is_told_by_errno))
