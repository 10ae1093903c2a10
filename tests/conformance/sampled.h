/* This header has what the cases of sampled products share: problems, operands and the entries' reference. */
#ifndef CONFORMANCE_SAMPLED_H
#define CONFORMANCE_SAMPLED_H

#include "cases.h"

/* Every kind, shapes of S, widths of the factors. SPECIAL: zeros in S and in rows of A, and a floor. */
void sampled_list(struct problem_list *list, bool transposes);
/* X = S, v = A, y = B. */
kiln_status sampled_prepare(struct work *work);
/* A sample of S, which is X or has its structure. */
kiln_sample sampled_of(const struct work *work, const kiln_matrix *S);
/* f(s, d) of entry e, which lies in `row`; its gauge; its part of the sum and that part's gauge. */
struct sampled_entry {
    long double value, gauge, part, part_gauge;
};
struct sampled_entry sampled_reference(const struct work *work, int64_t row, int64_t e);
void sampled_expect_sum(struct expected *out, const struct work *work);

#endif
