/* Coefficients may be too many for a proof: Newton's step then says whether an optimum is at infinity.
 *
 * Let d be Newton's step. The gradient is 0 = sum_i a_i z_i x_i but for what d takes away, a_i > 0 the
 * size of row i's slope, z_i its sign, and d changes a_i by h_i x_i.d. If |h_i x_i.d| < a_i for every row,
 * positive a_i are left that make the gradient exactly 0, and by Stiemke's lemma no direction lowers a
 * row's loss for ever and raises none. So where an optimum is at infinity some row's loss falls by about
 * 1/e or more in every step, at any distance, whereas near a finite optimum a step changes nothing. Each
 * row is asked one question: what does a step from the result make of its loss?
 *
 * Where some rows fall and others have something against that, the answer is that there is none. The fit's
 * own last step does not tell: it need not have gone far along a column of few rows, whose gradient was
 * small. */
#include "algorithms/separation/separation.h"

/* FALLEN: a row's loss that goes to 0 becomes at most this much of itself: 1/e but for the inexact step, 1/2
 * with cauchit. STILL: the other rows' losses may become that much. TURN: eta of a row whose loss has a
 * least value may move as far as that. SMALL: rows whose loss beside the largest that falls is below this
 * move as they like. SHARE: the falling rows have at least that share of what the step gains. */
#define FALLEN 0.6
#define STILL 1.15
#define TURN 0.1
#define SMALL 1e-3
#define SHARE 0.01

struct rows {
    int64_t m, k;
    double *eta, *step;     /* m x k: linear predictors at the result, and what the step adds to them */
    double *y, *weight;     /* m each; weight NULL = ones */
    double *before, *after; /* m x k: losses at the result, and a step further */
};

/* -------------------------------------------------------------------------------------- a step's worth */

/* S = Newton's step from `here`, as far as it goes, to a tenth of the gradient at least. */
static kiln_status step(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    const double goal = work->goal, radius = work->radius;
    work->goal = 0.1 * work->norm / work->reference;
    work->radius = INFINITY;
    work->worn = true;
    TRY(ki_newton_direct(work, model));
done:
    work->goal = goal;
    work->radius = radius;
    return status;
}

static double logistic_loss(double margin) {
    return margin < -30 ? -margin : log1p(exp(-margin));
}

/* With several classes a row has a loss against each of the others, and none against its own. */
static double class_loss(const struct rows *rows, const double *eta, int64_t i) {
    const int64_t j = i % rows->k, row = i / rows->k, own = (int64_t)rows->y[row];
    const double weight = rows->weight ? rows->weight[row] : 1;
    if (rows->k == 1) return weight * logistic_loss(rows->y[i] > 0.5 ? eta[i] : -eta[i]);
    return j == own ? 0 : weight * logistic_loss(eta[row * rows->k + own] - eta[i]);
}

/* made, m x k, at these predictors. */
static kiln_status losses(double *made, const struct ki_newton_work *work, const struct rows *rows,
                          const double *eta) {
    kiln_status status = KILN_OK;
    const kiln_loss *loss = &work->problem;
    const kiln_matrix *X = work->newton->X;
    struct ki_arena arena = {0};
    for (int64_t i = 0; i < rows->m * rows->k && loss->kind != KILN_LOSS_GLM; i++)
        made[i] = class_loss(rows, eta, i);
    if (loss->kind != KILN_LOSS_GLM) return KILN_OK;
    double *const parts = ki_arena_doubles(&arena, 3 * rows->m);
    kiln_matrix *const D = ki_arena_rows(&arena, X, 3), *Eta = NULL;
    TRY(arena.status);
    TRY(ki_arena_take(&arena, &Eta,
                      ki_vector_new(&Eta, kiln_matrix_device(X), kiln_matrix_type(X), rows->m, eta)));
    TRY(kiln_loss_deviance(D, loss, Eta));
    TRY(ki_vector_get(parts, D));
    for (int64_t i = 0; i < rows->m; i++) made[i] = parts[3 * i];
done:
    return ki_arena_free(&arena, status);
}

