/* Starting layouts: classical scaling, or random coordinates.
 *
 * Classical scaling takes the leading eigenvectors of B = -J D2 J / 2, D2 the squared dissimilarities, J
 * what takes means off: points whose distances are the dissimilarities, if there are such. Of points X, B is
 * the Gram matrix of their centred rows, and the layout their leading principal components. Eigenvectors by
 * orthogonal iteration on a few more columns than are wanted, with a Rayleigh-Ritz step at its end: each
 * iteration multiplies by B once, and B is never formed. It ends when the eigenvalues' sum has settled to a
 * thousandth: the layout is only a start. */
#include "algorithms/eigen.h"
#include "algorithms/mds/mds.h"

enum { EXTRA = 4, TURNS = 40 };

/* V's columns become orthonormal: modified Gram-Schmidt, twice. A column that vanishes becomes 0. */
static void orthonormalise(double *V, int64_t n, int64_t k) {
    for (int64_t c = 0; c < k; c++) {
        double before = 0, after = 0;
        for (int64_t i = 0; i < n; i++) before += V[i * k + c] * V[i * k + c];
        for (int turn = 0; turn < 2; turn++)
            for (int64_t b = 0; b < c; b++) {
                double dot = 0;
                for (int64_t i = 0; i < n; i++) dot += V[i * k + b] * V[i * k + c];
                for (int64_t i = 0; i < n; i++) V[i * k + c] -= dot * V[i * k + b];
            }
        for (int64_t i = 0; i < n; i++) after += V[i * k + c] * V[i * k + c];
        const double scale = after > 1e-24 * before && after > 0 ? 1 / sqrt(after) : 0;
        for (int64_t i = 0; i < n; i++) V[i * k + c] *= scale;
    }
}

static void centre(double *V, int64_t n, int64_t k) {
    for (int64_t c = 0; c < k; c++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++) mean += V[i * k + c] / (double)n;
        for (int64_t i = 0; i < n; i++) V[i * k + c] -= mean;
    }
}

struct subspace {
    struct ki_arena arena;
    int64_t n, k;
    double *V, *W, *small, *rotation, *values; /* n x k, n x k, k x k, k x k, k */
    kiln_matrix *squares;                      /* of the dissimilarities; NULL: X is multiplied */
    kiln_matrix *in, *out, *product;           /* of a multiplication on the device */
};

static kiln_status subspace_new(struct subspace *of, struct ki_mds *s) {
    kiln_status status;
    struct ki_arena *arena = &of->arena;
    const int64_t n = of->n, k = of->k;
    of->V = ki_arena_room(arena, n * k, sizeof(double));
    of->W = ki_arena_room(arena, n * k, sizeof(double));
    of->small = ki_arena_room(arena, k * k, sizeof(double));
    of->rotation = ki_arena_room(arena, k * k, sizeof(double));
    of->values = ki_arena_room(arena, k, sizeof(double));
    of->in = ki_arena_rows(arena, s->Y, k);
    of->out = ki_arena_rows(arena, s->Y, k);
    if (s->D)
        of->squares = ki_lies_in_file(s->D) ? NULL : ki_arena_rows(arena, s->Y, n);
    else
        of->product = ki_arena_model(arena, s->Y, kiln_matrix_cols(s->X), k);
    TRY(arena->status);
    if (s->D && ki_lies_in_file(s->D)) {
        TRY(ki_mds_file(&of->squares, arena, s->D, s->shift, 1, true));
    } else if (s->D) {
        const kiln_matrix *D = s->D;
        if (s->shift > 0) TRY(ki_mds_line(&D, s, s->shift, 1));
        TRY(kiln_map(of->squares, KILN_MAP_SQUARE, D));
    }
done:
    return status;
}

/* W = B V for centred V. */
static kiln_status multiply(struct subspace *of, const struct ki_mds *s) {
    kiln_status status = KILN_OK;
    const int64_t n = of->n, k = of->k;
    memcpy(of->W, of->V, (size_t)(n * k) * sizeof(double));
    TRY(ki_vector_set(of->in, of->W));
    if (of->squares)
        TRY(kiln_multiply(of->out, -0.5, KILN_PLAIN, of->squares, of->in, 0, NULL));
    else {
        TRY(kiln_multiply(of->product, 1, KILN_TRANSPOSED, s->X, of->in, 0, NULL));
        TRY(kiln_multiply(of->out, 1, KILN_PLAIN, s->X, of->product, 0, NULL));
    }
    TRY(ki_vector_get(of->W, of->out));
    centre(of->W, n, k);
done:
    return status;
}

