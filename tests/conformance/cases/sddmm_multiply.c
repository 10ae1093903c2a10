/* Y = alpha op(Q) F + beta Z, q_ij = f(s_ij, a_i . b_j), F the other factor. In struct work S is X, A is v, B
 * is y, Y is w. */
#include "refusals.h"
#include "sampled.h"

static void list(struct problem_list *list) {
    sampled_list(list, true);
}

static bool turned(const struct problem *p) {
    return p->flags & WITH_TRANSPOSED;
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    const int64_t rows = turned(p) ? p->cols : p->rows;
    CHECK_OK(sampled_prepare(work));
    if (!(p->flags & WITH_Z_ALIAS)) return make_output(work, rows, p->k);
    CHECK_OK(make_random(work, &work->w, rows, p->k));
    make_alias(work, &work->z);
    return KILN_OK;
}

static kiln_status run(struct work *work) {
    const struct problem *p = work->problem;
    const kiln_sample sample = sampled_of(work, work->X.matrix);
    return kiln_sddmm_multiply(work->w.matrix, work->scalars, p->alpha,
                               turned(p) ? KILN_TRANSPOSED : KILN_PLAIN, &sample, p->beta, work->z.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct problem *p = work->problem;
    const struct host_matrix *S = &work->X.host, *F = turned(p) ? &work->v.host : &work->y.host;
    struct expected *out = &expected[RESULT_W];
    *out = expected_new(work->type, (turned(p) ? p->cols : p->rows) * p->k);
    for (int64_t i = 0; i < S->rows; i++)
        for (int64_t e = S->row_start[i]; e < S->row_start[i + 1]; e++) {
            const struct sampled_entry entry = sampled_reference(work, i, e);
            const int64_t to = turned(p) ? S->col[e] : i, from = turned(p) ? i : S->col[e];
            for (int64_t c = 0; c < p->k; c++) {
                const long double x = host_get(F, from * p->k + c);
                out->value[to * p->k + c] += entry.value * x;
                out->gauge[to * p->k + c] += entry.gauge * fabsl(x);
            }
        }
    reference_scale_and_add(out, p->alpha, p->beta, work->z.matrix ? &work->z.host : NULL);
    out->gate = gate_for_terms((double)(p->k + (turned(p) ? longest_column(S) : longest_row(S))) + 4);
    sampled_expect_sum(&expected[RESULT_SCALARS], work);
}

static double flops(const struct work *work) {
    return 4 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->v) + operand_bytes(&work->y) +
           operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    const kiln_sample good = {
        .size = sizeof good, .kind = KILN_SAMPLE_TIMES, .S = s->S, .A = s->q, .B = s->y};
    kiln_sample bad = good;
    bad.B = s->q;
    REFUSED(kiln_sddmm_multiply(NULL, NULL, 1, KILN_PLAIN, &good, 0, NULL));
    REFUSED(kiln_sddmm_multiply(s->p, NULL, 1, KILN_PLAIN, NULL, 0, NULL));
    REFUSED(kiln_sddmm_multiply(s->p, NULL, 1, KILN_PLAIN, &bad, 0, NULL));
    REFUSED(kiln_sddmm_multiply(s->w, NULL, 1, KILN_PLAIN, &good, 0, NULL));
    REFUSED(kiln_sddmm_multiply(s->p, NULL, 1, KILN_TRANSPOSED, &good, 0, NULL));
    REFUSED(kiln_sddmm_multiply(s->p, NULL, 1, (kiln_transpose)7, &good, 0, NULL));
    REFUSED(kiln_sddmm_multiply(s->p, NULL, 1, KILN_PLAIN, &good, 1, s->w));
    REFUSED_AS("must not be", kiln_sddmm_multiply(s->q, NULL, 1, KILN_PLAIN, &good, 0, NULL));
    REFUSED_AS("must not be", kiln_sddmm_multiply(s->y, NULL, 1, KILN_TRANSPOSED, &good, 0, NULL));
}

const struct operation operation_sddmm_multiply = {
    .name = "sddmm_multiply",
    .list = list,
    .prepare = prepare,
    .run = run,
    .expect = expect,
    .flops = flops,
    .bytes = bytes,
    .refuse = refuse,
    .benchmark = {.k = 128, .kind = KILN_SAMPLE_TIMES, .alpha = 1}};
