/* Sampled products: checks, and what the CPU and GPUs work on. */
#include "ops/sampled/sddmm.h"

#include <math.h>

#include "bodies/bodies.h"
#include "core/seams.h"
#include "core/sized.h"
#include "derived/columns.h"
#include "kiln/tune.h"
#include "ops/sampled/half.h"
#include "pass/combine.h"
#include "pass/group.h"
#include "pass/roles.h"

static kiln_status check_factors(const char *call, const kiln_sample *own) {
    const kiln_matrix *S = own->S;
    kiln_status status;
    if (!own->A) return ki_fail(KILN_ERR_ARGUMENT, "%s: A is NULL", call);
    if (own->A->cols < 1 || own->A->cols > KI_SAMPLE_COLUMNS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A has %lld columns, but must have from 1 to %d", call,
                       (long long)own->A->cols, KI_SAMPLE_COLUMNS);
    TRY(ki_check_dense(call, "A", own->A, S, S->rows, own->A->cols));
    TRY(ki_check_dense(call, "B", own->B, S, S->cols, own->A->cols));
done:
    return status;
}

/* All but the factors. */
static kiln_status check_sample(const char *call, kiln_sample *own, const kiln_sample *sample) {
    kiln_status status;
    if (!sample) return ki_fail(KILN_ERR_ARGUMENT, "%s: sample is NULL", call);
    TRY(KI_TAKE(kiln_sample, own, sample));
    const kiln_matrix *S = own->S;
    if (own->kind < KILN_SAMPLE_PRODUCT || own->kind > KILN_SAMPLE_RESIDUAL)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no kind of sample has the number %d", call, (int)own->kind);
    if (!S || S->format != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: S must be a CSR matrix", call);
    if (!(own->floor >= 0) || isinf(own->floor))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: floor is %g, but must be a finite number of 0 or more", call,
                       own->floor);
    if (own->floor == 0) own->floor = S->type == KILN_F32 ? 1e-30 : 1e-290;
done:
    return status;
}

/* Factors of half precision beside a sample that names none. */
static kiln_status check_halves(const char *call, kiln_sample *own, const kiln_sample *sample,
                                const kiln_half *A, const kiln_half *B) {
    kiln_status status;
    if (!A || !B) return ki_fail(KILN_ERR_ARGUMENT, "%s: A or B is NULL", call);
    TRY(check_sample(call, own, sample));
    const kiln_matrix *S = own->S;
    TRY(ki_check_operand(call, "S", S, S));
    TRY(ki_check_single(call, S->device));
    if (own->A || own->B)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: sample names factors, but must leave A and B NULL", call);
    if (S->type != KILN_F32) return ki_fail(KILN_ERR_ARGUMENT, "%s: S must be f32", call);
    if (A->type != B->type) return ki_fail(KILN_ERR_ARGUMENT, "%s: A and B differ in type", call);
    if (A->words->device != S->device || B->words->device != S->device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A, B and S must lie on one device", call);
    if (A->rows != S->rows || B->rows != S->cols || A->cols != B->cols)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s: A is %lld x %lld and B %lld x %lld, but S has %lld rows and %lld columns", call,
                       (long long)A->rows, (long long)A->cols, (long long)B->rows, (long long)B->cols,
                       (long long)S->rows, (long long)S->cols);
done:
    return status;
}

static struct ki_sampled halves_of(const kiln_sample *own, const kiln_half *A, const kiln_half *B) {
    return (struct ki_sampled){.kind = own->kind,
                               .S = own->S,
                               .k = A->cols,
                               .halves = (int)A->type,
                               .floor = own->floor,
                               .A = A->words,
                               .B = B->words};
}

static struct ki_sampled factors_of(const kiln_sample *own) {
    return (struct ki_sampled){
        .kind = own->kind, .S = own->S, .k = own->A->cols, .floor = own->floor, .A = own->A, .B = own->B};
}

/* P may be S itself, or have its structure; all of it has to be there. */
static kiln_status check_sampled(const char *call, const kiln_matrix *P, const kiln_matrix *S) {
    const kiln_status status = P ? ki_check_operand(call, "S", S, S) : KILN_OK;
    if (!P || P == S || status != KILN_OK) return status;
    if (P->type != S->type)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: P is %s, but S is %s", call, ki_type_name(P->type),
                       ki_type_name(S->type));
    if (P->here && S->here) return check_sampled(call, P->here, S->here);
    if (P->format == KILN_CSR && P->structure && P->structure == S->structure) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "%s: P does not share the structure of S", call);
    return ki_hint("make P by kiln_matrix_like(&P, S, KILN_TYPE_DEFAULT, NULL)");
}

static kiln_status sampled_cpu(const struct ki_sampled *sampled, const kiln_matrix *S) {
    struct ki_sampled own = *sampled;
    double parts[KI_SAMPLE_PARTS] = {0}, sum = 0;
    if (own.sum) own.sum = parts;
    ki_bodies(S)->sampled(&own);
    for (int part = 0; part < KI_SAMPLE_PARTS; part++) sum += parts[part];
    if (sampled->sum) *sampled->sum = sum;
    return KILN_OK;
}