/* Y = the eigenvectors times the square roots of their eigenvalues. */
static kiln_status layout_of(double *Y, struct subspace *of, int64_t p) {
    const int64_t n = of->n, k = of->k;
    kiln_status status;
    for (int64_t a = 0; a < k; a++)
        for (int64_t b = 0; b < k; b++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += (of->V[i * k + a] * of->W[i * k + b] + of->V[i * k + b] * of->W[i * k + a]) / 2;
            of->small[a * k + b] = sum;
        }
    TRY(ki_eigen(of->values, of->rotation, p, of->small, k, NULL));
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < p; c++)
            Y[i * p + c] = sqrt(fmax(of->values[c], 0)) * ki_dot(of->V + i * k, of->rotation + c * k, k);
done:
    return status;
}

/* A dimension in which all points have the same place would keep them there: such a one gets small random
 * coordinates. */
static void spread(double *Y, int64_t n, int64_t p, double size, uint64_t seed) {
    struct ki_draws draws = {.seed = seed, .stream = KI_STREAM_SPREAD};
    for (int64_t c = 0; c < p; c++) {
        double square = 0;
        for (int64_t i = 0; i < n; i++) square += Y[i * p + c] * Y[i * p + c];
        if (square > 1e-12 * size * size * (double)n) continue;
        for (int64_t i = 0; i < n; i++) Y[i * p + c] = 0.01 * size * (ki_draw(&draws) - 0.5);
    }
}

/* The root mean square of the dissimilarities. */
static double size_of(const struct ki_mds *s) {
    const double mean = s->delta_sum / s->pairs;
    return s->pairs > 0 ? sqrt(s->delta_squares / s->pairs + 2 * s->shift * mean + s->shift * s->shift) : 1;
}

/* The root mean square of the disparities. */
static double wanted_size(const struct ki_mds *s) {
    return s->options.metric == KILN_MDS_RATIO ? size_of(s) : 1;
}

kiln_status ki_mds_random(struct ki_mds *s, uint64_t stream) {
    const double size = wanted_size(s) / sqrt(2.0 * (double)s->p);
    double scale[64];
    kiln_status status;
    TRY(kiln_fill_random(s->Y, KILN_NORMAL, s->options.seed, stream));
    for (int64_t c = 0; c < s->p; c++) scale[c] = size;
    TRY(kiln_combine(s->Y, scale, s->Y, NULL, NULL));
done:
    return status;
}

kiln_status ki_mds_torgerson(struct ki_mds *s) {
    kiln_status status;
    struct subspace of = {.n = s->n, .k = s->p + EXTRA < s->n ? s->p + EXTRA : s->n};
    double *Y, trace = 0;
    TRY(ki_mds_random(s, 1)); /* what is left where there are fewer points than dimensions */
    if (of.k < s->p) goto done;
    Y = ki_arena_room(&of.arena, s->n * s->p, sizeof *Y);
    TRY(of.arena.status);
    TRY(subspace_new(&of, s));
    for (int64_t e = 0; e < s->n * of.k;
         e++) { /* any start will do that is not orthogonal to what is sought */
        const uint64_t mixed = (uint64_t)(e + 1) * 0x9e3779b97f4a7c15u;
        of.V[e] = (double)((mixed ^ (mixed >> 29)) >> 11) * 0x1p-53 - 0.5;
    }
    centre(of.V, of.n, of.k);
    orthonormalise(of.V, of.n, of.k);
    for (int turn = 0; turn < TURNS; turn++) {
        const double former = trace;
        TRY(multiply(&of, s));
        trace = 0;
        for (int64_t e = 0; e < of.n * of.k; e++) trace += of.V[e] * of.W[e];
        if (turn == TURNS - 1 || (turn > 0 && fabs(trace - former) <= 1e-3 * fabs(trace))) break;
        memcpy(of.V, of.W, (size_t)(of.n * of.k) * sizeof(double));
        orthonormalise(of.V, of.n, of.k);
    }
    TRY(layout_of(Y, &of, s->p));
    for (int64_t e = 0; e < s->n * s->p && size_of(s) > 0; e++) Y[e] *= wanted_size(s) / size_of(s);
    spread(Y, s->n, s->p, wanted_size(s), s->options.seed);
    TRY(ki_vector_set(s->Y, Y));
done:
    return ki_arena_free(&of.arena, status);
}
