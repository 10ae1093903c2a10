/* The l1 step on the CPU for one column of coefficients: the proximal Newton model of newton_l1.c by coordinate descent,
 *
 *   z_j = S(z_j - g_j / H_jj, l1_j / H_jj),   S(x, t) = sign(x) max(|x| - t, 0),
 *
 * on the columns that are not 0 and those whose gradient says that they should not be: of thousands often a few, and no others
 * are read. Columns are taken in random order, which on text takes a fifth of the sweeps that their own order takes.
 *
 * What a coordinate's gradient needs is kept in one of two ways. Where the columns' Gram matrix is not larger than their
 * entries, it is formed, and the sweeps cost next to nothing (Friedman, Hastie and Tibshirani, J. Stat. Softw. 33, 2010). Else
 * the columns, times the square root of the curvature, and r = sum of u_j d_j, d = z - w (Yuan, Ho and Lin, JMLR 13, 2012).
 * Their sweeps are what costs, so that the model is solved loosely until one sweep does, and then closer.
 *
 * With an intercept the columns are those about their means mu: eta = X d + 1 sigma, sigma = d_b - mu . d. */
#include "algorithms/newton_work.h"

enum {
    SWEEPS = 1000,    /* in a step, at most */
    GRAM_ENTRIES = 8, /* of the columns for each element of a Gram matrix that pays */
    PATIENCE = 8,     /* sweeps before a face is solved, and a sixth of its elements */
    DENSE_COLUMNS = 512
};

struct ki_descent {
    int64_t n;
    double *w, *g, *l1, *penalty, *least; /* n; least: what H_jj has at least, 0 = the column is left out */
    int32_t *place, *chosen;              /* n: see struct ki_selection; the chosen columns */
    struct ki_selector selector;          /* a sparse X's */
    int64_t room; /* entries that u and row have room for: they stay from step to step */
    double *q, *u;
    int32_t *row;
    double looseness; /* what the model's violation may have left, without a Gram matrix */
};

/* The model on the chosen columns. */
struct quadratic {
    int64_t count;
    double *memory;
    double *w, *z, *g; /* g: the model's gradient, at z with a Gram matrix, else at w */
    double *l1, *own, *diagonal, *mean, *zeros; /* zeros: count + 1 */
    double *product;                            /* X^T C, with a Gram matrix (X - 1 mu)^T C */
    int32_t *order;
    bool intercept;
    double b, gb, total;  /* the intercept's move, its gradient as g, the sum of C */
    double *G;            /* count x count, or NULL */
    double *U, *solution; /* with it, for its part on a face */
    int32_t *face;
    double *q, *r, *u; /* m: sqrt(C), sum of u_j d_j; the columns */
    int32_t *row;
    struct ki_selection selection;
    double qr, sigma;
};

void ki_newton_descent_close(struct ki_newton_work *work) {
    struct ki_descent *descent = work->descent;
    if (!descent) return;
    ki_free(descent->w);
    ki_free(descent->place);
    ki_selector_close(&descent->selector);
    ki_free(descent->q);
    ki_free(descent->u);
    ki_free(descent->row);
    ki_free(descent);
}

kiln_status ki_newton_descent_open(struct ki_newton_work *work) {
    const struct ki_newton *newton = work->newton;
    const int64_t n = kiln_matrix_cols(newton->X);
    const bool dense = kiln_matrix_format(newton->X) == KILN_DENSE;
    int64_t bytes;
    if (!(newton->l1 > 0) || newton->k > 1 || !ki_selectable(newton->X)) return KILN_OK;
    if (dense && (n > DENSE_COLUMNS || n > kiln_matrix_rows(newton->X))) return KILN_OK;
    struct ki_descent *descent = work->descent = ki_calloc(sizeof *descent);
    if (!descent) return ki_fail_nomem(sizeof *descent, "coordinate descent");
    if (!ki_mul3(n, 5, sizeof(double), &bytes)) return ki_fail_nomem(SIZE_MAX, "coordinate descent");
    descent->n = n;
    descent->w = ki_alloc((size_t)bytes);
    descent->place = ki_alloc((size_t)n * 2 * sizeof(int32_t));
    if (!descent->w || !descent->place) return ki_fail_nomem((size_t)bytes, "coordinate descent");
    descent->g = descent->w + n;
    descent->l1 = descent->g + n;
    descent->penalty = descent->l1 + n;
    descent->least = descent->penalty + n;
    descent->chosen = descent->place + n;
    return dense ? KILN_OK : ki_selector_open(&descent->selector, newton->X);
}

