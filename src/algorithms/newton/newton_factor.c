/* The Newton engine's strong preconditioner for matrices of few columns: M = U^T U, the Hessian itself as
 * kiln_gram forms it,
 *
 *   M = (X - 1 mu)^T diag(v) (X - 1 mu) + L,  bordered under an intercept by (X - 1 mu)^T v and the sum of v,
 *
 * for softmax one for each class, with the class's own curvature s p (1 - p): a rare class has little of it,
 * and columns that tell it from others a spread of their own. Gradients add up to zero over the classes, but
 * for the penalty's part; what does not goes by the penalty, which is all of the Hessian there, and what
 * does is kept so. Products with the Hessian stay passes over X, and the step is Steihaug's; with M of a
 * point before it takes some products, for softmax, whose M is not all of the Hessian, ten or so. But for
 * softmax, M of the present point gives the step itself, without a product, as long as no pivot is so small
 * that rounding shows; should such a step be of no use, the products check the rest.
 *
 * When to form it is the question of renting or buying: products that M would have saved are rent, the
 * matrix costs so many passes, and it is formed when as much rent has been paid since the last time, or will
 * have been if the next step takes as much as the last did. That never takes more than about twice the
 * passes of the best moment. Where it costs no more than a step takes by the diagonal, it is formed at once.
 *
 * The curvature of a support vector machine's losses is a row's weight or nothing. It changes in few rows
 * from step to step, and rows of no weight cost a Gram matrix nothing: what is added is that of the change,
 * with both signs.
 *
 * Where a class's Gram matrix costs more than DEAR passes, a sample of the rows does (newton_sample.c), on
 * the CPU: M only preconditions there. Classes are factorised and solved side by side, and U is kept in f32,
 * as reading it is what a solve takes.
 *
 * A column that depends on those before it, but for rounding, has no part in the factor but its own
 * diagonal, as by the diagonal's preconditioner: nothing is added to the others, whose steps are then as
 * exact as their products. */
#include "algorithms/newton/newton_factor.h"

#include "derived/select.h"

enum {
    AT_ONCE = 4,
    WORTH = 100 /* passes: one that costs more is not thought of */
};

bool ki_newton_factored(const struct ki_newton_work *work) {
    return work->factor && work->factor->ready;
}

bool ki_newton_firm(const struct ki_newton_work *work) {
    return ki_newton_factored(work) && !work->factor->replaced;
}

kiln_status ki_newton_factor_open(struct ki_newton_work *work) {
    struct ki_newton *newton = work->newton;
    struct ki_arena *arena = &newton->run.arena;
    const int64_t m = kiln_matrix_rows(newton->X), n = kiln_matrix_cols(newton->X), k = newton->k;
    const int64_t size = n + !newton->no_intercept;
    double host;
    const double gram = ki_newton_factor_price(newton, (double)size, &host);
    if (newton->l1 > 0 || !(gram + host < WORTH)) return KILN_OK;
    struct ki_factor *factor = work->factor = ki_arena_zeros(arena, 1, sizeof *factor);
    if (!factor) return arena->status;
    *factor = (struct ki_factor){.n = n,
                                 .size = size,
                                 .gram_price = gram,
                                 .host_price = host,
                                 .sample = ki_newton_sample_rows(newton, gram, size),
                                 .U = ki_arena_doubles(arena, k * size * size),
                                 .r = ki_arena_doubles(arena, size * k),
                                 .column = ki_arena_doubles(arena, size * k),
                                 .scale = ki_arena_doubles(arena, size * k),
                                 .left_out = ki_arena_zeros(arena, size, sizeof(bool)),
                                 .classes = ki_arena_zeros(arena, k, sizeof *factor->classes)};
    if (factor->sample < m) factor->weights = ki_arena_doubles(arena, m);
    return arena->status;
}

void ki_newton_factor_furnish(struct ki_newton_work *work) {
    struct ki_run *run = &work->newton->run;
    struct ki_factor *factor = work->factor;
    if (!factor) return;
    factor->G = ki_run_model(run, factor->n, factor->n);
    factor->g = ki_run_model(run, factor->n, 1);
    factor->unit = ki_run_model(run, work->newton->k, 1);
    ki_newton_pair(&work->Z, work->newton);
}

