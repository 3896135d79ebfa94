/* peers.h - what a component may learn of other components.
 *
 * Three words stand for what the run leased for another component:
 *
 *     %{rollout.0.host}            the host of rank 0
 *     %{rollout.0.port.http}       the first number of its port block 'http'
 *     %{rollout.addresses.http}    host:port of every rank, in rank order, with commas
 *
 * A component that names another in `after`, `command` or `env` also gets one variable for each port of
 * the other: ROOST_ADDRESSES_<COMPONENT>_<PORT>. Names of variables of roost have no dot, so a dot tells
 * the words from variables. */
#ifndef CONFIG_PEERS_H
#define CONFIG_PEERS_H

#include "config/config.h"

enum peer_kind { PEER_HOST, PEER_PORT, PEER_ADDRESSES };

struct peer_word {
    enum peer_kind kind;
    struct strview component;
    struct strview rank; /* digits; empty for PEER_ADDRESSES */
    struct strview port; /* empty for PEER_HOST */
};

/* Whether the name inside %{...} is meant to be one of the words above. */
bool peer_is_meant(struct strview name);

/* Reads the name from the right, so that names of components may have dots: a.b.0.host is rank 0 of a.b.
 * False when it has none of the three forms. */
bool peer_read(struct strview name, struct peer_word *out);

/* Reports a word without a known form, component or port. Ranks are checked when the plan is known. */
void peer_check(const struct roost_config *config, struct strview name, struct place at,
                struct diag *diag);

/* The port of this name among launch->ports, -1 = none; `launch` may be NULL. */
int32_t peer_find_port(const struct launch_config *launch, struct strview name);

/* "ROOST_ADDRESSES_ROLLOUT_HTTP" for port "http" of "rollout": capitals, and _ for every character that
 * is neither a letter nor a digit. NULL without memory. */
const char *peer_variable(struct arena *arena, struct strview component, struct strview port);

/* Calls `visit` for every component that `after` or a word of the launch settings names, as often as it is
 * named. Words that are not well formed are left out. */
typedef void (*peer_visit)(void *context, struct strview component);
void peers_each(const struct launch_config *launch, peer_visit visit, void *context);

/* The same for the words of one text. */
void peers_each_word(struct strview text, peer_visit visit, void *context);

/* Reports two ports of other components that would share the name of a variable. */
void peers_check_names(const struct roost_config *config, const struct launch_config *launch,
                       struct diag *diag);

#endif
