#include "sampled.h"

static const double FLOOR = 0.001;

static void add(struct problem_list *list, enum pattern pattern, int64_t rows, int64_t cols, int64_t per_row,
                int64_t k, int kind, unsigned flags) {
    problem_add(list, (struct problem){.format = KILN_CSR,
                                       .pattern = pattern,
                                       .rows = rows,
                                       .cols = cols,
                                       .per_row = per_row,
                                       .k = k,
                                       .kind = kind,
                                       .flags = flags,
                                       .alpha = flags & WITH_Z_ALIAS ? -1.5 : 1,
                                       .beta = flags & WITH_Z_ALIAS ? 0.3 : 0});
}

void sampled_list(struct problem_list *list, bool transposes) {
    static const int64_t widths[] = {1,  2,   3,   5,   8,   15,  16,   31,   32,   33,
                                     64, 100, 128, 130, 257, 512, 1000, 1024, 4095, 4096};
    static const enum pattern patterns[] = {PATTERN_UNIFORM,    PATTERN_DENSE,     PATTERN_NO_ENTRIES,
                                            PATTERN_EMPTY_ROWS, PATTERN_DENSE_ROW, PATTERN_HOT_COLUMN,
                                            PATTERN_POWER_LAW,  PATTERN_ZIPF,      PATTERN_UNSORTED};
    const int count = sizeof widths / sizeof *widths, step = list->thin ? 3 : 1;
    unsigned turned = transposes ? WITH_TRANSPOSED : 0;
    add(list, PATTERN_UNIFORM, 7, 5, 2, 3, KILN_SAMPLE_RESIDUAL, 0);
    for (unsigned flags = 0; flags <= turned && transposes;
         flags += WITH_TRANSPOSED) /* beta, and nothing to add */
        problem_add(list, (struct problem){.format = KILN_CSR,
                                           .pattern = PATTERN_EMPTY_ROWS,
                                           .rows = 61,
                                           .cols = 43,
                                           .per_row = 5,
                                           .k = 24,
                                           .kind = KILN_SAMPLE_PRODUCT,
                                           .flags = flags,
                                           .alpha = 1,
                                           .beta = 0.3});
    for (int i = 0; i < count; i += step)
        for (int t = 0; t < (list->thin ? 1 : 4); t++)
            add(list, PATTERN_UNIFORM, 61, 43, 5, widths[i], 1 + (i + t) % 4,
                (i % 2 ? WITH_Z_ALIAS : 0) | (t % 2 ? turned : 0));
    for (int i = 0; i < (int)(sizeof patterns / sizeof *patterns); i++)
        for (int t = 0; t < 2; t++) {
            add(list, patterns[i], 301, 205, 9, t ? 40 : 16, 1 + (2 * i + t) % 4, t ? WITH_Z_ALIAS : turned);
            add(list, patterns[i], 1501, 99, 12, 8, 1 + (2 * i + t) % 4, t ? turned | WITH_Z_ALIAS : 0);
        }
    for (int kind = 1; kind <= 4; kind++) {
        add(list, PATTERN_UNIFORM, 83, 40, 7, 24, kind, WITH_SPECIAL | (kind % 2 ? turned : 0));
        add(list, PATTERN_UNIFORM, 83, 40, 7, 24, kind, WITH_X_ALIAS);
        add(list, PATTERN_POWER_LAW, 20011, 3001, 21, 32, kind, turned);
    }
    add(list, PATTERN_DENSE_ROW, 50, 90001, 3, 32, KILN_SAMPLE_QUOTIENT, 0);
    add(list, PATTERN_ZIPF, 90001, 50, 3, 32, KILN_SAMPLE_RESIDUAL, turned);
    add(list, PATTERN_UNIFORM, 0, 5, 2, 8, KILN_SAMPLE_RESIDUAL, 0);
    add(list, PATTERN_NO_ENTRIES, 5, 0, 0, 8, KILN_SAMPLE_RESIDUAL, turned);
}

/* Quotients want products well above zero. */
static void fill(struct work *work, struct operand *A, uint64_t stream, int64_t rows, bool zeros) {
    const int64_t k = work->problem->k;
    const bool positive = work->problem->kind == KILN_SAMPLE_QUOTIENT;
    host_new(A, work->type, rows, k);
    for (int64_t e = 0; e < rows * k; e++) {
        const double u = random_uniform(stream, (uint64_t)e);
        host_set(&A->host, e, zeros && e / k % 5 == 2 ? 0 : positive ? 0.1 + u : 2 * u - 1);
    }
}

kiln_status sampled_prepare(struct work *work) {
    const struct problem *p = work->problem;
    const bool special = p->flags & WITH_SPECIAL;
    make_csr(&work->X.host, p, work->type);
    for (int64_t e = 0; special && e < work->X.host.nnz; e += 3) host_set(&work->X.host, e, 0);
    CHECK_OK(operand_upload(work, &work->X));
    fill(work, &work->v, 900, p->rows, special);
    CHECK_OK(operand_upload(work, &work->v));
    fill(work, &work->y, 901, p->cols, false);
    return operand_upload(work, &work->y);
}

kiln_sample sampled_of(const struct work *work, const kiln_matrix *S) {
    return (kiln_sample){.size = sizeof(kiln_sample),
                         .kind = (kiln_sample_kind)work->problem->kind,
                         .floor = work->problem->flags & WITH_SPECIAL ? FLOOR : 0,
                         .S = S,
                         .A = work->v.matrix,
                         .B = work->y.matrix};
}

struct sampled_entry sampled_reference(const struct work *work, int64_t row, int64_t e) {
    const struct host_matrix *S = &work->X.host, *A = &work->v.host, *B = &work->y.host;
    const int64_t k = work->problem->k;
    const long double s = S->values ? host_get(S, e) : 1, size = fabsl(s);
    long double d = 0, g = 0;
    for (int64_t c = 0; c < k; c++) {
        const long double term = (long double)host_get(A, row * k + c) * host_get(B, S->col[e] * k + c);
        d += term;
        g += fabsl(term);
    }
    const long double floored = work->problem->flags & WITH_SPECIAL && d < FLOOR ? FLOOR : d, miss = s - d;
    switch (work->problem->kind) {
    case KILN_SAMPLE_PRODUCT: return (struct sampled_entry){d, g, d * d, 3 * g * g};
    case KILN_SAMPLE_TIMES: return (struct sampled_entry){s * d, size * g, s * d * d, 3 * size * g * g};
    case KILN_SAMPLE_QUOTIENT:
        if (s == 0) return (struct sampled_entry){0, 0, 0, 0};
        return (struct sampled_entry){s / floored, 2 * size / floored, s * logl(floored),
                                      size * (fabsl(logl(floored)) + 1)};
    default: return (struct sampled_entry){miss, size + g, miss * miss, 3 * (size + g) * (size + g)};
    }
}

void sampled_expect_sum(struct expected *out, const struct work *work) {
    const struct host_matrix *S = &work->X.host;
    *out = expected_new(work->type, 1);
    for (int64_t i = 0; i < S->rows; i++)
        for (int64_t e = S->row_start[i]; e < S->row_start[i + 1]; e++) {
            const struct sampled_entry entry = sampled_reference(work, i, e);
            out->value[0] += entry.part;
            out->gauge[0] += entry.part_gauge;
        }
    out->gate = gate_for_terms((double)work->problem->k + 4);
}
