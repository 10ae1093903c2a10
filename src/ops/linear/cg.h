/* A checked step of conjugate gradient, see kiln_cg in kiln.h. */
#ifndef KI_CG_H
#define KI_CG_H

#include "kiln/ops.h"
#include "core/matrix.h"

enum { KI_CG_COLUMNS = 64 }; /* recurrences at once, at most */
enum { KI_CG_BEGIN = -1 };   /* the slot that stands for kiln_cg_begin */

struct ki_cg {
    kiln_cg on;
    int slot;
};

struct ki_programs;
/* Lists the kernels of a step for so many targets. */
void ki_cg_program(struct ki_programs *programs, const kiln_matrix *X, int64_t targets);

#endif
