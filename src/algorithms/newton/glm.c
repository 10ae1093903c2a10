/* Generalised linear models by the Newton engine, with the loss's own curvature where that is positive
 * throughout; else the expected curvature makes its steps those of Fisher scoring, which iteratively
 * reweighted least squares takes too.
 *
 * The figures a fit is judged by come from one more product, Eta = X w + b + offset, and a walk over its
 * rows. */
#include "algorithms/newton/glm.h"

#include "algorithms/inference/information.h"
#include "ops/linear/ahead.h"
#include "ops/linear/families.h"

/* ---- checks ---- */

static kiln_status glm_check_options(const kiln_glm_options *options, const kiln_matrix *X) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(X), count = n + !options->no_intercept;
    if (options->standard_errors) {
        if (options->l2 > 0 || options->l1 > 0)
            return ki_fail(KILN_ERR_ARGUMENT,
                           "%s: standard errors are defined without a penalty only: %s_options.%s must be 0",
                           ki_glm_call, ki_glm_call, options->l2 > 0 ? "l2" : "l1");
        if (n > KI_INFORMATION_COLUMNS)
            return ki_fail(KILN_ERR_LIMIT,
                           "%s: standard errors of %lld columns; at most %d, their matrix is dense",
                           ki_glm_call, (long long)n, KI_INFORMATION_COLUMNS);
        TRY(ki_check_matrix(ki_glm_call, "standard_errors", options->standard_errors, X, count, 1));
    }
    TRY(ki_check_iteration(ki_glm_call, options->tolerance, options->max_iterations));
done:
    return status;
}

