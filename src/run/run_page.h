/* run_page.h - reads the files that describe a run: its page, and the last line of its records. */
#ifndef RUN_RUN_PAGE_H
#define RUN_RUN_PAGE_H

#include "run/runs.h"

/* An entry that has only the id and the path of a run. Its texts are copied into the arena of the list; without
 * memory a text is empty. */
struct run_entry run_page_empty(struct run_list *list, const char *id, const char *path);

/* Fills in the fields that the page has. A field that is missing or malformed keeps its value. */
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
