/* cure.c - errno -> hint. Pure. */
#include "base/cure.h"

#include <errno.h>
#include <stdio.h>

struct cure cure_of_descriptor(int error)
{
    switch (error) {
    case EMFILE: return (struct cure){"raise the limit of open files: ulimit -n"};
    case ENFILE:
        return (struct cure){"raise the machine's limit of open files: sysctl fs.file-max"};
    case ENOMEM:
    case ENOBUFS: return (struct cure){"free some memory"};
    default: return (struct cure){""};
    }
}

struct cure cure_of_place(int error, const char *other)
{
    struct cure cure = cure_of_descriptor(error);
    const char *first = NULL;
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS: return cure;
    case ENOSPC:
    case EDQUOT: first = "free some space there, or "; break;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case EEXIST:
    case EADDRINUSE:
    case ELOOP: first = "remove what stands in its place, or "; break;
    case EACCES:
    case EPERM:
    case EROFS: first = "choose a directory that you can write: "; break;
    default: first = ""; break;
    }
    snprintf(cure.text, sizeof cure.text, "%s%s", first, other);
    return cure;
}

struct cure cure_of_null(int error)
{
    struct cure cure = cure_of_descriptor(error);
    if (!cure.text[0])
        snprintf(cure.text, sizeof cure.text,
                 "let this system have it: mknod -m 666 /dev/null c 1 3");
    return cure;
}