/* ---- the Hessian of losses of pieces that are quadratic ---- */

/* Rows have their weight for curvature or none, and those without cost a Gram matrix nothing. */
static bool adds_up(const struct ki_newton_work *work) {
    const kiln_loss_kind kind = work->problem.kind;
    return ki_selectable(work->newton->X) &&
           (kind == KILN_LOSS_SQUARED_HINGE || kind == KILN_LOSS_SQUARED_EPSILON);
}

static kiln_status sum_open(struct ki_newton_work *work) {
    struct ki_factor *factor = work->factor;
    struct ki_arena *arena = &work->newton->run.arena;
    const kiln_matrix *X = work->newton->X;
    const int64_t m = kiln_matrix_rows(X);
    factor->formed = ki_arena_doubles(arena, 2 * m);
    factor->lack = ki_arena_rows(arena, X, 1);
    factor->sum = ki_arena_doubles(arena, factor->n * (factor->n + 1));
    if (factor->formed) factor->lacked = factor->formed + m;
    return arena->status;
}

/* Finds what a Gram matrix has to be formed with: the curvature, or what `sum` lacks of it, where that is
 * less. *share: of all weights. A sum that has lost nearly all that it held is of little but rounding. */
static kiln_status factor_survey(struct ki_newton_work *work, const kiln_matrix **v, double *share) {
    kiln_status status;
    struct ki_factor *factor = work->factor;
    const int64_t m = kiln_matrix_rows(work->newton->X);
    double total = 0, lack = 0;
    *v = work->here.C;
    *share = (double)factor->sample / (double)ki_max(m, 1);
    if (!factor->sum) return KILN_OK;
    TRY(ki_vector_get(factor->lacked, work->here.C));
    for (int64_t i = 0; i < m; i++) {
        total += factor->lacked[i];
        if (factor->largest > 0) lack += fabs(factor->lacked[i] -= factor->formed[i]);
    }
    const bool lacks = lack < total && total > 0.001 * factor->largest && factor->largest > 0;
    if (lacks) *v = factor->lack;
    *share = (lacks ? lack : total) / work->newton->columns.weight;
done:
    return status;
}

static void factor_add_up(struct ki_factor *factor, double *G, double *g, bool anew) {
    const int64_t square = factor->n * factor->n;
    double *sum = factor->sum;
    for (int64_t i = 0; i < square && !anew; i++) G[i] += sum[i];
    for (int64_t i = 0; i < factor->n && !anew; i++) g[i] += sum[square + i];
    memcpy(sum, G, (size_t)square * sizeof *sum);
    memcpy(sum + square, g, (size_t)factor->n * sizeof *sum);
}

/* ---- M ---- */

/* The least part of its scale that a pivot is not taken for rounding at. */
static double factor_part_of(const struct ki_newton_work *work) {
    return kiln_matrix_type(work->newton->X) == KILN_F32 ? 1e-5 : 1e-10;
}

/* Returns what a pivot is judged by: the diagonal as it is here, but for columns whose rows have next to no
 * curvature just now. */
static double factor_scale_of(const struct ki_newton_work *work, int64_t i, double diagonal) {
    return fmin(work->diagonal[i], fmax(diagonal, factor_part_of(work) * work->diagonal[i]));
}

/* M from G, g and the sum of v, and its scale. Rows of columns that are left out become those of the unit
 * matrix. */
