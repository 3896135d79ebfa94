/* json_dump.c - shows what the JSON reader made of a document, for tests/python/test_json_reader.py.
 *
 *     json_dump FILE      prints the document again, one line; exit 3 with a message when refused
 *     json_dump --serve   many documents: reads "LENGTH\n" and that many bytes from stdin, answers each
 *                         with one line, "ok DOCUMENT" or "CODE LINE:COLUMN: MESSAGE" */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "json/json_writer.h"

enum { EXIT_USAGE = 2, EXIT_REFUSED = 3, EXIT_SYSTEM = 5 };

static ssize_t read_file(void *ctx, char *buf, size_t cap)
{
    return read(*(int *)ctx, buf, cap);
}

static bool is_end(enum json_kind kind)
{
    return kind == JSON_OBJECT_END || kind == JSON_ARRAY_END;
}

static void put_event(struct text *out, struct json_event event)
{
    static const char *const marks[] = {
        [JSON_OBJECT] = "{",  [JSON_OBJECT_END] = "}", [JSON_ARRAY] = "[",   [JSON_ARRAY_END] = "]",
        [JSON_TRUE] = "true", [JSON_FALSE] = "false",  [JSON_NULL] = "null",
    };
    if (event.kind == JSON_KEY || event.kind == JSON_STRING)
        text_json(out, event.text);
    else if (event.kind == JSON_NUMBER)
        text_put(out, event.text);
    else
        text_puts(out, marks[event.kind]);
}

/* The document in `out`; false when it was refused. */
static bool dump(struct json_reader *reader, struct text *out, struct diag *diag)
{
    enum json_kind before = JSON_KEY; /* no comma before the first event */
    struct json_event event;
    while ((event = json_next(reader, diag)).kind < JSON_END) {
        bool is_first = before == JSON_KEY || before == JSON_OBJECT || before == JSON_ARRAY;
        if (!is_first && !is_end(event.kind))
            text_char(out, ',');
        put_event(out, event);
        if (event.kind == JSON_KEY)
            text_char(out, ':');
        before = event.kind;
    }
    return event.kind == JSON_END;
}

static int dump_file(const char *path)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct text out = TEXT_INIT;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct json_reader *reader = fd < 0 ? NULL : json_reader_new(path, read_file, &fd, NULL);
    if (!reader) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return EXIT_SYSTEM;
    }
    bool is_good = dump(reader, &out, &diag);
    if (is_good)
        printf("%s\n", text_string(&out));
    else
        fprintf(stderr, "%s:%d:%d: %s\n", err.file, err.line, err.column, err.message);
    json_reader_free(reader);
    text_release(&out);
    close(fd);
    return is_good ? EXIT_SUCCESS : EXIT_REFUSED;
}

static void answer(struct strview document)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct text out = TEXT_INIT;
    struct json_reader *reader = json_reader_from_text("stdin", document, NULL);
    if (!reader)
        exit(EXIT_SYSTEM);
    if (dump(reader, &out, &diag))
        printf("ok %s\n", text_string(&out));
    else
        printf("%s %d:%d: %s\n", roost_code_word(err.code), err.line, err.column, err.message);
    fflush(stdout);
    json_reader_free(reader);
    text_release(&out);
}

static int serve(void)
{
    size_t len;
    while (scanf("%zu", &len) == 1 && getchar() == '\n') {
        /* Of exactly this size, so that a sanitizer sees a read past its end. */
        char *document = malloc(len ? len : 1);
        if (!document || fread(document, 1, len, stdin) != len)
            return EXIT_SYSTEM;
        answer((struct strview){document, len});
        free(document);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--serve") == 0)
        return serve();
    if (argc == 2)
        return dump_file(argv[1]);
    fputs("usage: json_dump FILE | --serve\n", stderr);
    return EXIT_USAGE;
}