/* What hangs on the columns and the curvature at the origin alone. */
static void prepare(const struct ki_newton_work *work) {
    const struct ki_newton *newton = work->newton;
    const struct ki_columns *columns = &newton->columns;
    struct ki_descent *descent = work->descent;
    const double part = kiln_matrix_type(newton->X) == KILN_F32 ? 1e-6 : 1e-10;
    for (int64_t j = 0; j < descent->n; j++) {
        const double variance = newton->standardize ? columns->variance[j] : 1;
        const double diagonal =
            newton->no_intercept ? columns->square[j] : columns->weight * columns->variance[j];
        descent->l1[j] = newton->l1 * sqrt(variance);
        descent->penalty[j] = newton->l2 * variance;
        descent->least[j] = part * (diagonal * work->total / columns->weight + descent->penalty[j]);
        if (!(diagonal > 0)) descent->least[j] = 0;
    }
    descent->looseness = 1;
}

/* The columns that are not 0 or should not be; their number. */
static int64_t choose(struct ki_descent *descent) {
    int64_t count = 0;
    for (int64_t j = 0; j < descent->n; j++) {
        const bool chosen =
            descent->least[j] > 0 && (descent->w[j] != 0 || fabs(descent->g[j]) > descent->l1[j]);
        if (chosen) descent->chosen[count++] = (int32_t)j;
        descent->place[j] = chosen ? 1 : 0;
    }
    for (int64_t j = 0, at = 0; j < descent->n; j++)
        descent->place[j] = (int32_t)(descent->place[j] ? at++ : count);
    return count;
}

/* ---- the model ---- */

static void quadratic_free(struct quadratic *of) {
    ki_free(of->memory);
    ki_free(of->order);
    ki_free(of->G);
    ki_free(of->U);
    ki_selection_close(&of->selection);
}

/* Everything but the curvature. */
static kiln_status quadratic_new(struct quadratic *of, const struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    const struct ki_descent *descent = work->descent;
    const int64_t count = of->count;
    of->memory = ki_calloc((size_t)(9 * count + 1) * sizeof(double));
    of->order = ki_alloc((size_t)(2 * count + 1) * sizeof *of->order);
    if (!of->memory || !of->order)
        return ki_fail_nomem((size_t)(9 * count + 1) * sizeof(double), "the model of a step");
    of->face = of->order + count;
    double **const vectors[] = {&of->w,        &of->z,    &of->g,       &of->l1,   &of->own,
                                &of->diagonal, &of->mean, &of->product, &of->zeros};
    for (int i = 0; i < 9; i++) *vectors[i] = of->memory + i * count;
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
done:
    return status;
}

/* A dense X's Gram matrix is that of all columns: the chosen ones' part of it. */
static void compress(double *G, double *product, const struct ki_descent *descent, int64_t count) {
    for (int64_t a = 0; a < count; a++) {
        const int64_t j = descent->chosen[a];
        for (int64_t b = 0; b < count; b++) G[a * count + b] = G[j * descent->n + descent->chosen[b]];
        product[a] = product[j];
    }
}

static kiln_status form_gram(struct quadratic *of, struct ki_newton_work *work, const kiln_matrix *X,
                             const double *mean) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t n = kiln_matrix_cols(X);
    kiln_matrix *G = NULL, *g = NULL, *centre = NULL;
    double *product = NULL;
    TRY(kiln_matrix_dense(&G, device, type, n, n, NULL));
    TRY(kiln_matrix_dense(&g, device, type, n, 1, NULL));
    if (of->intercept) TRY(ki_vector_new(&centre, device, type, n, mean));
    TRY(kiln_gram(G, g, X, work->here.C, centre));
    work->newton->report.passes += ki_gram_passes(n);
    of->G = ki_alloc((size_t)(n * n) * sizeof(double));
    product = ki_alloc((size_t)n * sizeof(double));
    of->U = ki_alloc((size_t)(of->count + 1) * (size_t)(of->count + 2) * sizeof(double));
    if (!of->G || !product || !of->U) TRY(ki_fail_nomem((size_t)(n * n) * sizeof(double), "a Gram matrix"));
    TRY(ki_vector_get(of->G, G));
    TRY(ki_vector_get(product, g));
    of->solution = of->U + (of->count + 1) * (of->count + 1);
    if (n > of->count) compress(of->G, product, work->descent, of->count);
    memcpy(of->product, product, (size_t)of->count * sizeof(double));
    for (int64_t a = 0; a < of->count; a++) of->diagonal[a] = of->G[a * of->count + a] += of->own[a];
