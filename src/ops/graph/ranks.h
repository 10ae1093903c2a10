/* Checked steps of PageRank's power iteration, see kiln_ranks in kiln.h. */
#ifndef KI_RANKS_H
#define KI_RANKS_H

#include "derived/columns.h"

enum { KI_RANKS_COLUMNS = 64 }; /* rankings at once, at most */

struct ki_ranks {
    kiln_ranks on;
    struct ki_columns in; /* the links by where they lead */
};

#endif
