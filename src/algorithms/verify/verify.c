/* A model's objective, gradient and duality gap again, in plain loops over host arrays with sums in long
 * double.
 *
 * The gradient is measured as training measures it: with respect to W and the intercept of the centred
 * columns, each entry divided by D, relative to that at W = 0 and the best constant of a GLM or of least
 * squares, else b = 0;
 *   D_j^2 = mean curvature there * sum_i s_i (x_ij - mean_j)^2 + L_j,   of the intercept: mean curvature *
 *   sum_i s_i.
 *
 * Training rounds, and more than one result is right. With u the rounding unit of X's type and c_n units lost
 * in a sum of n
 * terms (ki_units), it knows eta_i no nearer than d_i = c_n u (|b| + |offset_i| + sum_j |x_ij w_j|), to which
 * |y_i| comes where the two are subtracted; losses, slopes and penalties lose some units of the terms that
 * they are made of, `size`. These go through the same sums as the objective and the gradient do,
 * and bound what rounding may have made of either:
 *   objective: sum_i s_i (|slope_i| d_i + curvature_i d_i^2 + c u size_i) + c u penalties,
 *   entry j:   sum_i s_i |x_ij| (curvature_i d_i + c u size_i + c_m u |slope_i|) + c u L_j |w_j|. */
#include "algorithms/verify/verify_point.h"

#include "algorithms/certificate/certificate.h"
#include "ops/linear/families.h"

enum { FORMULA = 8 }; /* operations of a loss, a slope or a penalty */

/* ---------------------------------------------------------------------------------------- loading */

static kiln_status load(struct ki_verify_facts *f, const kiln_matrix *X, const kiln_matrix *W,
                        const kiln_matrix *b) {
    kiln_status status;
    TRY(ki_copy_take(&f->X, X, false));
    TRY(ki_copy_vector(&f->y, f->loss->y));
    if (f->loss->weights) TRY(ki_copy_vector(&f->s, f->loss->weights));
    if (f->loss->offset) TRY(ki_copy_vector(&f->offset, f->loss->offset));
    TRY(ki_copy_vector(&f->W, W));
    if (b) TRY(ki_copy_vector(&f->b, b));
done:
    return status;
}

static void unload(struct ki_verify_facts *f) {
    void *const all[] = {f->y, f->s, f->offset, f->W, f->b, f->mean, f->variance, f->square};
    ki_copy_free(&f->X);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ki_free(all[i]);
}

/* Standardised without an intercept, Newton's method takes columns that count as constant for one, as
 * ki_columns_one_constant says: the gradient's norm has no part of the others. near: some of them are
 * constant but for rounding. */
static void one_constant(struct ki_verify_facts *f, bool near) {
    bool found = false;
    if (!near || f->b || !f->options.standardize || f->loss->kind == KILN_LOSS_SQUARED) return;
    for (int64_t j = 0; j < f->cols; j++) {
        if (f->variance[j] > 0 || !(f->square[j] > 0)) continue;
        if (found) f->square[j] = 0;
        found = true;
    }
}

