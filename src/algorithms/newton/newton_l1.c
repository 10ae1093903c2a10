/* The step for objectives with an l1 term: proximal Newton, whose model keeps that term,
 *
 *   minimise  g . (z - w) + 1/2 (z - w) . H (z - w) + sum l1 |z|,
 *
 * so that columns enter and leave within one step. Near the solution the model's support is the solution's,
 * and convergence is that of Newton's method on it (Lee, Sun and Saunders, SIAM J. Optim. 24, 2014; how well
 * to solve the model: Byrd, Nocedal and Oztoprak, Math. Program. 157, 2016).
 *
 * The model is solved by conjugate gradient on its faces, after Solntsev, Nocedal and Byrd (Optim. Methods
 * Softw. 30, 2015) and Dostal's proportioning. A face is the elements that are not 0, and their signs. On it
 * the l1 term is linear, and CG goes on until an element would leave its orthant: then all that would stop at
 * 0, at the price of one product for the projected move, and a face with fewer elements begins. When what the
 * least subgradient has on elements at 0 outweighs what it has on the face, they are released. A product
 * gives the model's gradient everywhere, so that looking beyond the face costs no pass.
 *
 * This is the step of GPUs, of softmax, and of an X that streams; newton_descent.c has the others'.
 *
 * Each product is one pass over X; all vector work is ops/linear/newton.h's, with R for the model's gradient,
 * Z for the point. */
#include "algorithms/newton/newton_work.h"

enum {
    PRODUCTS = 10, /* in a step, for each coefficient */
    CUTS = 30      /* shortenings of a projected move that does not lower the model */
};

/* Says how far the solution of the model is. */
struct search {
    struct ki_newton_model *model;
    double free, fixed; /* squares of || D^-1 the least subgradient ||: on the face, and on elements at 0 */
    double goal;        /* for their sum */
    bool stuck;
    int64_t most; /* inner iterations */
};

static kiln_status mix(double *sums, struct ki_pair out, struct ki_pair x, double scalar, struct ki_pair y,
                       struct ki_pair second, const kiln_matrix *column) {
    return ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_MIX,
                                                 .out = out,
                                                 .second = second,
                                                 .x = x,
                                                 .y = y,
                                                 .column = column,
                                                 .scalar = scalar});
}

static bool finished(const struct ki_newton_work *work, const struct search *search) {
    return search->stuck || search->free + search->fixed <= search->goal ||
           search->model->inner >= search->most || work->newton->run.cancelled;
}

static kiln_status product(struct ki_newton_work *work, struct search *search,
                           const struct ki_pair *direction, double *curvature) {
    search->model->inner++;
    return ki_newton_apply(work, direction, curvature);
}

/* S = the projected move by -alpha P. *leaving: elements that it takes to 0; *slope: the model's along it. */
static kiln_status reach(struct ki_newton_work *work, double alpha, double *leaving, double *slope) {
    double sums[3];
    const kiln_status status = ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_REACH,
                                                                     .out = work->S,
                                                                     .second = work->R,
                                                                     .x = work->Z,
                                                                     .y = work->P,
                                                                     .column = work->l1,
                                                                     .scalar = -alpha});
    if (status != KILN_OK) return status;
    *leaving = sums[0];
    *slope = sums[1];
    return KILN_OK;
}

/* Z += scalar move, R += scalar Q, where Q = H move and the model comes down by `decrease`. */
static kiln_status accept(struct ki_newton_work *work, struct search *search, struct ki_pair move,
                          double scalar, double decrease) {
    double sums[3];
    const kiln_status status = ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_MOVE,
                                                                     .out = work->Z,
                                                                     .second = work->R,
                                                                     .x = move,
                                                                     .y = work->Q,
                                                                     .inverse = work->inverse,
                                                                     .column = work->l1,
                                                                     .scalar = scalar});
    if (status != KILN_OK) return status;
    search->free = sums[0];
    search->fixed = sums[1];
    search->model->decrease += decrease;
    return KILN_OK;
}

/* The move S, which takes elements to 0, or a shorter one: the projected path need not go down all the
 * way. */
