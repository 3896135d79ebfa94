/* version.c - the version, as the header has it. */
#include <roost/version.h>

const char *roost_version(void)
{
    return ROOST_VERSION;
}
