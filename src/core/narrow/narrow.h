/* Values that a device keeps in fewer bytes than their type has.
 *
 * A pass reads X at the speed of memory, so that only fewer bytes make it faster: of pixels, counts, ratings
 * and rounded numbers each is one of 8 or 16 bits, or one of f32 in an f64 matrix. The type stays what
 * everybody computes in. Such a matrix has its values, on its device and in host memory, as A->element says.
 * Whoever takes it as an operand has it widened before he reads it, once and for good, at one of the two
 * doors that operands come in by: the checks of operands (ki_check_operand, ki_check_dense, ki_check_rows)
 * and ki_operands_hold. An operation that takes narrow values of X as they are says so to ki_run_single and
 * ki_share. On a CPU it widens a few rows at a time and adds them up as it does those of a wide X, so that
 * nobody can tell by results how X is kept. On a GPU its kernels, whose X is a KEPT argument
 * (core/arguments.h), widen in registers what they load (dialect/stored.h). Debug builds check wherever a
 * body reads values (VALUES), and a launch passes them on, that they are wide.
 *
 * A sparse matrix has one narrow kind, KILN_ELEMENT_SAME: its entries are all A->same, and A->values has no
 * bytes. Passes take the number in place of each value. */
#ifndef KI_NARROW_H
#define KI_NARROW_H

#include <assert.h>

#include "core/matrix.h"

/* Values in the memory of a CPU, which are wide. */
static inline void *ki_values(const kiln_matrix *A) {
    assert(!A->element);
    return ki_host(&A->values);
}
/* Returns whether matrices on the device may have narrow values: not where processes share it. */
bool ki_keeps_narrow(const kiln_device *device);
/* Returns the define that kernels of narrow values are built with: " -DELEMENT=1", or "" of a wide X. */
const char *ki_element_define(const kiln_matrix *X);
/* A's values are wide from then on, within its device's budget; nothing is done where they are already. */
kiln_status ki_matrix_widen(const kiln_matrix *A);
/* The same of each operand of an operation that has no other door; NULL counts as none. */
#define KI_WIDEN(...)                                                                                        \
    ki_widen_all((const kiln_matrix *const[]){__VA_ARGS__},                                                  \
                 sizeof((const kiln_matrix *const[]){__VA_ARGS__}) / sizeof(kiln_matrix *))
kiln_status ki_widen_all(const kiln_matrix *const *all, size_t count);
/* Values [first, first + count) of a narrow A, in its type. */
kiln_status ki_narrow_get(void *to, const kiln_matrix *A, int64_t first, int64_t count);
/* The same by the calling thread, of an A in the memory of a CPU. */
void ki_narrow_get_here(void *to, const kiln_matrix *A, int64_t first, int64_t count);
/* kiln_matrix_copy of a narrow A, narrow; *B is untouched where it is to be wide. */
kiln_status ki_narrow_copy(kiln_matrix **B, kiln_device *device, kiln_type type, const kiln_matrix *A);
/* ki_matrix_adopt_dense of values that become narrow on their way where the device keeps them so and it is
 * worth it. */
kiln_status ki_matrix_adopt_read(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                 int64_t cols, void *values);
/* ki_matrix_adopt_csr, but that values which are all one number are let go of. */
kiln_status ki_matrix_adopt_entries(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                    int64_t cols, int64_t nnz, int64_t *row_start, int32_t *col,
                                    void *values);
/* ki_narrow_copy and kiln_matrix_narrow of a sparse A (same.c). */
kiln_status ki_same_copy(kiln_matrix **B, kiln_device *device, kiln_type type, const kiln_matrix *A);
kiln_status ki_narrow_entries(kiln_matrix *A, int *narrowed);

#endif
