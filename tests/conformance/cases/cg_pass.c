/* The pass of conjugate gradient: Q += (X - 1 mean^T)^T S (X - 1 mean^T) P as far as it is one over X, the
 * sums of what multiplies X^T, and P . A P. `shift` says whether there are means, which the pass itself does
 * not read. */
#include "shapes.h"
#include "refusals.h"

static void add(struct problem_list *list, struct problem problem, int64_t variant) {
    static const unsigned variants[] = {WITH_Z_ALIAS | WITH_SHIFT | WITH_SUMS | WITH_WEIGHTS, WITH_Z_ALIAS,
                                        WITH_Z_ALIAS | WITH_SHIFT | WITH_SUMS, WITH_Z_ALIAS | WITH_WEIGHTS};
    problem.flags |= variants[variant % 4];
    if (problem.k > 64) problem.k = 64; /* as many recurrences as there may be */
    problem_add(list, problem);
}

static void list(struct problem_list *list) {
    static const int64_t columns[] = {1, 3, 8, 17};
    struct problem_list shapes = {.entries_max = list->entries_max, .thin = list->thin};
    shapes_add(&shapes);
    for (int64_t i = 0; i < shapes.count; i += list->thin ? 23 : 2) add(list, shapes.problems[i], i / 2);
    shapes_free(&shapes);
    for (int64_t t = 0; t < (list->thin ? 4 : 16); t++)
        for (int sparse = 0; sparse < 2; sparse++)
            add(list,
                (struct problem){.format = sparse ? KILN_CSR : KILN_DENSE,
                                 .pattern = sparse ? PATTERN_UNIFORM : PATTERN_DENSE,
                                 .rows = 161,
                                 .cols = 33,
                                 .per_row = 5,
                                 .k = columns[t % 4]},
                t / 4 + t);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    CHECK_OK(make_random(work, &work->y, p->cols, p->k));
    if (p->flags & WITH_WEIGHTS) CHECK_OK(make_random(work, &work->weights, p->rows, 1));
    if (p->flags & WITH_SHIFT) CHECK_OK(make_random(work, &work->shift, 1, p->k));
    if (p->flags & WITH_SHIFT) CHECK_OK(make_random(work, &work->v, p->cols, 1));
    if (p->flags & WITH_SUMS) CHECK_OK(make_result(work, RESULT_SUMS, 1, p->k));
    return make_random(work, &work->w, p->cols, p->k);
}

static kiln_status run(struct work *work) {
    const int64_t n = work->problem->cols, k = work->problem->k;
    kiln_device_info info = {0};
    kiln_matrix *S = NULL, *E = NULL, *G = NULL, *curvature = NULL;
    float narrow[MOST_COLUMNS];
    kiln_status status = kiln_device_get_info(work->device, &info);
    const kiln_type wide = info.has_f64 ? KILN_F64 : KILN_F32;
    if (!status) status = kiln_matrix_dense(&S, work->device, wide, 7, k, NULL);
    if (!status) status = kiln_matrix_dense(&E, work->device, work->type, n, k, NULL);
    if (!status) status = kiln_matrix_dense(&G, work->device, work->type, n, k, NULL);
    if (!status) status = kiln_matrix_dense(&curvature, work->device, wide, 1, k, NULL);
    const kiln_cg cg = {.S = S,
                        .E = E,
                        .G = G,
                        .P = work->y.matrix,
                        .Q = work->w.matrix,
                        .mean = work->v.matrix,
                        .sums = work->sums.matrix,
                        .shift = work->shift.matrix,
                        .curvature = curvature};
    if (!status) status = kiln_cg_pass(&cg, work->X.matrix, work->weights.matrix);
    if (!status) status = kiln_matrix_get(wide == KILN_F64 ? (void *)work->scalars : narrow, curvature);
    for (int64_t c = 0; !status && wide == KILN_F32 && c < k; c++) work->scalars[c] = (double)narrow[c];
    kiln_matrix_free(S);
    kiln_matrix_free(E);
    kiln_matrix_free(G);
    kiln_matrix_free(curvature);
    return status;
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    reference_cg_pass(&expected[RESULT_W], &expected[RESULT_SUMS], &expected[RESULT_SCALARS], &work->X.host,
                      work->weights.matrix ? &work->weights.host : NULL, &work->y.host,
                      work->shift.matrix ? &work->shift.host : NULL, &work->w.host);
    if (!work->sums.matrix) expected_free(&expected[RESULT_SUMS]);
}

static double flops(const struct work *work) {
    return 4 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + 2 * operand_bytes(&work->w) +
           operand_bytes(&work->weights);
}

/* S or the curvature are not there, or of the wrong shape. */
static void refuse(struct check_context *context, struct refusal_set *s) {
    const kiln_cg missing = {.E = s->w, .G = s->w, .P = s->y, .Q = s->w};
    const kiln_cg wrong = {.S = s->w, .E = s->z, .G = s->z, .P = s->y, .Q = s->w, .curvature = s->w};
    REFUSED(kiln_cg_pass(NULL, s->X, NULL));
    REFUSED(kiln_cg_pass(&missing, s->X, NULL));
    REFUSED(kiln_cg_pass(&wrong, s->X, NULL));
    REFUSED(kiln_cg_pass(&wrong, NULL, NULL));
    REFUSED(kiln_cg_begin(&missing));
    REFUSED(kiln_cg_begin(&wrong));
    REFUSED(kiln_cg_step(&missing, 0));
    REFUSED(kiln_cg_step(&wrong, -1));
}

const struct operation operation_cg_pass = {.name = "cg_pass",
                                            .list = list,
                                            .prepare = prepare,
                                            .run = run,
                                            .refuse = refuse,
                                            .expect = expect,
                                            .flops = flops,
                                            .bytes = bytes,
                                            .benchmark = {.k = 1, .flags = WITH_Z_ALIAS},
                                            .atomics = true};
