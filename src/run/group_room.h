/* group_room.h - whether driver and managers may open as many files as a worker group needs. */
#ifndef RUN_GROUP_ROOM_H
#define RUN_GROUP_ROOM_H

#include <roost/launch.h>

/* Whether this process may have a socket to each rank; if not, fills `err`. Without this check the
 * group could not start and would not know why: the kernel drops descriptors that do not fit. */
bool group_has_room(const struct roost_run_options *options, struct roost_error *err);

/* Whether the registry server that this process has started may open what every rank needs there, its
 * connection and a pidfd; if not, fills `err`. Without this check the remaining ranks would wait for
 * ever. */
bool managers_have_room(const struct roost_run_options *options, struct roost_error *err);

#endif
