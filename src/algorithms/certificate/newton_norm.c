/* The coefficients of least norm where nothing penalises them and X's columns (about their means, under an
 * intercept) depend on each other.
 *
 * The optimum is then every V with X V + 1 c = X W + 1 b. Of these kiln_linreg, from the targets X W, finds
 * the one of least norm, as it does of its own: the rank is known, and the targets have no residual. */
#include "algorithms/newton/newton.h"

/* Predictors may change by so much, in units of the largest one's last place: beyond that V is not taken. */
static const double LOST = 64;
enum { FEW = 200 }; /* iterations, or as many as the fit has taken passes */

static kiln_status fits_alike(bool *alike, struct ki_arena *arena, const kiln_report *report,
                              const kiln_matrix *eta, const struct ki_newton *newton) {
    const double lost = LOST * ki_epsilon(kiln_matrix_type(newton->X));
    double *largest = ki_arena_doubles(arena, newton->k), allowed = 0;
    kiln_status status;
    TRY(arena->status);
    TRY(kiln_norm(largest, eta, KILN_NORM_MAX));
    for (int c = 0; c < newton->k; c++) allowed += newton->columns.weight * pow(lost * largest[c], 2);
    *alike = kiln_report_figure(report, "rank") == (double)newton->rank &&
             kiln_report_figure(report, "rss") <= allowed;
done:
    return status;
}

kiln_status ki_newton_least_norm(struct ki_newton *newton) {
    kiln_status status = KILN_OK;
    const kiln_matrix *X = newton->X;
    struct ki_run *run = &newton->run;
    const bool depend = newton->ranked && newton->rank >= 0 && newton->rank < kiln_matrix_cols(X);
    if (!depend || newton->l1 > 0 || newton->l2 > 0 || run->cancelled) return KILN_OK;
    const kiln_linreg_options options = {.no_intercept = newton->no_intercept,
                                         .standardize = newton->standardize,
                                         .weights = newton->weights,
                                         .tolerance = ki_epsilon(kiln_matrix_type(X)),
                                         .max_iterations = ki_max(FEW, run->report.passes),
                                         .control = ki_checkpoint_apart(run->control)};
    struct ki_arena arena = {0};
    kiln_report report = {.size = sizeof report};
    kiln_matrix *eta = ki_arena_rows(&arena, X, newton->k),
                *V = ki_arena_model(&arena, X, kiln_matrix_cols(X), newton->k),
                *c = ki_arena_model(&arena, X, 1, newton->k);
    bool alike = false;
    TRY(arena.status);
    TRY(kiln_multiply(eta, 1, KILN_PLAIN, X, newton->W, 0, NULL));
    TRY(kiln_linreg(V, c, X, eta, &options, &report));
    run->report.passes += report.passes + 1;
    TRY(fits_alike(&alike, &arena, &report, eta, newton));
    if (!alike) goto done;
    TRY(ki_copy(newton->W, V));
    if (!newton->no_intercept) TRY(kiln_combine_from(newton->b, NULL, newton->b, NULL, c));
done:
    kiln_report_free(&report);
    return ki_arena_free(&arena, status);
}