/* Two passes: means, then squares about them; entries that are not stored are zeros. */
static kiln_status measure_columns(struct ki_verify_facts *f) {
    const size_t bytes = (size_t)f->cols * sizeof(long double);
    kiln_status status = KILN_OK;
    bool near = false;
    long double *stored = ki_calloc(bytes); /* weight of the stored entries, */
    int64_t *counted = ki_calloc((size_t)f->cols * sizeof *counted),
            heavy = 0; /* and how many have some; rows that have */
    f->mean = ki_calloc(bytes);
    f->variance = ki_calloc(bytes);
    f->square = ki_calloc(bytes);
    if (!stored || !counted || !f->mean || !f->variance || !f->square)
        TRY(ki_fail_nomem(bytes, "the columns' means"));
    for (int64_t i = 0; i < f->rows; i++) {
        f->weight += ki_verify_weight(f, i);
        heavy += ki_verify_weight(f, i) > 0;
    }
    for (int64_t i = 0; i < f->rows; i++)
        for (int64_t e = 0; e < ki_row_size(&f->X, i); e++)
            f->mean[ki_row_column(&f->X, i, e)] +=
                (long double)ki_verify_weight(f, i) * ki_row_values(&f->X, i)[e] / f->weight;
    for (int64_t i = 0; i < f->rows; i++)
        for (int64_t e = 0; e < ki_row_size(&f->X, i); e++) {
            const int64_t j = ki_row_column(&f->X, i, e);
            const long double x = ki_row_values(&f->X, i)[e], s = ki_verify_weight(f, i);
            f->square[j] += s * x * x;
            f->variance[j] += s * (x - f->mean[j]) * (x - f->mean[j]) / f->weight;
            stored[j] += s;
            counted[j] += s > 0;
        }
    for (int64_t j = 0; j < f->cols; j++) {
        /* The difference of two sums is rounding where no row lacks an entry. */
        const long double absent = counted[j] == heavy ? 0 : fmaxl(f->weight - stored[j], 0);
        f->variance[j] += absent * f->mean[j] * f->mean[j] / f->weight;
        if (!(sqrtl(f->variance[j]) <= f->flat * fabsl(f->mean[j]))) continue;
        near |= f->variance[j] > 0;
        f->variance[j] = 0; /* constant, but for rounding */
    }
    one_constant(f, near);
done:
    ki_free(stored);
    ki_free(counted);
    return status;
}

/* ------------------------------------------------------------------------------------------ sums */

static bool has_hinge(const kiln_loss *loss) {
    return loss->kind == KILN_LOSS_SQUARED_HINGE || loss->kind == KILN_LOSS_SQUARED_EPSILON;
}

static void add_row(struct ki_verify_point *point, const struct ki_verify_problem *p, int64_t i,
                    const double *W, const double *b) {
    const struct ki_verify_facts *f = p->facts;
    struct ki_verify_slope *slope = point->slope;
    long double *eta = point->eta, size = 0, off = 0;
    const double *x = ki_row_values(&f->X, i), s = ki_verify_weight(f, i);
    const int64_t count = ki_row_size(&f->X, i);
    const int kind = f->loss->kind;
    if (s == 0) return;
    for (int64_t c = 0; c < p->k; c++) {
        eta[c] = (b ? b[p->first + c] : 0) + (f->offset ? f->offset[i] : 0);
        size += (b ? fabs(b[p->first + c]) : 0) + (f->offset ? fabs(f->offset[i]) : 0);
    }
    for (int64_t e = 0; W && e < count; e++)
        for (int64_t c = 0; c < p->k; c++) {
            const long double term = (long double)x[e] * W[ki_row_column(&f->X, i, e) * f->k + p->first + c];
            eta[c] += term;
            size += fabsl(term);
        }
    if (kind != KILN_LOSS_GLM && kind != KILN_LOSS_SOFTMAX && kind != KILN_LOSS_LOGISTIC)
        size += fabs(ki_verify_target(p, i)) + f->loss->parameter;
    size *= ki_units(count + 2, f->type);
    const struct ki_verify_value value = ki_verify_loss(slope, f->loss, ki_verify_target(p, i), eta, p->k);
    point->value += s * value.value;
    point->value_blur += s * (f->formula + ki_units(f->rows, KILN_F64)) * value.size + (s + 1) * f->tiny;
    for (int64_t c = 0; c < p->k; c++) {
        /* eta may have been on a hinge's other side, where the curvature is 1 */
        point->value_blur +=
            s * (fabsl(slope[c].value) * size + (has_hinge(f->loss) ? 1 : slope[c].curvature) * size * size);
        off += s * (slope[c].curvature * size + f->formula * slope[c].size +
                    ki_units(f->rows, f->type) * fabsl(slope[c].value));
    }
    point->intercept_blur += off;
    for (int64_t e = 0; e < count; e++) {
        point->blur[ki_row_column(&f->X, i, e)] += off * fabs(x[e]);
        point->curved[ki_row_column(&f->X, i, e)] += s * slope[0].curvature * (long double)x[e] * x[e];
    }
    point->curvature += s * slope[0].curvature;
    for (int64_t c = 0; c < p->k; c++) point->intercept[c] += s * slope[c].value;
    for (int64_t e = 0; e < count; e++)
        for (int64_t c = 0; c < p->k; c++)
            point->gradient[ki_row_column(&f->X, i, e) * p->k + c] += s * slope[c].value * x[e];
}

