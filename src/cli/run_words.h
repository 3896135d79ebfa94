/* run_words.h - ages and sizes as tables of runs show them. */
#ifndef CLI_RUN_WORDS_H
#define CLI_RUN_WORDS_H

#include "run/runs.h"

struct run_word {
    char text[32];
};

/* "12s", "3m", "5h", "41d"; from two of a unit on. */
struct run_word run_age(int64_t seconds);

/* "0", "512", "1.2K", "34M", "5.0G": bytes, in units of 1024. */
struct run_word run_size(int64_t bytes);

/* What tells a run from others: its config, or the names of its groups. At most `width` columns (0 = 80);
 * what is too long loses its beginning. */
struct quote run_what(const char *config, const char *components, int width);

#endif
