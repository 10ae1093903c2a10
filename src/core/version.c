/* The version, from CMakeLists.txt. */
#include "kiln.h"

const char *kiln_version(void) {
    return KILN_VERSION;
}
