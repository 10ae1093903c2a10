/* Operands of element-wise operations: see elementwise.h. */
#include "elementwise.h"

#include <math.h>

void elementwise_list(struct problem_list *list, const unsigned *variants, size_t count) {
    static const int64_t shapes[][2] = {{0, 1},    {1, 1},    {5, 64},    {257, 1},
                                        {1000, 3}, {311, 17}, {70001, 1}, {4099, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t t = 0; t < count; t++)
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = shapes[i][0],
                                               .cols = shapes[i][1],
                                               .k = shapes[i][1],
                                               .flags = variants[t]});
}

/* Operand X or Y of the problem; the caller has made w. */
static kiln_status make_side(struct work *work, struct operand *A, unsigned alias, unsigned column,
                             unsigned nan) {
    const struct problem *p = work->problem;
    int64_t cols = p->flags & column ? 1 : p->k;
    if (p->flags & alias) {
        make_alias(work, A);
        return KILN_OK;
    }
    if (p->flags & nan) return make_filled(work, A, p->rows, cols, (double)NAN);
    return make_random(work, A, p->rows, cols);
}

kiln_status elementwise_prepare(struct work *work) {
    const struct problem *p = work->problem;
    if (p->flags & (WITH_X_ALIAS | WITH_Y_ALIAS))
        CHECK_OK(make_random(work, &work->w, p->rows, p->k));
    else
        CHECK_OK(make_output(work, p->rows, p->k));
    CHECK_OK(make_side(work, &work->X, WITH_X_ALIAS, WITH_X_COLUMN, WITH_X_NAN));
    if (p->flags & WITH_NO_Y) return KILN_OK;
    return make_side(work, &work->y, WITH_Y_ALIAS, WITH_Y_COLUMN, WITH_Y_NAN);
}

double elementwise_bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->w);
}

kiln_status elementwise_scalars(kiln_matrix **R, const struct work *work, int64_t rows, double value) {
    kiln_device_info info = {0};
    CHECK_OK(kiln_device_get_info(work->device, &info));
    CHECK_OK(
        kiln_matrix_dense(R, work->device, info.has_f64 ? KILN_F64 : KILN_F32, rows, work->problem->k, NULL));
    return kiln_fill(*R, value);
}

kiln_status elementwise_into(struct work *work,
                             kiln_status (*into)(kiln_matrix *R, int64_t row, const struct work *work)) {
    enum { ROWS = 3, CANARY = 4711 };
    const int64_t k = work->problem->k;
    static double values[ROWS * MOST_COLUMNS];
    kiln_matrix *R = NULL;
    kiln_status status = elementwise_scalars(&R, work, ROWS, CANARY);
    if (!status) status = into(R, 1, work);
    if (!status) status = kiln_matrix_get(values, R);
    for (int64_t e = ROWS * k; !status && kiln_matrix_type(R) == KILN_F32 && e-- > 0;)
        values[e] = (double)((const float *)(const void *)values)[e];
    for (int64_t c = 0; !status && c < k; c++)
        work->scalars[c] = values[c] == CANARY && values[2 * k + c] == CANARY ? values[k + c] : (double)NAN;
    kiln_matrix_free(R);
    return status;
}
