/* Steps of PageRank's power iteration, from random ranks: P, and as scalars the mass that dangles and the
 * last change. */
#include <stdlib.h>

#include "refusals.h"

enum { STEPS = 3, ROWS = 4 + STEPS };

/* kind: the layout. */
static void add_with(struct problem_list *list, int layout, enum pattern pattern, int64_t n, int64_t per_row,
                     int64_t k, unsigned flags) {
    problem_add(list, (struct problem){.format = KILN_CSR,
                                       .pattern = pattern,
                                       .rows = n,
                                       .cols = n,
                                       .per_row = per_row,
                                       .k = k,
                                       .kind = layout,
                                       .flags = flags,
                                       .alpha = flags & WITH_Z ? 1 : 0.85});
}

static void add(struct problem_list *list, enum pattern pattern, int64_t n, int64_t per_row, int64_t k,
                unsigned flags) {
    add_with(list, 0, pattern, n, per_row, k, flags);
}

/* Rows without links, rows shorter and longer than any bin, rows that take several shares, more than one
 * window. */
static void add_layouts(struct problem_list *list) {
    static const enum pattern patterns[] = {PATTERN_NO_ENTRIES, PATTERN_EMPTY_COLUMNS, PATTERN_HOT_COLUMN,
                                            PATTERN_POWER_LAW, PATTERN_ZIPF};
    for (int layout = KILN_LAYOUT_CSR; layout <= KILN_LAYOUT_BALANCED; layout++)
        for (int i = 0; i < 5; i++) {
            add_with(list, layout, patterns[i], 2051, 7, 1, i % 2 ? WITH_WEIGHTS : 0);
            if (!list->thin)
                add_with(list, layout, patterns[i], 403, 5, 3, i % 2 ? 0 : WITH_WEIGHTS | WITH_V);
        }
    for (int layout = KILN_LAYOUT_CSR; layout <= KILN_LAYOUT_BALANCED; layout++)
        add_with(list, layout, PATTERN_UNIFORM, 1, 1, 1, 0);
}

/* V: given teleport; Y_COLUMN: one column of it for all; Z: given dangling; WEIGHTS: weighted. */
static void list(struct problem_list *list) {
    static const unsigned variants[] = {0, WITH_WEIGHTS, WITH_V,
                                        WITH_V | WITH_Y_COLUMN | WITH_Z | WITH_WEIGHTS, WITH_Z};
    static const int64_t columns[] = {1, 3, 8, 17};
    for (int pattern = PATTERN_UNIFORM; pattern <= PATTERN_UNSORTED; pattern++)
        for (int i = 0; i < (list->thin ? 1 : 2); i++)
            if (pattern != PATTERN_DENSE)
                add(list, (enum pattern)pattern, i ? 1021 : 203, i ? 9 : 3, columns[(pattern + i) % 2],
                    variants[(pattern + i) % 5]);
    for (int i = 0; i < (list->thin ? 5 : 20); i++)
        add(list, PATTERN_POWER_LAW, 311, 6, columns[i / 5], variants[i % 5]);
    add(list, PATTERN_UNIFORM, 1, 1, 1, 0);
    add(list, PATTERN_DENSE, 40, 40, 2, WITH_ONES);
    /* The smallest, in which allocations fail: a layout that is chosen would give way where memory is
     * short. */
    add_with(list, KILN_LAYOUT_HYBRID, PATTERN_UNIFORM, 30, 3, 1, WITH_WEIGHTS);
    add_layouts(list);
    if (!list->thin) add(list, PATTERN_ZIPF, 20011, 12, 1, 0);
    if (!list->thin) add(list, PATTERN_HOT_COLUMN, 20011, 2, 1, WITH_WEIGHTS);
}

static kiln_status make_positive(struct work *work, struct operand *A, int64_t rows, int64_t cols) {
    struct operand random = {.alias = false};
    CHECK_OK(make_random(work, A, rows, cols));
    random = *A;
    kiln_matrix_free(random.matrix);
    A->matrix = NULL;
    for (int64_t e = 0; e < A->host.nnz; e++)
        host_set(&A->host, e, (1.5 + host_get(&A->host, e)) / (double)(2 * rows));
    return operand_upload(work, A);
}

