/* Values that are kept in fewer bytes than their type has, on a CPU.
 *
 * * A pass reads X at the speed of memory, so that only fewer bytes make it faster: of pixels, counts,
 * ratings and rounded numbers each is one of 8 or 16 bits, or one of f32 in an f64 matrix; a sparse matrix
 * of ones needs no values. The type stays what everybody computes in. Such an X has codes
 * (core/codes/codes.h) without categories, whose numbers, a hidden matrix of X's shape, have a values buffer
 * of narrow numbers, or of none, and the row starts and columns of a sparse X. The bodies that know it widen
 * a block of rows into the first-level cache (widen.h), where the pass goes on as over any X. All else gets
 * the matrix expanded, as with categories. */
#ifndef KI_NARROW_H
#define KI_NARROW_H

#include "core/codes/codes.h"

/* Bytes of narrow codes, lent ones too. */
int64_t ki_narrow_bytes(const struct ki_codes *codes);
/* Values [first, first + count) of a narrow dense A, in its type. */
void ki_narrow_get(void *to, const kiln_matrix *A, int64_t first, int64_t count);
/* All arrays of a narrow A; any may be NULL. */
void ki_narrow_entries(int64_t *row_start, int32_t *col, void *values, const kiln_matrix *A);

#endif
