/* Includes every CPU body twice, for float and for double. In a body, `real` is the element type and FN(name)
 * a name of its own for that type. */
#define real float
#define real_bits int32_t
#define real_bytes 4
#define FN(name) name##_f32
#include "bodies/list.h"
#undef real
#undef real_bits
#undef real_bytes
#undef FN

#define real double
#define real_bits int64_t
#define real_bytes 8
#define FN(name) name##_f64
#include "bodies/list.h"
#undef real
#undef real_bits
#undef real_bytes
#undef FN
