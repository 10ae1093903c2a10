/* The first lines of a Matrix Market file. */
#ifndef KI_MATRIX_MARKET_H
#define KI_MATRIX_MARKET_H

#include "io/coordinate/coordinate.h"
#include "io/text.h"

struct ki_market {
    bool array, pattern, integer;
    bool sized; /* the size line has been read */
    enum ki_symmetry symmetry;
    int64_t rows, cols, count; /* count: values or entries that the file must hold */
};

/* Reads whole lines, the first of which is the file's line `line`, until the header has its sizes. *text is
 * then behind the size line, or at the end of the block, behind which the header goes on. */
bool ki_market_header(struct ki_market *header, struct ki_fault *fault, const char **text, const char *end,
                      int64_t line);

#endif
