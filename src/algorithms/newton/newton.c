/* The outer iteration of the Newton engine.
 *
 * A step comes from the trust region (newton_step.c), but one that does not lower the objective enough is
 * not computed anew in a smaller region: it is shortened, at the price of one pass instead of many, and the
 * region shrinks to what was accepted (Nocedal and Yuan, 1998), or rather to a multiple of it: losses with
 * kinks often want one short step among long ones. With l1 the steps are those of newton_l1.c, in no region,
 * and shortened likewise.
 *
 * Near the solution the objective's change drowns in its rounding long before the gradient does. There a
 * full step is taken whenever it makes the gradient smaller. */
#include "algorithms/newton/newton_work.h"

#include "derived/select.h"

/* WORN: inner iterations of a step after which the preconditioner is worth a pass. HALVES: of a step near the
 * solution with l1, whose model may have taken a part of the loss's curvature alone. ROOM: how many times the
 * last accepted length a step may have after it had to be shortened. */
enum { SHORTENINGS = 40, WORN = 4, HALVES = 6, ROOM = 1000 };
/* A point so near the end of a step, as a share of it, is not worth a pass. */
static const double NEAR = 0.9;

static double newton_relative(const struct ki_newton_work *work) {
    return work->reference > 0 ? work->norm / work->reference : 0;
}

static bool newton_met(const struct ki_newton_work *work) {
    return work->reference == 0 || (ki_newton_meets(work) && work->proved);
}

/* Returns what a step's model says that the objective can fall by, from where the step begins. Where that is
 * less than what the objective is rounded by, a difference of penalties may come out below 0. */
static double newton_left_of(const struct ki_newton_work *work, const struct ki_newton_model *model) {
    const double noise = ki_newton_noise(work), least = fmin(model->slope, model->decrease);
    if (model->loose) return INFINITY;
    return least >= 0        ? model->decrease + model->rest
           : least >= -noise ? noise + model->rest
                             : (double)INFINITY;
}

kiln_status ki_newton_record(struct ki_newton_work *work, int64_t inner) {
    struct ki_run *run = &work->newton->run;
    const kiln_status status = ki_run_row(run, &(kiln_trace_row){.residual = newton_relative(work),
                                                                 .objective = work->here.objective,
                                                                 .inner = inner,
                                                                 .radius = work->radius});
    if (status == KILN_OK) ki_run_tell(run);
    return status;
}

void ki_newton_swap(struct ki_newton_work *work) {
    const struct ki_newton_point former = work->here;
    work->here = work->there;
    work->there = former;
    work->ahead = false;
}

/* Losses of a glm may have either sign, and cancel; others only add up. */
double ki_newton_noise(const struct ki_newton_work *work) {
    const double epsilon = ki_epsilon(kiln_matrix_type(work->newton->X));
    const double first = work->problem.kind == KILN_LOSS_GLM ? fabs(work->first) : 0;
    return 32 * epsilon * fmax(fabs(work->here.objective), first);
}

/* The length at which the parabola through both values and the slope is least, within reason. */
static double newton_shortened(double t, double slope, double actual) {
    const double best =
        t * slope / (2 * (slope - actual)); /* slope and actual belong to the step of length t */
    if (!isfinite(actual)) return 0.25 * t;
    return fmin(fmax(best, 0.1 * t), 0.5 * t);
}

/* *t = where the cubic through the values and slopes at both ends of the step of length *t is least, if the
 * objective is lower there. Losses whose curvature changes along a step, as those of many classes or of a log
 * link, promise more than twice of what comes of it: the step has gone past its best point, where rows are
 * certain and have no curvature left from which the next steps could tell their way back. A pass, and another
 * one if the step was better as it was. Uses P. */
