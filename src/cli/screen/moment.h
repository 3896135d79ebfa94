/* moment.h - points in time as people read and write them, in the time zone of this process. */
#ifndef CLI_SCREEN_MOMENT_H
#define CLI_SCREEN_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strview.h"

enum { MOMENT_MAX = 40 };

/* Writes "2026-11-18T07:22:20.123+01:00", which moment_parse reads; returns its length. `ms` is since 1970,
 * from 0 to the end of the year 9999. */
size_t moment_put(char out[MOMENT_MAX], int64_t ms);

/* Reads how long ago ("10m", base/duration.h), or a time:
 *
 *     2026-11-18T07:22:20.123+01:00     T may be a blank; seconds, their fraction and the zone may be missing
 *     2026-11-18                        the start of that day
 *     07:22, 07:22:20                   today
 *
 * The zone is Z, +hh:mm or -hh:mm; without one, it is this process's. False when the text is none of these. */
bool moment_parse(struct strview text, int64_t now_ms, int64_t *out_ms);

#endif
