/* messages.c - events out of the bytes of a message. */
#include "supervise/messages.h"

#include <string.h>

bool message_take_event(const char *bytes, size_t len, size_t *read, struct roost_event *out)
{
    int32_t size;
    size_t least = offsetof(struct roost_event, message) + 1;
    size_t left = len - *read;
    if (left < sizeof size)
        return false;
    memcpy(&size, bytes + *read, sizeof size);
    if (size < (int32_t)least || (size_t)size > sizeof *out || (size_t)size > left - sizeof size) {
        *read = len; /* not of ours: nothing behind it can be trusted */
        return false;
    }
    *out = (struct roost_event){0};
    memcpy(out, bytes + *read + sizeof size, (size_t)size);
    out->message[sizeof out->message - 1] = '\0';
    *read += sizeof size + (size_t)size;
    return true;
}
