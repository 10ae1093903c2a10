/* Points and steps of the Newton engine.
 *
 * The trick is in the coordinates: eta = X W + 1 (b' - mu W), mu the columns' means. The Hessian with
 * respect to (W, b') is that of centred columns, as well conditioned as if X had been centred, but X stays
 * as it is: a pass takes b' - mu W for its intercept, and its result X^T t becomes (X - 1 mu)^T t by adding
 * -mu (1^T t), in the walk over the result that adds the penalty anyway.
 *
 * The step is Steihaug's: conjugate gradient from s = 0 until the residual is small beside the gradient, or
 * s leaves the trust region, or a direction has no curvature; in the last two cases it goes to the boundary.
 * Lengths are those of
 * || D s ||, which CG's own scalars give without further sums. Sources: Steihaug,
 * SIAM J. Numer. Anal. 20 (1983); Lin, Weng and Keerthi, JMLR 9 (2008); Hsia, Chiang and Lin,
 * ACML 2018 (preconditioning). */
#include "algorithms/newton/newton_work.h"

/* Curvature below so many roundings of what D^2 has in the same direction is no more than rounding: columns
 * that depend on each other have such directions, and where the gradient is rounding too, a step of any
 * length could come of it. */
static const double FLAT = 32;

/* At a point that meets the criterion conjugate gradient makes so many products at least where the curvature
 * that it meets with is no bound: what it leaves out has to be next to nothing even if only the penalty holds
 * it. */
enum { DOUBTED = 10 };

static kiln_status set_shift(struct ki_newton_work *work, const struct ki_pair *at) {
    if (!work->mean) return KILN_OK;
    return kiln_multiply(work->shift, -1, KILN_TRANSPOSED, work->mean, at->w, 1, at->b);
}

kiln_status ki_newton_evaluate(struct ki_newton_work *work, struct ki_newton_point *point) {
    kiln_status status;
    double sums[3];
    TRY(set_shift(work, &point->at));
    TRY(kiln_loss_gradient(&point->loss, point->gradient.w, point->gradient.b, point->C, &work->problem,
                           work->newton->X, point->at.w, work->mean ? work->shift : NULL));
    work->newton->run.report.passes++;
    TRY(ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_COMPLETE,
                                              .out = point->gradient,
                                              .x = point->at,
                                              .mean = work->mean,
                                              .column = work->penalty}));
    point->objective = point->loss + 0.5 * sums[1];
    if (!work->l1) return KILN_OK;
    TRY(ki_pairs_run(
        sums, &(struct ki_pairs){.op = KI_PAIR_MIX, .out = point->at, .x = point->at, .column = work->l1}));
    point->norm1 = sums[1];
    point->objective += point->norm1;
done:
    return status;
}

kiln_status ki_newton_measure(struct ki_newton_work *work, double *norm,
                              const struct ki_newton_point *point) {
    kiln_status status;
    double sums[3];
    if (work->l1)
        TRY(ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_LEAST,
                                                  .out = work->P,
                                                  .x = point->gradient,
                                                  .y = point->at,
                                                  .inverse = work->criterion,
                                                  .column = work->l1}));
    else
        TRY(ki_pairs_run(
            sums, &(struct ki_pairs){
                      .op = KI_PAIR_TURN, .out = work->P, .x = point->gradient, .inverse = work->criterion}));
    *norm = sqrt(sums[0] + (work->l1 ? sums[1] : 0));
done:
    return status;
}

/* The curvature that a class sees on average, in `here`'s C or in v: for softmax s_i sum_c p_ic (1 - p_ic) /
 * K, else C itself. Uses there.C. */
static kiln_status step_mean_curvature(struct ki_newton_work *work, const kiln_matrix **v) {
    kiln_status status = KILN_OK;
    const kiln_matrix *C = work->here.C, *weights = work->problem.weights;
    const double share = 1.0 / work->newton->k;
    *v = C;
    if (work->newton->k == 1) return KILN_OK;
    *v = work->v;
    TRY(kiln_times(work->there.C, C, C));
    TRY(kiln_fill(work->v, 1));
    TRY(kiln_multiply(work->v, -share, KILN_PLAIN, work->there.C, work->classes, share, work->v));
    if (weights) TRY(kiln_times(work->v, work->v, weights));
done:
    return status;
}

