/* Statistics of a linear model at its optimum: its figures, and the covariance of its coefficients as a root
 * R, scale R R^T.
 *
 * H^-1 = K K^T, of the columns about their means V (information.c) and of the intercept 1 / sqrt(sum h). The
 * intercept of the columns as they are is that of those about their means less mean^T w: so K's last row
 * gives up mean^T V, and the same makes any other root that of the columns as they are. A row's leverage and
 * a prediction's variance are then |x~^T R|^2. */
#include "algorithms/inference/inference.h"

#include "algorithms/newton/glm.h"
#include "ops/linear/families.h"

static const char call[] = "kiln_inference_of";

static const char *const error_names[] = {"model", "hc0", "hc1", "hc2", "hc3", "cluster"};
enum { ERRORS = sizeof error_names / sizeof *error_names };

const char *kiln_errors_name(kiln_errors errors) {
    return (int)errors >= 0 && (int)errors < ERRORS ? error_names[errors] : NULL;
}

/* ---- the object ---- */

void kiln_inference_free(kiln_inference *inference) {
    if (!inference) return;
    if (inference->root != inference->hat) ki_free(inference->root);
    ki_free(inference->hat);
    ki_free(inference->values);
    ki_free(inference->dependent);
    ki_free(inference);
}

double kiln_inference_value(const kiln_inference *inference, const char *name) {
    for (int i = 0; inference && name && i < inference->figure_count; i++)
        if (strcmp(inference->figures[i].name, name) == 0) return inference->figures[i].value;
    return (double)NAN;
}

const char *kiln_inference_name(const kiln_inference *inference, int64_t i) {
    return inference && i >= 0 && i < inference->figure_count ? inference->figures[i].name : NULL;
}

int64_t kiln_inference_count(const kiln_inference *inference) {
    return inference ? inference->count : 0;
}

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

kiln_status kiln_inference_coefficient(kiln_coefficient *coefficient, const kiln_inference *inference,
                                       int64_t i, double level) {
    kiln_status status;
    if (!coefficient || !inference || i < 0 || i >= inference->count || !(level > 0 && level < 1))
        return ki_fail(
            KILN_ERR_ARGUMENT,
            "kiln_inference_coefficient: a pointer is NULL, %lld is no coefficient's number, or %g "
            "no level between 0 and 1",
            (long long)i, level);
    TRY(KI_CHECK_RESULT(kiln_coefficient, coefficient));
    const double *root = inference->root + i * inference->count;
    const double value = inference->values[i],
                 error = sqrt(inference->scale * dot(root, root, inference->count));
    kiln_coefficient made = {.value = value, .error = error, .dependent = inference->dependent[i]};
    if (made.dependent) made.error = (double)NAN;
    const double most = kiln_student_quantile(level, inference->degrees) * made.error;
    made.statistic = value / made.error;
    made.p = kiln_student_tails(made.statistic, inference->degrees);
    made.low = value - most;
    made.high = value + most;
    KI_GIVE(kiln_coefficient, coefficient, &made);
done:
    return status;
}

kiln_status kiln_inference_covariance(double *covariance, const kiln_inference *inference) {
    if (!covariance || !inference)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_inference_covariance: a pointer is NULL");
    const int64_t count = inference->count;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = i; j < count; j++) {
            const bool none = inference->dependent[i] || inference->dependent[j];
            const double *root = inference->root,
                         both = none ? (double)NAN : dot(root + i * count, root + j * count, count);
            covariance[i * count + j] = covariance[j * count + i] = inference->scale * both;
        }
    return KILN_OK;
}

void ki_inference_uncentre(double *R, int64_t count, const struct ki_information *of) {
    const int64_t n = of->n;
    for (int64_t j = 0; j < n && count > n; j++)
        for (int64_t c = 0; c < count; c++) R[n * count + c] -= of->mean[j] * R[j * count + c];
}

/* ---- what it takes ---- */

