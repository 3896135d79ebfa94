/* cure.h - what helps after the kernel has refused something, by errno: for hints. */
#ifndef BASE_CURE_H
#define BASE_CURE_H

#include <roost/error.h>

/* Used as cure_of_place(...).text inside one expression. Empty when nothing is known to help. */
struct cure {
    char text[ROOST_ERROR_HINT_MAX];
};

/* A file, folder or socket cannot be made or written. `other` says how its place is chosen: "set XDG_RUNTIME_DIR". */
struct cure cure_of_place(int error, const char *other);

/* A descriptor that stands for no file cannot be had: of a socket, a pipe, a process. */
struct cure cure_of_descriptor(int error);

/* /dev/null cannot be opened. */
struct cure cure_of_null(int error);

#endif
