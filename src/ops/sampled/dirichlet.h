/* kiln_dirichlet_expect as its bodies get it. */
#ifndef KI_OPS_DIRICHLET_H
#define KI_OPS_DIRICHLET_H

#include "kiln/topics.h"

enum { KI_DIRICHLET_PARTS = 64, KI_DIRICHLET_SUMS = 2 };

/* sums: bound and change of each of KI_DIRICHLET_PARTS parts; NULL where neither is wanted. */
struct ki_dirichlet {
    const kiln_dirichlet *of;
    double (*sums)[KI_DIRICHLET_SUMS];
    int bound; /* wanted */
};

#endif