/* square = (X .* X)^T v, *total = the sum of v: where all rows have one curvature, known without a pass. */
kiln_status ki_newton_squares(struct ki_newton_work *work, double *total) {
    kiln_status status;
    const struct ki_columns *columns = &work->newton->columns;
    const int64_t cols = kiln_matrix_cols(work->newton->X);
    const kiln_matrix *v;
    struct ki_arena arena = {0};
    if (work->level > 0) {
        *total = work->level * columns->weight;
        double *values = ki_arena_doubles(&arena, cols);
        TRY(arena.status);
        for (int64_t j = 0; j < cols; j++) values[j] = work->level * columns->square[j];
        TRY(ki_vector_set(work->square, values));
    } else {
        TRY(step_mean_curvature(work, &v));
        TRY(kiln_gram_diagonal(work->square, work->newton->X, v));
        work->newton->run.report.passes++;
        TRY(kiln_norm(total, v, KILN_NORM_1));
    }
done:
    return ki_arena_free(&arena, status);
}

bool ki_newton_evens_out(const kiln_matrix *X, double l1, bool standardize) {
    return kiln_matrix_cols(X) > kiln_matrix_rows(X) && l1 == 0 && !standardize;
}

/* square = D d, of square = D^2. */
static kiln_status even_out(struct ki_newton_work *work) {
    kiln_status status;
    double largest;
    TRY(kiln_norm(&largest, work->square, KILN_NORM_MAX));
    const double root = sqrt(largest);
    TRY(kiln_map(work->square, KILN_MAP_SQRT, work->square));
    TRY(kiln_combine(work->square, &root, work->square, NULL, NULL));
done:
    return status;
}

/* D^2_j = floor_j + spread_j * (X .* X)^T v / (X .* X)^T s: the spread about the mean that the curvature's
 * weights would show, without a pass for their own means. The floor, penalty and a hundredth of the
 * criterion's scale, keeps a column whose rows have no curvature just now from running away. spread and
 * floor carry the common scale, and are 0 for columns left out. */
kiln_status ki_newton_precondition(struct ki_newton_work *work) {
    kiln_status status;
    const double one = 1;
    double total;
    TRY(ki_newton_squares(work, &total));
    TRY(kiln_times(work->square, work->square, work->spread));
    TRY(kiln_combine(work->square, &one, work->square, &one, work->floor));
    if (work->even) TRY(even_out(work));
    TRY(kiln_map(work->square, KILN_MAP_RECIPROCAL, work->square));
    TRY(ki_copy(work->inverse.w, work->square));
    if (!work->mean) return KILN_OK;
    TRY(kiln_fill(work->inverse.b, work->scale / (total + 0.01 * work->total)));
done:
    return status;
}

kiln_status ki_newton_apply(struct ki_newton_work *work, const struct ki_pair *direction, double *curvature) {
    kiln_status status;
    double sums[3];
    TRY(set_shift(work, direction));
    TRY(kiln_loss_hessian(work->Q.w, work->Q.b, &work->problem, work->here.C, work->newton->X, direction->w,
                          work->mean ? work->shift : NULL, 0, NULL));
    work->newton->run.report.passes++;
    TRY(ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_COMPLETE,
                                              .out = work->Q,
                                              .x = *direction,
                                              .mean = work->mean,
                                              .column = work->penalty}));
    *curvature = sums[0];
done:
    return status;
}

/* P = D^-2 R + beta P, or with M for D^2, where Z is M^-1 R already; *rho, unless NULL, = R . P of the
 * former. */
static kiln_status step_turn(struct ki_newton_work *work, double beta, double *rho) {
    double sums[3];
    const bool wanted = rho && !ki_newton_factored(work); /* a wait, on a GPU */
    struct ki_pairs pairs = {
        .op = KI_PAIR_TURN, .out = work->P, .x = work->R, .inverse = work->inverse, .scalar = beta};
    if (ki_newton_factored(work))
        pairs =
            (struct ki_pairs){.op = KI_PAIR_MIX, .out = work->P, .x = work->Z, .y = work->P, .scalar = beta};
    const kiln_status status = ki_pairs_run(wanted ? sums : NULL, &pairs);
    if (status == KILN_OK && wanted) *rho = sums[0];
    return status;
}

/* S = 0, R = -g, P = D^-2 R; *rho = || D^-1 R ||^2. */
static kiln_status step_begin(struct ki_newton_work *work, double *rho) {
    kiln_status status;
    TRY(kiln_fill(work->S.w, 0));
    if (work->S.b) TRY(kiln_fill(work->S.b, 0));
    TRY(ki_pairs_run(
        NULL, &(struct ki_pairs){.op = KI_PAIR_MIX, .out = work->R, .y = work->here.gradient, .scalar = -1}));
    if (ki_newton_factored(work)) TRY(ki_newton_solve_factor(work, rho));
    TRY(step_turn(work, 0, rho));
done:
    return status;
}

