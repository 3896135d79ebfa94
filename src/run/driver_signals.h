/* driver_signals.h - the signals that a driver passes on to its run, as a descriptor to poll. */
#ifndef RUN_DRIVER_SIGNALS_H
#define RUN_DRIVER_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

enum driver_signal {
    DRIVER_NONE,    /* nothing more for now */
    DRIVER_END,     /* INT, TERM, HUP, QUIT: the run should end */
    DRIVER_FORWARD, /* USR1, USR2: every process gets it */
    DRIVER_SUSPEND, /* TSTP */
    DRIVER_RESUME,  /* CONT */
    DRIVER_RESIZE,  /* WINCH */
};

/* Blocks them and returns the descriptor, -1 with errno. Writing to a closed pipe fails with EPIPE
 * from now on. */
int driver_signals_open(void);

/* Takes one; *out_number is the signal. DRIVER_SUSPEND comes again until driver_suspend() was called. */
enum driver_signal driver_signals_next(int32_t *out_number);

/* Stops this process, as the terminal asked; returns when it is continued. Returns at once when it has
 * been continued since it was asked to stop, or when no process could continue it (an orphaned process
 * group). */
void driver_suspend(void);

/* The numbers that stop and continue a process, whatever it does with TSTP: a worker leads a session
 * of its own, where the kernel ignores TSTP. */
int32_t driver_stop_signal(void);
int32_t driver_continue_signal(void);

/* "SIGTERM", for a number. Used as signal_word(number).text inside one expression. */
struct signal_word {
    char text[24];
};
struct signal_word signal_word(int32_t number);

#endif