static kiln_status make_graph(struct work *work) {
    struct host_matrix *X = &work->X.host;
    make_csr(X, work->problem, work->type);
    for (int64_t e = 0; X->values && e < X->nnz; e++) host_set(X, e, fabs(host_get(X, e)));
    return operand_upload(work, &work->X);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_graph(work));
    CHECK_OK(make_positive(work, &work->w, p->rows, p->k));
    if (p->flags & WITH_V)
        CHECK_OK(make_positive(work, &work->v, p->rows, p->flags & WITH_Y_COLUMN ? 1 : p->k));
    if (p->flags & WITH_Z) CHECK_OK(make_positive(work, &work->z, p->rows, 1));
    return KILN_OK;
}

static kiln_status read_state(double *scalars, kiln_matrix *S, int64_t k) {
    double *wide = malloc((size_t)(ROWS * k) * sizeof *wide);
    float *narrow = (float *)(void *)wide;
    if (!wide) return KILN_ERR_NOMEM;
    const kiln_status status = kiln_matrix_get(wide, S);
    for (int64_t c = 0; status == KILN_OK && c < k; c++) {
        const int64_t at[] = {c, (4 + STEPS - 1) * k + c};
        for (int i = 0; i < 2; i++)
            scalars[i * k + c] = kiln_matrix_type(S) == KILN_F64 ? wide[at[i]] : (double)narrow[at[i]];
    }
    free(wide);
    return status;
}

static kiln_status run(struct work *work) {
    const int64_t n = work->problem->rows, k = work->problem->k;
    kiln_device_info info = {0};
    kiln_ranks ranks = {.A = work->X.matrix,
                        .weighted = (work->problem->flags & WITH_WEIGHTS) != 0,
                        .damping = work->problem->alpha,
                        .layout = (kiln_layout)work->problem->kind,
                        .P = work->w.matrix,
                        .teleport = work->v.matrix,
                        .dangling = work->z.matrix};
    kiln_status status = kiln_device_get_info(work->device, &info);
    if (!status)
        status = kiln_matrix_dense(&ranks.S, work->device, info.has_f64 ? KILN_F64 : KILN_F32, ROWS, k, NULL);
    if (!status) status = kiln_matrix_dense(&ranks.C, work->device, work->type, n, k, NULL);
    if (!status) status = kiln_matrix_dense(&ranks.next, work->device, work->type, n, k, NULL);
    if (!status) status = kiln_matrix_dense(&ranks.factor, work->device, work->type, n, 1, NULL);
    if (!status) status = kiln_fill(ranks.S, -1); /* goals that are never met */
    if (!status) status = kiln_ranks_begin(&ranks);
    if (!status) status = kiln_ranks_step(&ranks, 0, 1);
    if (!status) status = kiln_ranks_step(&ranks, 1, STEPS - 1);
    if (!status) status = read_state(work->scalars, ranks.S, k);
    kiln_matrix_free(ranks.S);
    kiln_matrix_free(ranks.C);
    kiln_matrix_free(ranks.next);
    kiln_matrix_free(ranks.factor);
    return status;
}

/* One step in place: *mass in and out, change of each column. */
static void reference_step(struct expected *P, struct expected *numbers, const long double *factor,
                           const struct work *work) {
    const struct host_matrix *A = &work->X.host, *t = &work->v.host, *g = &work->z.host;
    const int64_t n = A->rows, k = work->problem->k;
    const long double d = work->problem->alpha;
    struct expected next = expected_new(work->type, n * k);
    const bool weighted = work->problem->flags & WITH_WEIGHTS;
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = A->row_start[i]; e < A->row_start[i + 1]; e++)
            for (int64_t c = 0; c < k; c++)
                next.value[A->col[e] * k + c] +=
                    d * (weighted ? (long double)host_get(A, e) : 1) * factor[i] * P->value[i * k + c];
    for (int64_t c = 0; c < k; c++) numbers->value[k + c] = numbers->gauge[k + c] = 0;
    for (int64_t v = 0; v < n; v++)
        for (int64_t c = 0; c < k; c++) {
            const int64_t at = v * k + c;
            next.value[at] += (1 - d) * (t->values ? (long double)host_get(t, t->cols == 1 ? v : at)
                                                   : 1.0L / (long double)n);
            next.value[at] +=
                d * numbers->value[c] * (g->values ? (long double)host_get(g, v) : 1.0L / (long double)n);
            numbers->value[k + c] += fabsl(next.value[at] - P->value[at]);
            numbers->gauge[k + c] += next.value[at] + P->value[at];
        }
    for (int64_t c = 0; c < k; c++) numbers->value[c] = 0;
    for (int64_t at = 0; at < n * k; at++) {
        P->value[at] = P->gauge[at] = next.value[at];
        if (factor[at / k] == 0) numbers->value[at % k] += next.value[at];
    }
    for (int64_t c = 0; c < k; c++) numbers->gauge[c] = numbers->value[c];
    expected_free(&next);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    struct expected *P = &expected[RESULT_W], *numbers = &expected[RESULT_SCALARS];
    const struct host_matrix *A = &work->X.host;
    const int64_t n = A->rows, k = work->problem->k;
    struct expected weight = expected_new(work->type, n);
    *P = expected_new(work->type, n * k);
    *numbers = expected_new(work->type, 2 * k);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = A->row_start[i]; e < A->row_start[i + 1]; e++)
            weight.value[i] += work->problem->flags & WITH_WEIGHTS ? (long double)host_get(A, e) : 1;
        if (weight.value[i] > 0) weight.value[i] = 1 / weight.value[i];
    }
    for (int64_t at = 0; at < n * k; at++) {
        P->value[at] = host_get(&work->w.host, at);
        if (weight.value[at / k] == 0) numbers->value[at % k] += P->value[at];
    }
    for (int step = 0; step < STEPS; step++) reference_step(P, numbers, weight.value, work);
    P->gate = numbers->gate = gate_for_terms(STEPS * ((double)longest_column(A) + 12));
    expected_free(&weight);
}

