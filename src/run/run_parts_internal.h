/* run_parts_internal.h - a run on its way to the nodes of a Ray cluster; shared by run_parts.c (the steps) and
 * run_parts_ports.c (ports of other nodes). */
#ifndef RUN_RUN_PARTS_INTERNAL_H
#define RUN_RUN_PARTS_INTERNAL_H

#include <limits.h>

#include <roost/part.h>

#include "agent/ray_join.h"
#include "run/run_birth.h"

struct parts_birth {
    struct birth *birth;
    struct arena *arena;
    int32_t count;
    int32_t *node_of_part;
    int32_t *part_of_node; /* -1 = none */
    const char **words;    /* [count + 1]: "node 2 (10.0.0.3)" */
    struct ray_joined joined;
    size_t *taken;          /* [count]: ports that the part has told */
    int64_t deadline;       /* for the next word of a part */
    struct digest *digests; /* of all processes: what they are to be executed with */
    char home[PATH_MAX], config_dir[PATH_MAX];
};

/* How long nodes that have come may take to answer: as long as they may take to come, ten seconds at
 * least. */
int64_t parts_answer_ms(const struct birth *birth);

/* The next message of this type, from a part or the bridge (part -1); false after saying why. */
bool parts_expect(struct parts_birth *it, int32_t type, struct roost_part_head *head,
                  const char **out_body, size_t *out_len);

/* A memory file of a text, which it releases; -1 with errno. */
int parts_file_of(struct text *text);

/* --- run_parts_ports.c; each is false after saying why --- */

/* Tells each part what the run is and which ports its processes want. */
bool parts_send_setups(struct parts_birth *it);

/* Takes the ports that the parts have leased. */
bool parts_take_ports(struct parts_birth *it);

/* Says which parts have said nothing of their ports for too long. */
bool parts_say_late(const struct parts_birth *it);

#endif