kiln_status ki_inference_loss(kiln_loss *glm, const char *of, const kiln_loss *loss) {
    kiln_status status;
    TRY(KI_TAKE(kiln_loss, glm, loss));
    if (glm->kind == KILN_LOSS_SQUARED) {
        glm->family = KILN_GAUSSIAN;
        glm->link = KILN_LINK_IDENTITY;
    } else if (glm->kind == KILN_LOSS_LOGISTIC) {
        glm->family = KILN_BINOMIAL;
        glm->link = KILN_LINK_LOGIT;
    } else if (glm->kind != KILN_LOSS_GLM) {
        return ki_fail(KILN_ERR_UNSUPPORTED,
                       "%s: statistics are of least squares, logistic regression of two classes and "
                       "generalised linear models",
                       of);
    }
    glm->kind = KILN_LOSS_GLM;
    TRY(ki_family_check(of, glm));
    glm->link = ki_link_of(glm);
done:
    return status;
}

kiln_status ki_inference_widen(struct ki_inference_wide *wide, struct ki_arena *arena, const kiln_matrix *X,
                               const kiln_loss *loss, const kiln_matrix *w, const kiln_matrix *b) {
    kiln_status status;
    wide->loss = *loss;
    const kiln_matrix *const given[] = {X, w, b, loss->y, loss->weights, loss->offset};
    const kiln_matrix **const made[] = {
        &wide->X, &wide->w, &wide->b, &wide->loss.y, &wide->loss.weights, &wide->loss.offset};
    for (int i = 0; i < 6; i++) TRY(ki_information_widen(made[i], arena, given[i], i > 0 ? wide->X : NULL));
    status = KILN_OK;
done:
    return status;
}

static kiln_status check_groups(const kiln_inference_options *options, const kiln_matrix *X) {
    if (options->errors != KILN_ERRORS_CLUSTER) return KILN_OK;
    if (!options->groups || options->group_count < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: clustered errors need the groups of the rows", call);
    for (int64_t i = 0; i < kiln_matrix_rows(X); i++)
        if (options->groups[i] < 0 || options->groups[i] >= options->group_count)
            return ki_fail(KILN_ERR_ARGUMENT, "%s: row %lld is of group %lld, not of 0 ... %lld", call,
                           (long long)i, (long long)options->groups[i], (long long)options->group_count - 1);
    return KILN_OK;
}

static kiln_status check(const kiln_matrix *w, const kiln_matrix *b, const kiln_matrix *X,
                         const kiln_loss *loss, const kiln_inference_options *options) {
    kiln_status status;
    const int64_t m = kiln_matrix_rows(X), n = kiln_matrix_cols(X);
    TRY(ki_check_matrix(call, "y", loss->y, X, m, 1));
    TRY(ki_check_matrix(call, "w", w, X, n, 1));
    if (b) TRY(ki_check_matrix(call, "b", b, X, 1, 1));
    if (loss->weights) TRY(ki_check_matrix(call, "weights", loss->weights, X, m, 1));
    if (loss->offset) TRY(ki_check_matrix(call, "offset", loss->offset, X, m, 1));
    if (m == 0 || n == 0) return ki_fail(KILN_ERR_DATA, "%s: X has no %s", call, m == 0 ? "rows" : "columns");
    if (n > KI_INFORMATION_COLUMNS)
        return ki_fail(KILN_ERR_LIMIT, "%s: %lld columns; at most %d, their matrix is dense", call,
                       (long long)n, KI_INFORMATION_COLUMNS);
    if (!kiln_errors_name(options->errors))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no kind of errors has the number %d", call,
                       (int)options->errors);
    TRY(ki_check_finite(call, "y", loss->y, false));
    if (loss->weights) TRY(ki_check_weights(call, loss->weights));
    TRY(check_groups(options, X));
done:
    return status;
}

/* ---- figures ---- */

static void add(kiln_inference *made, const char *name, double value) {
    made->figures[made->figure_count].name = name;
    made->figures[made->figure_count++].value = value;
}

struct sums {
    double deviance, pearson, least, weight, rows;
};

static struct sums add_up(const struct ki_inference_rows *rows) {
    struct sums sums = {0};
    for (int64_t i = 0; i < rows->m; i++) {
        sums.deviance += rows->D[3 * i];
        sums.pearson += rows->D[3 * i + 1];
        sums.least += rows->D[3 * i + 2];
        sums.weight += rows->weights[i];
        sums.rows += rows->weights[i] > 0;
    }
    return sums;
}

