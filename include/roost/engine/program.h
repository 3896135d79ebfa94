/* program.h - for the roost program alone: what it does when the library starts it again as a helper
 * process of a run. */
#ifndef ROOST_ENGINE_PROGRAM_H
#define ROOST_ENGINE_PROGRAM_H

#include <roost/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The guardian of a run: `roost --guardian ...`, started by roost_run_start. Returns its exit status. */
ROOST_API int roost_guardian_main(int argc, char **argv);

/* The registry server of a namespace: `roost --registry-server ...`, started by
 * roost_registry_server_start. Returns its exit status. */
ROOST_API int roost_registry_server_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
