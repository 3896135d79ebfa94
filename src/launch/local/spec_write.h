/* spec_write.h - the commands of a run as the bytes that its supervisor reads. */
#ifndef LAUNCH_LOCAL_SPEC_WRITE_H
#define LAUNCH_LOCAL_SPEC_WRITE_H

#include "launch/commands.h"

/* A memory file with everything, or -1 with errno. `ports` are the leased numbers. */
int spec_write(const struct commands *commands, const int32_t *ports);

#endif