/* W NULL: zeros. */
static void evaluate(struct ki_verify_point *point, const struct ki_verify_problem *p, const double *W,
                     const double *b) {
    const struct ki_verify_facts *f = p->facts;
    point->value = point->curvature = point->value_blur = point->intercept_blur = 0;
    for (int64_t j = 0; j < f->cols * p->k; j++) point->gradient[j] = 0;
    for (int64_t j = 0; j < f->cols; j++) point->blur[j] = point->curved[j] = 0;
    for (int64_t c = 0; c < p->k; c++) point->intercept[c] = 0;
    for (int64_t i = 0; i < f->rows; i++) add_row(point, p, i, W, b);
}

/* ---------------------------------------------------------------------------------------- origin */

/* The best constant by Fisher scoring with halving, from the mean target. */
static void best_constant(struct ki_verify_point *point, const struct ki_verify_problem *p, double *origin) {
    const struct ki_verify_facts *f = p->facts;
    const kiln_loss *loss = f->loss;
    long double mean = 0;
    for (int64_t i = 0; i < f->rows; i++) mean += ki_verify_weight(f, i) * ki_verify_target(p, i) / f->weight;
    if (loss->kind == KILN_LOSS_GLM) mean = ki_verify_link(loss, (double)mean);
    origin[p->first] = (double)mean;
    evaluate(point, p, NULL, origin);
    struct ki_verify_bracket bracket = KI_VERIFY_OPEN;
    for (int iteration = 0; iteration < 200 && isfinite((double)point->value); iteration++) {
        const long double before = point->value;
        const double from = origin[p->first];
        if (fabsl(point->intercept[0]) <= 1e-15L * point->curvature * fmaxl(fabsl(from), 1e-3L)) break;
        const long double step = ki_verify_step(&bracket, from, point->intercept[0], point->curvature);
        long double length = 1;
        do {
            origin[p->first] = (double)(from - length * step);
            evaluate(point, p, NULL, origin);
            length /= 2;
        } while (
            !(point->curvature > 0 && (bracket.closed || point->value <= before + fabsl(before) * 1e-15L)) &&
            length > 1e-6L);
    }
}

static bool takes_constant(const struct ki_verify_facts *f) {
    return f->b && (f->loss->kind == KILN_LOSS_GLM || f->loss->kind == KILN_LOSS_SQUARED);
}

/* Returns what a glm's start leaves of the intercept's gradient: it is content with that part of the targets'
 * sum. */
static long double start_leaves(const struct ki_verify_problem *p) {
    const struct ki_verify_facts *f = p->facts;
    long double sum = 0;
    for (int64_t i = 0; i < f->rows; i++)
        if (ki_verify_weight(f, i) > 0) sum += ki_verify_weight(f, i) * ki_verify_target(p, i);
    return takes_constant(f) && f->loss->kind == KILN_LOSS_GLM ? 1e-13L * fabsl(sum) : 0;
}

/* ------------------------------------------------------------------------------------ duality gap */

/* Adds the dual's objective at t_i = -s_i slope_i, the larger of the two signs scaled down so that they sum
 * to 0, and to `blur` what the rounding of the primal point's sums, X^T t among them, makes of it. */
