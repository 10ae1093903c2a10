/* What algorithms may use besides kiln.h: error reporting and TRY. Any user could have written them with
 * this. */
#ifndef KI_ALGORITHM_H
#define KI_ALGORITHM_H

#include "core/status.h"
#include "kiln.h"

#endif
