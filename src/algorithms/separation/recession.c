/* This file says whether an optimum is at infinity, proved either way from X and y alone: scales, weights and
 * where the fit ended play no part.
 *
 * A loss has no finite optimum if and only if some direction d lowers the loss of a row for ever and
 * raises none: z_i x_i . d >= 0 for rows at an end of what means can be, z_i = 1 or -1 the side to which
 * their loss falls, and x_i . d = 0 for all others (Albert and Anderson, Biometrika 71, 1984). Of several
 * classes a row has such a condition for each class besides its own, on the differences of their
 * coefficients.
 *
 * The cone of a few rows answers first (cone.c). If they leave no direction in which one of them gains,
 * all of them are ties; and if those span everything, the optimum is finite: no other row is looked at. If
 * they do leave one, a pass over X looks for rows that speak against it, or, across the ties, for rows
 * that say anything: those join the few. Where no row does, the rows that gain are taken out, and the rest
 * is asked again, until the rest are ties: then all rows are known whose loss falls for ever. Directions in
 * which rows differ by their rounding alone (dependent.c) are none. */
#include "algorithms/separation/cone.h"
#include "algorithms/separation/separation.h"

/* EACH, MORE: rows of the few, for each coefficient of a class, and besides. WIDEST: coefficients. ROUNDS:
 * of passes. */
enum { EACH = 4, MORE = 200, WIDEST = 512, ROUNDS = 100 };

/* Says what counts as a tie in f64; in f32 as much as X's own rounding may have made of one. */
#define NOTHING 1e-9

struct asked {
    const struct ki_newton_work *work;
    struct ki_separation *found;
    int64_t m, k, cols, p; /* p: coefficients of a class, of columns that are kept and the intercept */
    double *y, *weight;    /* m each; weight NULL = ones */
    double *size;          /* n: columns' scales; 0: left out */
    double *values;        /* m x k */
    char *fallen;          /* m x k: loss (of several classes, against that class) that falls for ever */
    char *taken;           /* m: among the few */
    int64_t *list;         /* m: rows to take */
    int64_t few;           /* how many are taken at a time */
    double *d, *row;       /* k p each */
    double *null;          /* p x p: the rows are directions of a class that no row has a say in, */
    int64_t nulls;         /* so many */
    struct ki_arena arena;
    struct ki_cone cone;
    bool whole; /* the few are all rows */
};

bool ki_separation_few(const struct ki_newton *newton) {
    return newton->k * (kiln_matrix_cols(newton->X) + 1) <= WIDEST;
}

static kiln_status asked_open(struct asked *a) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = a->work->newton;
    const kiln_loss *loss = &a->work->problem;
    const int64_t m = a->m = kiln_matrix_rows(newton->X), n = a->cols = kiln_matrix_cols(newton->X);
    const int64_t k = a->k = newton->k;
    struct ki_arena *const arena = &a->arena;
    a->y = ki_arena_reals(arena, m);
    a->weight = loss->weights ? ki_arena_reals(arena, m) : NULL;
    a->size = ki_arena_reals(arena, n);
    a->values = ki_arena_reals(arena, m * k);
    a->fallen = ki_arena_zeros(arena, m * k, 1);
    a->taken = ki_arena_zeros(arena, m, 1);
    a->list = ki_arena_integers(arena, m);
    a->d = ki_arena_reals(arena, (n + 1) * k);
    a->row = ki_arena_reals(arena, (n + 1) * k);
    a->null = ki_arena_doubles(arena, (n + 1) * (n + 1));
    TRY(arena->status);
    TRY(ki_vector_get(a->y, loss->y));
    if (a->weight) TRY(ki_vector_get(a->weight, loss->weights));
    TRY(ki_vector_get(a->size, a->work->kept));
    a->p = newton->no_intercept ? 0 : 1;
    for (int64_t j = 0; j < n; j++) a->p += a->size[j] > 0;
    a->few = EACH * a->p + MORE;
    for (int64_t i = 0; i < m; i++) a->found->rows += !a->weight || a->weight[i] > 0;
    a->whole = a->found->rows <= 2 * a->few;
    TRY(ki_cone_open(&a->cone, k * a->p, fmax(NOTHING, 16 * ki_epsilon(kiln_matrix_type(newton->X)))));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ rows */

static int64_t own_class(const struct asked *a, int64_t i) {
    return a->k > 1 ? (int64_t)a->y[i] : -1;
}

/* Returns whether the row is a tie from the outset. */
static bool tied(const struct asked *a, int64_t i) {
    return a->k == 1 && !ki_separation_open(&a->work->problem, a->y[i]);
}

