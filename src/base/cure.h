/* cure.h - hints for errno values: what the user can do when the kernel refuses a request. */
#ifndef BASE_CURE_H
#define BASE_CURE_H

#include <roost/error.h>

/* Used as cure_of_place(...).text inside one expression. Empty when roost knows no remedy. */
struct cure {
    char text[ROOST_ERROR_HINT_MAX];
};

/* A file, folder or socket cannot be created or written. `other` tells the user how to choose another
 * place: "set XDG_RUNTIME_DIR". */
struct cure cure_of_place(int error, const char *other);

/* A descriptor that is not a file's (socket, pipe, pidfd) cannot be created. */
struct cure cure_of_descriptor(int error);

/* /dev/null cannot be opened. */
struct cure cure_of_null(int error);

#endif
