/* oom_test.c - counters of kills for want of memory, as the kernel writes them and as nobody does. */
#include "supervise/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit.h"

static void put(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

TEST(kills_for_want_of_memory_are_counted_by_the_group_or_else_by_the_machine)
{
    char path[] = "/tmp/roost-oom-XXXXXX";
    assert_non_null(mkdtemp(path));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(oom_count(dir, path), -1);
    const struct {
        const char *text;
        int64_t count;
    } rows[] = {
        {"pgfault 12\noom_kill 3\ndrop_pagecache 0\n", 3},
        {"pgfault 12\noom_kill 3", 3},
        {"nr_oom_kill 7\n", -1},
        {"a 1\noom_kill x\n", -1},
        {"", -1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        put(dir, "vmstat", rows[i].text);
        CHECK_FACT(rows[i].text, oom_count(-1, path) == rows[i].count);
        CHECK_FACT(rows[i].text, oom_count(dir, path) == rows[i].count);
    }
    put(dir, "vmstat", rows[0].text);
    put(dir, "memory.events", "low 0\nhigh 0\nmax 0\noom 9\noom_kill 5\noom_group_kill 0\n");
    assert_int_equal(oom_count(dir, path), 5);
    assert_int_equal(oom_count(-1, path), 3);
    unlinkat(dir, "vmstat", 0);
    unlinkat(dir, "memory.events", 0);
    close(dir);
    rmdir(path);
}

RUN_TESTS(
    cmocka_unit_test(kills_for_want_of_memory_are_counted_by_the_group_or_else_by_the_machine))