static void factor_fill(struct ki_newton_work *work, double *U, double *scale, double total) {
    struct ki_factor *factor = work->factor;
    const struct ki_newton *newton = work->newton;
    const int64_t n = factor->n, size = factor->size;
    for (int64_t i = n; size > n && i-- > 0;) memmove(U + i * size, U + i * n, (size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        double *row = U + i * size;
        const double diagonal = newton->no_intercept ? newton->columns.square[i]
                                                     : newton->columns.weight * newton->columns.variance[i];
        const double penalty = ki_newton_penalty_of(newton, i);
        row[i] += penalty;
        scale[i] = diagonal > 0 ? factor_scale_of(work, i, row[i]) : 1;
        if (size > n) row[n] = factor->column[i];
        if (diagonal > 0) continue;
        for (int64_t j = 0; j < i; j++) U[j * size + i] = 0;
        for (int64_t j = i; j < size; j++) row[j] = j == i ? 1 : 0;
    }
    if (size == n) return;
    U[n * size + n] = total;
    scale[n] = factor_scale_of(work, n, total);
}

/* *v = the curvature of class c, s p (1 - p) with p - p^2 in there.C. */
static kiln_status factor_curvature_of(struct ki_newton_work *work, const kiln_matrix **v, int64_t c) {
    kiln_status status;
    struct ki_factor *factor = work->factor;
    const int64_t k = work->newton->k;
    *v = work->v;
    for (int64_t i = 0; i < k; i++) factor->r[i] = i == c ? 1 : 0;
    TRY(ki_vector_set(factor->unit, factor->r));
    TRY(kiln_multiply(work->v, 1, KILN_PLAIN, work->there.C, factor->unit, 0, NULL));
    if (work->problem.weights) TRY(kiln_times(work->v, work->v, work->problem.weights));
done:
    return status;
}

/* A sample of the rows instead of all. */
static kiln_status factor_sample(struct ki_newton_work *work) {
    kiln_status status;
    struct ki_factor *factor = work->factor;
    TRY(ki_vector_get(factor->weights, work->v));
    ki_newton_sample(factor->weights, kiln_matrix_rows(work->newton->X), factor->sample);
    TRY(ki_vector_set(work->v, factor->weights));
done:
    return status;
}

/* M of class c from the curvature v, or from that and `sum`; its diagonal in `column`. */
static kiln_status factor_form(struct ki_newton_work *work, const kiln_matrix *v, int64_t c) {
    kiln_status status;
    struct ki_factor *factor = work->factor;
    const int64_t size = factor->size;
    double *U = factor->U + c * size * size, total;
    const bool lacks = v == factor->lack;
    if (lacks) TRY(ki_vector_set(factor->lack, factor->lacked));
    TRY(kiln_gram(factor->G, factor->g, work->newton->X, v, work->mean));
    work->newton->run.report.passes += ki_gram_passes(factor->n);
    TRY(ki_vector_get(U, factor->G));
    TRY(ki_vector_get(factor->column, factor->g));
    TRY(kiln_norm(&total, lacks ? work->here.C : v, KILN_NORM_1));
    if (factor->sum) {
        factor_add_up(factor, U, factor->column, !lacks);
        TRY(ki_vector_get(factor->formed, work->here.C));
        factor->largest = lacks ? fmax(factor->largest, total) : total;
        factor->summed = true;
    }
    factor_fill(work, U, factor->scale + c * size, total);
    for (int64_t i = 0; i < size; i++) factor->column[i] = U[i * size + i];
done:
    return status;
}

/* Classes go on until it is time to ask the user. */
struct round {
    struct ki_factor_class *classes;
    double until;
};

static void factorise_class(void *arg, int c) {
    const struct round *round = arg;
    ki_factorise(&round->classes[c].factorisation, round->until);
}

static bool all_factorised(const struct ki_newton_work *work) {
    for (int64_t c = 0; c < work->newton->k; c++) {
        const struct ki_factorisation *of = &work->factor->classes[c].factorisation;
        if (of->next < of->size && !of->failed) return false;
    }
    return true;
}

static void factor_run_all(struct ki_newton_work *work) {
    struct ki_factor *factor = work->factor;
    const struct ki_newton *newton = work->newton;
    const int64_t size = factor->size;
    memset(factor->left_out, 0, (size_t)size * sizeof(bool));
    for (int64_t c = 0; c < newton->k; c++)
        factor->classes[c].factorisation =
            (struct ki_factorisation){.U = factor->U + c * size * size,
                                      .size = size,
                                      .scale = factor->scale + c * size,
                                      .part = factor_part_of(work),
                                      .left_out = newton->k == 1 ? factor->left_out : NULL};
    while (!all_factorised(work) && !newton->run.cancelled) {
        struct round round = {factor->classes, ki_clock() + KI_FACTOR_ROUND};
        ki_newton_parallel(kiln_matrix_device(newton->X), newton->k, factorise_class, &round);
        if (ki_clock() > round.until) ki_run_ask(&work->newton->run);
    }
    for (int64_t c = 0; newton->k > 1 && c < newton->k && !newton->run.cancelled; c++)
        ki_narrow(factor->U + c * size * size, size * size);
}

/* M = U^T U, and what to think of it. */
static void factor_run(struct ki_newton_work *work) {
    struct ki_factor *factor = work->factor;
    const double small = kiln_matrix_type(work->newton->X) == KILN_F32 ? 1e-3 : 1e-8;
    factor_run_all(work);
    if (work->newton->run.cancelled) return;
    factor->ready = true;
    factor->replaced = false;
    for (int64_t c = 0; c < work->newton->k; c++) {
        factor->ready = factor->ready && !factor->classes[c].factorisation.failed;
        factor->replaced = factor->replaced || factor->classes[c].factorisation.replaced;
        factor->sound = factor->sound && !factor->classes[c].factorisation.replaced;
    }
    factor->left = 0;
    factor->weak = false;
    for (int64_t i = 0; i < factor->size && work->newton->k == 1; i++) {
        const double pivot = factor->U[i * (factor->size + 1)];
        factor->left += i < factor->n && factor->left_out[i];
        factor->weak = factor->weak || !(pivot * pivot >= small * factor->column[i]);
    }
    factor->sound = factor->sound && !factor->weak;
    factor->exact = factor->ready && factor->sound;
}

/* A class's curvature is made from there.C by curvature_of. */
kiln_status ki_newton_classes(struct ki_newton_work *work) {
    kiln_status status;
    TRY(kiln_times(work->there.C, work->here.C, work->here.C));
    TRY(ki_pairs_run(NULL, &(struct ki_pairs){.op = KI_PAIR_MIX,
                                              .out = {work->there.C, NULL},
                                              .x = {work->here.C, NULL},
                                              .y = {work->there.C, NULL},
                                              .scalar = -1}));
done:
    return status;
}

void ki_newton_factor_forget(struct ki_newton_work *work) {
    struct ki_factor *factor = work->factor;
    if (!factor) return;
    factor->ready = factor->exact = false;
    factor->sound = work->newton->k == 1;
    factor->largest = 0;
}

kiln_status ki_newton_factor_begin(struct ki_newton_work *work) {
    struct ki_factor *factor = work->factor;
    if (!factor) return KILN_OK;
    factor->ready = factor->exact = false;
    factor->sound = work->newton->k == 1;
    return adds_up(work) && !factor->sum ? sum_open(work) : KILN_OK;
}

kiln_status ki_newton_factor(struct ki_newton_work *work, const struct ki_newton_model *former) {
    kiln_status status;
    struct ki_factor *factor = work->factor;
    const int64_t k = work->newton->k;
    const kiln_matrix *v;
    double share;
    if (!factor) return KILN_OK;
    const bool first = ki_run_iterations(&work->newton->run) == 0 && !factor->ready;
    TRY(factor_survey(work, &v, &share));
    const double price = share * factor->gram_price + factor->host_price;
    const double saved = first || former->exact ? 0 : (double)(former->inner - !factor->sound);
    factor->exact = false;
    if (first || !former->exact) factor->forecast = factor->sound ? fmax(saved, 1) : 0;
    factor->rent = first ? 0 : factor->rent + saved;
    if (first ? price > AT_ONCE : factor->rent + factor->forecast < price) return KILN_OK;
    factor->rent = 0;
    factor->ready = false;
    if (k > 1) TRY(ki_newton_classes(work));
    for (int64_t c = 0; c < k; c++) {
        if (k > 1) TRY(factor_curvature_of(work, &v, c));
        if (factor->weights) TRY(factor_sample(work));
        TRY(factor_form(work, v, c));
        ki_run_ask(&work->newton->run);
        if (work->newton->run.cancelled) return KILN_OK;
    }
    factor_run(work);
done:
    return status;
}

kiln_status ki_newton_factor_sample(struct ki_newton_work *work, const kiln_matrix *X, const kiln_matrix *C,
                                    double ratio) {
    kiln_status status;
    struct ki_factor *factor = work->factor;
    const int64_t n = factor->n, size = factor->size;
    double total;
    TRY(ki_newton_furnish(work));
    TRY(kiln_gram(factor->G, factor->g, X, C, work->mean));
    TRY(ki_vector_get(factor->U, factor->G));
    TRY(ki_vector_get(factor->column, factor->g));
    TRY(kiln_norm(&total, C, KILN_NORM_1));
    for (int64_t i = 0; i < n * n; i++) factor->U[i] *= ratio;
    for (int64_t i = 0; i < n; i++) factor->column[i] *= ratio;
    factor_fill(work, factor->U, factor->scale, ratio * total);
    for (int64_t i = 0; i < size; i++) factor->column[i] = factor->U[i * size + i];
    factor_run(work);
    factor->exact = false;
    factor->sound = true;   /* no factor of all rows has failed yet */
    factor->rent = AT_ONCE; /* so that steps by products begin with the whole's where that is cheap */
done:
    return status;
}

bool ki_newton_factor_cheap(const struct ki_newton_work *work) {
    return work->factor && work->factor->gram_price + work->factor->host_price <= AT_ONCE;
}

bool ki_newton_exact(const struct ki_newton_work *work) {
    return work->factor && work->factor->exact;
}

void ki_newton_doubt(struct ki_newton_work *work) {
    work->factor->sound = work->factor->exact = false;
}

/* ---- checkpoints ---- */

/* U and `sum` only as far as they are in use. What a checkpoint of another device lacks is as it begins. */
int ki_newton_factor_state(struct ki_state *state, struct ki_newton_work *work) {
    struct ki_factor *factor = work->factor;
    const kiln_control *control = work->newton->run.control;
    if (!factor || ki_checkpoint_lacks(control, "factor.ready")) return 0;
    const int64_t size = factor->size * factor->size * work->newton->k, m = kiln_matrix_rows(work->newton->X);
    int count = 0;
    state[count++] = (struct ki_state){"factor.ready", .flag = &factor->ready};
    state[count++] = (struct ki_state){"factor.sound", .flag = &factor->sound};
    state[count++] = (struct ki_state){"factor.exact", .flag = &factor->exact};
    state[count++] = (struct ki_state){"factor.replaced", .flag = &factor->replaced};
    state[count++] = (struct ki_state){"factor.left", .integers = &factor->left};
    state[count++] = (struct ki_state){"factor.weak", .flag = &factor->weak};
    state[count++] = (struct ki_state){"factor.rent", .reals = &factor->rent};
    state[count++] = (struct ki_state){"factor.forecast", .reals = &factor->forecast};
    if (factor->ready) state[count++] = (struct ki_state){"factor", .reals = factor->U, .count = size};
    if (!factor->sum || ki_checkpoint_lacks(control, "factor.summed")) return count;
    state[count++] = (struct ki_state){"factor.summed", .flag = &factor->summed};
    state[count++] = (struct ki_state){"factor.largest", .reals = &factor->largest};
    if (!factor->summed) return count;
    state[count++] =
        (struct ki_state){"factor.sum", .reals = factor->sum, .count = factor->n * (factor->n + 1)};
    state[count++] = (struct ki_state){"factor.formed", .reals = factor->formed, .count = m};
    return count;
}

kiln_status ki_newton_factor_look(struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    struct ki_factor *factor = work->factor;
    const kiln_control *control = work->newton->run.control;
    if (!factor) return KILN_OK;
    const struct ki_state parts[] = {{"factor.ready", .flag = &factor->ready},
                                     {"factor.summed", .flag = &factor->summed}};
    if (!ki_checkpoint_lacks(control, parts[0].name)) TRY(ki_checkpoint_look(control, parts, 1));
    if (factor->sum && !ki_checkpoint_lacks(control, parts[1].name))
        TRY(ki_checkpoint_look(control, parts + 1, 1));
done:
    return status;
}
