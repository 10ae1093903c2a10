/* w = alpha * X^T (v .* (X y)) + beta * z and its relatives: see reference.h for what a gauge is. */
#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void *zeros(int64_t count, size_t size) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory) {
        fprintf(stderr, "reference: out of memory\n");
        exit(1);
    }
    return memory;
}

struct expected expected_new(kiln_type type, int64_t count) {
    return (struct expected){.count = count,
                             .value = zeros(count, sizeof(long double)),
                             .gauge = zeros(count, sizeof(long double)),
                             .unit = unit_roundoff(type)};
}

void expected_free(struct expected *out) {
    free(out->value);
    free(out->gauge);
    *out = (struct expected){0};
}

double unit_roundoff(kiln_type type) {
    return type == KILN_F32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}

double host_get(const struct host_matrix *A, int64_t e) {
    if (!A->values) return 1;
    return A->type == KILN_F32 ? (double)((const float *)A->values)[e] : ((const double *)A->values)[e];
}

void host_set(struct host_matrix *A, int64_t e, double value) {
    if (A->type == KILN_F32)
        ((float *)A->values)[e] = (float)value;
    else
        ((double *)A->values)[e] = value;
}

double gate_for_terms(double terms) {
    return fmin(terms + 4, 4 * sqrt(terms) + 8);
}

/* Values beyond the type's range must come back as infinities; below its normal range they may be flushed to
 * zero. */
static double element_ratio(long double want, long double gauge, double unit, kiln_type type, double got) {
    long double largest = type == KILN_F32 ? FLT_MAX : DBL_MAX;
    long double smallest = type == KILN_F32 ? FLT_MIN : DBL_MIN;
    if (want > largest) want = INFINITY;
    if (want < -largest) want = -INFINITY;
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if ((long double)got == want) return 0;
    if (isnan(got) || isinf(want) || isinf(got) || gauge == 0) return INFINITY;
    long double error = fabsl((long double)got - want) - smallest;
    return error <= 0 ? 0 : (double)(error / ((long double)unit * gauge));
}

double error_ratio(int64_t *worst, const struct expected *expected, kiln_type type, const void *got) {
    double largest = 0;
    struct host_matrix values = {.type = type, .values = (void *)(uintptr_t)got};
    *worst = 0;
    for (int64_t e = 0; e < expected->count; e++) {
        double ratio =
            element_ratio(expected->value[e], expected->gauge[e], expected->unit, type, host_get(&values, e));
        if (ratio > largest) {
            largest = ratio;
            *worst = e;
        }
    }
    return largest;
}

/* ------------------------------------------------------------------------------- products with X */

static int64_t row_begin(const struct host_matrix *X, int64_t i) {
    return X->row_start ? X->row_start[i] : i * X->cols;
}

static int64_t column_of(const struct host_matrix *X, int64_t i, int64_t e) {
    return X->row_start ? X->col[e] : e - i * X->cols;
}

int64_t longest_row(const struct host_matrix *X) {
    int64_t longest = 0;
    for (int64_t i = 0; i < X->rows; i++) {
        int64_t length = row_begin(X, i + 1) - row_begin(X, i);
        if (length > longest) longest = length;
    }
    return longest;
}

int64_t longest_column(const struct host_matrix *X) {
    if (!X->row_start) return X->cols ? X->rows : 0;
    int64_t *length = zeros(X->cols, sizeof *length), longest = 0;
    for (int64_t e = 0; e < X->nnz; e++)
        if (++length[X->col[e]] > longest) longest = length[X->col[e]];
    free(length);
    return longest;
}

/* p = X y, a row at a time. */
void reference_product(struct expected *p, const struct host_matrix *X, const struct host_matrix *y) {
    int64_t k = y->cols;
    for (int64_t i = 0; i < X->rows; i++)
        for (int64_t e = row_begin(X, i); e < row_begin(X, i + 1); e++) {
            long double x = host_get(X, e);
            int64_t j = column_of(X, i, e);
            for (int64_t c = 0; c < k; c++) {
                long double term = x * host_get(y, j * k + c);
                p->value[i * k + c] += term;
                p->gauge[i * k + c] += fabsl(term);
            }
        }
}

