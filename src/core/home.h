/* Row vectors live with the rows. What a group's members, or processes, write to the rows of a vector as long
 * as X's rows stays with them: the vector is away. Shared operations use its rows where they are. An
 * operation that knows nothing of that has all of them brought to the first device before it reads the
 * vector, which is what ki_check_operand, ki_operands_hold and the calls that read elements do. */
#ifndef KI_HOME_H
#define KI_HOME_H

#include "core/matrix.h"

/* A slot's record. What writes A as a whole drops its slots, and so this, too. */
struct ki_away {
    /* Brings A's rows: all of them, or, to host memory, elements [first, first + count). NULL: A is not
     * away. */
    kiln_status (*bring)(kiln_matrix *A, void *to, int64_t first, int64_t count);
};

/* A's record, made before its rows are written, so that nothing can fail afterwards. */
kiln_status ki_away_record(struct ki_away **away, const kiln_matrix *A);
bool ki_is_away(const kiln_matrix *A);
/* A's rows are here from then on. */
kiln_status ki_matrix_home(const kiln_matrix *A);
/* A is no longer away, whatever others have of it: it is about to be written as a whole by what does not read
 * it, or has been brought. */
void ki_away_end(const kiln_matrix *A);

/* ki_operands_hold, but that of operand i, if parts[i], the rows are used, and written, where they are: of
 * the whole only the first device's are of use. */
kiln_status ki_operands_hold_parts(kiln_device *device, const struct ki_operand *operands, const bool *parts,
                                   int count);

#endif
