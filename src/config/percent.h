/* percent.h - texts with words that differ from process to process: "%{NAME}" is the value of a
 * variable that roost sets, or of another component (peers.h). "%%" is a percent sign, and any other
 * percent sign is itself. */
#ifndef CONFIG_PERCENT_H
#define CONFIG_PERCENT_H

#include "config/config.h"

enum piece_kind { PIECE_TEXT, PIECE_NAME, PIECE_OPEN /* "%{" without its "}" */ };

struct piece {
    enum piece_kind kind;
    struct strview text; /* as it stands, or the name without "%{" and "}" */
};

/* Whether the text is not simply itself. */
bool percent_is_used(struct strview text);

/* Takes the next piece off the front of *text; false at its end. */
bool percent_next(struct strview *text, struct piece *out);

/* A port of the component by the name of its variable: ROOST_PORT_<NAME>, or ROOST_PORT_<NAME>_COUNT
 * with *is_count set. Its index among launch->ports, -1 when there is none; `launch` may be NULL. */
int32_t percent_find_port(const struct launch_config *launch, struct strview name, bool *is_count);

/* "ROOST_PORT_HTTP" or "ROOST_PORT_HTTP_COUNT" for the port "http"; NULL without memory. */
const char *percent_port_variable(struct arena *arena, struct strview port, bool is_count);

/* Reports every name in the word that has no value, and every "%{" that is not closed. `launch`, which
 * may be NULL, has the ports of the word's own component. */
void percent_check(const struct roost_config *config, const struct launch_config *launch,
                   const struct word *word, struct diag *diag);

#endif
