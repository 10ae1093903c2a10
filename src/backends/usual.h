/* The kernels that a pack has unless it is told otherwise. */
#ifndef KI_USUAL_H
#define KI_USUAL_H

#include "core/status.h"

/* The programs that the lines "// pack" of the kernel files name, as lines of a list; *programs comes from
 * ki_resize and is the caller's. */
kiln_status ki_usual_programs(char **programs);

#endif
