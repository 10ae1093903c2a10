/* Rows of a factor matrix, each from a least-squares problem of its own: checks, and the CPU's work. */
#include "ops/sampled/factor_rows.h"

#include <math.h>

#include "bodies/bodies.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/threads.h"
#include "pass/group.h"
#include "pass/roles.h"

/* MOST: factors, beside which there may be a bias. */
enum { MOST = 1024, STEPS = 3, LINE = 16, PIECES_PER_THREAD = 8, TILE_BYTES = 192 << 10 };

/* ------------------------------------------------------------------------------------------- checks */

static kiln_status check_numbers(const char *call, const kiln_factor_rows *rows) {
    if (!(rows->l2 >= 0) || isinf(rows->l2) || !(rows->alpha >= 0) || isinf(rows->alpha) ||
        !isfinite(rows->mean))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: l2, alpha and mean must be finite, the first two not negative",
                       call);
    if (rows->solver < 0 || rows->solver > KILN_FACTOR_CHOLESKY || rows->steps < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: there is no solver %d with %lld steps", call,
                       (int)rows->solver, (long long)rows->steps);
    if (rows->biases && rows->gram)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an implicit model has no biases", call);
    return KILN_OK;
}

static kiln_status check(const char *call, const kiln_factor_rows *rows, const kiln_matrix *A) {
    kiln_status status;
    const kiln_matrix *R = rows->R;
    if (!R || R->format != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: R must be sparse", call);
    TRY(ki_check_operand(call, "A", A, R));
    TRY(ki_check_dense(call, "A", A, R, R->rows, A->cols));
    if (A->cols < 1 + (rows->biases != 0) || A->cols > MOST + (rows->biases != 0))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A has %lld columns, but must have %d to %d", call,
                       (long long)A->cols, 1 + (rows->biases != 0), MOST + (rows->biases != 0));
    TRY(ki_check_dense(call, "B", rows->B, R, R->cols, A->cols));
    if (rows->gram) TRY(ki_check_dense(call, "gram", rows->gram, R, A->cols, A->cols));
    if (A == rows->B || A == rows->gram)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A must not be another operand", call);
    TRY(check_numbers(call, rows));
done:
    return status;
}

/* ---------------------------------------------------------------------------------------------- CPU */

/* Pieces of about equal work: an entry's, and a row's own as that of so many entries. */
static void cut_rows(struct ki_factor_rows *rows) {
    const kiln_matrix *R = rows->given.R;
    const int64_t *start = ki_host(&R->row_start), own = rows->task == KI_FACTOR_SOLVE_CHOLESKY ? 64 : 8;
    int64_t u = 0;
    for (int piece = 0; piece < rows->pieces; piece++) {
        const int64_t goal = ki_part_begin(R->nnz + own * R->rows, piece, rows->pieces);
        while (u < R->rows && start[u] + own * u < goal) u++;
        rows->cut[piece] = u;
    }
    rows->cut[rows->pieces] = R->rows;
}

static kiln_status run_cpu(struct ki_factor_rows *rows) {
    kiln_status status = KILN_OK;
    const kiln_matrix *A = rows->A;
    const int64_t element = ki_type_bytes(A->type), pitch = ki_ceil_div(A->cols, LINE) * LINE;
    const int64_t matrix = rows->task == KI_FACTOR_SOLVE_CHOLESKY ? pitch * pitch : 0;
    rows->tile = ki_max(TILE_BYTES / (pitch * element), 16) / 16 * 16;
    rows->pieces = (int)ki_max(1, ki_min(A->rows, (int64_t)A->device->threads * PIECES_PER_THREAD));
    rows->space_one = (4 * pitch + 2 * rows->tile + rows->tile * pitch + matrix) * element;
    rows->cut = ki_alloc((size_t)(rows->pieces + 1) * sizeof *rows->cut);
    rows->space = ki_alloc((size_t)(rows->pieces * rows->space_one));
    if (!rows->cut || !rows->space)
        TRY(ki_fail_nomem((size_t)(rows->pieces * rows->space_one), "the rows' problems"));
    if (rows->loss && !(rows->each = ki_alloc((size_t)A->rows * sizeof *rows->each)))
        TRY(ki_fail_nomem((size_t)A->rows * sizeof *rows->each, "the rows' losses"));
    cut_rows(rows);
    ki_bodies(A)->factor_rows(rows);
    for (int64_t u = 0; rows->loss && u < A->rows; u++) *rows->loss += rows->each[u];
done:
    ki_free(rows->each);
    ki_free(rows->space);
    ki_free(rows->cut);
    return status;
}

