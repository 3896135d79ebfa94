/* run_page.h - what the files of a run tell of it: its page, and the last line of its records. */
#ifndef RUN_RUN_PAGE_H
#define RUN_RUN_PAGE_H

#include "run/runs.h"

/* A run of which nothing is known but where it is. Its texts are copied into the arena of the list; a text
 * that finds no memory is empty. */
struct run_entry run_page_empty(struct run_list *list, const char *id, const char *path);

/* Fills in what the page says. What is missing or is not as it was written is left as it is. */
void run_page_read(struct run_list *list, struct strview page, struct run_entry *entry);

/* How a run ended. */
struct run_end {
    bool is_known; /* its end is recorded; false = it goes on, or crashed and was not found yet */
    enum run_state state;
    int32_t status; /* -1 = not recorded */
    int64_t ended;  /* seconds since 1970, 0 = not known */
};

/* Reads the last line of the records, by a descriptor of the run's directory. */
struct run_end run_end_read(int dir);
void run_end_put(const struct run_end *end, struct run_entry *entry);

#endif
