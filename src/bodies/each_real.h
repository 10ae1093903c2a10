/* The bodies of one file, twice: for float and for double. In a body, `real` is the element type and FN(name)
 * a name of its own for that type. CMake makes a source of each x.cpu.h, which names the file, KI_BODY_FILE,
 * and includes this. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "bodies/names.h"
#include "core/matrix.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "dialect/scalar_math.h"

#define VALUES(A) ((real *)ki_values(A)) /* of a matrix */

#define real float
#define real_bits int32_t
#define real_bytes 4
#define FN(name) KI_BODY_NAME(name, f32)
#include "bodies/one_real.h"
#undef real
#undef real_bits
#undef real_bytes
#undef FN

#define real double
#define real_bits int64_t
#define real_bytes 8
#define FN(name) KI_BODY_NAME(name, f64)
#include "bodies/one_real.h"
#undef real
#undef real_bits
#undef real_bytes
#undef FN
