/* A checked step of conjugate gradient, see kiln_cg_step in kiln.h. */
#ifndef KI_CG_H
#define KI_CG_H

#include "core/matrix.h"

enum { KI_CG_COLUMNS = 64 }; /* recurrences at once, at most */

struct ki_cg {
    kiln_matrix *S, *E, *G, *P;
    const kiln_matrix *Q, *inverse; /* inverse NULL: ones */
    int slot;
};

#endif
