/* Steps of PageRank's power iteration: P = (1 - d) teleport + d (A^T D^-1 P + mass dangling), all of it in
 * one walk over the links by where they lead (derived/links.h).
 *
 * What a vertex gives along each link is the same, so that without weights no value is stored for a link: the
 * walk gathers C = D^-1 P. The row that it has gathered for becomes P's, gives the next C, and adds to the
 * mass that dangles and to the change.
 * P is overwritten, as only C is gathered from, which so comes in two copies that change places. */
#include "ops/graph/ranks.h"

#include <float.h>

#include "bodies/bodies.h"
#include "core/size.h"
#include "core/sized.h"
#include "dialect/scalar_math.h"
#include "ops/graph/ranks_error.h"
#include "pass/combine.h"
#include "pass/group.h"
#include "pass/rows.h"

_Static_assert(RANKS_COLUMNS == KI_RANKS_COLUMNS, "kernels have places for as many");

/* ---- checks ---- */

/* The vectors of a graph that is shared may lie with others. */
static kiln_status check_vertices(const char *call, const char *name, const kiln_matrix *v,
                                  const kiln_matrix *A, int64_t cols) {
    return (ki_is_split(A) ? ki_check_rows : ki_check_dense)(call, name, v, A, A->rows, cols);
}

static kiln_status check_vector(const char *call, const char *name, const kiln_matrix *v,
                                const kiln_ranks *on) {
    return v ? check_vertices(call, name, v, on->A, v->cols == 1 ? 1 : on->P->cols) : KILN_OK;
}

static kiln_status check_state(const char *call, const kiln_ranks *on) {
    const kiln_matrix *S = on->S, *P = on->P;
    const kiln_status status = ki_check_wide(call, "S", S, P, -(RANKS_ROWS + 1), P->cols);
    if (status != KILN_OK) return status;
    if (on->C == on->next || on->C == P || on->next == P || on->factor == P || on->factor == on->C ||
        on->factor == on->next || S == P || S == on->C || S == on->next || S == on->factor)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: P, C, next, factor and S must be five matrices", call);
    if ((on->teleport && (on->teleport == P || on->teleport == on->C || on->teleport == on->next)) ||
        (on->dangling && (on->dangling == P || on->dangling == on->C || on->dangling == on->next)))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: teleport and dangling must not be P, C or next", call);
    return KILN_OK;
}