static kiln_status glm_check(const kiln_matrix *w, const kiln_matrix *b, const kiln_matrix *X,
                             const kiln_matrix *y, const kiln_glm_options *options) {
    kiln_status status;
    if (!X || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", ki_glm_call, X ? "y" : "X");
    const int64_t rows = kiln_matrix_rows(X), cols = kiln_matrix_cols(X);
    TRY(ki_check_matrix(ki_glm_call, "y", y, X, rows, 1));
    TRY(ki_check_matrix(ki_glm_call, "w", w, X, cols, 1));
    if (b || !options->no_intercept) TRY(ki_check_matrix(ki_glm_call, "b", b, X, 1, 1));
    if (options->weights) TRY(ki_check_matrix(ki_glm_call, "weights", options->weights, X, rows, 1));
    if (options->offset) TRY(ki_check_matrix(ki_glm_call, "offset", options->offset, X, rows, 1));
    TRY(glm_check_options(options, X));
    if (rows == 0 || cols == 0)
        return ki_fail(KILN_ERR_DATA, "%s: X has no %s", ki_glm_call, rows == 0 ? "rows" : "columns");
    TRY(ki_check_finite(ki_glm_call, "y", y, false));
    if (options->weights) TRY(ki_check_weights(ki_glm_call, options->weights));
    if (options->offset) TRY(ki_check_finite(ki_glm_call, "offset", options->offset, false));
    if (options->warm_start) TRY(ki_check_finite(ki_glm_call, "w", w, false));
    if (options->warm_start && !options->no_intercept) TRY(ki_check_finite(ki_glm_call, "b", b, false));
done:
    return status;
}

/* ---- figures ---- */

/* The sum of the weights, the number of those that are not 0, and the mean of y. */
static kiln_status glm_measure_rows(struct ki_glm *glm) {
    kiln_status status;
    const kiln_matrix *s = glm->loss.weights;
    struct ki_arena arena = {0};
    double total;
    glm->ones = ki_arena_fill(&glm->newton.run.arena, ki_arena_rows(&glm->newton.run.arena, glm->X, 1), 1);
    TRY(glm->newton.run.arena.status);
    glm->weight = glm->rows = (double)kiln_matrix_rows(glm->X);
    if (s) {
        kiln_matrix *counted = ki_arena_rows(&arena, s, 1);
        TRY(arena.status);
        TRY(kiln_map(counted, KILN_MAP_RECIPROCAL, s)); /* 0 where s is */
        TRY(kiln_times(counted, counted, s));
        TRY(kiln_norm(&glm->rows, counted, KILN_NORM_1));
        glm->rows = round(glm->rows);
        TRY(kiln_norm(&glm->weight, s, KILN_NORM_1));
    }
    TRY(kiln_dot(&total, glm->loss.y, s ? s : glm->ones));
    glm->mean = total / glm->weight;
done:
    return ki_arena_free(&arena, status);
}

struct sums {
    double deviance, pearson, least, bend;
};

/* The sums of kiln_loss_deviance's columns at X w + b + offset; w NULL counts as zeros. */
static kiln_status glm_sum_rows(struct sums *sums, struct ki_glm *glm, const kiln_matrix *w, double b) {
    kiln_status status;
    const kiln_matrix *offset = glm->loss.offset;
    const double one = 1;
    double result[3];
    struct ki_arena arena = {0};
    kiln_matrix *Eta = ki_arena_rows(&arena, glm->X, 1), *D = ki_arena_rows(&arena, glm->X, 3);
    TRY(arena.status);
    TRY(kiln_combine(Eta, &b, glm->ones, &one, offset));
    if (w) {
        TRY(kiln_multiply(Eta, 1, KILN_PLAIN, glm->X, w, 1, Eta));
        glm->newton.run.report.passes++;
    }
    TRY(kiln_loss_deviance(D, &glm->loss, Eta));
    TRY(kiln_dot(result, D, glm->ones));
    *sums = (struct sums){result[0], result[1], result[2], 0};
    if (w) TRY(ki_glm_bend(&sums->bend, glm, Eta, D, sums->pearson));
done:
    return ki_arena_free(&arena, status);
}

struct figures {
    double null_deviance, dispersion, aic;
    struct ki_glm_rows rows;
};

bool ki_glm_at_end(const struct ki_glm *glm) {
    const kiln_range range = ki_family_find(glm->loss.family)->range;
    return glm->mean <= range.least || glm->mean >= range.most;
}

static kiln_status glm_judge(struct figures *figures, struct ki_glm *glm, double parameters) {
    kiln_status status;
    const struct ki_family *family = ki_family_find(glm->loss.family);
    struct sums sums, null;
    double b;
    TRY(ki_vector_get(&b, glm->newton.b));
    TRY(glm_sum_rows(&sums, glm, glm->newton.W, b));
    TRY(glm_sum_rows(&null, glm, NULL, glm->null));
    figures->null_deviance = ki_glm_at_end(glm) ? 0 : null.deviance;
    figures->rows = (struct ki_glm_rows){sums.deviance, sums.pearson, sums.bend};
    figures->dispersion = family->shown.fixed_dispersion ? 1
                          : glm->rows > parameters       ? sums.pearson / (glm->rows - parameters)
                                                         : (double)NAN;
    const struct ki_likelihood at = {.deviance = sums.deviance,
                                     .least = sums.least,
                                     .weight = glm->weight,
                                     .rows = glm->rows,
                                     .parameters = parameters};
    figures->aic = family->akaike ? family->akaike(&at) : (double)NAN;
done:
    return status;
}

/* Returns whether means of this link come near any number, as far as they go; a mean of y beyond has its best
 * constant at infinity. */
static bool in_reach(const kiln_loss *loss, double mean) {
    const struct ki_link *link = ki_link_find(ki_link_of(loss));
    return (isinf(link->least) || mean > link->least) && (isinf(link->most) || mean < link->most);
}

/* The best constant, glm->null, and the sums at it. */
static kiln_status find_constant(struct sums *null, struct ki_glm *glm) {
    kiln_status status;
    TRY(glm_measure_rows(glm));
    TRY(ki_glm_null(glm));
    TRY(glm_sum_rows(null, glm, NULL, glm->null));
done:
    return status;
}

kiln_status ki_glm_origin(struct ki_glm_origin *origin, const kiln_matrix *X, const kiln_loss *loss) {
    kiln_status status;
    struct ki_glm glm = {.X = X, .loss = *loss};
    struct sums null;
    TRY(find_constant(&null, &glm));
    const double mean = glm.curvature / glm.weight;
    *origin = (struct ki_glm_origin){.b = glm.null,
                                     .curvature = mean > 0 && isfinite(mean) ? mean : 1,
                                     .deviance = null.deviance,
                                     .reached = in_reach(loss, glm.mean)};
done:
    return ki_arena_free(&glm.newton.run.arena, status);
}

kiln_status ki_glm_null_deviance(double *deviance, const kiln_matrix *X, const kiln_loss *loss) {
    kiln_status status;
    struct ki_glm glm = {.X = X, .loss = *loss};
    struct sums null;
    TRY(find_constant(&null, &glm));
    *deviance = ki_glm_at_end(&glm) ? 0 : null.deviance;
done:
    return ki_arena_free(&glm.newton.run.arena, status);
}

/* The curve is flat where no coefficients fit y better than means at the end of the link's range, and the
 * gradient is 0 long before anything is fitted: that is no optimum. Counts that are all 0 are fitted, by
 * means near 0. */
static void check_reach(struct ki_glm *glm, const struct figures *figures) {
    kiln_report *report = &glm->newton.run.report;
    if (in_reach(&glm->loss, glm->mean)) return;
    if (report->converged && glm->newton.one_sided)
        ki_report_warn(report, "one-sided", "",
                       "all targets are %.3g: the best mean is that, which no intercept gives, and these "
                       "coefficients are where the run ended",
                       glm->mean);
    if (figures->rows.deviance >= (1 - 1e-6) * figures->null_deviance &&
        figures->rows.deviance > 1e-6 * glm->weight) {
        report->converged = 0;
        report->stopped_by = KILN_STOP_STALLED;
        report->residual = 1;
    }
    if (!report->converged && report->residual >= 1)
        ki_report_warn(
            report, "out-of-reach", "kiln_glm_options.link: identity takes any number, or another family",
            "not converged: the means that kiln_glm_options.link %s can give do not come near the target, "
            "so that no coefficients are better than others",
            kiln_link_name(ki_link_of(&glm->loss)));
}

/* A mean in f32 is off by some units of its logarithm. That makes s y off^2 of a count's deviance, and
 * 1 / (1 + alpha y) of it in a negative binomial model; chance makes about 1, and more where the model leaves
 * more. */
static kiln_status check_counts(struct ki_glm *glm, const struct figures *figures) {
    const double chance = fmax(1, figures->rows.deviance / (double)kiln_matrix_rows(glm->X)),
                 enough = 0.01 * chance;
    const kiln_loss *loss = &glm->loss;
    const kiln_type type = kiln_matrix_type(glm->X);
    struct ki_arena arena = {0};
    kiln_matrix *counts;
    double largest, counted;
    kiln_status status = KILN_OK;
    if (type != KILN_F32 || !ki_family_find(loss->family)->shown.fixed_dispersion) goto done;
    TRY(kiln_norm(&largest, loss->y, KILN_NORM_MAX));
    counted = largest;
    if (loss->weights) {
        counts = ki_arena_rows(&arena, glm->X, 1);
        TRY(arena.status);
        TRY(kiln_times(counts, loss->y, loss->weights));
        TRY(kiln_norm(&counted, counts, KILN_NORM_MAX));
    }
    const double off = ki_epsilon(type) * fmax(1, log(largest)),
                 spread = loss->family == KILN_NEGATIVE_BINOMIAL ? 1 + loss->parameter * largest : 1,
                 part = counted * off * off / spread;
    if (part > enough)
        ki_report_warn(&glm->newton.run.report, "counts", "compute in f64",
                       "counts of up to %.3g are more than f32 resolves: rounding makes some %.1g of a "
                       "deviance, where chance makes %.1g",
                       counted, part, chance);
done:
    return ki_arena_free(&arena, status);
}

/* All targets at one end of the family's means, which a link from there to infinity does not reach. */
static bool one_sided(const struct ki_glm *glm) {
    return !glm->options->no_intercept && !in_reach(&glm->loss, glm->mean) && ki_glm_at_end(glm);
}

/* ---- the fit ---- */

static kiln_status glm_fit(struct ki_glm *glm, const kiln_matrix *w, const kiln_matrix *b) {
    kiln_status status;
    const bool warm = glm->options->warm_start;
    /* Without an intercept and with a link that not every eta suits, W = 0 may lie where the gradient is
     * beyond measure. */
    const bool bounded = glm->options->no_intercept && !ki_glm_any_eta(&glm->loss);
    struct ki_newton_start start = {.warm = warm, .origin = glm->null, .own_reference = bounded};
    TRY(ki_newton_open(&glm->newton));
    TRY(ki_run_begin(&glm->newton.run, (struct ki_described){.options = glm->options,
                                                             .given = {{"y", glm->loss.y},
                                                                       {"the weights", glm->loss.weights},
                                                                       {"the offset", glm->loss.offset}}}));
    if (warm) {
        TRY(ki_newton_set_start(&glm->newton, w, b));
    } else if (bounded && !ki_checkpoint_waits(glm->newton.run.control)) {
        TRY(ki_glm_start(glm, &start.warm));
        if (!start.warm) {
            ki_fail(KILN_ERR_DATA, "%s: no coefficients were found that give every row a mean in its range",
                    ki_glm_call);
            status = ki_hint("fit an intercept, take a link that accepts any number, or give a start");
            goto done;
        }
    }
    TRY(ki_newton_solve(&glm->newton, &glm->loss, &start));
done:
    return status;
}

/* Returns whether X^T diag(h) X, on the device and on its way, has room there. */
static bool glm_has_room(const kiln_matrix *X) {
    enum { COPIES = 3 };
    kiln_device_info info = {0};
    kiln_device_statistics used = {0};
    const kiln_device *device = kiln_matrix_device(X);
    const double columns = (double)kiln_matrix_cols(X);
    return kiln_device_get_info(device, &info) == KILN_OK &&
           kiln_device_get_statistics(device, &used) == KILN_OK &&
           COPIES * sizeof(double) * columns * columns <= (double)(info.memory - used.memory_used);
}

/* Coefficients that are not 0. */
static kiln_status count_nonzeros(int64_t *count, const struct ki_newton *newton) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t columns = kiln_matrix_cols(newton->X);
    double *w = ki_arena_doubles(&arena, columns);
    TRY(arena.status);
    TRY(ki_vector_get(w, newton->W));
    *count = 0;
    for (int64_t j = 0; j < columns; j++) *count += w[j] != 0;
done:
    return ki_arena_free(&arena, status);
}