static kiln_status newton_back(struct ki_newton_work *work, const struct ki_newton_model *model, double *t) {
    kiln_status status;
    double sums[3];
    TRY(ki_pairs_run(
        sums,
        &(struct ki_pairs){
            .op = KI_PAIR_MIX, .out = work->P, .x = work->there.gradient, .y = work->S, .second = work->S}));
    const double down = *t * model->slope, up = *t * sums[0], former = work->there.objective;
    if (!(up > 0)) return KILN_OK;
    const double middle = up - down + 3 * (work->here.objective - former),
                 root = sqrt(middle * middle + down * up),
                 best = *t * (1 - (up + root - middle) / (up + down + 2 * root));
    if (!(best > 0) || best > NEAR * *t) return KILN_OK;
    TRY(ki_newton_try(work, best));
    if (work->there.objective < former)
        *t = best;
    else
        TRY(ki_newton_try(work, *t));
done:
    return status;
}

/* One step and its length. *moved: whether `here` is a new point; *finite: whether the last one looked at
 * had a value. */
static kiln_status newton_advance(struct ki_newton_work *work, struct ki_newton_model *model, bool *moved,
                                  bool *finite) {
    kiln_status status = KILN_OK;
    const double noise = ki_newton_noise(work);
    const bool smooth = !work->l1 && !ki_newton_hinged(work); /* kinks are no cubic's */
    double t = 1, norm = 0, actual = 0, predicted = 0;
    *moved = false;
    for (int i = 0; i < SHORTENINGS && !*moved; i++) {
        const double slope = t * model->slope;
        TRY(ki_newton_try(work, t));
        predicted = slope - t * t * (model->slope - model->decrease);
        actual = work->here.objective - work->there.objective;
        const bool resolved = predicted > noise;
        *moved = isfinite(actual) && (resolved ? actual >= 1e-4 * slope : actual >= -noise);
        if (*moved && resolved && actual < 0.5 * predicted && smooth) {
            TRY(newton_back(work, model, &t));
            actual = work->here.objective - work->there.objective;
            predicted = t * model->slope - t * t * (model->slope - model->decrease);
        }
        if (*moved) TRY(ki_newton_measure(work, &norm, &work->there));
        *finite = isfinite(actual) && (!*moved || isfinite(norm));
        *moved = *moved && *finite && (resolved || norm < work->norm);
        if (!*moved && !resolved && *finite && (!work->l1 || i >= HALVES)) break;
        if (!*moved) t = newton_shortened(t, slope, *finite ? actual : -INFINITY);
    }
    if (*moved || t == 1) work->looked = false;
    if (!*moved && t == 1) TRY(ki_newton_prove(work, newton_left_of(work, model)));
    if (!*moved) goto done;
    const double length = t * model->length, ratio = actual / predicted;
    if (t < 1)
        work->radius = fmin(work->radius, ROOM * length);
    else if (model->boundary && ratio > 0.75)
        work->radius *= 4;
    work->norm = norm;
    work->level = 0;
    work->led = !model->stiff && !model->loose;
    ki_newton_swap(work);
    /* a model that was right about its step is so about what it left */
    const bool right =
        (ki_newton_firm(work) || work->descent) && fabs(actual - predicted) <= 0.2 * predicted + noise;
    TRY(ki_newton_confirm(work, right ? fmax(newton_left_of(work, model), actual) : (double)INFINITY));
done:
    return status;
}

kiln_status ki_newton_direct(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    work->ahead = true;
    if (work->descent) return ki_newton_descend(work, model);
    TRY(ki_newton_furnish(work));
    work->worn = work->worn || model->inner >= WORN;
    TRY(ki_newton_factor(work, model));
    if (work->newton->run.cancelled) return KILN_OK;
    *model = (struct ki_newton_model){0};
    if (work->worn && !ki_newton_factored(work)) TRY(ki_newton_precondition(work));
    work->worn = false;
    TRY((work->l1 ? ki_newton_l1_direction : ki_newton_direction)(work, model));
    TRY(ki_newton_center(work, &work->S));
done:
    return status;
}

