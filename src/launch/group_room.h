/* group_room.h - whether a driver may have what its group needs of it. */
#ifndef LAUNCH_GROUP_ROOM_H
#define LAUNCH_GROUP_ROOM_H

#include <roost/launch.h>

/* Whether this process may have a channel to each rank; if not, `err` tells. Without one of them the group
 * could not start, and would not know why: the kernel drops descriptors that do not fit. */
bool group_has_room(const struct roost_run_options *options, struct roost_error *err);

#endif
