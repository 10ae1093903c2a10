/* Rows of a factor matrix on a GPU: conjugate gradient for all of them at once, in fused sampled products, so
 * that a long row is everybody's work; Cholesky's decomposition a row a group; the loss by a sampled product
 * that only adds up. */
#include <stdio.h>

#include "core/arguments.h"
#include "core/seams.h"
#include "core/size.h"
#include "ops/sampled/factor_cholesky.cl"
#include "ops/sampled/factor_rows.h"
#include "ops/sampled/factor_step.cl"
#include "ops/sampled/sddmm.h"
#include "pass/combine.h"

/* One line longer than LONG_LINE beside the row's four vectors is all that 48 KB hold. */
enum { GROUP = 64, TILE_BYTES = 24 << 10, LONG_LINE = 4 << 10, MATRICES_BYTES = 256 << 20 };
enum { STEP_GROUP = 128, GROUPS_A_UNIT = 32 };
/* Threads of a row. With a Gram matrix fewer, each with more numbers: what a number of the row is loaded
 * for. */
enum { STEP_VECTOR = 32, STEP_VECTOR_GRAM = 8 };

KI_ARGUMENTS(factor_cholesky);
KI_ARGUMENTS(factor_step);
KI_ARGUMENTS(factor_own);
KI_ARGUMENTS(factor_entries);
KI_ARGUMENTS(factor_padded);

/* ----------------------------------------------------------------------------------------- Cholesky */

/* The part of the mean that the type has no digits for: entries less the mean are exact near it, so that the
 * mean's rounding would be theirs. */
static double rest_of(const kiln_factor_rows *given) {
    return given->R->type == KILN_F32 ? given->mean - (double)(float)given->mean : 0;
}

static int64_t square_bytes(const kiln_matrix *A) {
    return A->cols * A->cols * ki_type_bytes(A->type);
}

/* Returns how many rows' matrices keep the device busy, within a share of its memory. */
static int64_t matrix_groups(const kiln_matrix *A) {
    const int64_t most = ki_min(A->rows, (int64_t)A->device->properties.compute_units * GROUPS_A_UNIT);
    return ki_max(1, ki_min(most, ki_min(MATRICES_BYTES, A->device->budget / 8) / square_bytes(A)));
}

static kiln_status cholesky(const struct ki_factor_rows *rows) {
    kiln_status status;
    const kiln_factor_rows *given = &rows->given;
    kiln_matrix *A = rows->A;
    kiln_device *device = A->device;
    const int64_t element = ki_type_bytes(A->type), n = A->cols, groups = matrix_groups(A);
    const int64_t tile =
        n * element > LONG_LINE ? 1 : ki_max(4, ki_min(256, TILE_BYTES / (n * element)) / 4 * 4);
    struct ki_buffer matrices = {0};
    const char *defines = KI_DEFINES("-DWIDTH=%d -DLINES=%d -DGROUP=%d", (int)n, (int)tile, GROUP);
    TRY(ki_device_scratch(device, &matrices, groups * square_bytes(A)));
    TRY(ki_kernel_run(device, "factor_cholesky", "factor_cholesky", A->type, defines, groups, GROUP,
                      KI_PACK(factor_cholesky, A, .A = A, .matrices = &matrices,
                              .row_start = &given->R->row_start, .col = &given->R->col, .values = given->R,
                              .B = given->B, .gram = given->gram, .rows = A->rows, .mean = given->mean,
                              .rest = rest_of(given), .l2 = given->l2, .alpha = given->alpha,
                              .proportional = given->proportional != 0, .biases = given->biases != 0,
                              .counted = given->counted != 0)));
done:
    return status;
}

/* --------------------------------------------------------------------------------- a model made plain */

enum { PIECE_BYTES = 16, LISTS = 16 }; /* LISTS: bytes a row of what finds long rows' pieces */

/* Columns with zeros up to whole pieces: an odd number of them would be loaded one by one. */
static int64_t pitch_of(const kiln_matrix *A) {
    const int64_t piece = PIECE_BYTES / ki_type_bytes(A->type);
    return ki_ceil_div(A->cols, piece) * piece;
}

/* The entries without mean and biases, NULL where they are so already; B and the rows, padded, NULL where
 * they need not be. Q, R and P of all rows, for conjugate gradient, padded. */
struct plain {
    kiln_matrix *values, *features, *rows, *Q, *R, *P;
};

