/* agent.h - a run on several nodes: the bridge and the agents.
 *
 * The supervisor of such a run stays next to its driver and starts a bridge: a program that can reach
 * the nodes. On every node of the run, the bridge has an agent started (roost_agent_start): a guardian
 * over a supervisor, as for a run on one machine. An agent starts and ends processes on request, and it
 * ends everything when the process that started it is gone. The bridge and the agents exchange messages
 * over links; the bridge forwards them without reading them.
 *
 * The bridge has its link to the supervisor as descriptor 3. All messages there have the type
 * ROOST_AGENT_MESSAGE. The body begins with a struct roost_agent_head: which agent the rest is for or
 * from, and the type that the message has there. Agent -1 is the bridge itself. Its messages are:
 *
 *   ROOST_AGENT_JOIN     to the bridge, first: a file with the JSON object {"run", "address" or null,
 *                        "num_nodes", "wait_ms" (for nodes to come), "reserve", "view" (what managers of
 *                        the run report: see roost_render_cluster_view; or null),
 *                        "agents": [{"node", "id", "devices"}]}
 *   ROOST_AGENT_JOINED   from the bridge: a file with {"namespace", "env": [["NAME=value"] per agent]}
 *   ROOST_AGENT_REFUSED  from the bridge: {"error": {"code", "message", "hint"}}
 *   ROOST_AGENT_GONE     from the bridge, in the name of an agent: the agent has ended. The rest is a text
 *                        that says why, unless the agent was told to end. In the name of the bridge: the
 *                        run has lost what it needs there and must end. The rest is a text for people.
 *   ROOST_AGENT_TELL     to the bridge: requests for the managers of the run (registry.h), one per line, whose
 *                        answers nobody waits for. Before the first process starts they come as a file and name
 *                        all processes; then in the message, when processes begin and end
 *   ROOST_AGENT_CLOSE    to the bridge, last: give everything back */
#ifndef ROOST_ENGINE_AGENT_H
#define ROOST_ENGINE_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include <roost/error.h>
#include <roost/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum roost_agent_word {
    ROOST_AGENT_JOIN = 64,
    ROOST_AGENT_JOINED,
    ROOST_AGENT_REFUSED,
    ROOST_AGENT_GONE,
    ROOST_AGENT_CLOSE,
    ROOST_AGENT_TELL,
    ROOST_AGENT_MESSAGE = 96,
};

struct roost_agent_head {
    int32_t agent; /* -1 = the bridge */
    int32_t type;
};

/* One end of a socket. No call blocks. Not for two threads at once. */
struct roost_agent_link;

enum roost_link_result {
    ROOST_LINK_DONE,
    ROOST_LINK_LATER,  /* there is nothing to read, or no room: poll the descriptor */
    ROOST_LINK_CLOSED, /* the other side is gone */
};

/* A message. A received one is borrowed from the link until the next is received. */
struct roost_agent_message {
    uint16_t type;
    const void *body;
    size_t len;
    const void *file; /* NULL = no file came along */
    size_t file_len;
};

/* Takes the descriptor. Without memory it closes the descriptor and returns NULL. */
ROOST_API struct roost_agent_link *roost_agent_link_new(int fd);
ROOST_API void roost_agent_link_free(struct roost_agent_link *link);
ROOST_API int roost_agent_link_fd(const struct roost_agent_link *link);

/* Sends a message, with a file of these bytes if `file` is not NULL. A message that can never be sent (its
 * body is too long, or there is no memory for its file) closes the link: the other side sees this one as
 * gone. This side can still receive what was sent before; then roost_agent_link_receive returns
 * ROOST_LINK_CLOSED. */
ROOST_API enum roost_link_result roost_agent_link_send(struct roost_agent_link *link,
                                                       const struct roost_agent_message *message);
ROOST_API enum roost_link_result roost_agent_link_receive(struct roost_agent_link *link,
                                                          struct roost_agent_message *out);

struct roost_agent_options {
    /* The roost program. NULL = the installed one. */
    const char *program;
    /* Letters and digits, at most 16. */
    const char *run_id;
    /* Distinguishes the agents of one run. */
    int32_t node_rank;
    /* Where the agent keeps its files until it ends. NULL = /tmp. */
    const char *folder;
    /* "NAME=value" texts, NULL-terminated, to look up XDG_RUNTIME_DIR. NULL = none. */
    const char *const *env;
};

/* Starts an agent on this machine. It ends on request, when the caller frees the link, and when the
 * calling process dies; then nothing of it is left. NULL when it could not be started. */
ROOST_API struct roost_agent_link *roost_agent_start(const struct roost_agent_options *options,
                                                     struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