static void add_likelihood(kiln_inference *made, const struct ki_inference_rows *rows, const kiln_loss *loss,
                           const struct sums *sums) {
    const struct ki_family *family = ki_family_find(loss->family);
    const double p = made->parameters, log_rows = log(sums->rows),
                 counted = p + !family->shown.fixed_dispersion;
    const bool largest = loss->family == KILN_GAUSSIAN && loss->link == KILN_LINK_IDENTITY;
    const double likelihood = ki_log_likelihood(rows, loss, sums->deviance,
                                                largest ? sums->deviance / sums->rows : made->dispersion);
    const struct ki_likelihood at = {.deviance = sums->deviance,
                                     .least = sums->least,
                                     .weight = sums->weight,
                                     .rows = sums->rows,
                                     .parameters = p};
    const double aic = ki_akaike(rows, loss, &at);
    add(made, "log_likelihood", likelihood);
    add(made, "aic", aic);
    add(made, "bic", aic + (log_rows - 2) * counted);
    add(made, "aic_of_means", 2 * p - 2 * likelihood);
    add(made, "bic_of_means", log_rows * p - 2 * likelihood);
    add(made, "bic_of_deviance", sums->deviance - log_rows * (sums->rows - p));
}

/* R^2 and the F test of all slopes, of least squares beside an intercept. */
static void add_fit(kiln_inference *made, const kiln_loss *loss, double deviance, double null, double left) {
    const double slopes = made->parameters - 1, share = deviance / null;
    if (loss->family != KILN_GAUSSIAN || loss->link != KILN_LINK_IDENTITY || made->count == made->n) return;
    const double f = slopes > 0 && left > 0 ? (null - deviance) / slopes / made->dispersion : (double)NAN;
    add(made, "r2", null > 0 ? 1 - share : (double)NAN);
    add(made, "r2_adjusted", null > 0 && left > 0 ? 1 - share * (slopes + left) / left : (double)NAN);
    add(made, "f", f);
    add(made, "f_p", kiln_f_tail(f, slopes, left));
}

static kiln_status measure(kiln_inference *made, struct sums *sums, const struct ki_inference_rows *rows,
                           const kiln_matrix *X, const kiln_loss *loss) {
    kiln_status status;
    double null;
    const double p = made->parameters;
    *sums = add_up(rows);
    const double left = sums->rows - p;
    const bool fixed = ki_family_find(loss->family)->shown.fixed_dispersion;
    TRY(ki_glm_null_deviance(&null, X, loss));
    made->family = loss->family;
    made->link = loss->link;
    made->parameter = loss->parameter;
    made->link_power = loss->link_power;
    made->estimated = !fixed;
    made->dispersion = fixed ? 1 : left > 0 ? sums->pearson / left : (double)NAN;
    made->degrees = fixed ? INFINITY : left > 0 ? left : (double)NAN;
    add(made, "rows", sums->rows);
    add(made, "parameters", p);
    add(made, "model_degrees", p - (made->count > made->n));
    add(made, "residual_degrees", left);
    add(made, "deviance", sums->deviance);
    add(made, "null_deviance", null);
    add(made, "pearson", sums->pearson);
    add(made, "dispersion", made->dispersion);
    add_fit(made, loss, sums->deviance, null, left);
    add_likelihood(made, rows, loss, sums);
done:
    return status;
}

/* ---- the covariance ---- */