done:
    kiln_matrix_free(G);
    kiln_matrix_free(g);
    kiln_matrix_free(centre);
    ki_free(product);
    return status;
}

/* Room for that many entries, and for q and r. */
static kiln_status make_room(struct ki_descent *descent, int64_t rows, int64_t entries) {
    const size_t bytes = (size_t)entries * (sizeof *descent->u + sizeof *descent->row);
    if (!descent->q) descent->q = ki_alloc((size_t)rows * 2 * sizeof *descent->q);
    if (!descent->q) return ki_fail_nomem((size_t)rows * 16, "the columns of a step");
    if (entries <= descent->room) return KILN_OK;
    ki_free(descent->u);
    ki_free(descent->row);
    descent->room = 0;
    descent->u = ki_alloc((size_t)entries * sizeof *descent->u);
    descent->row = ki_alloc((size_t)entries * sizeof *descent->row);
    if (!descent->u || !descent->row) return ki_fail_nomem(bytes, "the columns of a step");
    descent->room = entries;
    return KILN_OK;
}

static kiln_status take_columns(struct quadratic *of, const struct ki_newton_work *work) {
    kiln_status status;
    struct ki_descent *descent = work->descent;
    const int64_t m = kiln_matrix_rows(work->newton->X);
    TRY(make_room(descent, m, of->selection.start[of->count] + 1));
    of->u = descent->u;
    of->row = descent->row;
    of->q = descent->q;
    of->r = descent->q + m;
    TRY(ki_vector_get(of->q, work->here.C));
    for (int64_t i = 0; i < m; i++) of->q[i] = sqrt(of->q[i]);
    memset(of->r, 0, (size_t)m * sizeof *of->r);
    ki_selection_columns(of->row, of->u, &of->selection, of->q);
    for (int64_t a = 0; a < of->count; a++) {
        double square = 0, product = 0;
        for (int64_t e = of->selection.start[a]; e < of->selection.start[a + 1]; e++)
            square += of->u[e] * of->u[e];
        for (int64_t e = of->selection.start[a]; of->intercept && e < of->selection.start[a + 1]; e++)
            product += of->u[e] * of->q[of->row[e]];
        const double mean = of->mean[a], about = square - 2 * mean * product + mean * mean * of->total;
        of->product[a] = product;
        of->diagonal[a] = fmax(about, 0) + of->own[a];
    }
done:
    return status;
}

/* The curvature, in the cheaper of the two ways. */
static kiln_status form(struct quadratic *of, struct ki_newton_work *work) {
    kiln_status status;
    const kiln_matrix *X = work->newton->X;
    kiln_matrix *A = NULL;
    if (kiln_matrix_format(X) == KILN_DENSE) return form_gram(of, work, X, work->newton->columns.mean);
    TRY(ki_selection_open(&of->selection, &work->descent->selector, work->descent->chosen,
                          work->descent->place, of->count));
    if (of->count == 0 || of->count > of->selection.start[of->count] / (GRAM_ENTRIES * of->count)) {
        TRY(take_columns(of, work));
    } else {
        TRY(ki_selection_matrix(&A, &of->selection));
        TRY(form_gram(of, work, A, of->mean));
    }
done:
    kiln_matrix_free(A);
    return status;
}

/* ---- its descent ---- */

static double slope_at(const struct quadratic *of, int64_t a) {
    if (of->G) return of->g[a];
    const double *u = of->u;
    const int32_t *row = of->row;
    double sum[4] = {0}; /* each addition would wait for the one before */
    int64_t e = of->selection.start[a];
    const int64_t end = of->selection.start[a + 1];
    for (; e + 4 <= end; e += 4)
        for (int s = 0; s < 4; s++) sum[s] += u[e + s] * of->r[row[e + s]];
    for (; e < end; e++) sum[0] += u[e] * of->r[row[e]];
    return of->g[a] + of->own[a] * (of->z[a] - of->w[a]) + (sum[0] + sum[1]) + (sum[2] + sum[3]) +
           of->sigma * of->product[a] - of->mean[a] * (of->qr + of->sigma * of->total);
}