/* w = X^T p. */
void reference_transposed_product(struct expected *w, const struct host_matrix *X, const struct expected *p,
                                  int64_t k) {
    for (int64_t i = 0; i < X->rows; i++)
        for (int64_t e = row_begin(X, i); e < row_begin(X, i + 1); e++) {
            long double x = host_get(X, e);
            int64_t j = column_of(X, i, e);
            for (int64_t c = 0; c < k; c++) {
                w->value[j * k + c] += x * p->value[i * k + c];
                w->gauge[j * k + c] += fabsl(x) * p->gauge[i * k + c];
            }
        }
}

/* w = alpha * w + beta * z */
void reference_scale_and_add(struct expected *w, double alpha, double beta, const struct host_matrix *z) {
    for (int64_t e = 0; e < w->count; e++) {
        long double other = z && beta != 0 ? (long double)beta * host_get(z, e) : 0;
        w->value[e] = alpha * w->value[e] + other;
        w->gauge[e] = fabsl(alpha * w->gauge[e]) + fabsl(other);
    }
}

void reference_mmchain(struct expected *out, double alpha, const struct host_matrix *X,
                       const struct host_matrix *v, const struct host_matrix *y, double beta,
                       const struct host_matrix *z) {
    int64_t k = y->cols;
    struct expected p = expected_new(X->type, X->rows * k);
    reference_product(&p, X, y);
    for (int64_t e = 0; v && e < p.count; e++) {
        long double weight = host_get(v, v->cols == 1 ? e / k : e);
        p.value[e] *= weight;
        p.gauge[e] *= fabsl(weight);
    }
    *out = expected_new(X->type, X->cols * k);
    reference_transposed_product(out, X, &p, k);
    reference_scale_and_add(out, alpha, beta, z);
    /* Both sums, the product with v, alpha (rounded to the type and multiplied), beta likewise and the last
     * sum. */
    out->gate = gate_for_terms((double)(longest_row(X) + longest_column(X)) + 4);
    expected_free(&p);
}

static void load(struct expected *p, const struct host_matrix *B) {
    for (int64_t e = 0; e < p->count; e++) {
        p->value[e] = host_get(B, e);
        p->gauge[e] = fabsl(p->value[e]);
    }
}

void reference_multiply(struct expected *out, double alpha, kiln_transpose op, const struct host_matrix *A,
                        const struct host_matrix *B, double beta, const struct host_matrix *Z) {
    int64_t k = B->cols;
    if (op == KILN_PLAIN) {
        *out = expected_new(A->type, A->rows * k);
        reference_product(out, A, B);
    } else {
        struct expected p = expected_new(A->type, B->rows * k);
        load(&p, B);
        *out = expected_new(A->type, A->cols * k);
        reference_transposed_product(out, A, &p, k);
        expected_free(&p);
    }
    reference_scale_and_add(out, alpha, beta, Z);
    out->gate = gate_for_terms((double)(op == KILN_PLAIN ? longest_row(A) : longest_column(A)) + 3);
}

void reference_gram_diagonal(struct expected *out, const struct host_matrix *X, const struct host_matrix *v) {
    *out = expected_new(X->type, X->cols);
    for (int64_t i = 0; i < X->rows; i++) {
        long double weight = v ? host_get(v, i) : 1;
        for (int64_t e = row_begin(X, i); e < row_begin(X, i + 1); e++) {
            long double x = host_get(X, e), term = weight * x * x;
            out->value[column_of(X, i, e)] += term;
            out->gauge[column_of(X, i, e)] += fabsl(term);
        }
    }
    out->gate = gate_for_terms((double)longest_column(X) + 2);
}

