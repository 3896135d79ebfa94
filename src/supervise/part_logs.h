/* part_logs.h - how far the log of one stream has been sent. */
#ifndef SUPERVISE_PART_LOGS_H
#define SUPERVISE_PART_LOGS_H

#include <stdint.h>

struct shipped {
    int fd; /* the file, to read; -1 = not opened yet */
    int64_t sent;
    int64_t until; /* how long it was when the round began */
};

#endif