/* The step to the boundary: the positive root of ss + 2 t sp + t^2 pp = radius^2, written so that nothing
 * cancels. */
static double to_boundary(double ss, double sp, double pp, double radius) {
    const double room = radius * radius - ss, root = sqrt(fmax(sp * sp + pp * room, 0));
    return sp >= 0 ? room / (sp + root) : (root - sp) / pp;
}

/* Loosely at first, the closer to the solution the more, so that convergence is superlinear, but not below
 * what the tolerance asks for. */
double ki_newton_forcing(double relative, double tolerance, double rho) {
    return fmax(fmin(0.5, sqrt(relative)), 0.3 * tolerance / relative) * sqrt(rho);
}

/* S = the model's least point, or as far towards it as the region goes: what an exact factor's P is, but for
 * the scale. */
static kiln_status leap(struct ki_newton_work *work, struct ki_newton_model *model, double rho) {
    double alpha = 1 / work->scale;
    model->exact = true;
    model->boundary = alpha * sqrt(rho) > work->radius;
    if (model->boundary) alpha = work->radius / sqrt(rho);
    model->slope = alpha * rho;
    model->decrease = alpha * rho * (1 - 0.5 * alpha * work->scale);
    model->length = alpha * sqrt(rho);
    return ki_pairs_run(NULL,
                        &(struct ki_pairs){.op = KI_PAIR_MIX, .out = work->S, .y = work->P, .scalar = alpha});
}

kiln_status ki_newton_direction(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    struct ki_newton *newton = work->newton;
    const int64_t most = kiln_matrix_nnz(work->S.w) + 10;
    const double flat = FLAT * ki_epsilon(kiln_matrix_type(newton->X)) * work->scale;
    double rho, next, curvature, least = INFINITY, ss = 0, sp = 0, pp, sums[3];
    *model = (struct ki_newton_model){0};
    TRY(step_begin(work, &rho));
    if (ki_newton_exact(work) && isfinite(rho)) return leap(work, model, rho);
    const double goal = ki_newton_forcing(work->norm / work->reference, work->goal, rho);
    const bool doubtful = ki_newton_doubtful(work);
    const int64_t least_inner = doubtful && ki_newton_meets(work) ? ki_min(most, DOUBTED) : 0;
    const double nothing = ki_epsilon(kiln_matrix_type(newton->X)) * sqrt(rho);
    pp = rho;
    while (!model->boundary && sqrt(rho) > (model->inner < least_inner ? nothing : goal) &&
           model->inner < most && !newton->run.cancelled) {
        TRY(ki_newton_apply(work, &work->P, &curvature));
        model->inner++;
        if (!isfinite(curvature) || !isfinite(rho)) break;
        least = fmin(least, fmax(curvature / pp, flat));
        if (fabs(curvature) <= flat * pp) break;
        double alpha = rho / curvature;
        if (!(curvature > 0) || !(ss + 2 * alpha * sp + alpha * alpha * pp < work->radius * work->radius)) {
            alpha = to_boundary(ss, sp, pp, work->radius);
            model->boundary = true;
        }
        TRY(ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_ADVANCE,
                                                  .out = work->S,
                                                  .second = work->R,
                                                  .x = work->P,
                                                  .y = work->Q,
                                                  .inverse = work->inverse,
                                                  .scalar = alpha}));
        next = sums[0];
        if (ki_newton_factored(work)) TRY(ki_newton_solve_factor(work, &next));
        model->slope += alpha * rho; /* the first residual's product with p is the present one's */
        model->decrease += alpha * rho - 0.5 * alpha * alpha * fmax(curvature, 0);
        ss += 2 * alpha * sp + alpha * alpha * pp;
        const double beta = next / rho;
        sp = beta * (sp + alpha * pp);
        pp = next + beta * beta * pp;
        rho = next;
        if (model->boundary || sqrt(rho) <= (model->inner < least_inner ? nothing : goal)) break;
        TRY(step_turn(work, beta, NULL));
        ki_run_ask(&work->newton->run);
    }
    model->length = sqrt(ss);
    model->rest = model->boundary || (rho > 0 && !(least > 0 && isfinite(least))) ? (double)INFINITY
                                                                                  : rho / (2 * least);
    if (doubtful) TRY(ki_newton_loose(&model->loose, work));
done:
    return status;
}

kiln_status ki_newton_try(struct ki_newton_work *work, double t) {
    kiln_status status;
    TRY(ki_pairs_run(
        NULL, &(struct ki_pairs){
                  .op = KI_PAIR_MIX, .out = work->there.at, .x = work->here.at, .y = work->S, .scalar = t}));
    TRY(ki_newton_evaluate(work, &work->there));
done:
    return status;
}