/* A and B by rows of S, and exchanged by its columns, where each member's entries give a term to every row of
 * Y. */
static const struct ki_rule rules[] = {
    {offsetof(struct ki_sampled, A), KI_READS, {KI_ROW, KI_COLUMN}},
    {offsetof(struct ki_sampled, B), KI_READS, {KI_COLUMN, KI_ROW}},
    {offsetof(struct ki_sampled, Z), KI_READS, {KI_ROW, KI_SUM}},
    {offsetof(struct ki_sampled, Y), KI_WRITES, {KI_ROW, KI_SUM}},
    {offsetof(struct ki_sampled, P), KI_CHANGES, {KI_ENTRY}},
};
static const struct ki_rules table = KI_RULES(struct ki_sampled, S, offsetof(struct ki_sampled, sum), rules);

/* Fills in S, by rows or by columns, and runs. All operands are on the device. */
static kiln_status run_there(const void *of) {
    struct ki_sampled own = *(const struct ki_sampled *)of, *sampled = &own;
    const kiln_matrix *S = own.S;
    kiln_device *device = S->device;
    kiln_status status = KILN_OK;
    sampled->rows = sampled->by_columns ? S->cols : S->rows;
    sampled->nnz = S->nnz;
    if (!sampled->halves) sampled->k = sampled->B->cols;
    if (sampled->Y && !sampled->Z) sampled->beta = 0;
    struct ki_columns from = {&S->row_start, &S->col, &S->values, .long_starts = true};
    if (sampled->by_columns && S->nnz > 0) TRY(ki_columns_get(&from, S, KI_COLUMNS_ANY));
    sampled->start = from.start;
    sampled->short_starts = !from.long_starts;
    sampled->col = from.row;
    sampled->value = from.value;
    if (S->nnz == 0 && sampled->Y)
        TRY(sampled->Z ? ki_combine_all(sampled->Y, sampled->beta, sampled->Z, 0, NULL)
                       : kiln_fill(sampled->Y, 0));
    if (S->nnz == 0 && sampled->sum) *sampled->sum = 0;
    if (S->nnz > 0)
        TRY(ki_on_cpu(device) ? sampled_cpu(sampled, S) : ki_sampled_gpu(sampled, S, sampled->plan));
done:
    return status;
}

/* With S whole: beside P, which has as many numbers; of half precision, whose rows are no matrix's; and of a
 * plain product, whose caller has passes for an S that does not fit. */
static kiln_status run_whole(const struct ki_sampled *sampled) {
    const struct ki_operand operands[] = {{sampled->S, false}, {sampled->A, false}, {sampled->B, false},
                                          {sampled->Z, false}, {sampled->P, true},  {sampled->Y, true}};
    kiln_device *device = sampled->S->device;
    kiln_status status = ki_operands_hold(device, operands, 6);
    if (status != KILN_OK) return status;
    status = run_there(sampled);
    ki_operands_release(device, operands, 6);
    return status;
}

static kiln_status run_single(const void *of) {
    const struct ki_sampled *sampled = of;
    if (sampled->P || sampled->halves || !sampled->A) return run_whole(sampled);
    return ki_run_single(&(struct ki_single){.rules = &table,
                                             .kind = sampled->by_columns,
                                             .whole = sampled,
                                             .sums = sampled->sum != NULL,
                                             .run = run_there});
}

/* The first member writes into S itself, as the others' slices of S are what it was; or all do, where S is
 * nowhere whole. */
static kiln_status run(const struct ki_sampled *sampled) {
    const kiln_matrix *S = sampled->S;
    if (!ki_is_split(S) || (sampled->P == S && !S->here)) return run_single(sampled);
    return ki_share(&(struct ki_shared){.rules = &table,
                                        .kind = sampled->by_columns,
                                        .whole = sampled,
                                        .sums = sampled->sum != NULL,
                                        .fresh = sampled->beta == 0,
                                        .run = run_single});
}

kiln_status ki_sampled_multiply(kiln_matrix *Y, double alpha, kiln_transpose op, const kiln_matrix *S,
                                const kiln_matrix *B, double beta, const kiln_matrix *Z) {
    return run(&(struct ki_sampled){.by_columns = op == KILN_TRANSPOSED,
                                    .S = S,
                                    .B = B,
                                    .Y = Y,
                                    .Z = beta != 0 ? Z : NULL,
                                    .alpha = alpha,
                                    .beta = beta});
}

/* Into P, the sum or both. */
static kiln_status sample_into(const char *call, struct ki_sampled sampled, kiln_matrix *P, double *sum,
                               double alpha, double beta) {
    kiln_status status;
    if (!P && !sum) return ki_fail(KILN_ERR_ARGUMENT, "%s: P and sum are NULL", call);
    sampled.P = P;
    sampled.sum = sum;
    sampled.alpha = alpha;
    sampled.beta = beta;
    TRY(check_sampled(call, P, sampled.S));
    TRY(run(&sampled));
done:
    return status;
}