static double intercept_slope(const struct quadratic *of) {
    return of->G ? of->gb : of->gb + of->qr + of->sigma * of->total;
}

static void move(struct quadratic *of, int64_t a, double step) {
    if (of->G) {
        const double *row = of->G + a * of->count;
        for (int64_t b = 0; b < of->count; b++) of->g[b] += step * row[b];
        of->gb += step * of->product[a];
        return;
    }
    for (int64_t e = of->selection.start[a]; e < of->selection.start[a + 1]; e++)
        of->r[of->row[e]] += step * of->u[e];
    of->qr += step * of->product[a];
    of->sigma -= step * of->mean[a];
}

static void move_intercept(struct quadratic *of, double step) {
    of->b += step;
    of->sigma += step;
    if (!of->G) return;
    for (int64_t a = 0; a < of->count; a++) of->g[a] += step * of->product[a];
    of->gb += step * of->total;
}

/* Returns how far the intercept was from its best value, as violation does. */
static double settle(struct quadratic *of) {
    if (!of->intercept || !(of->total > 0)) return 0;
    const double slope = intercept_slope(of);
    move_intercept(of, -slope / of->total);
    return slope * slope / of->total;
}

/* ---- the least point of a face, with a Gram matrix ---- */

/* U = the Hessian on the face, bordered by the intercept's; r = minus the gradient there. Returns the face's elements. */
static int64_t fill_face(struct quadratic *of) {
    int64_t size = 0;
    for (int64_t a = 0; a < of->count; a++)
        if (of->z[a] != 0) of->face[size++] = (int32_t)a;
    const int64_t stride = size + of->intercept;
    for (int64_t i = 0; i < size; i++) {
        const int64_t a = of->face[i];
        for (int64_t j = i; j < size; j++) of->U[i * stride + j] = of->G[a * of->count + of->face[j]];
        if (of->intercept) of->U[i * stride + size] = of->product[a];
        of->solution[i] = -of->g[a] - (of->z[a] > 0 ? of->l1[a] : -of->l1[a]);
    }
    if (of->intercept) {
        of->U[size * stride + size] = of->total;
        of->solution[size] = -of->gb;
    }
    return size;
}

/* Goes to the least point of the face, or towards it until an element becomes 0: what sweeps take thousands for where columns
 * are nearly the same. */
static void solve_face(struct quadratic *of) {
    const int64_t size = fill_face(of), bordered = size + of->intercept;
    double part = 1;
    int64_t first = -1;
    if (!ki_factorise(of->U, bordered, of->zeros, 0)) return;
    ki_substitute(of->U, of->solution, bordered, 1);
    for (int64_t i = 0; i < size; i++) {
        const double z = of->z[of->face[i]], moved = z + part * of->solution[i];
        if (z > 0 ? moved > 0 : moved < 0) continue;
        part = -z / of->solution[i];
        first = i;
    }
    for (int64_t i = 0; i < size; i++) {
        const int64_t a = of->face[i];
        const double former = of->z[a];
        of->z[a] = i == first ? 0 : former + part * of->solution[i];
        move(of, a, of->z[a] - former);
    }
    if (of->intercept) move_intercept(of, part * of->solution[size]);
}

/* ---- sweeps ---- */

static double shrunk(double x, double by) {
    return x > by ? x - by : (x < -by ? x + by : 0);
}

/* What the least subgradient counts for. */
static double violation(const struct quadratic *of, int64_t a, double slope) {
    const double z = of->z[a], l1 = of->l1[a];
    const double v = z > 0 ? slope + l1 : (z < 0 ? slope - l1 : shrunk(slope, l1));
    return v * v / of->diagonal[a];
}

static void shuffle(int32_t *order, int64_t count, uint64_t *random) {
    for (int64_t i = count - 1; i > 0; i--) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        const int64_t other = (int64_t)(((*random >> 33) * (uint64_t)(i + 1)) >> 31);
        const int32_t former = order[i];
        order[i] = order[other];
        order[other] = former;
    }
}