/* ---------------------------------------------------------------------------------------- the whole */

/* A row of A is its member's alone, whose rows of R and all of B it needs. */
static const struct ki_rule solve_rules[] = {
    {offsetof(struct ki_factor_rows, given.B), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_factor_rows, given.gram), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_factor_rows, A), KI_CHANGES, {KI_ROW}},
};
static const struct ki_rule loss_rules[] = {
    {offsetof(struct ki_factor_rows, given.B), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_factor_rows, given.gram), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_factor_rows, A), KI_READS, {KI_ROW}},
};
static const struct ki_rules solve_table = KI_RULES(struct ki_factor_rows, given.R, 0, solve_rules);
static const struct ki_rules loss_table =
    KI_RULES(struct ki_factor_rows, given.R, offsetof(struct ki_factor_rows, loss), loss_rules);

/* This runs where R and the factors are on the device. */
static kiln_status run_there(const void *of) {
    struct ki_factor_rows own = *(const struct ki_factor_rows *)of, *rows = &own;
    if (rows->loss) *rows->loss = 0;
    if (rows->A->rows == 0) return KILN_OK;
    return ki_on_cpu(rows->A->device) ? run_cpu(rows) : ki_factor_rows_gpu(rows);
}

static kiln_status run_single(const void *of) {
    const struct ki_factor_rows *rows = of;
    return ki_run_single(&(struct ki_single){.rules = rows->loss ? &loss_table : &solve_table,
                                             .whole = rows,
                                             .sums = rows->loss != NULL,
                                             .work = ki_factor_rows_work(rows),
                                             .run = run_there});
}

static kiln_status run(const struct ki_factor_rows *rows) {
    if (!ki_is_split(rows->given.R)) return run_single(rows);
    return ki_share(&(struct ki_shared){.rules = rows->loss ? &loss_table : &solve_table,
                                        .whole = rows,
                                        .sums = rows->loss != NULL,
                                        .run = run_single});
}

kiln_status kiln_factor_solve(kiln_matrix *A, const kiln_factor_rows *rows) {
    static const char call[] = "kiln_factor_solve";
    kiln_status status;
    kiln_factor_rows given;
    if (!rows) return ki_fail(KILN_ERR_ARGUMENT, "%s: rows is NULL", call);
    TRY(KI_TAKE(kiln_factor_rows, &given, rows));
    TRY(check(call, &given, A));
    if (given.steps == 0) given.steps = STEPS;
    struct ki_factor_rows problem = {.given = given,
                                     .A = A,
                                     .task = given.solver == KILN_FACTOR_CHOLESKY ? KI_FACTOR_SOLVE_CHOLESKY
                                                                                  : KI_FACTOR_SOLVE_CG};
    TRY(run(&problem));
done:
    return status;
}

kiln_status kiln_factor_loss(double *loss, const kiln_factor_rows *rows, const kiln_matrix *A, int parts) {
    static const char call[] = "kiln_factor_loss";
    kiln_status status;
    kiln_factor_rows given;
    double sum = 0;
    if (!loss || !rows || !A) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (parts < 1 || parts > (KILN_FACTOR_FIT | KILN_FACTOR_PENALTY))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: there are no parts %d", call, parts);
    TRY(KI_TAKE(kiln_factor_rows, &given, rows));
    TRY(check(call, &given, A));
    struct ki_factor_rows problem = {.given = given,
                                     .A = (kiln_matrix *)(uintptr_t)A, /* which a loss only reads */
                                     .task = KI_FACTOR_LOSS,
                                     .parts = parts,
                                     .loss = &sum};
    TRY(run(&problem));
    *loss = sum;
done:
    return status;
}
