/* Between separation.c (when the question is asked, and the words), recession.c (the answer, proved),
 * dependent.c (directions that are nobody's) and recession_step.c (where coefficients are too many for a
 * proof). */
#ifndef KI_SEPARATION_H
#define KI_SEPARATION_H

#include "algorithms/newton/newton_work.h"

struct ki_separation {
    int64_t rows, falling; /* of weight above 0; whose loss has no least value there */
    bool apart;            /* all of them: the classes can be separated */
    bool undecided;        /* falling may be wrong */
};

/* Returns whether a row of this loss has a class, whose probability only an eta at infinity makes 1. */
bool ki_separation_classes(const kiln_loss *loss);
/* Returns whether a row's loss has no least value: its outcome is at an end of what means can be. */
bool ki_separation_open(const kiln_loss *loss, double y);
/* values, m x k, = X W + 1 b + offset; b, offset: NULL counts as zeros. One pass. */
kiln_status ki_separation_predict(double *values, const struct ki_newton *newton, const kiln_matrix *W,
                                  const double *b, const double *offset);
/* Returns whether coefficients are few enough for ki_separation_prove. */
bool ki_separation_few(const struct ki_newton *newton);
/* Cost: of rows of X about four for each coefficient, in double on the host, and passes where those have
 * not said it all. ERR_UNSUPPORTED: X's rows cannot be had by number. */
kiln_status ki_separation_prove(struct ki_separation *found, const struct ki_newton_work *work);
/* N, p x p: of each column of Z, p x m by columns, that depends on those before it but for its rounding, a
 * row of length 1 with Z n = 0 so far. blur, as long as Z: what each number may be off by. *count: the rows
 * of N. Cost: m p^2 multiplications. */
kiln_status ki_separation_dependent(double *N, int64_t *count, const double *Z, const double *blur, int64_t p,
                                    int64_t m);
/* Cost: a step of the fit's, and two passes. */
kiln_status ki_separation_step(struct ki_separation *found, struct ki_newton_work *work,
                               struct ki_newton_model *model);

#endif
