/* run_lost.c - the exit records that a lost supervisor had written and did not come to tell. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "run/run_internal.h"
#include "supervise/record.h"

enum { RECORDS_MAX = 256 << 20 };

static char *read_records(int fd, size_t *out_len)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size <= 0 || info.st_size > RECORDS_MAX)
        return NULL;
    char *bytes = malloc((size_t)info.st_size);
    ssize_t len = bytes ? file_read_at(fd, bytes, (size_t)info.st_size, 0) : -1;
    *out_len = len > 0 ? (size_t)len : 0;
    return bytes;
}

void run_find_record(const struct roost_run *run, struct roost_event *event)
{
    const char *component = run->components[event->component].name;
    int fd = openat(run->dir.fd, RUN_RECORDS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    size_t len = 0;
    char *records = read_records(fd, &len);
    (void)record_find((struct strview){records, len}, component, event);
    free(records);
    close(fd);
}