static kiln_status cross(struct ki_newton_work *work, struct search *search, double alpha, double slope) {
    kiln_status status = KILN_OK;
    double curvature, leaving;
    for (int i = 0; i < CUTS; i++) {
        TRY(product(work, search, &work->S, &curvature));
        const double decrease = -(slope + 0.5 * curvature);
        if (decrease > 0 && isfinite(decrease)) return accept(work, search, work->S, 1, decrease);
        if (search->model->inner >= search->most || work->newton->run.cancelled) break;
        alpha *= 0.25;
        TRY(reach(work, alpha, &leaving, &slope));
    }
    search->stuck = true;
done:
    return status;
}

/* Conjugate gradient along P, rho = (the gradient on the face) . P, until the face changes or is good
 * enough. */
static kiln_status walk(struct ki_newton_work *work, struct search *search, double rho) {
    kiln_status status;
    double curvature, leaving, slope;
    for (;;) {
        TRY(product(work, search, &work->P, &curvature));
        const double alpha = curvature > 0 ? rho / curvature : 1;
        TRY(reach(work, alpha, &leaving, &slope));
        if (leaving > 0) return cross(work, search, alpha, slope);
        const double decrease = -(slope + 0.5 * alpha * alpha * curvature);
        search->stuck = !(decrease > 0) || !isfinite(decrease);
        if (search->stuck) return KILN_OK;
        TRY(accept(work, search, work->P, -alpha, decrease));
        if (finished(work, search) || search->fixed > search->free) return KILN_OK;
        TRY(ki_pairs_run(NULL, &(struct ki_pairs){.op = KI_PAIR_FACE,
                                                  .out = work->P,
                                                  .x = work->R,
                                                  .y = work->Z,
                                                  .inverse = work->inverse,
                                                  .column = work->l1,
                                                  .scalar = search->free / rho}));
        rho = search->free;
        ki_run_ask(&work->newton->run);
    }
done:
    return status;
}

/* S = the least subgradient at Z, and its sums. */
static kiln_status look(struct ki_newton_work *work, struct search *search) {
    double sums[3];
    const kiln_status status = ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_LEAST,
                                                                     .out = work->S,
                                                                     .x = work->R,
                                                                     .y = work->Z,
                                                                     .inverse = work->inverse,
                                                                     .column = work->l1});
    if (status != KILN_OK) return status;
    search->free = sums[0];
    search->fixed = sums[1];
    return KILN_OK;
}

/* P = the first direction of a face: the scaled gradient on it, and, where it is released, on the elements
 * at 0. */
static kiln_status begin(struct ki_newton_work *work, const struct search *search, double *rho) {
    const bool release = search->fixed > search->free;
    *rho = search->free + (release ? search->fixed : 0);
    return ki_pairs_run(NULL, &(struct ki_pairs){.op = release ? KI_PAIR_TURN : KI_PAIR_FACE,
                                                 .out = work->P,
                                                 .x = release ? work->S : work->R,
                                                 .y = work->Z,
                                                 .inverse = work->inverse,
                                                 .column = work->l1});
}

/* S = Z - w and what the model says of it. */
static kiln_status conclude(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    const struct ki_newton_point *here = &work->here;
    const struct ki_pair none = {NULL, NULL};
    double sums[3];
    TRY(mix(sums, work->Z, work->Z, 0, none, none, work->l1));
    model->slope = here->norm1 - sums[1];
    TRY(mix(sums, work->S, work->Z, -1, here->at, here->gradient, NULL));
    model->slope -= sums[0];
done:
    return status;
}

kiln_status ki_newton_l1_direction(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    const struct ki_newton_point *here = &work->here;
    const struct ki_pair none = {NULL, NULL};
    struct search search = {.model = model, .most = PRODUCTS * (kiln_matrix_nnz(work->S.w) + 10)};
    double rho;
    *model = (struct ki_newton_model){0};
    TRY(mix(NULL, work->Z, here->at, 0, none, none, NULL));
    TRY(mix(NULL, work->R, here->gradient, 0, none, none, NULL));
    TRY(look(work, &search));
    search.goal = ki_newton_forcing(work->norm / work->reference, work->goal, search.free + search.fixed);
    search.goal *= search.goal;
    while (!finished(work, &search)) {
        TRY(begin(work, &search, &rho));
        TRY(walk(work, &search, rho));
        TRY(look(work, &search));
    }
    model->rest = (search.free + search.fixed) / (2 * work->scale);
    /* of several classes there is no bound of what the search leaves where columns have lost their
     * curvature */
    model->loose = work->newton->k > 1 && ki_newton_doubtful(work);
    TRY(conclude(work, model));
done:
    return status;
}
