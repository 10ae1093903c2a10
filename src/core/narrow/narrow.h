/* Dense values that a CPU keeps in fewer bytes than their type has.
 *
 * A pass reads X at the speed of memory, so that only fewer bytes make it faster: of pixels, counts, ratings
 * and rounded numbers each is one of 8 or 16 bits, or one of f32 in an f64 matrix. The type stays what
 * everybody computes in. Such a matrix has its values in A->narrow, as A->element says, and none in
 * A->values: like one that is not on its device, it is not resident. Whoever takes it as an operand has it
 * widened before he reads it, once and for good, at one of the two doors that operands come in by: the checks
 * of operands (ki_check_operand, ki_check_dense, ki_check_rows) and ki_operands_hold. An operation that takes
 * narrow values of X as they are says so to ki_run_single (struct ki_single), widens a few rows at a time,
 * and adds them up as it does those of a wide X: nobody can tell by results how X is kept. Debug builds check
 * wherever a body reads values (VALUES) that they are there. */
#ifndef KI_NARROW_H
#define KI_NARROW_H

#include <assert.h>

#include "core/matrix.h"

/* Values in the memory of a CPU, which are wide. */
static inline void *ki_values(const kiln_matrix *A) {
    assert(!A->element);
    return ki_host(&A->values);
}
int64_t ki_element_bytes(kiln_element element); /* of a number of it; 0 of KILN_ELEMENT_TYPE */
/* A's values are wide from then on, within its device's budget; nothing is done where they are already. */
kiln_status ki_matrix_widen(const kiln_matrix *A);
/* The same of each operand of an operation that has no other door; NULL counts as none. */
#define KI_WIDEN(...)                                                                                        \
    ki_widen_all((const kiln_matrix *const[]){__VA_ARGS__},                                                  \
                 sizeof((const kiln_matrix *const[]){__VA_ARGS__}) / sizeof(kiln_matrix *))
kiln_status ki_widen_all(const kiln_matrix *const *all, size_t count);
/* Values [first, first + count) of a narrow A, in its type. */
void ki_narrow_get(void *to, const kiln_matrix *A, int64_t first, int64_t count);
/* All of them, by the device's threads. */
void ki_narrow_get_all(void *to, const kiln_matrix *A);
/* Lets A's narrow values go, be they its own or lent. */
void ki_narrow_release(kiln_matrix *A);

#endif