static kiln_status add_dual(long double *dual, long double *blur, const struct ki_verify_problem *p,
                            const struct ki_verify_point *point) {
    const struct ki_verify_facts *f = p->facts;
    const double epsilon = f->loss->kind == KILN_LOSS_SQUARED_EPSILON ? f->loss->parameter : 0;
    struct ki_verify_slope slope;
    long double positive = 0, negative = 0;
    long double *t = ki_alloc((size_t)f->rows * sizeof *t), *z = ki_calloc((size_t)f->cols * sizeof *z);
    kiln_status status = KILN_OK;
    if (!t || !z) TRY(ki_fail_nomem((size_t)(f->rows + f->cols) * sizeof *t, "the dual"));
    for (int64_t i = 0; i < f->rows; i++) {
        long double eta = f->b ? f->b[p->first] : 0;
        for (int64_t e = 0; e < ki_row_size(&f->X, i); e++)
            eta +=
                (long double)ki_row_values(&f->X, i)[e] * f->W[ki_row_column(&f->X, i, e) * f->k + p->first];
        ki_verify_loss(&slope, f->loss, ki_verify_target(p, i), &eta, 1);
        t[i] = -ki_verify_weight(f, i) * slope.value;
        *(t[i] > 0 ? &positive : &negative) += t[i];
    }
    for (int64_t i = 0; i < f->rows; i++) {
        const double s = ki_verify_weight(f, i);
        if (f->b && t[i] > 0 && positive > -negative) t[i] *= -negative / positive;
        if (f->b && t[i] < 0 && -negative > positive) t[i] *= positive / -negative;
        if (s > 0) *dual += t[i] * ki_verify_target(p, i) - epsilon * fabsl(t[i]) - t[i] * t[i] / (2 * s);
        *blur += f->formula * fabsl(t[i] * ki_verify_target(p, i));
        for (int64_t e = 0; e < ki_row_size(&f->X, i); e++)
            z[ki_row_column(&f->X, i, e)] += t[i] * ki_row_values(&f->X, i)[e];
    }
    for (int64_t j = 0; j < f->cols; j++)
        if (f->square[j] > 0 && !(f->b && f->variance[j] == 0)) {
            *dual -= ki_verify_penalty(f, j) > 0 ? z[j] * z[j] / (2 * ki_verify_penalty(f, j)) : NAN;
            *blur += point->blur[j] * (2 * fabsl(z[j]) + point->blur[j]) / (2 * ki_verify_penalty(f, j));
        }
done:
    ki_free(t);
    ki_free(z);
    return status;
}

/* ------------------------------------------------------------------------------------------ whole */

static kiln_status point_new(struct ki_verify_point *point, const struct ki_verify_problem *p) {
    const size_t k = (size_t)p->k, cols = (size_t)p->facts->cols,
                 bytes = ((cols + 2) * k + 2 * cols) * sizeof *point->gradient;
    point->gradient = ki_alloc(bytes);
    point->slope = ki_alloc(k * sizeof *point->slope);
    if (!point->gradient || !point->slope) return ki_fail_nomem(bytes, "a gradient");
    point->intercept = point->gradient + cols * k;
    point->eta = point->intercept + k;
    point->blur = point->eta + k;
    point->curved = point->blur + cols;
    return KILN_OK;
}

static long double penalties(const struct ki_verify_facts *f) {
    long double sum = 0;
    for (int64_t j = 0; j < f->cols; j++)
        for (int64_t c = 0; c < f->k; c++) {
            const long double w = f->W[j * f->k + c];
            sum += ki_verify_penalty(f, j) * w * w / 2 + ki_verify_l1(f, j) * fabsl(w);
        }
    return sum;
}

static double ratio(long double norm, long double reference) {
    return reference > 0 ? (double)(norm / reference) : (norm > 0 ? INFINITY : 0);
}

/* The dual's value, and what rounding makes of it. */
struct dual {
    long double value, blur;
};

/* Adds the gap of losses whose least value is 0, which is no more than the objective; NaN of others, and of
 * support vectors, whose fit has a better point of the dual than the gradient's own. */
