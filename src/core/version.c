/* The version of the library, as the build has it. */
#include "kiln/base.h"

const char *kiln_version(void) {
    return KILN_VERSION;
}
