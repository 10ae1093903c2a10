/* This header says what every body is written in, for the element type that each_real.h has chosen, and the
 * bodies themselves. */
#include "dialect/simd.h"
#include "dialect/real_math.h"
#include KI_BODY_FILE