kiln_stop ki_newton_stop(const struct ki_newton_work *work) {
    const struct ki_run *run = &work->newton->run;
    return newton_met(work) && !run->cancelled ? KILN_STOP_TOLERANCE : ki_run_limit(run);
}

static kiln_status newton_iterate(struct ki_newton_work *work, struct ki_newton_model *model, bool resumed,
                                  const struct ki_newton_start *start, kiln_stop *stop) {
    kiln_status status = KILN_OK;
    struct ki_newton *newton = work->newton;
    bool moved = true, finite = true;
    if (!resumed) {
        work->radius = work->l1 ? 0 : 10 * work->norm / fmin(work->scale, 1);
        TRY(ki_newton_record(work, 0));
        TRY(ki_newton_pilot(work, start));
    }
    TRY(ki_newton_secant(work, model, resumed));
    for (;;) {
        *stop = ki_newton_stop(work);
        if (*stop != KILN_STOP_NONE) return KILN_OK;
        TRY(ki_newton_direct(work, model));
        if (newton->run.cancelled) continue;
        TRY(ki_newton_prove(work, newton_left_of(work, model)));
        if (work->proved) continue;
        TRY(newton_advance(work, model, &moved, &finite));
        if (!moved && work->proved) continue;
        *stop = finite ? KILN_STOP_STALLED : KILN_STOP_DIVERGED;
        if (!moved && !model->exact && !work->even) return KILN_OK;
        if (!moved) {
            if (model->exact)
                ki_newton_doubt(work);
            else
                work->even = false, work->worn = true;
            continue;
        }
        newton->run.report.iterations++;
        TRY(ki_newton_record(work, model->inner));
        TRY(ki_newton_keep(work, model));
    }
done:
    return status;
}

kiln_status ki_newton_set_start(struct ki_newton *newton, const kiln_matrix *W, const kiln_matrix *b) {
    kiln_status status;
    TRY(ki_copy(newton->W, W));
    if (b && !newton->no_intercept) TRY(ki_copy(newton->b, b));
done:
    return status;
}

kiln_status ki_newton_hand_over(const struct ki_newton *newton, kiln_matrix *W, kiln_matrix *b) {
    kiln_status status;
    TRY(ki_copy(W, newton->W));
    if (b) TRY(ki_copy(b, newton->b));
done:
    return status;
}

/* The criterion at `here` and, if that is what it will be relative to, the scale and the reference. A
 * gradient of nothing but rounding counts as 0. */
static kiln_status newton_judge(struct ki_newton_work *work, bool reference, double origin) {
    kiln_status status;
    double noise = 0, left;
    if (reference) TRY(ki_newton_scale(work, &noise));
    TRY(ki_newton_measure(work, &work->norm, &work->here));
    if (!reference) return KILN_OK;
    work->first = work->here.objective;
    work->reference = left = work->norm;
    if (ki_newton_may_be_rounding(work, noise, origin)) {
        /* what the walk has left is off by the mean's rounding times the columns' means */
        if (work->right && work->problem.kind == KILN_LOSS_GLM) {
            TRY(ki_newton_evaluate(work, &work->here));
            TRY(ki_newton_measure(work, &work->norm, &work->here));
            work->reference = work->norm;
        }
        TRY(ki_newton_beyond_rounding(work, &left));
    }
    if (!(left > 0) || !isfinite(left))
        work->reference = 0; /* or beyond the type's range: see newton_valid() */
done:
    return status;
}

/* The curvature of every row at the origin, beside its weight, where all have the same probabilities there;
 * else 0. */
static double newton_level_of(const struct ki_newton_work *work, double origin) {
    const kiln_loss *loss = &work->problem;
    const double k = work->newton->k;
    if (loss->kind == KILN_LOSS_SOFTMAX) return (k - 1) / (k * k);
    if (loss->offset || origin != 0) return 0;
    return loss->kind == KILN_LOSS_LOGISTIC ? 0.25 : loss->kind == KILN_LOSS_SQUARED_HINGE ? 1 : 0;
}

