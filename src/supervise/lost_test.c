/* lost_test.c - after a supervisor that was killed, every life has exactly one record. */
#include "supervise/lost.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/record.h"
#include "tests/unit.h"

struct folder {
    char path[32];
    int fd, slots;
};

static void begin(struct folder *folder, int32_t process_count)
{
    snprintf(folder->path, sizeof folder->path, "/tmp/roost-lost-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY);
    assert_true(folder->fd >= 0);
    folder->slots = lost_open(folder->fd, process_count);
    assert_true(folder->slots >= 0);
}

static void end(struct folder *folder)
{
    lost_forget(folder->fd);
    (void)unlinkat(folder->fd, "records.jsonl", 0);
    close(folder->slots);
    close(folder->fd);
    assert_int_equal(rmdir(folder->path), 0);
}

static void begins(const struct folder *folder, int32_t index, const char *component, int32_t rank,
                   int32_t life, int32_t pid)
{
    struct roost_event event = {.rank = rank, .life = life, .pid = pid, .started_at = 2500000000};
    lost_note(folder->slots, index, component, &event);
}

static void append(const struct folder *folder, const char *bytes, size_t len)
{
    int fd = openat(folder->fd, "records.jsonl", O_WRONLY | O_APPEND | O_CREAT, 0600);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    close(fd);
}

static void ends(const struct folder *folder, const char *component, int32_t rank, int32_t life,
                 int32_t pid)
{
    struct text line = TEXT_INIT;
    struct roost_event event = {.rank = rank, .life = life, .pid = pid, .exit_code = 0};
    record_put_life(&line, component, &event);
    append(folder, line.bytes, line.len);
    text_release(&line);
}

/* Each record as "component/rank life pid reason", in the order of the file. */
static const char *read_back(const struct folder *folder)
{
    static char out[1024];
    char line[512];
    size_t len = 0;
    out[0] = '\0';
    FILE *file = fdopen(openat(folder->fd, "records.jsonl", O_RDONLY), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        struct record_name name;
        if (!record_read_name((struct strview){line, strlen(line)}, &name)) {
            len += (size_t)snprintf(out + len, sizeof out - len, "? %s", line);
            continue;
        }
        const char *reason = strstr(line, "\"reason\":\"") + sizeof "\"reason\":\"" - 1;
        len += (size_t)snprintf(out + len, sizeof out - len, "%s/%d %d %d %.*s\n", name.component,
                                name.rank, name.life, name.pid, (int)strcspn(reason, "\""), reason);
        assert_true(strchr(line, '\n') && line[strlen(line) - 2] == '}');
    }
    fclose(file);
    return out;
}

TEST(lives_without_a_record_are_lost_and_the_others_are_left_alone)
{
    struct folder folder;
    begin(&folder, 7);
    begins(&folder, 0, "actor", 0, 1, 100);
    begins(&folder, 1, "actor", 1, 1, 101);
    begins(&folder, 3, "env", 0, 1, 103); /* its neighbour has not begun */
    begins(&folder, 5, "env", 2, 1, 0);   /* just being started */
    begins(&folder, 6, "env", 3, 1, 0);
    begins(&folder, 6, "env", 3, 0, 0); /* in vain */
    ends(&folder, "actor", 0, 1, 100);
    begins(&folder, 0, "actor", 0, 2, 110);
    ends(&folder, "env", 0, 1, 103);
    lost_record(folder.fd, LOST_END_OPEN);
    assert_string_equal(read_back(&folder), "actor/0 1 100 exited\n"
                                            "env/0 1 103 exited\n"
                                            "actor/0 2 110 lost\n"
                                            "actor/1 1 101 lost\n"
                                            "env/2 1 0 lost\n");
    end(&folder);
}

TEST(a_lost_life_is_recorded_once_however_often_it_is_looked_for)
{
    struct folder folder;
    begin(&folder, 1);
    begins(&folder, 0, "actor", 0, 1, 100);
    append(&folder, "", 0);
    lost_record(folder.fd, LOST_END_OPEN);
    lost_record(folder.fd, LOST_END_OPEN);
    assert_string_equal(read_back(&folder), "actor/0 1 100 lost\n");
    /* Also by one that had opened it when the other forgot it: the slots, once more. */
    close(folder.slots);
    folder.slots = lost_open(folder.fd, 1);
    begins(&folder, 0, "actor", 0, 1, 100);
    lost_record(folder.fd, LOST_END_OPEN);
    assert_string_equal(read_back(&folder), "actor/0 1 100 lost\n");
    end(&folder);
}

TEST(a_run_gets_one_end_whoever_writes_it_first)
{
    struct folder folder;
    begin(&folder, 1);
    append(&folder, "", 0);
    begins(&folder, 0, "actor", 0, 1, 100);
    lost_record(folder.fd, LOST_END_CRASHED);
    lost_record(folder.fd, LOST_END_FAILED);
    lost_record(folder.fd, LOST_END_CRASHED);
    assert_string_equal(read_back(&folder), "actor/0 1 100 lost\n"
                                            "? {\"end\":true,\"failed\":true,\"crashed\":true}\n");
    end(&folder);
}

TEST(several_who_look_at_once_write_it_once)
{
    enum { LOOKERS = 8, LIVES = 40 };
    struct folder folder;
    begin(&folder, LIVES);
    for (int32_t i = 0; i < LIVES; i++)
        begins(&folder, i, "a", i, 1, 100 + i);
    append(&folder, "", 0);
    for (int i = 0; i < LOOKERS; i++)
        if (fork() == 0) {
            lost_record(folder.fd, LOST_END_OPEN);
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
    const char *got = read_back(&folder);
    int lines = 0;
    for (const char *at = got; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, LIVES);
    end(&folder);
}

TEST(a_record_that_was_cut_short_is_written_anew)
{
    struct text line = TEXT_INIT;
    struct roost_event event = {.rank = 0, .life = 1, .pid = 100, .exit_code = 0};
    record_put_life(&line, "actor", &event);
    for (size_t cut = 0; cut < line.len; cut++) {
        struct folder folder;
        begin(&folder, 2);
        begins(&folder, 0, "actor", 0, 1, 100);
        begins(&folder, 1, "actor", 1, 1, 101);
        ends(&folder, "actor", 1, 1, 101);
        append(&folder, line.bytes, cut);
        lost_record(folder.fd, LOST_END_OPEN);
        assert_string_equal(read_back(&folder), "actor/1 1 101 exited\nactor/0 1 100 lost\n");
        end(&folder);
    }
    text_release(&line);
}

TEST(without_records_or_without_slots_nothing_is_written)
{
    struct folder folder;
    begin(&folder, 1);
    begins(&folder, 0, "actor", 0, 1, 100);
    lost_record(folder.fd, LOST_END_OPEN); /* the run had not begun: it has no file of records */
    assert_int_equal(faccessat(folder.fd, "records.jsonl", F_OK, 0), -1);
    lost_forget(folder.fd);
    append(&folder, "{\"end\":true}\n", 13);
    lost_record(folder.fd, LOST_END_OPEN);
    assert_string_equal(read_back(&folder), "? {\"end\":true}\n");
    end(&folder);
}

RUN_TESTS(cmocka_unit_test(lives_without_a_record_are_lost_and_the_others_are_left_alone),
          cmocka_unit_test(a_lost_life_is_recorded_once_however_often_it_is_looked_for),
          cmocka_unit_test(a_run_gets_one_end_whoever_writes_it_first),
          cmocka_unit_test(several_who_look_at_once_write_it_once),
          cmocka_unit_test(a_record_that_was_cut_short_is_written_anew),
          cmocka_unit_test(without_records_or_without_slots_nothing_is_written))
