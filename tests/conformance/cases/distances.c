/* D_ij = || x_i - z_j ||; every third row of Z is one of X, whose distance is 0 to the bit. */
#include <math.h>

#include "cases.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    static const int64_t shapes[][3] = {{0, 3, 2},      {3, 0, 2},    {1, 1, 1},    {5, 3, 0},
                                        {2, 7, 3},      {33, 65, 4},  {64, 64, 28}, {130, 17, 100},
                                        {257, 1030, 5}, {1100, 9, 17}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        problem_add(list, (struct problem){.format = KILN_DENSE,
                                           .pattern = PATTERN_DENSE,
                                           .rows = shapes[i][0],
                                           .cols = shapes[i][2],
                                           .k = shapes[i][1]});
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_random(work, &work->X, p->rows, p->cols));
    host_new(&work->y, work->type, p->k, p->cols);
    for (int64_t e = 0; e < p->k * p->cols; e++) {
        const int64_t row = e / (p->cols ? p->cols : 1);
        const bool same = row % 3 == 0 && row < p->rows;
        host_set(&work->y.host, e, same ? host_get(&work->X.host, e) : random_uniform(31, (uint64_t)e));
    }
    CHECK_OK(operand_upload(work, &work->y));
    return make_output(work, p->rows, p->k);
}

static kiln_status run(struct work *work) {
    return kiln_distances(work->w.matrix, work->X.matrix, work->y.matrix);
}

static void expect(struct expected *expected, const struct work *work) {
    const struct problem *p = work->problem;
    *expected = expected_new(work->type, p->rows * p->k);
    for (int64_t e = 0; e < p->rows * p->k; e++) {
        long double square = 0;
        for (int64_t c = 0; c < p->cols; c++) {
            const long double apart = (long double)host_get(&work->X.host, e / p->k * p->cols + c) -
                                      (long double)host_get(&work->y.host, e % p->k * p->cols + c);
            square += apart * apart;
        }
        expected->value[e] = expected->gauge[e] = sqrtl(square);
    }
    expected->gate = gate_for_terms((double)p->cols + 16);
}

static double flops(const struct work *work) {
    return 3 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_distances(NULL, s->y, s->z));
    REFUSED(kiln_distances(s->w, NULL, s->z));
    REFUSED(kiln_distances(s->w, s->y, NULL));
    REFUSED(kiln_distances(s->w, s->y, s->z));
    REFUSED(kiln_distances((kiln_matrix *)s->square, s->y, s->v));
    REFUSED(kiln_distances((kiln_matrix *)s->square, s->y_type, s->z));
    REFUSED(kiln_distances((kiln_matrix *)s->square, s->y_device, s->z));
    REFUSED(kiln_distances((kiln_matrix *)s->square, s->S, s->z));
}

const struct operation operation_distances = {.name = "distances",
                                              .list = list,
                                              .prepare = prepare,
                                              .run = run,
                                              .expect = expect,
                                              .flops = flops,
                                              .bytes = bytes,
                                              .refuse = refuse,
                                              .benchmark = {.k = 1000}};