/* Row i of X - 1 c in full, and its gauge, |x| + |c|. */
static void centred_row(long double *row, long double *gauge, const struct host_matrix *X, int64_t i,
                        const struct host_matrix *c) {
    for (int64_t j = 0; j < X->cols; j++) {
        row[j] = c ? -(long double)host_get(c, j) : 0;
        gauge[j] = fabsl(row[j]);
    }
    for (int64_t e = row_begin(X, i); e < row_begin(X, i + 1); e++) {
        row[column_of(X, i, e)] += host_get(X, e);
        gauge[column_of(X, i, e)] += fabsl((long double)host_get(X, e));
    }
}

void reference_gram(struct expected *G, struct expected *g, const struct host_matrix *X,
                    const struct host_matrix *v, const struct host_matrix *c) {
    const int64_t n = X->cols;
    struct expected row = expected_new(X->type, n);
    *G = expected_new(X->type, n * n);
    *g = expected_new(X->type, n);
    for (int64_t i = 0; i < X->rows; i++) {
        const long double weight = v ? host_get(v, i) : 1;
        centred_row(row.value, row.gauge, X, i, c);
        for (int64_t j = 0; weight != 0 && j < n; j++) {
            g->value[j] += weight * row.value[j];
            g->gauge[j] += fabsl(weight) * row.gauge[j];
            for (int64_t l = 0; l < n; l++) {
                G->value[j * n + l] += weight * row.value[j] * row.value[l];
                G->gauge[j * n + l] += fabsl(weight) * row.gauge[j] * row.gauge[l];
            }
        }
    }
    G->gate = g->gate = gate_for_terms((double)X->rows + (double)longest_row(X) + 4);
    expected_free(&row);
}

/* ---------------------------------------------------------------------------------- element wise */

/* Element (i, c) of a k-column result reads this element of X. */
static int64_t spread(const struct host_matrix *X, int64_t k, int64_t e) {
    return X->cols == k ? e : e / k;
}

void reference_combine(struct expected *out, int64_t k, const double *a, const struct host_matrix *X,
                       const double *b, const struct host_matrix *Y) {
    *out = expected_new(X->type, X->rows * k);
    for (int64_t e = 0; e < out->count; e++) {
        double ac = a[e % k], bc = Y ? b[e % k] : 0;
        long double left = ac != 0 ? (long double)ac * host_get(X, spread(X, k, e)) : 0;
        long double right = bc != 0 ? (long double)bc * host_get(Y, spread(Y, k, e)) : 0;
        out->value[e] = left + right;
        out->gauge[e] = fabsl(left) + fabsl(right);
    }
    out->gate = 3; /* the coefficient rounded to the type, the product, the sum */
}

void reference_times(struct expected *out, int64_t k, const struct host_matrix *X,
                     const struct host_matrix *Y) {
    *out = expected_new(X->type, X->rows * k);
    for (int64_t e = 0; e < out->count; e++) {
        out->value[e] = (long double)host_get(X, spread(X, k, e)) * host_get(Y, spread(Y, k, e));
        out->gauge[e] = fabsl(out->value[e]);
    }
    out->gate = 1;
}

static long double mapped(kiln_map_kind kind, long double x) {
    switch (kind) {
    case KILN_MAP_ABS: return fabsl(x);
    case KILN_MAP_SQUARE: return x * x;
    case KILN_MAP_SQRT: return sqrtl(x);
    case KILN_MAP_RECIPROCAL: return x == 0 ? 0 : 1 / x;
    case KILN_MAP_EXP: return expl(x);
    case KILN_MAP_LOG: return logl(x);
    }
    return NAN;
}

void reference_map(struct expected *out, kiln_map_kind kind, const struct host_matrix *X) {
    /* OpenCL 1.2 allows 3 ulp to sqrt, exp and log and 2.5 to a division in f32; an ulp is at most two unit
     * roundoffs. */
    static const double gates[] = {0, 0, 1, 6, 5, 6, 6};
    *out = expected_new(X->type, X->nnz);
    for (int64_t e = 0; e < out->count; e++) {
        out->value[e] = mapped(kind, host_get(X, e));
        out->gauge[e] = fabsl(out->value[e]);
    }
    out->gate = gates[kind];
}