static kiln_status rows_new(struct rows *rows, struct ki_arena *arena, struct ki_newton_work *work,
                            struct ki_newton_model *model) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = work->newton;
    const kiln_loss *loss = &work->problem;
    const int64_t m = kiln_matrix_rows(newton->X), k = newton->k;
    double *const offset = loss->offset ? ki_arena_doubles(arena, m) : NULL, *const constant =
                                                                                 ki_arena_doubles(arena, k);
    *rows = (struct rows){.m = m,
                          .k = k,
                          .eta = ki_arena_doubles(arena, m * k),
                          .step = ki_arena_doubles(arena, m * k),
                          .y = ki_arena_doubles(arena, m),
                          .weight = loss->weights ? ki_arena_doubles(arena, m) : NULL,
                          .before = ki_arena_doubles(arena, m * k),
                          .after = ki_arena_doubles(arena, m * k)};
    TRY(arena->status);
    if (offset) TRY(ki_vector_get(offset, loss->offset));
    if (rows->weight) TRY(ki_vector_get(rows->weight, loss->weights));
    TRY(ki_vector_get(rows->y, loss->y));
    TRY(step(work, model));
    if (newton->run.cancelled) goto done;
    if (work->mean) TRY(kiln_multiply(work->shift, -1, KILN_TRANSPOSED, work->mean, work->S.w, 1, work->S.b));
    TRY(ki_vector_get(constant, newton->b));
    TRY(ki_separation_predict(rows->eta, newton, newton->W, constant, offset));
    if (work->mean) TRY(ki_vector_get(constant, work->shift));
    TRY(ki_separation_predict(rows->step, newton, work->S.w, work->mean ? constant : NULL, NULL));
    work->newton->run.report.passes += 2;
done:
    return status;
}

/* --------------------------------------------------------------------------------------- the judgement */

static bool weighs(const struct rows *rows, int64_t i) {
    return !rows->weight || rows->weight[i] > 0;
}

/* Returns whether a row is on its class's side, which of all rows proves that a plane separates
 * them. */
static bool right_side(const struct rows *rows, const kiln_loss *loss, int64_t i) {
    if (loss->kind == KILN_LOSS_SOFTMAX) {
        const double *eta = rows->eta + i * rows->k, own = eta[(int64_t)rows->y[i]];
        for (int64_t j = 0; j < rows->k; j++)
            if (j != (int64_t)rows->y[i] && !(eta[j] < own)) return false;
        return true;
    }
    return rows->y[i] == 0 ? rows->eta[i] < 0 : rows->y[i] == 1 && rows->eta[i] > 0;
}

struct found {
    int64_t rows, falling; /* of weight above 0; whose loss a step lowers by its part */
    double largest, fall;  /* the largest loss that falls; what all of them fall by */
    bool apart, blocked;   /* every row is on its side; a row has something against
                          the step */
};

static bool all_right(const struct rows *rows, const kiln_loss *loss) {
    for (int64_t i = 0; i < rows->m; i++)
        if (weighs(rows, i) && !right_side(rows, loss, i)) return false;
    return ki_separation_classes(loss);
}

static bool falls(const struct rows *rows, int64_t i) {
    return rows->before[i] > 0 && rows->after[i] <= FALLEN * rows->before[i];
}

static bool blocks(const struct rows *rows, int64_t i, double largest) {
    return !(rows->after[i] <= STILL * rows->before[i]) && rows->before[i] >= SMALL * largest;
}

/* Finds what row i, whose losses have no least values, has to say. */
static void judge_row(struct found *found, const struct rows *rows, int64_t i, bool again) {
    bool any = false;
    for (int64_t c = i * rows->k; c < (i + 1) * rows->k; c++) {
        const bool falling = falls(rows, c);
        any |= falling;
        if (again) found->blocked |= blocks(rows, c, found->largest);
        if (again || !falling) continue;
        found->largest = fmax(found->largest, rows->before[c]);
        found->fall += rows->before[c] - rows->after[c];
    }
    if (!again) found->falling += any;
}

static void judge(struct found *found, const struct rows *rows, const kiln_loss *loss) {
    for (int again = 0; again < 2; again++)
        for (int64_t i = 0; i < rows->m; i++) {
            if (!weighs(rows, i)) continue;
            if (!again) found->rows++;
            if (ki_separation_open(loss, rows->y[i]))
                judge_row(found, rows, i, again);
            else
                found->blocked |= !(fabs(rows->step[i]) <= TURN);
        }
}

static kiln_status ask(struct found *found, struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    const kiln_loss *loss = &work->problem;
    struct ki_arena arena = {0};
    struct rows rows = {0};
    TRY(rows_new(&rows, &arena, work, model));
    if (work->newton->run.cancelled) goto done;
    found->apart = all_right(&rows, loss);
    TRY(losses(rows.before, work, &rows, rows.eta));
    for (int64_t i = 0; i < rows.m * rows.k; i++) rows.eta[i] += rows.step[i];
    TRY(losses(rows.after, work, &rows, rows.eta));
    judge(found, &rows, loss);
    found->blocked |= !(found->fall >= SHARE * model->slope);
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_separation_step(struct ki_separation *told, struct ki_newton_work *work,
                               struct ki_newton_model *model) {
    kiln_status status = KILN_OK;
    struct found found = {0};
    *told = (struct ki_separation){0};
    if (!(work->reference > 0)) return KILN_OK;
    TRY(ask(&found, work, model));
    *told = (struct ki_separation){.rows = found.rows,
                                   .falling = found.blocked ? 0 : found.falling,
                                   .apart = found.apart,
                                   .undecided = !found.apart && found.falling > 0 && found.blocked};
done:
    return status;
}
