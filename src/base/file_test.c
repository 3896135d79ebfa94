/* file_test.c - files are written and read whole, at their place. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

/* A folder with one of everything. */
static char folder[] = "/tmp/roost-file-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_file(const char *name, const char *text)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && file_write(fd, text, strlen(text)));
    close(fd);
}

TEST(a_config_can_name_regular_files_alone)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_non_null(mkdtemp(folder));
    make_file("plain", "text");
    assert_int_equal(symlink("plain", path_of("link")), 0);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path_of("socket"));
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    const struct {
        const char *path, *kind; /* NULL = it is read */
    } rows[] = {
        {strdup(path_of("plain")), NULL},
        {strdup(path_of("link")), NULL},
        {strdup(path_of("pipe")), "a pipe"}, /* nobody writes to it: to open it would wait */
        {strdup(path_of("socket")), "a socket"},
        {strdup(folder), "a folder"},
        {strdup("/dev/null"), "a device"},
        {strdup("/proc/self/environ"), "a file of the kernel"},
        {strdup("/proc/self/status"), "a file of the kernel"},
        {strdup("/sys/kernel/mm/transparent_hugepage/enabled"), "a file of the kernel"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *kind = NULL;
        int fd = file_open_named(rows[i].path, &kind);
        bool is_there = access(rows[i].path, R_OK) == 0;
        if (is_there) { /* /sys may be another one in a container */
            CHECK_FACT(rows[i].path, (fd >= 0) == !rows[i].kind);
            CHECK_TEXT(rows[i].path, kind ? kind : "", rows[i].kind ? rows[i].kind : "");
        }
        if (fd >= 0)
            close(fd);
        free((void *)rows[i].path);
    }
    close(listener);
    static const char *const names[] = {"plain", "link", "pipe", "socket"};
    for (size_t i = 0; i < ROWS(names); i++)
        unlink(path_of(names[i]));
    const char *kind = "";
    assert_int_equal(file_open_named(path_of("plain"), &kind), -1);
    assert_true(errno == ENOENT && !kind);
    rmdir(folder);
}

TEST(faults_of_a_file_that_a_config_names_keep_its_words_back)
{
    static const struct {
        enum roost_code code;
        const char *wanted;
    } rows[] = {
        {ROOST_ERR_SYNTAX, "'/etc/x' is not a list"},
        {ROOST_ERR_SCHEMA, "'/etc/x' is not a list"},
        {ROOST_ERR_LIMIT, "words"},
        {ROOST_ERR_IO, "words"},
        {ROOST_ERR_MEMORY, "words"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error found = {.code = rows[i].code, .line = 3, .message = "words"};
        struct roost_error err;
        struct diag diag = diag_start(NULL, &err);
        file_refuse_content("/etc/x", &found, "a list", "do something", &diag);
        assert_int_equal(err.code, rows[i].code);
        assert_int_equal(err.line, 3);
        assert_string_equal(err.message, rows[i].wanted);
        assert_string_equal(err.hint, "do something");
    }
}

RUN_TESTS(cmocka_unit_test(what_is_written_is_read_again_at_its_place),
          cmocka_unit_test(what_cannot_be_written_or_read_is_told_by_errno),
          cmocka_unit_test(a_config_can_name_regular_files_alone),
          cmocka_unit_test(faults_of_a_file_that_a_config_names_keep_its_words_back))