static kiln_status check(const char *call, const kiln_ranks *on) {
    kiln_status status;
    if (!on->A || !on->P || !on->C || !on->next || !on->factor || !on->S)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A, P, C, next, factor or S is NULL", call);
    const kiln_matrix *A = on->A, *P = on->P;
    if (A->format != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: A must be sparse", call);
    if (A->rows != A->cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A is %lld x %lld, but must be square", call,
                       (long long)A->rows, (long long)A->cols);
    if (P->cols < 1 || P->cols > KI_RANKS_COLUMNS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: P has %lld columns, but must have 1 to %d", call,
                       (long long)P->cols, KI_RANKS_COLUMNS);
    if ((int)on->layout < 0 || on->layout > KILN_LAYOUT_BALANCED)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: layout is %d, but must be 0 to 3", call, (int)on->layout);
    if (!(on->damping >= 0 && on->damping <= 1))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: damping is %g, but must be in [0, 1]", call, on->damping);
    TRY(ki_check_passed(call, "A", A, P));
    TRY(check_vertices(call, "P", P, A, P->cols));
    TRY(check_vertices(call, "C", on->C, A, P->cols));
    TRY(check_vertices(call, "next", on->next, A, P->cols));
    TRY(check_vertices(call, "factor", on->factor, A, 1));
    TRY(check_vector(call, "teleport", on->teleport, on));
    TRY(check_vector(call, "dangling", on->dangling, on));
    TRY(check_state(call, on));
done:
    return status;
}

/* ---- one device ---- */

/* The state after a step, or at the beginning, from rows of sums that are added in order. */
static void settle_cpu(const struct ki_ranks *ranks, const double *sums, int64_t rows, int64_t number) {
    double *S = ki_host(&ranks->on.S->values);
    const int64_t k = ranks->on.P->cols, slot = number % (ranks->on.S->rows - RANKS_ROWS);
    const bool begins = number == KI_RANKS_BEGIN;
    bool more = begins;
    if (!begins && S[RANKS_ACTIVE * k] == 0) return;
    for (int64_t c = 0; c < k; c++) {
        double mass = 0, change = 0;
        for (int64_t row = 0; row < rows; row++) {
            mass += sums[row * 2 * k + c];
            change += sums[row * 2 * k + k + c];
        }
        S[RANKS_MASS * k + c] = mass;
        if (!begins) S[(RANKS_ROWS + slot) * k + c] = change;
        more = more || !(change <= S[RANKS_GOAL * k + c]);
    }
    for (int64_t c = 0; c < k; c++) {
        S[RANKS_TAKEN * k + c] = begins ? 0 : S[RANKS_TAKEN * k + c] + 1;
        S[RANKS_ACTIVE * k + c] = more;
    }
}

static const kiln_matrix *sums_of(const struct ki_ranks *ranks, int64_t number) {
    return ranks->sums[number == KI_RANKS_BEGIN ? 0 : number % 2];
}

kiln_status ki_ranks_settle(const struct ki_ranks *ranks, int64_t number) {
    const kiln_matrix *sums = sums_of(ranks, number);
    if (!ki_on_cpu(ranks->on.P->device)) return ki_ranks_settle_gpu(ranks, number);
    settle_cpu(ranks, ki_host(&sums->values), sums->rows, number);
    return KILN_OK;
}

static void run_cpu(const struct ki_ranks *ranks, int64_t number) {
    const kiln_matrix *sums = sums_of(ranks, number);
    double own[2 * KI_RANKS_COLUMNS],
        *row = sums ? (double *)ki_host(&sums->values) + ranks->place.member * sums->cols : own;
    if (number == KI_RANKS_BEGIN)
        ki_bodies(ranks->on.P)->ranks_begin(ranks, row);
    else
        ki_bodies(ranks->on.P)->ranks_step(ranks, number, row);
    if (!sums) settle_cpu(ranks, row, 1, number);
}

static kiln_status run_held(const struct ki_ranks *ranks, int64_t first, int64_t count) {
    const bool begins = count == KI_RANKS_BEGIN;
    if (!ki_on_cpu(ranks->on.P->device))
        return begins ? ki_ranks_begin_gpu(ranks) : ki_ranks_steps_gpu(ranks, first, count);
    if (begins) run_cpu(ranks, KI_RANKS_BEGIN);
    for (int64_t number = first; number < first + count; number++) run_cpu(ranks, number);
    return KILN_OK;
}

/* A stays on the device meanwhile, and with it what is derived from it. */
kiln_status ki_ranks_run(const struct ki_ranks *given, int64_t first, int64_t count) {
    struct ki_ranks ranks = *given;
    const kiln_matrix *A = ranks.on.A;
    const struct ki_operand operand = {A, false};
    kiln_status status;
    TRY(ki_operands_hold(A->device, &operand, 1));
    if (count != KI_RANKS_BEGIN)
        status = ki_links_get(&ranks.in, A, ranks.on.layout, ranks.on.P->cols, ranks.on.weighted != 0);
    if (status == KILN_OK) status = run_held(&ranks, first, count);
    ki_operands_release(A->device, &operand, 1);
done:
    return status;
}

/* ---- rounding ---- */

/* A link takes a rank to another by seven roundings to the ranks' type: of 1 / weight, of its product with
 * the rank, of that with the link's weight, of the sum, of the damping, of the product, and of the additions
 * of two terms; the other terms take fewer. Long sums in double count for four more in f32 (2^31 links, one
 * after another), and in f64 do not depend on the length: IN_TURN additions one after another, in halves or
 * with what they have rounded off, and the parts that shares have. Masses and changes are sums over the
 * vertices, of at least SIDE chains side by side. */
double ki_ranks_error(double *measured, const kiln_ranks *ranks, double mass) {
    enum { ROUNDINGS = 14, IN_TURN = 400, SIDE = 64 };
    const double unit = (ranks->P->type == KILN_F32 ? FLT_EPSILON : DBL_EPSILON) / 2,
                 of_sums = (ranks->S->type == KILN_F32 ? FLT_EPSILON : DBL_EPSILON) / 2,
                 chain = (double)ranks->P->rows / SIDE + KI_WINDOW_CPU + IN_TURN;
    *measured = chain * of_sums;
    return ROUNDINGS * unit + (IN_TURN + mass * chain) * of_sums;
}

/* ---- both ---- */

static kiln_status run(const char *call, const kiln_ranks *given, int64_t first, int64_t count) {
    struct ki_ranks ranks = {.first = first, .count = count};
    kiln_status status;
    TRY(KI_TAKE(kiln_ranks, &ranks.on, given));
    TRY(check(call, &ranks.on));
    const kiln_matrix *A = ranks.on.A;
    if (count != KI_RANKS_BEGIN && (first < 0 || count < 0 || count > ranks.on.S->rows - RANKS_ROWS))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld steps from number %lld on, but S has rows for %lld", call,
                       (long long)count, (long long)first, (long long)(ranks.on.S->rows - RANKS_ROWS));
    if (A->rows == 0) return KILN_OK;
    return ki_is_split(A)                ? ki_ranks_share(&ranks)
           : ki_ranks_streams(&ranks.on) ? ki_ranks_stream(&ranks, first, count)
                                         : ki_ranks_run(&ranks, first, count);
done:
    return status;
}

kiln_status kiln_ranks_begin(const kiln_ranks *ranks) {
    static const char call[] = "kiln_ranks_begin";
    if (!ranks) return ki_fail(KILN_ERR_ARGUMENT, "%s: ranks is NULL", call);
    return run(call, ranks, 0, KI_RANKS_BEGIN);
}

kiln_status kiln_ranks_step(const kiln_ranks *ranks, int64_t first, int64_t count) {
    static const char call[] = "kiln_ranks_step";
    if (!ranks) return ki_fail(KILN_ERR_ARGUMENT, "%s: ranks is NULL", call);
    if (count < 0) return ki_fail(KILN_ERR_ARGUMENT, "%s: count is %lld", call, (long long)count);
    return run(call, ranks, first, count);
}