static void free_plain(struct plain *p) {
    kiln_matrix *const all[] = {p->values, p->features, p->rows, p->Q, p->R, p->P};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

static void column_defines(char defines[48], const kiln_matrix *B) {
    snprintf(defines, 48, "-DCOLUMNS=%d -DPITCH=%d", (int)B->cols, (int)pitch_of(B));
}

static kiln_status make_padded(kiln_matrix **to, const kiln_matrix *from, bool ones) {
    kiln_status status;
    char defines[48];
    column_defines(defines, from);
    TRY(ki_matrix_new(to, from->device, from->type, from->rows, pitch_of(from)));
    TRY(ki_launch_elements(
        *to, (*to)->nnz, "factor_step", "factor_padded", defines,
        KI_PACK(factor_padded, from, .to = *to, .from = from, .numbers = (*to)->nnz, .ones = ones)));
done:
    return status;
}

/* Entries are the values that the rows are to have. */
static bool is_plain(const kiln_factor_rows *given) {
    return given->gram || (given->mean == 0 && !given->biases);
}

static kiln_status make_plain(struct plain *p, const kiln_factor_rows *given, const kiln_matrix *A) {
    const kiln_matrix *R = given->R, *B = given->B;
    const bool odd = pitch_of(B) != B->cols;
    kiln_status status = KILN_OK;
    char defines[48];
    column_defines(defines, B);
    if (R->nnz == 0) return KILN_OK;
    if (given->biases || odd) TRY(make_padded(&p->features, B, given->biases));
    if (odd) TRY(make_padded(&p->rows, A, false));
    if (is_plain(given)) return KILN_OK;
    TRY(ki_matrix_new(&p->values, R->device, R->type, R->nnz, 1));
    TRY(ki_launch_elements(p->values, R->nnz, "factor_step", "factor_entries", defines,
                           KI_PACK(factor_entries, R, .values = p->values, .R = R, .col = &R->col, .B = B,
                                   .entries = R->nnz, .mean = given->mean, .rest = rest_of(given),
                                   .biases = given->biases != 0)));
done:
    return status;
}

/* Return the kinds of sample that are the right-hand side, and a product with the matrix. */
static int wanted_of(const kiln_factor_rows *given) {
    if (!given->gram) return KILN_SAMPLE_RESIDUAL;
    return given->proportional ? KI_SAMPLE_WANTED_PROPORTIONAL : KI_SAMPLE_WANTED;
}

static int seen_of(const kiln_factor_rows *given) {
    if (!given->gram) return KILN_SAMPLE_PRODUCT;
    return given->proportional ? KI_SAMPLE_SEEN_PROPORTIONAL : KI_SAMPLE_SEEN;
}

/* Y = what the entries have of A's rows, or *sum of it, or neither if there are none. */
static kiln_status sample(kiln_matrix *Y, double *sum, int kind, const kiln_matrix *A, const struct plain *p,
                          const kiln_factor_rows *given) {
    const kiln_matrix *R = given->R;
    if (R->nnz == 0) return KILN_OK;
    return ki_sampled_gpu(&(struct ki_sampled){.kind = kind,
                                               .rows = R->rows,
                                               .nnz = R->nnz,
                                               .k = pitch_of(given->B),
                                               .start = &R->row_start,
                                               .col = &R->col,
                                               .value = p->values ? &p->values->values : &R->values,
                                               .A = A,
                                               .B = p->features ? p->features : given->B,
                                               .Y = Y,
                                               .alpha = 1,
                                               .floor = given->alpha,
                                               .sum = sum},
                          R, NULL);
}

/* A kernel of factor_step.cl in which a vector of threads shares a row, and how many groups it is launched
 * with. */
static kiln_status row_kernel(struct ki_kernel **kernel, int64_t *groups, const char *name,
                              const kiln_matrix *A, const kiln_factor_rows *given) {
    const int vector = given->gram ? STEP_VECTOR_GRAM : STEP_VECTOR;
    const char *defines = KI_DEFINES("-DWIDTH=%d -DPITCH=%d -DVS=%d -DBS=%d%s", (int)A->cols,
                                     (int)pitch_of(A), vector, STEP_GROUP, given->gram ? " -DGRAM" : "");
    *groups = ki_min(ki_ceil_div(A->rows, STEP_GROUP / vector),
                     (int64_t)A->device->properties.compute_units * GROUPS_A_UNIT);
    return ki_kernel_get(kernel, A->device, "factor_step", name, A->type, defines);
}

/* ------------------------------------------------------------------------------- conjugate gradient */

static kiln_status step(const struct ki_factor_rows *rows, const struct plain *p, struct ki_kernel *kernel,
                        int64_t groups) {
    const kiln_factor_rows *given = &rows->given;
    return ki_kernel_launch(rows->A->device, kernel, groups, STEP_GROUP,
                            KI_PACK(factor_step, rows->A, .X = rows->A, .R = p->R, .P = p->P, .Q = p->Q,
                                    .row_start = &given->R->row_start, .gram = given->gram,
                                    .rows = rows->A->rows, .l2 = given->l2, .counted = given->counted != 0));
}

static kiln_status conjugate_gradient(const struct ki_factor_rows *rows, struct plain *p) {
    const kiln_factor_rows *given = &rows->given;
    const kiln_matrix *A = rows->A;
    kiln_matrix **const vectors[] = {&p->Q, &p->R, &p->P};
    struct ki_kernel *begin, *kernel;
    int64_t groups;
    kiln_status status;
    TRY(row_kernel(&begin, &groups, "factor_begin", A, given));
    TRY(row_kernel(&kernel, &groups, "factor_step", A, given));
    for (int i = 0; i < 3; i++) TRY(ki_matrix_new(vectors[i], A->device, A->type, A->rows, pitch_of(A)));
    TRY(sample(p->Q, NULL, wanted_of(given), p->rows ? p->rows : A, p, given));
    TRY(step(rows, p, begin, groups));
    for (int64_t i = 0; i < given->steps; i++) {
        TRY(sample(p->Q, NULL, seen_of(given), p->P, p, given));
        TRY(step(rows, p, kernel, groups));
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- loss */

/* Finds what the rows have of the loss without their entries. */
static kiln_status own_parts(double *loss, const struct ki_factor_rows *rows) {
    const kiln_factor_rows *given = &rows->given;
    const kiln_matrix *A = rows->A;
    kiln_device *device = A->device;
    struct ki_buffer sums;
    struct ki_kernel *kernel;
    int64_t groups;
    double *host = NULL;
    kiln_status status;
    TRY(row_kernel(&kernel, &groups, "factor_own", A, given));
    const int64_t bytes = groups * (int64_t)sizeof *host;
    TRY(ki_device_space(device, 0, &sums, bytes));
    if (!(host = ki_alloc((size_t)bytes))) TRY(ki_fail_nomem((size_t)bytes, "the rows' losses"));
    TRY(ki_kernel_launch(device, kernel, groups, STEP_GROUP,
                         KI_PACK(factor_own, A, .X = A, .row_start = &given->R->row_start,
                                 .gram = given->gram, .sums = &sums, .rows = A->rows, .l2 = given->l2,
                                 .counted = given->counted != 0, .parts = rows->parts)));
    TRY(ki_download_wide(host, device, &sums, 0, groups));
    for (int64_t g = 0; g < groups; g++) *loss += host[g] / 2;
done:
    ki_free(host);
    return status;
}

static kiln_status loss(const struct ki_factor_rows *rows, const struct plain *p) {
    const kiln_factor_rows *given = &rows->given;
    double fit = 0;
    kiln_status status = KILN_OK;
    if (rows->parts & KILN_FACTOR_FIT)
        TRY(sample(NULL, &fit, wanted_of(given), p->rows ? p->rows : rows->A, p, given));
    *rows->loss = fit / 2;
    TRY(own_parts(rows->loss, rows));
done:
    return status;
}

int64_t ki_factor_rows_work(const struct ki_factor_rows *rows) {
    const kiln_factor_rows *given = &rows->given;
    const kiln_matrix *A = rows->A;
    if (rows->task == KI_FACTOR_SOLVE_CHOLESKY) return matrix_groups(A) * square_bytes(A);
    const int64_t values = is_plain(given) ? 0 : given->R->nnz,
                  vectors = rows->task == KI_FACTOR_LOSS ? 1 : 4,
                  padded = (vectors * A->rows + given->B->rows) * pitch_of(A);
    return ki_type_bytes(A->type) * (values + padded) + LISTS * (A->rows + 1);
}

kiln_status ki_factor_rows_gpu(const struct ki_factor_rows *rows) {
    struct plain p = {0};
    bool held = false;
    kiln_status status;
    if (rows->task == KI_FACTOR_SOLVE_CHOLESKY) return cholesky(rows);
    if (rows->task == KI_FACTOR_SOLVE_CG || rows->parts & KILN_FACTOR_FIT)
        TRY(make_plain(&p, &rows->given, rows->A));
    const struct ki_operand operands[] = {{p.values, false}, {p.features, false}};
    TRY(ki_operands_hold(rows->A->device, operands, 2));
    held = true;
    TRY(rows->task == KI_FACTOR_LOSS ? loss(rows, &p) : conjugate_gradient(rows, &p));
done:
    if (held) ki_operands_release(rows->A->device, operands, 2);
    free_plain(&p);
    return status;
}