/* The losses' gradient with respect to W where the run begins, from what the walk over X's columns has
 * left. */
static kiln_status known_gradient(const struct ki_newton_work *work, struct ki_newton_point *here) {
    const double factor = -work->newton->steep;
    return kiln_combine(here->gradient.w, &factor, work->right, NULL, NULL);
}

/* The objective's gradient at W = 0, b = 0 of a logistic problem; returns every row's loss there. */
static kiln_status zero_logistic(struct ki_newton_work *work, double *each, struct ki_newton_point *here) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    double sum;
    TRY(newton->weights ? kiln_dot(&sum, newton->outcomes, newton->weights)
                        : kiln_norm(&sum, newton->outcomes, KILN_NORM_1));
    TRY(known_gradient(work, here));
    if (work->mean) TRY(kiln_fill(here->gradient.b, 0.5 * newton->columns.weight - sum));
    *each = log(2);
done:
    return status;
}

/* The same of a squared hinge, by one product. Uses here.C. */
static kiln_status zero_hinge(struct ki_newton_work *work, double *each, struct ki_newton_point *here) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const kiln_matrix *y = work->problem.y;
    double sum = 0;
    TRY(newton->weights ? ki_copy(here->C, newton->weights) : kiln_fill(here->C, 1));
    if (work->mean) TRY(kiln_dot(&sum, y, here->C));
    if (work->mean) TRY(kiln_fill(here->gradient.b, -sum));
    TRY(kiln_times(here->C, here->C, y));
    TRY(kiln_multiply(here->gradient.w, -1, KILN_TRANSPOSED, newton->X, here->C, 0, NULL));
    work->newton->run.report.passes++;
    *each = 0.5;
done:
    return status;
}

/* `here` at W = 0, b = 0, where every row has the same loss and curvature. */
static kiln_status newton_evaluate_zero(struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    struct ki_newton_point *here = &work->here;
    double each = 0, sums[3];
    TRY((work->right ? zero_logistic : zero_hinge)(work, &each, here));
    TRY(newton->weights ? kiln_combine(here->C, &work->level, newton->weights, NULL, NULL)
                        : kiln_fill(here->C, work->level));
    if (work->mean)
        TRY(ki_pairs_run(
            sums, &(struct ki_pairs){
                      .op = KI_PAIR_COMPLETE, .out = here->gradient, .x = here->at, .mean = work->mean}));
    here->loss = here->objective = newton->columns.weight * each;
    here->norm1 = 0;
done:
    return status;
}

/* `here` at W = 0 and any b, where the walk over X's columns has left the gradient: the rest is a matter of
 * the rows alone. */
static kiln_status newton_evaluate_constant(struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    struct ki_newton_point *here = &work->here;
    struct ki_arena arena = {0};
    kiln_matrix *X = ki_arena_rows(&arena, newton->X, 0), /* of no columns */
        *W = ki_arena_model(&arena, newton->X, 0, 1), *G = ki_arena_model(&arena, newton->X, 0, 1);
    double sums[3];
    TRY(arena.status);
    TRY(kiln_loss_gradient(&here->loss, G, here->gradient.b, here->C, &work->problem, X, W, here->at.b));
    TRY(known_gradient(work, here));
    TRY(ki_pairs_run(sums,
                     &(struct ki_pairs){
                         .op = KI_PAIR_COMPLETE, .out = here->gradient, .x = here->at, .mean = work->mean}));
    here->objective = here->loss;
    here->norm1 = 0;
done:
    return ki_arena_free(&arena, status);
}

static bool newton_valid(const struct ki_newton_work *work) {
    return isfinite(work->here.objective) && isfinite(work->norm);
}