static double side(const struct asked *a, int64_t i) {
    return a->y[i] > 0.5 && ki_separation_classes(&a->work->problem) ? 1 : -1;
}

/* Finds what row i demands, x its entries. */
static kiln_status add(struct asked *a, const double *x, int64_t i) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = a->work->newton;
    const int64_t own = own_class(a, i), p = a->p;
    for (int64_t c = 0; c < a->k; c++) {
        int64_t at = 0;
        if (c == own || a->fallen[i * a->k + c]) continue;
        double *block = a->row + c * p, sign = a->k > 1 ? -1 : side(a, i);
        memset(a->row, 0, (size_t)(a->k * p) * sizeof *a->row);
        for (int64_t j = 0; j < a->cols; j++)
            if (a->size[j] > 0)
                block[at++] =
                    sign * (x[j] - (newton->no_intercept ? 0 : newton->columns.mean[j])) / a->size[j];
        if (!newton->no_intercept) block[at] = sign;
        for (at = 0; own >= 0 && at < p; at++) a->row[own * p + at] = -block[at];
        TRY(ki_cone_add(&a->cone, a->row, i * a->k + c, tied(a, i) ? KI_CONE_TIE : KI_CONE_DEMAND));
    }
    a->taken[i] = 1;
done:
    return status;
}

/* Columns' scales: the largest entry of those rows about the mean, or the spread. */
static void set_sizes(struct asked *a, const double *X, int64_t count) {
    const struct ki_columns *columns = &a->work->newton->columns;
    const bool centred = !a->work->newton->no_intercept;
    for (int64_t j = 0; j < a->cols; j++) {
        double size = sqrt(columns->variance[j]);
        if (!(a->size[j] > 0)) continue;
        for (int64_t i = 0; i < count; i++)
            size = fmax(size, fabs(X[i * a->cols + j] - (centred ? columns->mean[j] : 0)));
        a->size[j] = isfinite(size) ? size : 0;
    }
}

/* The numbers of these rows by columns, the intercept's last, and what X's type may have rounded of each. */
static kiln_status find_nulls(struct asked *a, const double *X, int64_t count) {
    kiln_status status;
    const struct ki_newton *newton = a->work->newton;
    const double unit = ki_epsilon(kiln_matrix_type(newton->X)) / 2;
    struct ki_arena arena = {0};
    double *Z = ki_arena_doubles(&arena, a->p * count), *blur = ki_arena_doubles(&arena, a->p * count);
    int64_t at = 0;
    TRY(arena.status);
    for (int64_t j = 0; j < a->cols; j++) {
        if (!(a->size[j] > 0)) continue;
        const double centre = newton->no_intercept ? 0 : newton->columns.mean[j];
        for (int64_t i = 0; i < count; i++) {
            Z[at * count + i] = (X[i * a->cols + j] - centre) / a->size[j];
            blur[at * count + i] = unit * fabs(X[i * a->cols + j]) / a->size[j];
        }
        at++;
    }
    for (int64_t i = 0; at < a->p && i < count; i++) Z[at * count + i] = 1, blur[at * count + i] = unit;
    TRY(ki_separation_dependent(a->null, &a->nulls, Z, blur, a->p, count));
done:
    return ki_arena_free(&arena, status);
}

/* The rows of the list join the few. */
static kiln_status take(struct asked *a, int64_t count) {
    kiln_status status = KILN_OK;
    const kiln_matrix *X = a->work->newton->X;
    struct ki_arena arena = {0};
    double *const rows = ki_arena_reals(&arena, count * a->cols);
    kiln_matrix *const R = ki_arena_model(&arena, X, count, a->cols);
    TRY(arena.status);
    TRY(kiln_rows(R, X, a->list));
    TRY(ki_vector_get(rows, R));
    if (a->cone.count == 0) {
        set_sizes(a, rows, count);
        TRY(find_nulls(a, rows, count));
    }
    for (int64_t i = 0; i < count; i++) TRY(add(a, rows + i * a->cols, a->list[i]));
done:
    return ki_arena_free(&arena, status);
}

/* The few get as many of the list's `count` rows as they may, spread evenly. */
static kiln_status take_some(struct asked *a, int64_t count) {
    const int64_t wanted = ki_min(count, a->whole ? count : a->few);
    for (int64_t t = 0; t < wanted; t++)
        a->list[t] = a->list[(int64_t)(((double)t + 0.5) * (double)count / (double)wanted)];
    return take(a, wanted);
}