static kiln_status add_gap(double *gap, const struct ki_verify_problem *p,
                           const struct ki_verify_point *point) {
    const struct ki_verify_facts *f = p->facts;
    const size_t bytes = (size_t)(f->cols * p->k) * sizeof(struct ki_verify_entry);
    struct ki_verify_entry *entries = ki_alloc(bytes);
    int64_t count = 0;
    if (!entries) return ki_fail_nomem(bytes, "the optimality gap");
    for (int64_t j = 0; j < f->cols; j++) {
        if (!((f->b ? f->variance[j] : f->square[j]) > 0)) continue; /* constant or empty */
        for (int64_t c = 0; c < p->k; c++) {
            const double w = f->W[j * f->k + p->first + c];
            const long double l2 = ki_verify_penalty(f, j), l1 = ki_verify_l1(f, j);
            long double g = point->gradient[j * p->k + c] + l2 * w;
            if (f->b) g -= f->mean[j] * point->intercept[c];
            entries[count++] = (struct ki_verify_entry){
                w, g, l2, l1, ki_verify_entry_blur(point, p, j, f->W), f->options.positive};
        }
    }
    const bool known = f->loss->kind != KILN_LOSS_GLM && !has_hinge(f->loss);
    *gap += known ? (double)ki_verify_optimality(entries, count) : (double)NAN;
    ki_free(entries);
    return KILN_OK;
}

static kiln_status judge(kiln_verification *result, const struct ki_verify_problem *p, struct dual *dual) {
    const struct ki_verify_facts *f = p->facts;
    kiln_status status;
    struct ki_verify_point point = {0};
    double *origin = ki_calloc((size_t)f->k * sizeof *origin);
    if (!origin) return ki_fail_nomem((size_t)f->k * sizeof *origin, "the origin");
    TRY(point_new(&point, p));
    if (takes_constant(f))
        best_constant(&point, p, origin);
    else
        evaluate(&point, p, NULL, origin);
    bool known = isfinite((double)point.value);
    long double mean = point.curvature / f->weight;
    if (f->loss->kind == KILN_LOSS_SOFTMAX) mean = (long double)(p->k - 1) / ((long double)p->k * p->k);
    if (!(mean > 0) || !isfinite((double)mean)) mean = 1;
    const long double reference = ki_verify_norm(&point, p, NULL, mean, false);
    evaluate(&point, p, f->W, f->b);
    known &= isfinite((double)point.value);
    const bool hinge = has_hinge(f->loss);
    const long double norm = ki_verify_norm(&point, p, f->W, mean, false),
                      most = ki_verify_norm(&point, p, f->W, mean, hinge) +
                             ki_verify_blur(&point, p, f->W, mean, hinge),
                      blur = ki_verify_blur(&point, p, f->W, mean, false) +
                             start_leaves(p) / sqrtl(mean * f->weight);
    known &= !isnan(norm);
    result->objective += (double)point.value;
    result->objective_rounding += (double)point.value_blur;
    result->gradient_most = fmax(result->gradient_most, ratio(most, reference));
    result->gradient_norm = fmax(result->gradient_norm, (double)norm);
    result->gradient_rounding = fmax(result->gradient_rounding, ratio(blur, reference));
    result->gradient =
        known && !isnan(result->gradient) ? fmax(result->gradient, ratio(norm, reference)) : NAN;
    if (hinge) TRY(add_dual(&dual->value, &dual->blur, p, &point));
    TRY(add_gap(&result->optimality_gap, p, &point));
done:
    ki_free(point.gradient);
    ki_free(point.slope);
    ki_free(origin);
    return status;
}

