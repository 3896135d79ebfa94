/* run_lost.c - the exit records that a lost supervisor could not write.
 *
 * Every life has exactly one. The supervisor may have written some that it did not come to tell, so
 * its file is read before anything is added to it. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/local/record.h"
#include "launch/run_internal.h"

enum { RECORDS_MAX = 256 << 20 };

static char *read_records(int fd, size_t *out_len)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size <= 0 || info.st_size > RECORDS_MAX)
        return NULL;
    char *bytes = malloc((size_t)info.st_size);
    ssize_t len = bytes ? pread(fd, bytes, (size_t)info.st_size, 0) : -1;
    *out_len = len > 0 ? (size_t)len : 0;
    return bytes;
}

void run_record_lost(const struct roost_run *run, struct roost_event *event)
{
    const char *component = run->components[event->component].name;
    int fd = openat(run->dir.fd, "records.jsonl", O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    size_t len = 0;
    char *records = read_records(fd, &len);
    struct text line = TEXT_INIT;
    if (!record_find((struct strview){records, len}, component, event)) {
        record_put_life(&line, component, event);
        if (!line.has_failed) /* a disk that is full: the event tells it, the file cannot */
            (void)!write(fd, line.bytes, line.len);
    }
    text_release(&line);
    free(records);
    close(fd);
}
