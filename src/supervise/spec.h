/* spec.h - what a supervisor or an agent is to run, as bytes in a memory file.
 *
 * The driver writes it (run/spec_write.c) once every word is known. The receiver maps it and reads it
 * in place, so that ten thousand environments cost their bytes and nothing more. Both are the same
 * program, but every count and length is checked all the same. */
#ifndef SUPERVISE_SPEC_H
#define SUPERVISE_SPEC_H

#include "base/arena.h"
#include "base/text.h"

/* Strings one after the other, each with its NUL. */
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
    int32_t rank;  /* in its component: an agent has some of them */
    int32_t agent; /* that runs it; 0 on one machine */
};

enum { FORKER_WORDS_MAX = 32 };

/* Whether a worker that has ended is started again. */
enum spec_restart { SPEC_RESTART_NEVER, SPEC_RESTART_ALWAYS, SPEC_RESTART_ON_FAILURE };

/* How a worker shows that it is ready. */
enum spec_ready { SPEC_READY_AT_ONCE, SPEC_READY_PORT, SPEC_READY_FILE, SPEC_READY_LINE };

struct spec_component {
    const char *name;
    struct spec_list base_env; /* variables that its processes inherit or share */
    struct spec_list long_env; /* values too long for a variable, see start.h */
    struct spec_list after;    /* names of components */
    struct spec_list forker;   /* words of its warm program, see forks.h; empty = no forker */
    /* Patterns (sv_matches) of the variables that differ between processes; only with a forker. */
    struct spec_list own;
    enum spec_restart restart;
    int32_t restart_max;
    enum spec_ready ready;
    int32_t ready_timeout; /* seconds */
    bool is_service;       /* it ends with the job, see services.c */
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

/* How to start the bridge to the nodes of a run, written as four lists in this order. */
struct bridge_spec {
    void *map;
    size_t map_len;
    struct spec_list words; /* of the program */
    struct spec_list env;
    struct spec_list nodes; /* names of the nodes in messages, one for each agent */
    struct spec_list join;  /* one string: the JSON of the first message to the bridge */
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

/* The string at `index` of a list; the list must have that many. */
const char *spec_string(const struct spec_list *list, int32_t index);

/* The string after this one in a list. */
static inline const char *spec_next(const char *string)
{
    return string + strlen(string) + 1;
}

#endif
