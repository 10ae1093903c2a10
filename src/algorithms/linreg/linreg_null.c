/* Which of the columns that a factor left out depend on the others, by X itself: the Gram matrix knows half
 * of the digits only, and of a sparse X whose means dwarf its spreads fewer, or none.
 *
 * N has, for each of them, what makes 0 of it and the columns that were taken, corrected until X N is as
 * short as it gets,
 *
 *   N -= D^-1 (U^T U)^-1 D^-1 (X^T S (X N)),   and it depends if || X n || <= 16 epsilon
 *   sum_j |n_j| || x_j ||,
 *
 * which is what rounding alone can make of X n. Entries of n that move X n by less than that are rounding,
 * too, and become 0 where X n stays as short: beside columns of other sizes they would be a step of the
 * solution that rounding alone is the reason of.
 *
 * Those that do not depend on the columns taken may depend on one another: they raise the rank by that of
 * X N, unless rounding leaves this open. */
#include "algorithms/linreg/linreg_block.h"

enum {
    ROUNDS = 2,      /* of corrections, */
    ROUNDS_MOST = 8, /* and where a factor of few digits leaves more than rounding */
    UNITS = 16       /* epsilons of rounding in X n */
};

struct look {
    struct ki_system *system;
    struct ki_direct *direct;
    double *square, *centred; /* n: of X's columns, about zero and as they are fitted */
    double *noise;            /* of the vectors apart: what rounding makes of their length */
    int64_t apart;            /* how many there are, kept in direct->null */
    bool open;                /* one of them was not as short as it gets */
};

struct vectors { /* n x k, m x k, n x k, m x k */
    kiln_matrix *N, *R, *E, *SR;
};

/* R = X A, SR its weighted rows, length_c = || X a_c ||. */
static kiln_status measure(double *length, struct vectors *v, struct ki_system *system,
                           const kiln_matrix *A) {
    kiln_status status;
    TRY(ki_system_multiply(v->R, system, A));
    TRY(kiln_times(v->SR, v->R, system->s));
    TRY(kiln_dot(length, v->R, v->SR));
    system->run.report.passes++;
    for (int64_t c = 0; c < kiln_matrix_cols(A); c++) length[c] = sqrt(length[c]);
done:
    return status;
}

/* Returns sum_j |n_j| || x_j || of column c of values, n x k. */
static double size_of(const double *values, int64_t c, int64_t k, const struct look *look) {
    double size = 0;
    for (int64_t j = 0; j < look->direct->size; j++) size += fabs(values[j * k + c]) * sqrt(look->square[j]);
    return size;
}

/* Corrects N, which is `values` before. length_c = || X n_c ||, former_c the same a round before. */
static kiln_status correct(double *length, double *former, struct vectors *v, const double *values,
                           const struct look *look) {
    kiln_status status = KILN_OK;
    const int64_t k = kiln_matrix_cols(v->N);
    const double unit = ki_epsilon(kiln_matrix_type(look->system->X));
    double one[KI_BLOCK], minus[KI_BLOCK], least[KI_BLOCK];
    bool shorter = true;
    for (int64_t c = 0; c < k; c++) {
        one[c] = 1, minus[c] = -1;
        least[c] = unit * size_of(values, c, k, look);
    }
    TRY(measure(length, v, look->system, v->N));
    for (int round = 0; round < ROUNDS || (shorter && round < ROUNDS_MOST); round++) {
        memcpy(former, length, (size_t)k * sizeof *former);
        TRY(ki_system_scatter(v->E, look->system, v->SR));
        look->system->run.report.passes++;
        TRY(ki_direct_solve(v->E, look->direct));
        TRY(kiln_combine(v->N, one, v->N, minus, v->E));
        TRY(measure(length, v, look->system, v->N));
        shorter = false;
        for (int64_t c = 0; c < k; c++)
            shorter = shorter || (length[c] > least[c] && length[c] < 0.5 * former[c]);
    }
done:
    return status;
}

/* bound_c: what rounding can make of the length of X n_c. values, n x k: N, and without what is rounding in
 * `cleaned`. */
static void find_bounds(double *bound, double *cleaned, const double *values, int64_t k,
                        const struct look *look) {
    const int64_t n = look->direct->size;
    const double unit = ki_epsilon(kiln_matrix_type(look->system->X));
    for (int64_t c = 0; c < k; c++) {
        bound[c] = UNITS * unit * size_of(values, c, k, look);
        for (int64_t j = 0; j < n; j++) {
            const double value = values[j * k + c];
            cleaned[j * k + c] = fabs(value) * sqrt(look->centred[j]) <= bound[c] ? 0 : value;
        }
    }
}

