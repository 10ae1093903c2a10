/* All CPU bodies for one element type; included by each_real.h. */
#include "dialect/simd.h"
#include "dialect/sparse_row.h"
#include "dialect/real_math.h"
#include "dialect/losses.h"
#include "ops/mmchain.cpu.h"
#include "ops/elementwise.cpu.h"
#include "ops/reduce.cpu.h"
#include "ops/bandwidth.cpu.h"
