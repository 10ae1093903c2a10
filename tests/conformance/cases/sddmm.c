/* P_ij = alpha f(s_ij, a_i . b_j) + beta P_ij and its sum. In struct work S is X, A is v, B is y and P is
 * w. */
#include <stdlib.h>

#include "refusals.h"
#include "sampled.h"

static void list(struct problem_list *list) {
    sampled_list(list, false);
}

static kiln_status prepare(struct work *work) {
    const unsigned flags = work->problem->flags;
    struct host_matrix *P = &work->w.host;
    CHECK_OK(sampled_prepare(work));
    const struct host_matrix *S = &work->X.host;
    *P = (struct host_matrix){.type = work->type, .rows = S->rows, .cols = S->cols, .nnz = S->nnz};
    P->values = calloc((size_t)S->nnz + 1, 8);
    for (int64_t e = 0; e < S->nnz; e++)
        host_set(P, e,
                 flags & WITH_X_ALIAS   ? host_get(S, e)
                 : flags & WITH_Z_ALIAS ? 2 * random_uniform(902, (uint64_t)e) - 1
                                        : (double)NAN);
    return kiln_matrix_like(&work->w.matrix, work->X.matrix, KILN_TYPE_DEFAULT, P->values);
}

/* X_ALIAS: what is sampled is written in place. */
static kiln_status run(struct work *work) {
    const struct problem *p = work->problem;
    const kiln_sample sample = sampled_of(work, p->flags & WITH_X_ALIAS ? work->w.matrix : work->X.matrix);
    return kiln_sddmm(work->w.matrix, work->scalars, p->alpha, &sample, p->beta);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct problem *p = work->problem;
    const struct host_matrix *S = &work->X.host;
    struct expected *out = &expected[RESULT_W];
    *out = expected_new(work->type, S->nnz);
    for (int64_t i = 0; i < S->rows; i++)
        for (int64_t e = S->row_start[i]; e < S->row_start[i + 1]; e++) {
            const struct sampled_entry entry = sampled_reference(work, i, e);
            const long double before = p->beta != 0 ? p->beta * host_get(&work->w.host, e) : 0;
            out->value[e] = p->alpha * entry.value + before;
            out->gauge[e] = fabsl(p->alpha) * entry.gauge + fabsl(before);
        }
    out->gate = gate_for_terms((double)p->k + 3);
    sampled_expect_sum(&expected[RESULT_SCALARS], work);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->v) + operand_bytes(&work->y) +
           operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    double sum;
    kiln_matrix *P = NULL;
    const kiln_sample good = {
        .size = sizeof good, .kind = KILN_SAMPLE_TIMES, .S = s->S, .A = s->q, .B = s->y};
    kiln_sample bad = good;
    REFUSED(kiln_sddmm(NULL, NULL, 1, &good, 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, NULL, 0));
    REFUSED_AS("structure", kiln_sddmm(s->X, &sum, 1, &good, 0));
#define WITH(field, wrong) (bad = good, bad.field = (wrong), &bad)
    REFUSED_AS("number 9", kiln_sddmm(NULL, &sum, 1, WITH(kind, (kiln_sample_kind)9), 0));
    REFUSED_AS("CSR", kiln_sddmm(NULL, &sum, 1, WITH(S, s->X), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(S, NULL), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(A, NULL), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(A, s->y), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(A, s->v), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(A, s->S), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(B, NULL), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(B, s->q), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(B, s->y_type), 0));
    REFUSED(kiln_sddmm(NULL, &sum, 1, WITH(B, s->y_device), 0));
    REFUSED_AS("floor", kiln_sddmm(NULL, &sum, 1, WITH(floor, -1), 0));
    REFUSED_AS("floor", kiln_sddmm(NULL, &sum, 1, WITH(floor, (double)NAN), 0));
    if (kiln_matrix_copy(&P, s->device, KILN_TYPE_DEFAULT, s->S) == KILN_OK)
        REFUSED_AS("structure", kiln_sddmm(P, NULL, 1, &good, 0));
    kiln_matrix_free(P);
}

const struct operation operation_sddmm = {.name = "sddmm",
                                          .list = list,
                                          .prepare = prepare,
                                          .run = run,
                                          .expect = expect,
                                          .flops = flops,
                                          .bytes = bytes,
                                          .refuse = refuse,
                                          .benchmark = {.k = 128, .kind = KILN_SAMPLE_TIMES, .alpha = 1}};
