/* part.h - a run on several nodes: what stands between its supervisor and the nodes.
 *
 * The supervisor of such a run, where its driver is, starts a bridge: a program that can reach the
 * nodes. On every node of the run something of the bridge's starts a part (roost_part_start): a
 * guardian over a supervisor, as for a run on one machine, which starts and ends processes when it is
 * told to, and ends everything when whoever started it is gone. Bridge and parts exchange messages
 * over carriers, and the bridge carries them from one to the other without reading them.
 *
 * The bridge has its carrier as descriptor 3. All of its messages are ROOST_PART_MESSAGE; the body
 * begins with a struct roost_part_head that says which part the rest is for or from, and what type of
 * message it is there; part -1 is the bridge itself, for these words:
 *
 *   ROOST_PART_JOIN     to the bridge, first: a file of JSON, {"run", "address" or null, "num_nodes",
 *                       "wait_ms" (for nodes to come), "reserve", "view" (what managers of the run tell,
 *                       see roost_render_view_json; or null), "parts": [{"node", "id", "devices"}]}
 *   ROOST_PART_JOINED   from the bridge: a file of JSON, {"namespace", "env": [["NAME=value"] a part]}
 *   ROOST_PART_REFUSED  from the bridge: JSON, {"error": {"code", "message", "hint"}}
 *   ROOST_PART_GONE     from the bridge, as a word of the part: the part has ended; the rest is text, why,
 *                       when it was not told to. As its own word: what the run stands on there is gone, and
 *                       the run is to end; the rest is text that says so to people
 *   ROOST_PART_CLOSE    to the bridge, last: everything is to be given back */
#ifndef ROOST_PART_H
#define ROOST_PART_H

#include <stddef.h>
#include <stdint.h>

#include <roost/error.h>
#include <roost/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum roost_part_word {
    ROOST_PART_JOIN = 64,
    ROOST_PART_JOINED,
    ROOST_PART_REFUSED,
    ROOST_PART_GONE,
    ROOST_PART_CLOSE,
    ROOST_PART_MESSAGE = 96,
};

struct roost_part_head {
    int32_t part; /* -1 = the bridge */
    int32_t type;
};

/* One end of a channel. Nothing here blocks; not for two threads at a time. */
struct roost_carrier;

enum roost_carried {
    ROOST_CARRIED_DONE,
    ROOST_CARRIED_LATER,  /* nothing is there, or there is no room: poll the descriptor */
    ROOST_CARRIED_CLOSED, /* the other side is gone */
};

/* What came. Borrowed from the carrier until the next is received. */
struct roost_parcel {
    uint16_t type;
    const void *body;
    size_t len;
    const void *file; /* NULL = none came along */
    size_t file_len;
};

/* Takes the descriptor. NULL without memory: it is closed. */
ROOST_API struct roost_carrier *roost_carrier_new(int fd);
ROOST_API void roost_carrier_free(struct roost_carrier *carrier);
ROOST_API int roost_carrier_fd(const struct roost_carrier *carrier);

/* Sends a message, with a file of these bytes when `file` is not NULL. What cannot be sent at all, a body
 * that is too long or a file for which there is no memory, ends the carrier: to the other side this one
 * is gone. What that had said before can still be received, and then that it is CLOSED. */
ROOST_API enum roost_carried roost_carrier_send(struct roost_carrier *carrier,
                                                const struct roost_parcel *parcel);
ROOST_API enum roost_carried roost_carrier_receive(struct roost_carrier *carrier,
                                                   struct roost_parcel *out);

struct roost_part_options {
    const char *program;    /* the roost program; NULL = the installed one */
    const char *run_id;     /* letters and digits, at most 16 */
    int32_t node_rank;      /* tells parts of one run apart */
    const char *folder;     /* where the files of the part go until it ends; NULL = /tmp */
    const char *const *env; /* where XDG_RUNTIME_DIR is looked up; NULL = nowhere */
};

/* Starts a part on this machine. It ends when it is told to, when the carrier is freed, and when the
 * process that called this has died; nothing of it is left then. NULL when it could not be started. */
ROOST_API struct roost_carrier *roost_part_start(const struct roost_part_options *options,
                                                 struct roost_error *err);

#ifdef __cplusplus
}
#endif
#endif
