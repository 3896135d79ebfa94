/* bundles_rows.h - engines folded into the rows a person reads. */
#ifndef RENDER_BUNDLES_ROWS_H
#define RENDER_BUNDLES_ROWS_H

#include <roost/bundle.h>

/* Engines of one server group that look alike: on one node or on several nodes in a row, or all that
 * span nodes. A placeholder, or an external engine, is a row of its own. */
struct bundles_row {
    const struct roost_server_group *group;
    int32_t first_engine, last_engine; /* last < first = none: a placeholder */
    int32_t first_part, last_part;     /* last < first = none */
};

/* The row that starts with the next engine of server group *group, `*engine` being the next engine
 * in all; both move behind it. False when there is none left. */
bool bundles_next_row(const struct roost_layout *layout, size_t *group, int32_t *engine,
                      struct bundles_row *out);

#endif
