/* group_room.h - whether a driver, and the managers, may have what a group needs of them. */
#ifndef RUN_GROUP_ROOM_H
#define RUN_GROUP_ROOM_H

#include <roost/launch.h>

/* Whether this process may have a channel to each rank; if not, `err` tells. Without one of them the group
 * could not start, and would not know why: the kernel drops descriptors that do not fit. */
bool group_has_room(const struct roost_run_options *options, struct roost_error *err);

/* Whether managers that this process has started may have what every rank takes of them, its connection and the
 * word of its end; if not, `err` tells. Without it the rest would wait for ever to be let in. */
bool managers_have_room(const struct roost_run_options *options, struct roost_error *err);

#endif
