/* Kiln: machine learning on large sparse and dense data, limited by memory bandwidth and nothing else.
 *
 * This header brings all of the stable interface; read in the order of its includes. Each operation's comment
 * gives its formula, shapes, errors, cost, determinism and source. kiln/codes.h, for categories as codes,
 * kiln/half.h, for factors of half precision, and kiln/mpi.h, for programs that use MPI, are apart;
 * kiln/tune.h, for plans and figures, is apart and not stable.
 *
 * Conventions
 *   - The destination comes first, then the operands in formula order. Matrices are upper case.
 *   - Dense matrices are row-major; sparse matrices are CSR. A vector is a matrix with one column.
 *   - Every struct that you allocate begins with `size_t size`: sizeof of that struct, or 0 for the layout of
 *     the first release. Begin with a zeroed one, `kiln_report report = {0}`; NULL stands for zeroed options.
 *     Later releases append fields, and a program that was built with an older header keeps working: nothing
 *     beyond its size is read or written. Fields that a library does not know are ERR_UNSUPPORTED unless 0;
 *     an impossible size is ERR_ARGUMENT. Structs without a size never change: kiln_control, kiln_range,
 *     kiln_trace_row, kiln_option, kiln_algorithm. Those that only the library makes and hands out by pointer
 *     (kiln_error, kiln_progress) grow at their ends.
 *   - In options 0 is the default that the field's comment states, in every struct; a flag of 0 is off. Where
 *     0 has a meaning of its own (no penalty, a tolerance of 0) kiln_option_give says that it is meant.
 *   - Every call returns a kiln_status; on failure the out-parameters are untouched, and
 *     kiln_last_error() tells the calling thread what went wrong and where.
 *   - A question about NULL (the rows of no matrix, the text of no model) is answered with 0, NULL or "".
 *   - One thread at a time uses a device and its matrices; different devices are independent.
 *   - The library never prints, exits, aborts, or installs signal handlers. It reads these variables of the
 *     environment: KILN_ISA (baseline, avx2 or avx512: the device "cpu" uses no better instructions),
 *     KILN_NUM_THREADS, KILN_CACHE_DIR, KILN_KERNEL_DIR, KILN_KERNEL_PACK, KILN_BLAS, KILN_NVRTC_PATH,
 *     KILN_MPI_PATH, KILN_MPI_SILENCE, KILN_WITHOUT (cuda, opencl or cuda,opencl: drivers that are never
 *     loaded, whatever asks for them), and the standard OMP_NUM_THREADS, XDG_CACHE_HOME, HOME, CUDA_HOME,
 *     CUDA_PATH, CONDA_PREFIX, VIRTUAL_ENV, and those by which an MPI marks the processes that it starts
 *     (PMI_RANK, OMPI_COMM_WORLD_RANK).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_H
#define KILN_H

#include "kiln/base.h"
#include "kiln/device.h"
#include "kiln/processes.h"
#include "kiln/matrix.h"
#include "kiln/ops.h"
#include "kiln/data.h"
#include "kiln/checkpoint.h"
#include "kiln/models.h"
#include "kiln/linear.h"
#include "kiln/metrics.h"
#include "kiln/inference.h"
#include "kiln/mds.h"
#include "kiln/svd.h"
#include "kiln/factors.h"
#include "kiln/rows.h"
#include "kiln/topics.h"
#include "kiln/registry.h"

#endif