/* The matrix that errors come from knows half of the digits: products with X say which columns do depend on
 * others. */
static kiln_status count_by_rank(struct ki_parameters *parameters, struct ki_glm *glm) {
    kiln_status status = KILN_OK;
    struct ki_newton *newton = &glm->newton;
    if (!newton->ranked) TRY(ki_newton_find_rank(newton));
    const int64_t most = kiln_matrix_cols(glm->X), rank = newton->rank;
    *parameters = (struct ki_parameters){(rank >= 0 ? rank : most) + !glm->options->no_intercept,
                                         newton->run.cancelled ? KI_UNCOUNTED
                                         : rank >= 0           ? KI_COUNTED
                                                               : KI_AT_MOST};
done:
    return status;
}

/* Columns that depend on others are no parameters, as where text columns have a feature for every level. Few
 * are counted by the way to standard errors, whether these are wanted or not; of many X's null space tells,
 * and where it does not that way has the last word.
 * *errors, the run's: standard errors at dispersion 1, NaN where the matrix that they come from has lost
 * columns. */
static kiln_status count_parameters(struct ki_parameters *parameters, double **errors, struct ki_glm *glm) {
    enum { FEW = 512, COUNTED = 4096 };
    kiln_status status;
    const kiln_glm_options *options = glm->options;
    const int64_t columns = kiln_matrix_cols(glm->X), all = columns + !options->no_intercept;
    if (options->standard_errors) {
        *errors = ki_arena_doubles(&glm->newton.run.arena, all);
        TRY(glm->newton.run.arena.status);
        TRY(ki_glm_information(parameters, *errors, glm));
        const int64_t seen = parameters->count;
        if (parameters->how == KI_COUNTED && seen < all) TRY(count_by_rank(parameters, glm));
        for (int64_t i = 0; parameters->how == KI_COUNTED && parameters->count != seen && i < all; i++)
            (*errors)[i] = (double)NAN;
        return KILN_OK;
    }
    *parameters = (struct ki_parameters){all, glm->newton.run.cancelled ? KI_UNCOUNTED : KI_COUNTED};
    if (options->l1 > 0) {
        TRY(count_nonzeros(&parameters->count, &glm->newton));
        parameters->count += all - columns;
        return KILN_OK;
    }
    /* a model penalised by l2 has no such number: all are counted */
    if (options->l2 > 0 || parameters->how == KI_UNCOUNTED) return KILN_OK;
    if (columns > FEW) {
        TRY(ki_glm_rank(parameters, glm));
        if (parameters->how != KI_AT_MOST || columns > COUNTED || !glm_has_room(glm->X)) return KILN_OK;
    }
    TRY(ki_glm_information(parameters, NULL, glm));
    if (parameters->how == KI_COUNTED && parameters->count < all) TRY(count_by_rank(parameters, glm));
done:
    return status;
}