/* n_c, column c of k, as a vector that X makes nothing of, or one of those apart. */
static void sort_in(const double *values, int64_t c, int64_t k, double length, double bound, bool settled,
                    struct look *look) {
    struct ki_rank *rank = &look->system->rank;
    const int64_t n = look->direct->size;
    const bool depends = length <= bound;
    double scaled = 0, *to = depends ? rank->null + rank->count++ * n : look->direct->null + look->apart * n;
    for (int64_t j = 0; j < n; j++) {
        to[j] = values[j * k + c];
        scaled += look->centred[j] * to[j] * to[j];
    }
    if (depends) return;
    rank->least = fmin(rank->least, length * length / scaled);
    look->noise[look->apart++] = bound / length;
    look->open = look->open || !settled;
}

/* Candidates first .. first + k - 1. */
static kiln_status look_at(struct look *look, int64_t first, int64_t k) {
    kiln_status status;
    struct ki_arena arena = {0};
    const kiln_matrix *X = look->system->X;
    const int64_t n = look->direct->size;
    double length[KI_BLOCK], former[KI_BLOCK], clean[KI_BLOCK], bound[KI_BLOCK];
    double *values = ki_arena_reals(&arena, n * k), *cleaned = ki_arena_reals(&arena, n * k),
           *narrow = ki_arena_reals(&arena, n * k);
    struct vectors v = {.N = ki_arena_model(&arena, X, n, k),
                        .R = ki_arena_rows(&arena, X, k),
                        .E = ki_arena_model(&arena, X, n, k),
                        .SR = ki_arena_rows(&arena, X, k)};
    TRY(arena.status);
    for (int64_t c = 0; c < k; c++)
        for (int64_t j = 0; j < n; j++) values[j * k + c] = look->direct->null[(first + c) * n + j];
    TRY(ki_vector_set(v.N, values));
    TRY(correct(length, former, &v, values, look));
    TRY(ki_vector_get(values, v.N));
    find_bounds(bound, cleaned, values, k, look);
    memcpy(narrow, cleaned, (size_t)(n * k) * sizeof *narrow);
    TRY(ki_vector_set(v.E, narrow));
    TRY(measure(clean, &v, look->system, v.E));
    for (int64_t c = 0; c < k; c++) {
        const bool still = clean[c] <= bound[c];
        sort_in(still ? cleaned : values, c, k, still ? clean[c] : length[c], bound[c],
                length[c] >= 0.9 * former[c], look);
    }
done:
    return ki_arena_free(&arena, status);
}

/* *full: X makes of the vectors apart as many independent ones, beyond what rounding can make of them. */
static kiln_status judge_apart(bool *full, const struct look *look) {
    kiln_status status;
    struct ki_arena arena = {0};
    const kiln_matrix *X = look->system->X;
    const int64_t n = look->direct->size, k = look->apart;
    *full = !look->open && k <= 1;
    if (look->open || k <= 1 || k > KI_BLOCK) return KILN_OK;
    double *values = ki_arena_reals(&arena, n * k), *U = ki_arena_reals(&arena, k * k), scale[KI_BLOCK],
           most = 0;
    kiln_matrix *N = ki_arena_model(&arena, X, n, k), *R = ki_arena_rows(&arena, X, k),
                *G = ki_arena_model(&arena, X, k, k);
    TRY(arena.status);
    for (int64_t c = 0; c < k; c++)
        for (int64_t j = 0; j < n; j++) values[j * k + c] = look->direct->null[c * n + j];
    TRY(ki_vector_set(N, values));
    TRY(ki_system_multiply(R, look->system, N));
    look->system->run.report.passes++;
    TRY(kiln_gram(G, NULL, R, look->system->options.weights, NULL));
    TRY(ki_vector_get(U, G));
    for (int64_t c = 0; c < k; c++) {
        scale[c] = U[c * k + c];
        most = fmax(most, look->noise[c]);
    }
    struct ki_factorisation factor = {
        .U = U, .size = k, .scale = scale, .part = fmax(most, ki_direct_part(X))};
    ki_factorise(&factor, INFINITY);
    *full = !factor.failed && !factor.replaced;
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_rank_judge(struct ki_system *system, struct ki_direct *direct, struct ki_arena *arena) {
    kiln_status status;
    struct ki_rank *rank = &system->rank;
    const int64_t n = direct->size, left = direct->left;
    struct look look = {.system = system,
                        .direct = direct,
                        .square = ki_arena_doubles(arena, n),
                        .centred = ki_arena_doubles(arena, n),
                        .noise = ki_arena_doubles(arena, left)};
    bool full;
    rank->null = ki_arena_room(&system->run.arena, left, (size_t)n * sizeof(double));
    TRY(arena->status);
    TRY(system->run.arena.status);
    TRY(ki_vector_get(look.square, system->square));
    TRY(ki_vector_get(look.centred, system->options.no_intercept ? system->square : system->centred));
    for (int64_t first = 0; first < left; first += KI_BLOCK)
        TRY(look_at(&look, first, ki_min(left - first, KI_BLOCK)));
    TRY(judge_apart(&full, &look));
    rank->rank = full ? direct->taken + look.apart : -1;
done:
    return status;
}