/* One sweep over `order`, which keeps the columns that are not 0; the sum of violations met with. */
static double sweep(struct quadratic *of, int64_t *active) {
    int64_t kept = 0;
    double violations = settle(of);
    for (int64_t i = 0; i < *active; i++) {
        const int32_t a = of->order[i];
        const double slope = slope_at(of, a), diagonal = of->diagonal[a], former = of->z[a];
        violations += violation(of, a, slope);
        of->z[a] = shrunk(former - slope / diagonal, of->l1[a] / diagonal);
        if (of->z[a] != 0 || former != 0) of->order[kept++] = a;
        if (of->z[a] != former) move(of, a, of->z[a] - former);
    }
    *active = kept;
    return violations;
}

static int64_t all(struct quadratic *of) {
    for (int64_t a = 0; a < of->count; a++) of->order[a] = (int32_t)a;
    return of->count;
}

/* Sweeps until the violations are `goal` or less, over all columns and, between, over those that are not 0. */
static void descend(struct quadratic *of, struct ki_newton_work *work, struct ki_newton_model *model,
                    double goal) {
    uint64_t random = (uint64_t)work->iterations;
    int64_t active = all(of);
    int64_t waited = 0; /* sweeps since a face was solved, or as many as one costs */
    bool full = true;
    while (model->inner < SWEEPS && !work->newton->cancelled) {
        shuffle(of->order, active, &random);
        const double violations = sweep(of, &active);
        model->inner++;
        ki_newton_progress(work);
        if (violations <= goal && full) return;
        if (of->G && ++waited >= PATIENCE + active / 6) {
            solve_face(of);
            waited = 0;
        }
        full = violations <= goal;
        if (full) active = all(of);
    }
}

static double goal_of(const struct quadratic *of, const struct ki_newton_work *work) {
    double sum = of->intercept && of->total > 0 ? of->gb * of->gb / of->total : 0;
    for (int64_t a = 0; a < of->count; a++) sum += violation(of, a, of->g[a]);
    if (of->G) {
        const double goal = ki_newton_forcing(work, sum);
        return goal * goal;
    }
    const double enough = 0.3 * work->newton->tolerance * work->reference / work->norm;
    const double part = fmax(work->descent->looseness, enough);
    return part * part * sum;
}

/* ---- the step ---- */

static kiln_status put(kiln_matrix *A, const double *values, int64_t count) {
    kiln_status status;
    kiln_matrix *column = NULL;
    double one[1] = {1};
    TRY(ki_vector_new(&column, kiln_matrix_device(A), kiln_matrix_type(A), count, values));
    TRY(kiln_combine(A, one, column, NULL, NULL));
done:
    kiln_matrix_free(column);
    return status;
}

/* S = z - w and what the model says of it: its slope from the gradient at w, its curvature from that at z. */
static kiln_status conclude(const struct quadratic *of, struct ki_newton_work *work, double gb,
                            struct ki_newton_model *model) {
    kiln_status status = KILN_OK;
    struct ki_descent *descent = work->descent;
    double slope = gb * of->b, curvature = of->b * (intercept_slope(of) - gb), grown = 0;
    for (int64_t a = 0; a < of->count; a++) {
        const double d = of->z[a] - of->w[a], g = descent->g[descent->chosen[a]];
        if (d != 0) curvature += d * (slope_at(of, a) - g);
        slope += d * g;
        grown += of->l1[a] * (fabs(of->z[a]) - fabs(of->w[a]));
    }
    model->slope = -slope - grown;
    model->decrease = model->slope - 0.5 * curvature;
    memset(descent->g, 0, (size_t)descent->n * sizeof(double));
    for (int64_t a = 0; a < of->count; a++) descent->g[descent->chosen[a]] = of->z[a] - of->w[a];
    TRY(put(work->S.w, descent->g, descent->n));
    if (of->intercept) TRY(put(work->S.b, &of->b, 1));
done:
    return status;
}

kiln_status ki_newton_descend(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    struct ki_descent *descent = work->descent;
    struct quadratic quadratic = {0};
    *model = (struct ki_newton_model){0};
    if (work->iterations == 0) prepare(work);
    TRY(ki_vector_get(descent->w, work->here.at.w));
    TRY(ki_vector_get(descent->g, work->here.gradient.w));
    quadratic.count = choose(descent);
    TRY(quadratic_new(&quadratic, work));
    const double gb = quadratic.gb;
    TRY(form(&quadratic, work));
    descend(&quadratic, work, model, goal_of(&quadratic, work));
    if (!quadratic.G && model->inner == 1) descent->looseness *= 0.25;
    TRY(conclude(&quadratic, work, gb, model));
done:
    quadratic_free(&quadratic);
    return status;
}