/* Tells what the report says of the fit. */
static void glm_tell(struct ki_glm *glm, const struct figures *figures,
                     const struct ki_parameters *parameters) {
    kiln_report *report = &glm->newton.run.report;
    const kiln_glm_options *options = glm->options;
    if (options->l2 == 0 && options->l1 == 0 && parameters->how == KI_COUNTED)
        ki_report_rank(report, parameters->count - !options->no_intercept, kiln_matrix_cols(glm->X));
    ki_report_figure(report, "deviance", figures->rows.deviance);
    ki_report_figure(report, "null_deviance", figures->null_deviance);
    ki_report_figure(report, "dispersion", figures->dispersion);
    ki_report_figure(report, "aic", figures->aic);
    if (parameters->how != KI_UNCOUNTED)
        ki_report_figure(report, parameters->how == KI_COUNTED ? "parameters" : "parameters_at_most",
                         (double)parameters->count);
}

/* The caller's standard errors, when all else is well. */
static kiln_status glm_give_errors(struct ki_glm *glm, double *errors, double dispersion) {
    kiln_status status;
    struct ki_arena *arena = &glm->newton.run.arena;
    kiln_matrix *E = glm->options->standard_errors;
    const int64_t count = kiln_matrix_rows(E);
    const double one = 1;
    for (int64_t j = 0; j < count; j++) errors[j] *= sqrt(dispersion);
    const kiln_matrix *made = ki_arena_vector(arena, glm->X, count, errors);
    TRY(arena->status);
    TRY(kiln_combine(E, &one, made, NULL, NULL));
done:
    return status;
}

