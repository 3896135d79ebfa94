/* records.c - the supervisor's file of exit records: one line for each life, and one for the run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cure.h"
#include "base/file.h"
#include "supervise/lost.h"
#include "supervise/record.h"
#include "supervise/supervisor.h"

/* The file has room for a record of every process from the start, so that a disk that workers fill up later
 * does not prevent the records of their ends. */
int records_open(struct supervisor *supervisor)
{
    enum { RECORD_LEN = 256 };
    struct watcher *watcher = &supervisor->watcher;
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    off_t room = (off_t)RECORD_LEN * (watcher->setup.process_count + 1);
    supervisor->records = openat(watcher->run_dir, RUN_RECORDS, flags, 0600);
    if (supervisor->records >= 0 &&
        (fallocate(supervisor->records, FALLOC_FL_KEEP_SIZE, 0, room) == 0 ||
         (errno != ENOSPC && errno != EDQUOT))) {
        watcher->lives = lost_open(watcher->run_dir, watcher->setup.process_count);
        if (watcher->lives >= 0)
            return 0;
    }
    char message[160];
    int error = errno;
    snprintf(message, sizeof message, "cannot make the file of exit records ('records.jsonl'): %s",
             strerror(error));
    return watcher_refuse_with(watcher, ROOST_ERR_IO, message,
                               cure_of_place(error, "choose another roost.logs.dir").text);
}

void records_add(struct supervisor *supervisor, const struct roost_event *event)
{
    struct text line = TEXT_INIT;
    if (event->kind == ROOST_EVENT_FINISHED)
        record_put_end(&line, supervisor->has_failed, event);
    else
        record_put_life(&line, supervisor->watcher.spec.components[event->component].name, event);
    const char *bytes = text_string(&line);
    /* A line is whole or, on a full disk, not there. */
    if (bytes && !file_write(supervisor->records, bytes, line.len)) {
        int error = errno;
        (void)!ftruncate(supervisor->records, supervisor->records_len);
        outbox_report(&supervisor->watcher.outbox, ROOST_EVENT_PROBLEM, NULL, ROOST_ERR_IO,
                      "cannot write the exit record of a process: %s", strerror(error));
    } else if (bytes) {
        supervisor->records_len += (int64_t)line.len;
    }
    text_release(&line);
}
