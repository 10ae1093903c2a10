/* These take a dense X, or rows of one, that a GPU holds: see gram.h. */
#ifndef KI_GRAM_GPU_H
#define KI_GRAM_GPU_H

#include "core/matrix.h"
#include "ops/linear/gram.h"

struct ki_programs;
/* Lists the kernels of a Gram matrix of X, so many targets and ones, and of ki_gram_centre. */
void ki_gram_programs(struct ki_programs *programs, const kiln_matrix *X, bool weighted, int64_t targets);
void ki_gram_centre_program(struct ki_programs *programs, const kiln_matrix *X);
kiln_status ki_gram_gpu(const struct ki_gram *gram);
kiln_status ki_gram_centre_gpu(kiln_matrix *c, const kiln_matrix *X, int sample);

#endif