/* The first few, spread evenly over the rows that count. */
static kiln_status begin(struct asked *a) {
    const int64_t all = a->found->rows, wanted = ki_min(all, a->whole ? all : a->few);
    int64_t count = 0, seen = 0;
    for (int64_t i = 0; i < a->m && count < wanted; i++) {
        if (a->weight && !(a->weight[i] > 0)) continue;
        if (seen++ >= (int64_t)(((double)count + 0.5) * (double)all / (double)wanted)) a->list[count++] = i;
    }
    return take(a, count);
}

/* ------------------------------------------------------------------------------------------ directions */

/* values = what d adds to each row's predictors; *blur: what rounding may have added. */
static kiln_status look(struct asked *a, double *blur) {
    kiln_status status;
    const struct ki_newton *newton = a->work->newton;
    const struct ki_columns *columns = &newton->columns;
    const int64_t n = a->cols, k = a->k;
    struct ki_arena arena = {0};
    kiln_matrix *const D = ki_arena_model(&arena, newton->X, n, k);
    double *const w = ki_arena_reals(&arena, n * k), *const b = ki_arena_reals(&arena, k);
    double sum = 0;
    TRY(arena.status);
    for (int64_t c = 0; c < k; c++) {
        int64_t at = c * a->p;
        for (int64_t j = 0; j < n; j++) {
            const double centre = newton->no_intercept ? 0 : columns->mean[j];
            if (!(a->size[j] > 0)) continue;
            w[j * k + c] = a->d[at++] / a->size[j];
            b[c] -= centre * w[j * k + c];
            sum += fabs(w[j * k + c]) * (2 * fabs(centre) + fmax(a->size[j], 4 * sqrt(columns->variance[j])));
        }
        if (!newton->no_intercept) b[c] += a->d[at];
        sum += fabs(b[c]);
    }
    *blur = 32 * ki_epsilon(kiln_matrix_type(newton->X)) * sum;
    TRY(ki_vector_set(D, w));
    TRY(ki_separation_predict(a->values, newton, D, b, NULL));
done:
    return ki_arena_free(&arena, status);
}

/* Leaves out the directions that no row has a say in: the few have none, and others, which d asks. */
static kiln_status leave_out(struct asked *a) {
    kiln_status status = KILN_OK;
    for (int64_t t = 0; t < a->nulls * a->k; t++) {
        const int64_t c = t % a->k;
        double blur = 0, most = 0;
        memset(a->d, 0, (size_t)(a->k * a->p) * sizeof *a->d);
        memcpy(a->d + c * a->p, a->null + t / a->k * a->p, (size_t)a->p * sizeof *a->d);
        if (!a->whole) TRY(look(a, &blur));
        for (int64_t i = 0; !a->whole && i < a->m; i++)
            if (!a->weight || a->weight[i] > 0) most = fmax(most, fabs(a->values[i * a->k + c]));
        if (a->whole || most <= blur) ki_cone_leave_out(&a->cone, a->d);
    }
done:
    return status;
}

/* d = the direction of the fit's coefficients. */
static kiln_status fitted(struct asked *a) {
    kiln_status status;
    const struct ki_newton *newton = a->work->newton;
    const int64_t n = a->cols, k = a->k;
    struct ki_arena arena = {0};
    double *const w = ki_arena_reals(&arena, n * k), *const b = ki_arena_reals(&arena, k);
    double sum = 0;
    TRY(arena.status);
    TRY(ki_vector_get(w, newton->W));
    TRY(ki_vector_get(b, newton->b));
    for (int64_t c = 0; c < k; c++) {
        int64_t at = c * a->p;
        for (int64_t j = 0; j < n; j++) {
            if (!(a->size[j] > 0)) continue;
            a->d[at++] = w[j * k + c] * a->size[j];
            if (!newton->no_intercept) b[c] += w[j * k + c] * newton->columns.mean[j];
        }
        if (!newton->no_intercept) a->d[at] = b[c];
    }
    for (int64_t e = 0; e < k * a->p; e++) sum += a->d[e] * a->d[e];
    for (int64_t e = 0; e < k * a->p; e++) a->d[e] /= sum > 0 ? sqrt(sum) : 1;
done:
    return ki_arena_free(&arena, status);
}

static double gain(const struct asked *a, int64_t i, int64_t c) {
    const double *eta = a->values + i * a->k;
    return a->k > 1 ? eta[own_class(a, i)] - eta[c] : side(a, i) * eta[0];
}

/* Lists the rows besides the few that gain less than `least` from d or, if they are ties or `any` counts,
 * come further than blur. */