kiln_status kiln_sddmm(kiln_matrix *P, double *sum, double alpha, const kiln_sample *sample, double beta) {
    static const char call[] = "kiln_sddmm";
    kiln_status status;
    kiln_sample own;
    TRY(check_sample(call, &own, sample));
    TRY(check_factors(call, &own));
    TRY(sample_into(call, factors_of(&own), P, sum, alpha, beta));
done:
    return status;
}

kiln_status kiln_sddmm_half(kiln_matrix *P, double *sum, double alpha, const kiln_sample *sample,
                            const kiln_half *A, const kiln_half *B, double beta) {
    static const char call[] = "kiln_sddmm_half";
    kiln_status status;
    kiln_sample own;
    TRY(check_halves(call, &own, sample, A, B));
    TRY(sample_into(call, halves_of(&own, A, B), P, sum, alpha, beta));
done:
    return status;
}

kiln_status kiln_sddmm_with(const kiln_plan *plan, kiln_matrix *P, const kiln_sample *sample) {
    static const char call[] = "kiln_sddmm_with";
    struct ki_sampled_plan found[KI_SAMPLED_PLANS];
    kiln_status status;
    kiln_sample own;
    int n = 1;
    if (!plan || !P) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(check_sample(call, &own, sample));
    TRY(check_factors(call, &own));
    TRY(check_sampled(call, P, own.S));
    if (P == own.S) return ki_fail(KILN_ERR_ARGUMENT, "%s: P must not be S", call);
    TRY(ki_check_single(call, own.S->device));
    const struct ki_sampled_shape shape = {.rows = own.S->rows,
                                           .cols = own.S->cols,
                                           .nnz = own.S->nnz,
                                           .k = own.A->cols,
                                           .type = own.S->type,
                                           .has_place = true};
    const bool planned = !ki_on_cpu(own.S->device) && own.S->nnz > 0;
    if (planned) n = ki_sampled_plans(found, own.S->device, &shape);
    if (plan->number < 0 || plan->number >= n)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: plan %lld is none of this product's %d", call,
                       (long long)plan->number, n);
    struct ki_sampled sampled = factors_of(&own);
    sampled.P = P;
    sampled.alpha = 1;
    sampled.plan = planned ? &found[plan->number] : NULL;
    TRY(run(&sampled));
done:
    return status;
}

/* Into Y: A and B are the factors by rows and by columns of S, k numbers wide. */
static kiln_status multiply_into(const char *call, struct ki_sampled sampled, kiln_matrix *Y, double *sum,
                                 double alpha, kiln_transpose op, double beta, const kiln_matrix *Z) {
    const kiln_matrix *S = sampled.S, *A = sampled.A, *B = sampled.B;
    kiln_status status;
    if (op != KILN_PLAIN && op != KILN_TRANSPOSED)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: op is %d, but must be KILN_PLAIN or KILN_TRANSPOSED", call,
                       (int)op);
    const int64_t rows = op == KILN_PLAIN ? S->rows : S->cols;
    TRY(ki_check_dense(call, "Y", Y, S, rows, sampled.k));
    if (Z) TRY(ki_check_dense(call, "Z", Z, S, rows, sampled.k));
    if (Y == A || Y == B) return ki_fail(KILN_ERR_ARGUMENT, "%s: Y must not be A or B", call);
    sampled.Y = Y;
    sampled.sum = sum;
    sampled.alpha = alpha;
    sampled.beta = beta;
    sampled.Z = beta != 0 ? Z : NULL;
    sampled.by_columns = op == KILN_TRANSPOSED;
    if (sampled.by_columns) {
        sampled.A = B;
        sampled.B = A;
    }
    TRY(run(&sampled));
done:
    return status;
}

kiln_status kiln_sddmm_multiply(kiln_matrix *Y, double *sum, double alpha, kiln_transpose op,
                                const kiln_sample *sample, double beta, const kiln_matrix *Z) {
    static const char call[] = "kiln_sddmm_multiply";
    kiln_status status;
    kiln_sample own;
    TRY(check_sample(call, &own, sample));
    TRY(check_factors(call, &own));
    TRY(multiply_into(call, factors_of(&own), Y, sum, alpha, op, beta, Z));
done:
    return status;
}

kiln_status kiln_sddmm_multiply_half(kiln_matrix *Y, double *sum, double alpha, kiln_transpose op,
                                     const kiln_sample *sample, const kiln_half *A, const kiln_half *B,
                                     double beta, const kiln_matrix *Z) {
    static const char call[] = "kiln_sddmm_multiply_half";
    kiln_status status;
    kiln_sample own;
    TRY(check_halves(call, &own, sample, A, B));
    TRY(multiply_into(call, halves_of(&own, A, B), Y, sum, alpha, op, beta, Z));
done:
    return status;
}
