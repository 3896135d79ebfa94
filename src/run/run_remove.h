/* run_remove.h - what roost made in the directory of a run: measures it, and removes it.
 *
 *     run.json records.jsonl .<file>      files of the run; the page goes last
 *     .values/<name>                      values too long for a variable
 *     <component>/.<file>                 files of a component
 *     <component>/<rank>/{stdout,stderr}.log
 *
 * Everything else is foreign and stays. Every name is opened and removed below the descriptor of its
 * directory, and no link is followed; a directory of another user or another file system is foreign. */
#ifndef RUN_RUN_REMOVE_H
#define RUN_RUN_REMOVE_H

#include <stdbool.h>
#include <stdint.h>

struct run_contents {
    int64_t bytes; /* on disk */
    char foreign
        [256]; /* the first name that is not roost's, from the run's directory on; "" = none */
    char failed[256]; /* what could not be removed and why; "" = nothing */
};

/* Looks at everything in the directory. */
void run_measure(int dir, struct run_contents *out);

/* Removes all that is roost's; what stays is in `out`. True when the directory is empty now. */
bool run_empty(int dir, struct run_contents *out);

#endif
