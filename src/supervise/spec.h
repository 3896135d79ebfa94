/* spec.h - what a supervisor is told to run, as bytes in a memory file.
 *
 * The driver writes it once all words are known; the supervisor maps it and reads it in place, so
 * that ten thousand environments cost their bytes and nothing more. Both are the same program, but
 * every count and length is checked all the same. */
#ifndef SUPERVISE_SPEC_H
#define SUPERVISE_SPEC_H

#include "base/arena.h"
#include "base/text.h"
#include "config/config.h"

/* Strings that stand one behind the other, each with its NUL. */
struct spec_list {
    const char *first;
    uint32_t count;
    uint32_t len; /* bytes of all of them */
};

struct spec_process {
    struct spec_list argv;
    struct spec_list env;
    const char *cwd;        /* "" = the driver's */
    const char *ready_what; /* a file or a line; "" = none */
    int32_t ready_port;     /* 0 = none */
    int32_t first_want;     /* of its port leases */
    int32_t want_count;
    int32_t rank; /* in its component: a part has some of them */
    int32_t part; /* that runs it; 0 on one machine */
};

enum { FORKER_WORDS_MAX = 32 };

struct spec_component {
    const char *name;
    struct spec_list base_env; /* what its processes inherit */
    struct spec_list after;    /* names of components */
    struct spec_list forker;   /* words of its warm program, see forks.h; none = it is executed */
    enum restart_policy restart;
    int32_t restart_max;
    enum ready_kind ready;
    int32_t ready_timeout; /* seconds */
    int32_t first_process;
    int32_t process_count;
};

struct spec {
    struct arena arena;
    void *map;
    size_t map_len;
    struct spec_component *components;
    int32_t component_count;
    struct spec_process *processes; /* of all components */
    int32_t process_count;
};

/* How to reach the nodes of a run, written as four lists in this order. */
struct bridge_spec {
    void *map;
    size_t map_len;
    struct spec_list words; /* of the program */
    struct spec_list env;
    struct spec_list nodes; /* how messages call the node of each part */
    struct spec_list join;  /* one string: JSON that the program is told first */
};

/* --- writing, in the order of the struct --- */

void spec_put_int(struct text *out, int32_t value);
void spec_put_string(struct text *out, struct strview value);
/* NULL-terminated; NULL = empty. */
void spec_put_list(struct text *out, const char *const *strings);

/* --- reading --- */

/* Maps the file and reads it; takes the descriptor. False when it is not a spec, or without
 * memory. */
bool spec_open(struct spec *spec, int fd);
void spec_release(struct spec *spec);

/* The same for a bridge. */
bool bridge_spec_open(struct bridge_spec *spec, int fd);
void bridge_spec_release(struct bridge_spec *spec);

/* The string at `index` of a list, which has so many. */
const char *spec_string(const struct spec_list *list, int32_t index);

/* The string behind this one in a list. */
static inline const char *spec_next(const char *string)
{
    return string + strlen(string) + 1;
}

#endif
