/* The model of an l1 step on some columns, for coordinate descent: what a coordinate's gradient needs, in one
 * of two ways.
 *
 * Where the columns' Gram matrix is much smaller than their entries, it is formed, and the gradient is kept
 * up to date with it (Friedman, Hastie and Tibshirani, J. Stat. Softw. 33, 2010). Else the columns, times the
 * square root of the curvature, and r = sum of u_j d_j, d = z - w (Yuan, Ho and Lin, JMLR 13, 2012). A dense
 * X always goes the first way.
 *
 * With an intercept the columns are those about their means mu: eta = X d + 1 sigma, sigma = d_b - mu . d. */
#include "algorithms/newton/newton_descent.h"

enum { GRAM_ENTRIES = 8 }; /* of the columns for each element of a Gram matrix that pays */

kiln_status ki_quadratic_new(struct ki_quadratic *of, const struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_descent *descent = work->descent;
    const int64_t count = of->count;
    double *memory = ki_arena_reals(of->arena, 11 * count + 1);
    of->order = ki_arena_room(of->arena, 2 * count + 1, sizeof *of->order);
    TRY(of->arena->status);
    of->face = of->order + count;
    double **const vectors[] = {&of->w,       &of->z,         &of->g,    &of->l1,
                                &of->own,     &of->diagonal,  &of->mean, &of->product,
                                &of->inverse, &of->threshold, &of->zeros};
    for (int i = 0; i < 11; i++) *vectors[i] = memory + i * count;
    for (int64_t a = 0; a < count; a++) {
        const int32_t j = descent->chosen[a];
        of->w[a] = of->z[a] = descent->w[j];
        of->g[a] = descent->g[j];
        of->l1[a] = descent->l1[j];
        of->own[a] = descent->penalty[j] + descent->least[j];
        of->mean[a] = work->mean ? work->newton->columns.mean[j] : 0;
    }
    of->intercept = work->mean != NULL;
    if (of->intercept) TRY(ki_vector_get(&of->gb, work->here.gradient.b));
    TRY(kiln_norm(&of->total, work->here.C, KILN_NORM_1));
    of->total *= descent->share;
done:
    return status;
}

/* A dense X's Gram matrix is that of all columns: the chosen ones' part of it. */
static void quadratic_compress(double *G, double *product, const struct ki_descent *descent, int64_t count) {
    for (int64_t a = 0; a < count; a++) {
        const int64_t j = descent->chosen[a];
        for (int64_t b = 0; b < count; b++) G[a * count + b] = G[j * descent->n + descent->chosen[b]];
        product[a] = product[j];
    }
}

static kiln_status form_gram(struct ki_quadratic *of, struct ki_newton_work *work, const kiln_matrix *X,
                             const double *mean) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(X);
    const double share = work->descent->share;
    struct ki_arena own = {0};
    kiln_matrix *G = ki_arena_model(&own, X, n, n), *g = ki_arena_model(&own, X, n, 1),
                *centre = of->intercept ? ki_arena_vector(&own, X, n, mean) : NULL;
    double *product = ki_arena_doubles(&own, n);
    of->G = ki_arena_doubles(of->arena, n * n);
    of->U = ki_arena_doubles(of->arena, (of->count + 1) * (of->count + 2));
    TRY(own.status);
    TRY(of->arena->status);
    TRY(kiln_gram(G, g, X, work->here.C, centre));
    work->newton->run.report.passes += ki_gram_passes(n);
    TRY(ki_vector_get(of->G, G));
    TRY(ki_vector_get(product, g));
    of->solution = of->U + (of->count + 1) * (of->count + 1);
    if (n > of->count) quadratic_compress(of->G, product, work->descent, of->count);
    for (int64_t a = 0; a < of->count; a++) of->product[a] = share * product[a];
    for (int64_t i = 0; i < of->count * of->count; i++) of->G[i] *= share;
    for (int64_t a = 0; a < of->count; a++) of->diagonal[a] = of->G[a * of->count + a] += of->own[a];
done:
    return ki_arena_free(&own, status);
}

