/* keeper.h - what a keeper and the process that starts it have agreed on. */
#ifndef SUPERVISE_KEEPER_H
#define SUPERVISE_KEEPER_H

enum {
    /* Descriptors that a keeper finds open: with its namespace, all of its input. */
    KEEPER_CHANNEL = 3,
    KEEPER_RUNTIME_DIR = 4,
    KEEPER_DRIVER = 5,    /* a pidfd */
    KEEPER_NAMESPACE = 6, /* the locked file: held, never used */
    KEEPER_VIEW = 7,      /* a memory file: struct keeper_setup, then the JSON of the view */
    KEEPER_FD_COUNT = 5,
};

struct keeper_setup {
    char runtime[4096]; /* the path of the runtime directory */
    int leases_master_port;
    int port_base;
};

enum keeper_message {
    KEEPER_READY = 1, /* from the keeper */
    KEEPER_REFUSED,   /* from the keeper: struct roost_error */
    KEEPER_END,       /* from the driver */
};

#endif
