/* reader.h - reading typed values out of the tree, one way for all sections.
 *
 * Every function resolves interpolations first, reports what is wrong at the value's own place, and
 * returns whether the value is good. A missing value (`???`) is an error of its own. */
#ifndef CONFIG_READER_H
#define CONFIG_READER_H

#include "config/config.h"

struct reader {
    struct roost_config *config;
    struct arena *arena;
    struct diag *diag;
    struct resolver resolver;
    bool is_composed;     /* see roost_config_options */
    bool leaves_defaults; /* a `defaults` list is not followed */
    size_t cost;          /* of all that was read: see read_value */
    struct slip {
        const struct node *mapping;
        const char *meant;
    } slips
        [16]; /* the last unknown keys that look like a known one: that one is not missing, too */
    size_t slip_count;
};

/* A list of the keys a mapping may have. */
#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The value a node stands for; NULL after it reported why. What is reached again and again, through aliases
 * and interpolations, counts every time: a small file must not become a long job. */
const struct node *read_value(struct reader *reader, struct node *node);

/* The value of `key` in the mapping; NULL when it is absent (nothing is reported), null or in error. */
const struct node *read_key(struct reader *reader, const struct node *mapping, const char *key);

/* Reports it when the node is not a mapping (sequence). `what` is the subject of the sentence. */
bool want_mapping(struct reader *reader, const struct node *node, const char *what);
bool want_sequence(struct reader *reader, const struct node *node, const char *what);

/* Reports every key of the mapping that is not in `known`, with the nearest that is. `what` names the
 * mapping: "node group", "cluster". */
bool want_keys(struct reader *reader, const struct node *mapping, const char *const *known,
               const char *what);

/* The two halves of want_keys, for a caller that has a better cure to offer. */
bool is_known_key(const struct node *key, const char *const *known);
void say_unknown(struct reader *reader, const struct node *key, const char *what);

/* Adds the cure to what was just reported of `text`: the nearest of the known words, or all of them. */
void hint_known(struct reader *reader, const struct node *mapping, struct strview text,
                const char *const *known);

/* Reports it when the node holds a secret: for texts that plans, logs or folders show. */
bool want_open(struct reader *reader, const struct node *node, const char *what);

/* Scalars. On success *out is set. A word can be shown anywhere, so it must not hold a secret; a word that
 * only processes get may hold one, and is shown by word_shown(). */
bool read_word(struct reader *reader, const struct node *node, const char *what, struct word *out);
bool read_process_word(struct reader *reader, const struct node *node, const char *what,
                       struct word *out);
bool read_int(struct reader *reader, const struct node *node, const char *what, int32_t min,
              int32_t max, int32_t *out);
bool read_bool(struct reader *reader, const struct node *node, const char *what, bool *out);

/* A NUL-terminated copy in the config's arena; NULL after it reported that there is no memory. */
const char *read_copy(struct reader *reader, struct strview text);

/* Zeroed memory from the config's arena; NULL after it reported that there is none. */
#define read_array(reader, T, count)                                                               \
    ((T *)read_memory((reader), arena_zeroed((reader)->arena, T, (count) > 0 ? (count) : 1)))
void *read_memory(struct reader *reader, void *memory);

#endif