static kiln_status quadratic_take_columns(struct ki_quadratic *of, struct ki_newton_work *work) {
    kiln_status status;
    struct ki_descent *descent = work->descent;
    struct ki_arena *run = &work->newton->run.arena;
    const int64_t m = kiln_matrix_rows(work->newton->X);
    if (!descent->q) descent->q = ki_arena_doubles(run, 2 * m);
    of->u = ki_arena_room(of->arena, of->count, sizeof *of->u);
    TRY(run->status);
    TRY(of->arena->status);
    of->q = descent->q;
    of->r = descent->q + m;
    of->rows = m;
    of->columns = &descent->columns;
    TRY(ki_sparse_columns_take(of->u, &descent->columns, descent->chosen, of->count));
    TRY(ki_vector_get(of->q, work->here.C));
    for (int64_t i = 0; i < m; i++) of->q[i] = sqrt(descent->share * of->q[i]);
    memset(of->r, 0, (size_t)m * sizeof *of->r);
    ki_sparse_columns_scale(of->columns, of->u, of->count, of->q, of->diagonal, of->product);
    for (int64_t a = 0; a < of->count; a++) {
        const double mean = of->mean[a];
        if (!of->intercept) of->product[a] = 0;
        const double about = of->diagonal[a] - 2 * mean * of->product[a] + mean * mean * of->total;
        of->diagonal[a] = fmax(about, 0) + of->own[a];
    }
done:
    return status;
}

static kiln_status quadratic_take_matrix(struct ki_quadratic *of, struct ki_newton_work *work) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *A = NULL;
    struct ki_selection selection = {0};
    TRY(ki_selection_open(&selection, &work->descent->selector, work->descent->chosen, of->count));
    TRY(ki_arena_take(&arena, &A, ki_selection_matrix(&A, &selection)));
    TRY(form_gram(of, work, A, of->mean));
done:
    ki_selection_close(&selection);
    return ki_arena_free(&arena, status);
}

kiln_status ki_quadratic_form(struct ki_quadratic *of, struct ki_newton_work *work) {
    const kiln_matrix *X = work->newton->X;
    const struct ki_descent *descent = work->descent;
    int64_t entries = 0;
    if (kiln_matrix_format(X) == KILN_DENSE) return form_gram(of, work, X, work->newton->columns.mean);
    for (int64_t a = 0; a < of->count; a++)
        entries += ki_selector_entries(&descent->selector, descent->chosen[a]);
    const bool thin = of->count == 0 || of->count > entries / (GRAM_ENTRIES * of->count);
    return (thin ? quadratic_take_columns : quadratic_take_matrix)(of, work);
}

/* ---- its gradient, and moves ---- */

double ki_quadratic_slope_by(const struct ki_quadratic *of, int64_t a, double dot) {
    return of->g[a] + of->own[a] * (of->z[a] - of->w[a]) + dot + of->sigma * of->product[a] -
           of->mean[a] * (of->qr + of->sigma * of->total);
}

double ki_quadratic_slope(const struct ki_quadratic *of, int64_t a) {
    if (of->G) return of->g[a];
    return ki_quadratic_slope_by(of, a, ki_sparse_column_dot(of->columns, &of->u[a], of->r));
}

double ki_quadratic_bend(const struct ki_quadratic *of) {
    double sum = of->sigma * (2 * of->qr + of->sigma * of->total);
    for (int64_t i = 0; i < of->rows; i++) sum += of->r[i] * of->r[i];
    return sum;
}

double ki_quadratic_value(const struct ki_quadratic *of) {
    double sum = of->gb * of->b;
    for (int64_t a = 0; a < of->count; a++) {
        const double d = of->z[a] - of->w[a];
        sum += d * (of->g[a] + 0.5 * of->own[a] * d) + of->l1[a] * (fabs(of->z[a]) - fabs(of->w[a]));
    }
    return sum + 0.5 * ki_quadratic_bend(of);
}

double ki_quadratic_intercept_slope(const struct ki_quadratic *of) {
    return of->G ? of->gb : of->gb + of->qr + of->sigma * of->total;
}

void ki_quadratic_move(struct ki_quadratic *of, int64_t a, double step) {
    if (of->G) {
        const double *row = of->G + a * of->count;
        for (int64_t b = 0; b < of->count; b++) of->g[b] += step * row[b];
        of->gb += step * of->product[a];
        return;
    }
    ki_sparse_column_add(of->r, of->columns, &of->u[a], step);
    of->qr += step * of->product[a];
    of->sigma -= step * of->mean[a];
}

void ki_quadratic_move_intercept(struct ki_quadratic *of, double step) {
    of->b += step;
    of->sigma += step;
    if (!of->G) return;
    for (int64_t a = 0; a < of->count; a++) of->g[a] += step * of->product[a];
    of->gb += step * of->total;
}
