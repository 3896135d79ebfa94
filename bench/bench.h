/* bench.h - what every bench needs: a clock and a median. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdlib.h>
#include <time.h>

static inline double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts the samples. */
static inline double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, by_value);
    return samples[count / 2];
}

#endif