static int64_t list(struct asked *a, double least, double blur, bool any) {
    int64_t count = 0;
    for (int64_t i = 0; i < a->m; i++) {
        bool against = false;
        if (a->taken[i] || (a->weight && !(a->weight[i] > 0))) continue;
        for (int64_t c = 0; c < a->k; c++) {
            if (c == own_class(a, i) || a->fallen[i * a->k + c]) continue;
            const double to = gain(a, i, c);
            against |= any || tied(a, i) ? fabs(to) > blur : to < least;
        }
        if (against) a->list[count++] = i;
    }
    return count;
}

/* Returns whether none of the few speaks against d, and marks those that gain, if so, as fallen. */
static bool agree(struct asked *a, double blur, int64_t *falls) {
    struct ki_cone *cone = &a->cone;
    for (int64_t i = 0; i < cone->count; i++) {
        if (cone->state[i] == KI_CONE_GONE) continue;
        const double to = ki_cone_gain(cone, i, a->d);
        if (to < -blur || (cone->state[i] == KI_CONE_TIE && to > blur)) return false;
    }
    for (int64_t i = 0; i < cone->count; i++) {
        if (cone->state[i] != KI_CONE_DEMAND || !(ki_cone_gain(cone, i, a->d) > blur)) continue;
        cone->state[i] = KI_CONE_GONE;
        a->fallen[cone->name[i]] = 1;
        ++*falls;
    }
    return true;
}

/* Marks the rows besides the few that gain along d. */
static void mark(struct asked *a, double blur, int64_t *falls) {
    for (int64_t i = 0; i < a->m; i++) {
        if (a->taken[i] || tied(a, i) || (a->weight && !(a->weight[i] > 0))) continue;
        for (int64_t c = 0; c < a->k; c++) {
            if (c == own_class(a, i) || a->fallen[i * a->k + c] || !(gain(a, i, c) > blur)) continue;
            a->fallen[i * a->k + c] = 1;
            ++*falls;
        }
    }
}

/* Tells what all rows have to say of d: some speak against it and join the few, *joined; or none, and *falls
 * gain. fit: d is the fit's, whose ties are rounded: all rows have to gain. */
static kiln_status put(struct asked *a, double exact, bool fit, int64_t *joined, int64_t *falls) {
    kiln_status status = KILN_OK;
    double blur = 0;
    *joined = *falls = 0;
    if (!a->whole) TRY(look(a, &blur));
    if (!a->whole) *joined = list(a, fit ? blur : -blur, blur, false);
    if (*joined) return take_some(a, *joined);
    if (agree(a, exact, falls) && !a->whole) mark(a, blur, falls);
done:
    return status;
}

/* The few leave no direction but across all of them: whether some other row has something to say there,
 * *joined. */
static kiln_status widen(struct asked *a, int64_t *joined) {
    kiln_status status = KILN_OK;
    double blur;
    *joined = 0;
    if (a->whole || !ki_cone_across(a->d, &a->cone)) return KILN_OK;
    TRY(look(a, &blur));
    *joined = list(a, 0, blur, true);
    if (*joined) TRY(take_some(a, *joined));
done:
    return status;
}

static void count(struct asked *a) {
    struct ki_separation *found = a->found;
    found->apart = found->rows > 0;
    for (int64_t i = 0; i < a->m; i++) {
        bool any = false;
        if (a->weight && !(a->weight[i] > 0)) continue;
        for (int64_t c = 0; c < a->k; c++) {
            any |= a->fallen[i * a->k + c];
            found->apart &= a->fallen[i * a->k + c] || c == own_class(a, i);
        }
        found->falling += any;
    }
}

kiln_status ki_separation_prove(struct ki_separation *found, const struct ki_newton_work *work) {
    kiln_status status;
    struct asked a = {.work = work, .found = found};
    enum ki_cone_answer answer = KI_CONE_UNDECIDED;
    bool decided = false;
    *found = (struct ki_separation){0};
    TRY(asked_open(&a));
    TRY(begin(&a));
    TRY(leave_out(&a));
    for (int round = 0; round < ROUNDS && !decided; round++) {
        const bool fit = round == 0 && !a.whole && ki_separation_classes(&work->problem);
        int64_t joined = 0, falls = 0;
        double exact = 0;
        TRY(ki_cone_solve(&answer, a.d, &exact, &a.cone));
        if (answer == KI_CONE_UNDECIDED) break;
        if (answer == KI_CONE_NONE) {
            TRY(widen(&a, &joined));
            decided = joined == 0;
            continue;
        }
        if (fit) TRY(fitted(&a));
        TRY(put(&a, exact, fit, &joined, &falls));
        if (!joined && !falls && !fit) break;
    }
    found->undecided = !decided;
    count(&a);
done:
    ki_cone_close(&a.cone);
    return ki_arena_free(&a.arena, status);
}
