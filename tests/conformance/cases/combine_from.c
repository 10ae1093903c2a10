/* kiln_combine with coefficients from the device: quotients of two rows of a matrix times a factor, that come
 * out exactly as kiln_combine's; and ones where nothing is given. */
#include <math.h>

#include "elementwise.h"
#include "refusals.h"

extern const struct operation operation_combine;

static void list(struct problem_list *list) {
    operation_combine.list(list);
}

static kiln_status prepare(struct work *work) {
    const kiln_status status = operation_combine.prepare(work);
    /* Each third problem takes Y as it is. */
    for (int64_t c = 0;
         work->problem->rows % 3 == 1 && !(work->problem->flags & WITH_Y_NAN) && c < work->problem->k; c++)
        work->coefficients[MOST_COLUMNS + c] = 1;
    return status;
}

/* Rows 0 and 1 of R over 2, the factor -2: powers of two but for the coefficients themselves. */
static kiln_status set_scalars(kiln_matrix *R, const struct work *work) {
    static double values[3 * MOST_COLUMNS];
    float *narrow = (float *)(void *)values;
    const int64_t k = work->problem->k;
    for (int64_t c = 0; c < k; c++) {
        const double under = ldexp(1, (int)(c % 3) - 1);
        values[c] = work->coefficients[c] * under / -2;
        values[k + c] = work->coefficients[MOST_COLUMNS + c] * under / -2;
        values[2 * k + c] = under;
    }
    for (int64_t e = 0; kiln_matrix_type(R) == KILN_F32 && e < 3 * k; e++) narrow[e] = (float)values[e];
    return kiln_matrix_set(R, values);
}

static kiln_status run(struct work *work) {
    kiln_matrix *R = NULL;
    const bool as_it_is = work->coefficients[MOST_COLUMNS] == 1;
    kiln_status status = elementwise_scalars(&R, work, 3, 0);
    if (!status) status = set_scalars(R, work);
    const kiln_ratio a = {.factor = -2, .over = R, .under = R, .under_row = 2},
                     b = {.factor = -2, .over = R, .over_row = 1, .under = R, .under_row = 2};
    if (!status)
        status = kiln_combine_from(work->w.matrix, &a, work->X.matrix, as_it_is ? NULL : &b, work->y.matrix);
    kiln_matrix_free(R);
    return status;
}

static void expect(struct expected *expected, const struct work *work) {
    operation_combine.expect(expected, work);
}

static double flops(const struct work *work) {
    return (work->y.matrix ? 3 : 1) * (double)work->w.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    const kiln_ratio fine = {.under = s->scalars}, shape = {.over = s->w},
                     behind = {.over = s->scalars, .over_row = 1},
                     before = {.under = s->scalars, .under_row = -1}, endless = {.factor = (double)INFINITY};
    REFUSED(kiln_combine_from(NULL, &fine, s->y, NULL, NULL));
    REFUSED(kiln_combine_from(s->w, &fine, NULL, NULL, NULL));
    REFUSED(kiln_combine_from(s->w, &fine, s->q, NULL, NULL));
    REFUSED(kiln_combine_from(s->w, &fine, s->y, NULL, s->v));
    REFUSED(kiln_combine_from(s->w, &fine, s->y_type, NULL, NULL));
    REFUSED(kiln_combine_from(s->w, &fine, s->y, NULL, s->y_device));
    REFUSED(kiln_combine_from(s->w, &shape, s->y, NULL, NULL));
    REFUSED(kiln_combine_from(s->w, &behind, s->y, NULL, NULL));
    REFUSED(kiln_combine_from(s->w, &fine, s->y, &before, s->z));
    REFUSED(kiln_combine_from(s->w, &endless, s->y, NULL, NULL));
    REFUSED(kiln_combine_from(s->S, NULL, s->X, NULL, NULL));
}

const struct operation operation_combine_from = {.name = "combine_from",
                                                 .list = list,
                                                 .prepare = prepare,
                                                 .run = run,
                                                 .refuse = refuse,
                                                 .expect = expect,
                                                 .flops = flops,
                                                 .bytes = elementwise_bytes};