void reference_fill(struct expected *out, kiln_type type, int64_t count, double value) {
    *out = expected_new(type, count);
    for (int64_t e = 0; e < count; e++) out->value[e] = type == KILN_F32 ? (long double)(float)value : value;
}

/* -------------------------------------------------------------------------------- random numbers */

/* Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011), section 3.3. */
void reference_philox(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t L[2] = {(uint32_t)index, (uint32_t)stream},
             R[2] = {(uint32_t)(index >> 32), (uint32_t)(stream >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t first = UINT64_C(0xD2511F53) * L[0], second = UINT64_C(0xCD9E8D57) * L[1];
        L[0] = (uint32_t)(second >> 32) ^ R[0] ^ key[0];
        L[1] = (uint32_t)(first >> 32) ^ R[1] ^ key[1];
        R[0] = (uint32_t)second;
        R[1] = (uint32_t)first;
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    out[0] = L[0];
    out[1] = R[0];
    out[2] = L[1];
    out[3] = R[1];
}

static double uniform(kiln_type type, uint64_t seed, uint64_t stream, uint64_t e) {
    uint32_t word[4];
    reference_philox(word, seed, stream, e);
    if (type == KILN_F32) return ldexp(word[0] >> 8, -24);
    return ldexp((double)(((uint64_t)word[0] << 32 | word[1]) >> 11), -53);
}

/* Twelve 16-bit halves, low half of a word first, each moved to the middle of its interval: variance 12/12,
 * mean 0. */
static double normal(kiln_type type, uint64_t seed, uint64_t stream, uint64_t e) {
    uint32_t word[8];
    reference_philox(word, seed, stream, 2 * e);
    reference_philox(word + 4, seed, stream, 2 * e + 1);
    int64_t sum = 0;
    for (int half = 0; half < 12; half++) sum += word[half / 2] >> (half % 2 ? 16 : 0) & 0xFFFF;
    double value = ((double)sum + 6.0) / 65536.0 - 6.0;
    return type == KILN_F32 ? (float)value : value;
}

void reference_fill_random(struct expected *out, kiln_type type, int64_t count,
                           kiln_distribution distribution, uint64_t seed, uint64_t stream) {
    *out = expected_new(type, count);
    for (int64_t e = 0; e < count; e++)
        out->value[e] = (distribution == KILN_UNIFORM ? uniform : normal)(type, seed, stream, (uint64_t)e);
}

/* ------------------------------------------------------------------------------------ reductions */

void reference_dot(struct expected *out, const struct host_matrix *X, const struct host_matrix *Y) {
    *out = expected_new(KILN_F64, X->cols); /* accumulated in double whatever the type */
    for (int64_t e = 0; e < X->nnz; e++) {
        long double term = (long double)host_get(X, e) * host_get(Y, spread(Y, X->cols, e));
        out->value[e % X->cols] += term;
        out->gauge[e % X->cols] += fabsl(term);
    }
    out->gate = gate_for_terms((double)X->rows);
}

void reference_norm(struct expected *out, const struct host_matrix *X, kiln_norm_kind kind) {
    *out = expected_new(X->type, X->cols);
    for (int64_t e = 0; e < X->nnz; e++) {
        long double x = fabsl((long double)host_get(X, e)), *sum = &out->value[e % X->cols];
        if (kind == KILN_NORM_MAX)
            *sum = isnan(x) || isnan(*sum) ? NAN : fmaxl(*sum, x);
        else
            *sum += kind == KILN_NORM_1 ? x : x * x;
    }
    for (int64_t j = 0; j < X->cols; j++) {
        if (kind == KILN_NORM_2) out->value[j] = sqrtl(out->value[j]);
        out->gauge[j] = out->value[j];
    }
    /* Scaling costs each term three roundings, the root and unscaling two more. */
    out->gate = kind == KILN_NORM_MAX ? 0 : gate_for_terms((double)X->rows + 5);
}