static double flops(const struct work *work) {
    return STEPS * (double)work->problem->k * (2 * (double)work->X.host.nnz + 5 * (double)work->X.host.rows);
}

/* The links, and of each vertex P twice, what it gives twice, and its factor. */
static double bytes(const struct work *work) {
    const double element = work->type == KILN_F32 ? 4 : 8, k = (double)work->problem->k;
    const double link = work->problem->flags & WITH_WEIGHTS ? 4 + element : 4;
    return STEPS *
           (link * (double)work->X.host.nnz + (8 + (4 * k + 1) * element) * (double)work->X.host.rows);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    kiln_matrix *square = NULL, *narrow = NULL;
    static const int64_t row_start[REFUSAL_N + 1] = {0, 1, 1, 2, 2};
    static const int32_t col[] = {1, 3};
    if (kiln_matrix_csr(&square, s->device, kiln_matrix_type(s->w), REFUSAL_N, REFUSAL_N, row_start, col,
                        NULL) != KILN_OK ||
        kiln_matrix_dense(&narrow, s->device, kiln_matrix_type(s->w), 4, REFUSAL_K, NULL) != KILN_OK) {
        check_report(context, false, "the operands of refusals");
        return;
    }
    kiln_ranks right = {
        .A = square, .damping = 0.5, .P = s->w, .C = s->y, .next = s->z, .factor = s->d, .S = narrow};
    kiln_ranks wrong = right;
    REFUSED(kiln_ranks_begin(NULL));
    REFUSED(kiln_ranks_step(NULL, 0, 1));
    REFUSED_AS(" or more x ", kiln_ranks_begin(&right)); /* it has no row for a change */
    wrong.A = s->S;
    REFUSED_AS("square", kiln_ranks_begin(&wrong));
    wrong.A = s->square;
    REFUSED_AS("sparse", kiln_ranks_begin(&wrong));
    wrong = right;
    wrong.layout = (kiln_layout)4;
    REFUSED_AS("layout is 4", kiln_ranks_step(&wrong, 0, 1));
    wrong = right;
    wrong.damping = 1.5;
    REFUSED_AS("damping is 1.5", kiln_ranks_step(&wrong, 0, 1));
    wrong = right;
    wrong.P = s->p;
    REFUSED_AS("P is 6 x 2", kiln_ranks_step(&wrong, 0, 1));
    wrong = right;
    wrong.factor = NULL;
    REFUSED_AS("NULL", kiln_ranks_step(&wrong, 0, 1));
    wrong = right;
    wrong.teleport = s->v;
    REFUSED_AS("teleport is 6 x 1", kiln_ranks_step(&wrong, 0, 1));
    REFUSED_AS("count is -2", kiln_ranks_step(&right, 0, -2));
    kiln_matrix_free(square);
    kiln_matrix_free(narrow);
}

const struct operation operation_ranks_step = {.name = "ranks_step",
                                               .list = list,
                                               .prepare = prepare,
                                               .run = run,
                                               .refuse = refuse,
                                               .expect = expect,
                                               .flops = flops,
                                               .bytes = bytes,
                                               .benchmark = {.k = 1, .alpha = 0.85}};