/* `here` = the origin, or then the given start, unless the criterion holds at the origin already. */
static kiln_status newton_begin(struct ki_newton_work *work, const struct ki_newton_start *start) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    TRY(kiln_fill(work->here.at.w, 0));
    if (work->mean) TRY(kiln_fill(work->here.at.b, start->origin));
    work->level = newton_level_of(work, start->origin);
    const bool hinge = work->problem.kind == KILN_LOSS_SQUARED_HINGE && ki_selectable(newton->X);
    const bool zero = work->level > 0 && start->origin == 0 && (work->right || hinge);
    TRY(zero          ? newton_evaluate_zero(work)
        : work->right ? newton_evaluate_constant(work)
                      : ki_newton_evaluate(work, &work->here));
    TRY(newton_judge(work, true, start->origin));
    if (!start->warm) return KILN_OK;
    const bool judged = newton_valid(work) && !start->own_reference;
    if (judged && work->reference == 0)
        return KILN_OK; /* the origin is the solution, from wherever it starts */
    work->level = 0;
    if (work->mean)
        TRY(kiln_multiply(work->here.at.b, 1, KILN_TRANSPOSED, work->mean, newton->W, 1, newton->b));
    TRY(kiln_times(work->here.at.w, newton->W, work->kept));
    TRY(ki_newton_center(work, &work->here.at));
    TRY(ki_newton_evaluate(work, &work->here));
    TRY(newton_judge(work, !judged, start->origin));
    work->looked = true; /* no step has led here: of a hinge the next one's model counts alone */
    work->regular = ki_newton_hinged(work);
    TRY(ki_newton_confirm(work, INFINITY));
done:
    return status;
}

/* W, b and the report of what `here` is. A given start without finite figures stays as it was given: in the
 * coordinates of centred columns and back it would lose what is finite of it. */
static kiln_status newton_conclude(struct ki_newton_work *work, kiln_stop stop, bool given) {
    kiln_status status = KILN_OK;
    struct ki_newton *newton = work->newton;
    const bool moved = newton_valid(work) || !given;
    if (moved) TRY(ki_copy(newton->W, work->here.at.w));
    if (moved) TRY(kiln_fill(newton->b, 0));
    if (moved && work->mean)
        TRY(kiln_multiply(newton->b, -1, KILN_TRANSPOSED, work->mean, work->here.at.w, 1, work->here.at.b));
    ki_run_problem_ends(&newton->run, stop, newton_relative(work), work->here.objective);
    newton->loss = work->here.loss;
    newton->C = work->here.C;
    newton->gradient = work->here.gradient.w;
    newton->slopes = work->here.gradient.b;
done:
    return status;
}

kiln_status ki_newton_solve(struct ki_newton *newton, const kiln_loss *loss,
                            const struct ki_newton_start *start) {
    kiln_status status;
    struct ki_run *run = &newton->run;
    struct ki_newton_work *work = newton->work;
    kiln_stop stop = KILN_STOP_DIVERGED;
    struct ki_newton_model model = {0};
    ki_run_problem(run);
    work->problem = *loss;
    work->level = 0;
    work->goal = run->tolerance;
    work->proved = work->led = work->looked = work->regular = work->fallen = work->ahead = false;
    work->worn = true;
    work->even = ki_newton_evens_out(newton->X, newton->l1, newton->standardize);
    TRY(ki_newton_factor_begin(work));
    TRY(ki_newton_resume(work, &model));
    if (!run->resumed) TRY(newton_begin(work, start));
    if (newton_valid(work)) TRY(newton_iterate(work, &model, run->resumed, start, &stop));
    if (work->apart && stop == KILN_STOP_TOLERANCE) stop = KILN_STOP_STALLED;
    TRY(ki_newton_look_again(work, &model, &stop));
    TRY(newton_conclude(work, stop, start->warm));
    TRY(ki_newton_separation(work, &model, stop));
done:
    return status;
}
