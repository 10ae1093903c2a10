/* Kiln: machine learning on large sparse and dense data, limited by memory bandwidth and nothing else.
 *
 * This header brings all of the stable interface; read in the order of its includes. Each operation's comment gives its
 * formula, shapes, errors, cost, determinism and source. kiln/tune.h, for plans and figures, is apart and not stable.
 *
 * Conventions
 *   - The destination comes first, then the operands in formula order. Matrices are upper case.
 *   - Dense matrices are row-major; sparse matrices are CSR. A vector is a matrix with one column.
 *   - A zeroed options struct means the defaults; NULL stands for a zeroed one.
 *   - Every call returns a kiln_status; on failure the out-parameters are untouched, and
 *     kiln_last_error() tells the calling thread what went wrong and where.
 *   - A question about NULL (the rows of no matrix, the text of no model) is answered with 0, NULL or "".
 *   - One thread at a time uses a device and its matrices; different devices are independent.
 *   - The library never prints, exits, aborts, or installs signal handlers. Of the environment it reads
 *     KILN_ISA (scalar, avx2 or avx512: the device "cpu" uses no better instructions), KILN_NUM_THREADS,
 *     KILN_CACHE_DIR, KILN_KERNEL_DIR, KILN_BLAS, KILN_NVRTC_PATH, and the standard OMP_NUM_THREADS,
 *     XDG_CACHE_HOME, HOME, CUDA_HOME, CUDA_PATH, CONDA_PREFIX, VIRTUAL_ENV.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_H
#define KILN_H

#include "kiln/base.h"
#include "kiln/device.h"
#include "kiln/matrix.h"
#include "kiln/ops.h"
#include "kiln/data.h"
#include "kiln/models.h"
#include "kiln/registry.h"

#endif
