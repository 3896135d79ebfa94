/* registry_server.h - the protocol between a registry server and the process that starts it. */
#ifndef SUPERVISE_REGISTRY_SERVER_H
#define SUPERVISE_REGISTRY_SERVER_H

#include <stddef.h>

enum {
    /* Descriptors that a registry server finds open. They and its namespace are its only input. */
    REGISTRY_SERVER_SOCKET = 3,
    REGISTRY_SERVER_RUNTIME_DIR = 4,
    REGISTRY_SERVER_DRIVER = 5,    /* a pidfd */
    REGISTRY_SERVER_NAMESPACE = 6, /* the locked file: held, never used */
    REGISTRY_SERVER_VIEW =
        7, /* a memory file: struct registry_server_setup, the JSON of the view, requests in lines */
    REGISTRY_SERVER_FD_COUNT = 5,
};

struct registry_server_setup {
    char runtime[4096]; /* the path of the runtime directory */
    int leases_master_port;
    int port_base;
    size_t view_len;
};

enum registry_server_message {
    REGISTRY_SERVER_READY = 1, /* from the registry server */
    REGISTRY_SERVER_REFUSED,   /* from the registry server: struct roost_error */
    REGISTRY_SERVER_END,       /* from the driver */
    REGISTRY_SERVER_TELL, /* from the driver: requests in lines, which it wants no answers to */
};

#endif