static kiln_status check(const kiln_loss *loss, const kiln_matrix *X, const kiln_matrix *W,
                         const kiln_matrix *b) {
    static const char call[] = "kiln_verify";
    kiln_status status = KILN_OK;
    if (!X || !W || !loss->y) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    const int64_t k = kiln_matrix_cols(W), rows = kiln_matrix_rows(X);
    if (k < 1) return ki_fail(KILN_ERR_ARGUMENT, "%s: W has no columns", call);
    if (loss->kind == KILN_LOSS_GLM) TRY(ki_family_check(call, loss));
    TRY(ki_check_matrix(call, "W", W, X, kiln_matrix_cols(X), k));
    if (b) TRY(ki_check_matrix(call, "b", b, X, 1, k));
    TRY(ki_check_matrix(call, "y", loss->y, X, rows, loss->kind == KILN_LOSS_SQUARED ? k : 1));
    if (loss->weights) TRY(ki_check_matrix(call, "weights", loss->weights, X, rows, 1));
    if (loss->offset) TRY(ki_check_matrix(call, "offset", loss->offset, X, rows, 1));
    if (rows == 0 || kiln_matrix_cols(X) == 0) TRY(ki_fail(KILN_ERR_DATA, "%s: X is empty", call));
done:
    return status;
}

/* Class numbers index the columns of eta. */
static kiln_status check_labels(const struct ki_verify_facts *f) {
    for (int64_t i = 0; i < f->rows && f->loss->kind == KILN_LOSS_SOFTMAX; i++)
        if (!(f->y[i] >= 0 && f->y[i] < (double)f->k) || f->y[i] != floor(f->y[i]))
            return ki_fail(KILN_ERR_DATA, "kiln_verify: row %lld of y is %g, which numbers no class",
                           (long long)i, f->y[i]);
    return KILN_OK;
}

kiln_status kiln_verify(kiln_verification *result, const kiln_loss *loss, const kiln_matrix *X,
                        const kiln_matrix *W, const kiln_matrix *b, const kiln_verify_options *options) {
    static const char call[] = "kiln_verify";
    kiln_status status;
    kiln_loss own;
    struct ki_verify_facts f = {.loss = &own};
    kiln_verification made = {0};
    struct dual dual = {0, 0};
    if (!result || !loss) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_loss, &own, loss));
    TRY(KI_TAKE(kiln_verify_options, &f.options, options));
    TRY(ki_check_strength(call, "l2", f.options.l2));
    TRY(ki_check_strength(call, "l1", f.options.l1));
    TRY(KI_CHECK_RESULT(kiln_verification, result));
    TRY(check(&own, X, W, b));
    f.rows = kiln_matrix_rows(X);
    f.cols = kiln_matrix_cols(X);
    f.targets = kiln_matrix_cols(own.y);
    f.k = kiln_matrix_cols(W);
    f.type = kiln_matrix_type(X);
    f.formula = ki_units(FORMULA, f.type);
    f.tiny = f.type == KILN_F32 ? FLT_MIN : DBL_MIN;
    f.flat = ki_flat(f.type);
    const bool hinge = has_hinge(&own);
    const bool together = own.kind == KILN_LOSS_SOFTMAX;
    TRY(load(&f, X, W, b));
    TRY(check_labels(&f));
    TRY(measure_columns(&f));
    for (int64_t c = 0; c < (together ? 1 : f.k); c++) {
        const struct ki_verify_problem problem = {&f, c, together ? f.k : 1};
        TRY(judge(&made, &problem, &dual));
    }
    const double penalty = (double)penalties(&f);
    made.objective += penalty;
    made.objective_rounding += (double)(f.formula + ki_units(f.cols, f.type)) * penalty;
    for (int64_t i = 0; f.options.positive && i < f.cols * f.k; i++)
        if (f.W[i] < 0) made.objective = INFINITY;
    if (made.optimality_gap > made.objective) made.optimality_gap = made.objective;
    made.gap = made.gap_rounding = NAN;
    if (hinge && !isnan((double)dual.value)) {
        made.gap = ratio(fmax(made.objective - (double)dual.value, 0), made.objective);
        made.gap_rounding = ratio(made.objective_rounding + dual.blur, made.objective);
    }
    TRY(ki_copy_check(&f.X));
    KI_GIVE(kiln_verification, result, &made);
done:
    unload(&f);
    return status;
}