kiln_status kiln_glm(kiln_matrix *w, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                     const kiln_glm_options *options, kiln_report *report) {
    kiln_status status;
    kiln_glm_options own = {0};
    struct figures figures;
    double *errors = NULL;
    struct ki_parameters parameters;
    struct ki_glm glm = {.X = X, .options = &own};
    struct ki_newton *newton = &glm.newton;
    TRY(KI_RUN_OPEN(&newton->run, glm, &own, options, report));
    TRY(ki_check_strength(ki_glm_call, "l1", own.l1));
    TRY(ki_check_strength(ki_glm_call, "l2", own.l2));
    TRY(glm_check(w, b, X, y, &own));
    ki_options_fill(&own, &ki_algorithm_glm, kiln_matrix_type(X));
    ki_run_on(&newton->run, X, own.tolerance, own.max_iterations);
    newton->call = ki_glm_call;
    newton->X = X;
    newton->weights = own.weights;
    newton->k = 1;
    newton->l2 = own.l2;
    newton->l1 = own.l1;
    newton->no_intercept = own.no_intercept != 0;
    newton->standardize = own.standardize != 0;
    glm.loss = (kiln_loss){.kind = KILN_LOSS_GLM,
                           .family = own.family ? own.family : KILN_GAUSSIAN,
                           .link = own.link,
                           .parameter = own.parameter,
                           .link_power = own.link_power,
                           .y = y,
                           .weights = own.weights,
                           .offset = own.offset};
    TRY(ki_family_check(ki_glm_call, &glm.loss));
    TRY(ki_linear_ahead(&(struct ki_ahead){.X = X, .newton = true, .loss = glm.loss}));
    TRY(glm_measure_rows(&glm));
    TRY(ki_glm_check_target(&glm.loss));
    TRY(ki_glm_null(&glm));
    TRY(ki_glm_tell_derivative(&glm));
    newton->one_sided = one_sided(&glm);
    TRY(glm_fit(&glm, w, b));
    TRY(count_parameters(&parameters, &errors, &glm));
    if (!errors) TRY(ki_newton_least_norm(newton)); /* errors are of a model without the dependent columns */
    TRY(glm_judge(&figures, &glm, (double)parameters.count));
    if (parameters.how == KI_UNCOUNTED) figures.aic = NAN;
    check_reach(&glm, &figures);
    TRY(check_counts(&glm, &figures));
    TRY(ki_glm_certify(&glm, &figures.rows));
    glm_tell(&glm, &figures, &parameters);
    if (errors) TRY(glm_give_errors(&glm, errors, figures.dispersion));
    TRY(ki_newton_hand_over(newton, w, b));
done:
    return ki_run_close(&newton->run, status);
}