/* hat, of V and the intercept's part. */
static void fill_hat(kiln_inference *made, const struct ki_information *of) {
    const int64_t n = made->n, count = made->count;
    for (int64_t i = 0; i < n; i++) memcpy(made->hat + i * count, of->A + i * n, (size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) made->dependent[i] = !(of->scale[i] > 0);
    if (count > n) made->hat[n * count + n] = 1 / sqrt(of->weight);
    ki_inference_uncentre(made->hat, count, of);
}

static kiln_status allocate(kiln_inference **made, const kiln_matrix *X, bool intercept) {
    kiln_inference *fresh = ki_calloc(sizeof *fresh);
    if (!fresh) return ki_fail_nomem(sizeof *fresh, "statistics");
    fresh->n = kiln_matrix_cols(X);
    const size_t count = (size_t)(fresh->count = fresh->n + intercept);
    fresh->values = ki_calloc(count * sizeof *fresh->values);
    fresh->dependent = ki_calloc(count * sizeof *fresh->dependent);
    if (fresh->values && fresh->dependent) {
        *made = fresh;
        return KILN_OK;
    }
    kiln_inference_free(fresh);
    return ki_fail_nomem(count * sizeof(double), "statistics");
}

/* hat, when the matrices that A is made with are gone. */
static kiln_status allocate_hat(kiln_inference *made) {
    const size_t square = (size_t)made->count * (size_t)made->count * sizeof(double);
    made->hat = ki_calloc(square);
    return made->hat ? KILN_OK : ki_fail_nomem(square, "the covariance of the coefficients");
}

/* Columns which the matrix has left out have to depend on others. Products with X, the user's, know
 * twice as many digits: where they say that more columns stand alone, or predictions would change, there
 * are no errors. */
static kiln_status check_rank(const struct ki_information *of, const kiln_matrix *X, bool refused) {
    kiln_status status;
    struct ki_found_rank found;
    struct ki_arena arena = {0};
    const int64_t kept = ki_information_count(of) - !of->no_intercept;
    kiln_matrix *C = NULL;
    if (kept == of->n) return KILN_OK;
    TRY(ki_arena_take(&arena, &C, kiln_matrix_copy(&C, kiln_matrix_device(X), kiln_matrix_type(X), of->C)));
    TRY(ki_find_rank(&found, X, C, of->no_intercept, &(kiln_control){0}));
    if (!refused && found.rank <= kept) goto done;
    ki_fail(KILN_ERR_DATA,
            "%s: %lld of %lld columns seem to depend on others in the information matrix, which rows of very "
            "different size have rounded, but they do not",
            call, (long long)(of->n - kept), (long long)of->n);
    status =
        ki_hint(kiln_matrix_type(X) == KILN_F32
                    ? "--type f64, or leave out rows that are far from all others"
                    : "leave out rows that are far from all others, or columns that nearly depend on others");
done:
    return ki_arena_free(&arena, status);
}

/* Copies of the coefficients, from which those of dependent columns are handed on. */
static kiln_status take_coefficients(kiln_inference *made, const struct ki_information *of,
                                     const struct ki_inference_wide *wide, const kiln_matrix *X) {
    kiln_status status;
    const double one = 1;
    const kiln_matrix *b = wide->b;
    bool refused;
    struct ki_arena arena = {0};
    kiln_matrix *W = ki_arena_model(&arena, of->X, made->n, 1),
                *constant = b ? ki_arena_model(&arena, of->X, 1, 1) : NULL;
    TRY(arena.status);
    TRY(kiln_combine(W, &one, wide->w, NULL, NULL));
    if (b) TRY(kiln_combine(constant, &one, b, NULL, NULL));
    TRY(ki_information_drop(of, W, constant, &refused));
    TRY(check_rank(of, X, refused));
    TRY(ki_vector_get(made->values, W));
    if (b) TRY(ki_vector_get(made->values + made->n, constant));
done:
    return ki_arena_free(&arena, status);
}

/* ---- the distance from the optimum ---- */

/* *square = g^T H^-1 g, g the gradient at the coefficients, U still in of->A; *blur: what its root may be by
 * rounding of the predictors alone, those of coefficients and data that `unit` is of. */
static kiln_status measure_gradient(double *square, double *blur, const struct ki_information *of,
                                    const struct ki_inference_wide *wide, double unit) {
    kiln_status status;
    const int64_t n = of->n;
    double value, slope = 0, constant = 0, reach = 0;
    struct ki_arena arena = {0};
    double *g = ki_arena_doubles(&arena, n), *w = ki_arena_doubles(&arena, n);
    kiln_matrix *G = ki_arena_model(&arena, wide->X, n, 1),
                *gb = wide->b ? ki_arena_model(&arena, wide->X, 1, 1) : NULL;
    TRY(arena.status);
    TRY(kiln_loss_gradient(&value, G, gb, NULL, &wide->loss, wide->X, wide->w, wide->b));
    TRY(ki_vector_get(g, G));
    TRY(ki_vector_get(w, wide->w));
    if (gb) TRY(ki_vector_get(&slope, gb));
    if (gb) TRY(ki_vector_get(&constant, wide->b));
    for (int64_t j = 0; j < n; j++) {
        reach += fabs(w[j]) * of->width[j] * sqrt(of->far[j]);
        g[j] = of->scale[j] > 0 ? (g[j] - slope * of->mean[j]) / of->scale[j] : 0;
    }
    *square = ki_information_substitute(of, g, 0) + (gb ? slope * slope / of->weight : 0);
    *blur = unit * (reach + fabs(constant) * sqrt(gb ? of->weight : 0));
done:
    return ki_arena_free(&arena, status);
}

/* In standard errors: of no coefficient, and no combination of some, is it more. */
static void add_distance(kiln_inference *made, double square, double blur) {
    const double excess = sqrt(square) - blur;
    add(made, "distance", excess > 0 ? excess / sqrt(made->dispersion) : excess <= 0 ? 0 : (double)NAN);
}

/* ---- all of it ---- */

/* A sum over rows of a hash of each (SplitMix64's finaliser), the same in any order: numbers of f64 count as
 * f32 has them. */
static uint64_t digest_of(const struct ki_inference_rows *rows) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < rows->m; i++) {
        const float pair[2] = {(float)rows->y[i] + 0.0F, (float)rows->weights[i]};
        uint64_t hash;
        if (!(rows->weights[i] > 0)) continue;
        memcpy(&hash, pair, sizeof hash);
        hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
        sum += hash ^ (hash >> 31);
    }
    return sum;
}

static kiln_status infer(kiln_inference *made, const kiln_matrix *X, const struct ki_inference_wide *wide,
                         const kiln_inference_options *options) {
    kiln_status status;
    const double unit = 4 * ki_epsilon(kiln_matrix_type(X));
    struct ki_arena arena = {0};
    struct ki_inference_rows rows;
    struct sums sums;
    double square = 0, blur = 0, groups = 0;
    TRY(ki_inference_measure_rows(&rows, &arena, wide->X, &wide->loss, wide->w, wide->b));
    struct ki_information of = {
        .X = wide->X, .C = rows.C, .no_intercept = !wide->b, .data = kiln_matrix_type(X), .wanted = true};
    TRY(ki_information_measure(&of, &arena));
    made->parameters = (double)ki_information_count(&of);
    made->digest = digest_of(&rows);
    TRY(measure_gradient(&square, &blur, &of, wide, unit));
    TRY(take_coefficients(made, &of, wide, X));
    TRY(allocate_hat(made));
    ki_information_invert(&of);
    fill_hat(made, &of);
    ki_free(ki_arena_give(&arena, of.A));
    TRY(measure(made, &sums, &rows, wide->X, &wide->loss));
    made->scale = made->dispersion;
    if (options->errors == KILN_ERRORS_MODEL) {
        made->root = made->hat;
    } else {
        TRY(ki_inference_sandwich(made, &of, &rows, &wide->loss, options, sums.rows, &groups));
        if (options->errors == KILN_ERRORS_CLUSTER) add(made, "groups", groups);
        if (options->errors == KILN_ERRORS_CLUSTER && isfinite(made->degrees)) made->degrees = groups - 1;
    }
    add(made, "test_degrees", made->degrees);
    add_distance(made, square, blur);
done:
    return ki_arena_free(&arena, status);
}

kiln_status kiln_inference_of(kiln_inference **made, const kiln_matrix *w, const kiln_matrix *b,
                              const kiln_matrix *X, const kiln_loss *loss,
                              const kiln_inference_options *options) {
    kiln_status status;
    kiln_inference_options own;
    kiln_inference *fresh = NULL;
    struct ki_inference_wide wide;
    struct ki_arena arena = {0};
    kiln_loss glm;
    if (!made || !w || !X || !loss) return ki_fail(KILN_ERR_ARGUMENT, "%s: made, w, X or loss is NULL", call);
    TRY(KI_TAKE(kiln_inference_options, &own, options));
    TRY(ki_inference_loss(&glm, call, loss));
    TRY(check(w, b, X, &glm, &own));
    TRY(ki_glm_check_target(&glm));
    TRY(ki_inference_widen(&wide, &arena, X, &glm, w, b));
    TRY(allocate(&fresh, X, b));
    TRY(infer(fresh, X, &wide, &own));
    *made = fresh;
    fresh = NULL;
done:
    kiln_inference_free(fresh);
    return ki_arena_free(&arena, status);
}
