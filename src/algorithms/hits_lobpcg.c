/* The authorities where the second eigenvalue of M = A^T A is near the first, so that the power iteration
 * creeps: each iteration takes the best vector of the span of the present one x, its residual r = M x - theta
 * x, and the last step p (Knyazev, SIAM J. Sci. Comput. 23, 2001, for one vector and without a
 * preconditioner). It has the pace of Lanczos' method, the root of the power iteration's number of passes, at
 * three vectors and their images, of which one costs a pass.
 *
 * From a start that is nowhere negative it comes to the same fixed point as the power iteration does, which
 * then judges it by its own criterion. What rounding has made negative becomes 0 first. */
#include <string.h>

#include "algorithms/hits.h"

enum { X, R, P, BASIS, STATE = KI_HITS_STATE + 2 * BASIS + 5 };
enum { THETA, CHANGE, LEAST, BEST, SEEN };
enum {
    FRESH = 50, /* iterations after which the image of x is computed anew, as it drifts with the recurrence */
    PATIENCE = 200 /* iterations without a new least change that say that rounding is all that is left */
};

struct lobpcg {
    struct ki_hits *hits;
    kiln_matrix *v[BASIS], *image[BASIS], *room;
    kiln_matrix *best; /* the x with the least change of those whose image was computed anew, as what rounding
               * leaves may be worse */
    double seen[SEEN]; /* THETA, CHANGE, the LEAST change, of `since` iterations ago, and that of `best` */
    int64_t size, since; /* size: of the basis: 2 in the first iteration, 0 where the residual is nothing but
                * rounding */
    int64_t number;      /* of the next iteration */
    struct ki_state state[STATE];
};

static kiln_status image_of(struct lobpcg *t, int i) {
    return kiln_mmchain(t->image[i], 1, t->hits->A, NULL, t->v[i], 0, NULL);
}

/* v[i] and, if it has one, its image scaled to length 1. *length: what it was. */
static kiln_status scale(struct lobpcg *t, int i, bool imaged, double *length) {
    kiln_status status;
    TRY(kiln_norm(length, t->v[i], KILN_NORM_2));
    if (!(*length > 0) || !isfinite(*length)) return KILN_OK;
    const double by = 1 / *length;
    TRY(kiln_combine(t->v[i], &by, t->v[i], NULL, NULL));
    if (imaged) TRY(kiln_combine(t->image[i], &by, t->image[i], NULL, NULL));
done:
    return status;
}

static kiln_status lobpcg_new(struct lobpcg *t, struct ki_arena *arena) {
    kiln_status status;
    const kiln_matrix *a = t->hits->a;
    double length;
    for (int i = 0; i < BASIS; i++) {
        t->v[i] = ki_arena_rows(arena, a, 1);
        t->image[i] = ki_arena_rows(arena, a, 1);
    }
    t->room = ki_arena_rows(arena, a, 1);
    t->best = ki_arena_rows(arena, a, 1);
    TRY(arena->status);
    TRY(ki_copy(t->v[X], a));
    TRY(scale(t, X, false, &length));
    t->size = 2;
done:
    return status;
}

/* theta, r and what a power step would change. */
static kiln_status look(struct lobpcg *t) {
    kiln_status status;
    const double one = 1;
    double length;
    TRY(kiln_dot(&t->seen[THETA], t->v[X], t->image[X]));
    const double minus = -t->seen[THETA];
    TRY(kiln_combine(t->v[R], &one, t->image[X], &minus, t->v[X]));
    TRY(kiln_norm(&t->seen[CHANGE], t->v[R], KILN_NORM_1));
    TRY(kiln_norm(&length, t->v[X], t->hits->options.norm == 2 ? KILN_NORM_2 : KILN_NORM_1));
    t->seen[CHANGE] /= t->seen[THETA] * length;
done:
    return status;
}

/* After a look at an image that was computed anew. */
static kiln_status remember(struct lobpcg *t) {
    kiln_status status = KILN_OK;
    if (!(t->seen[CHANGE] < t->seen[BEST])) goto done;
    t->seen[BEST] = t->seen[CHANGE];
    TRY(ki_copy(t->best, t->v[X]));
done:
    return status;
}

/* B = L L^T of the given size; false for a basis of vectors in this type that depends on itself but for
 * rounding. */
static bool factorise(double B[BASIS][BASIS], int64_t size, kiln_type type) {
    const double least = fmax(1e-12, 64 * ki_epsilon(type));
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++) {
            double sum = B[i][j];
            for (int l = 0; l < j; l++) sum -= B[i][l] * B[j][l];
            if (i == j && !(sum > least)) return false;
            B[i][j] = i == j ? sqrt(sum) : sum / B[j][j];
        }
    return true;
}

/* c = the eigenvector of the largest eigenvalue of a symmetric K, by Jacobi's rotations. */
static void largest(double c[BASIS], double K[BASIS][BASIS], int64_t size) {
    enum { SWEEPS = 30 };
    double V[BASIS][BASIS] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int p = 0; p < size; p++)
            for (int q = p + 1; q < size; q++) {
                if (K[p][q] == 0) continue;
                const double tau = (K[q][q] - K[p][p]) / (2 * K[p][q]);
                const double t = copysign(1, tau) / (fabs(tau) + sqrt(1 + tau * tau));
                const double cosine = 1 / sqrt(1 + t * t), sine = t * cosine;
                for (int l = 0; l < size; l++) {
                    const double a = K[l][p], b = K[l][q];
                    K[l][p] = cosine * a - sine * b;
                    K[l][q] = sine * a + cosine * b;
                }
                for (int l = 0; l < size; l++) {
                    const double a = K[p][l], b = K[q][l], v = V[l][p], w = V[l][q];
                    K[p][l] = cosine * a - sine * b;
                    K[q][l] = sine * a + cosine * b;
                    V[l][p] = cosine * v - sine * w;
                    V[l][q] = sine * v + cosine * w;
                }
            }
    int best = 0;
    for (int i = 1; i < size; i++)
        if (K[i][i] > K[best][best]) best = i;
    for (int i = 0; i < size; i++) c[i] = V[i][best];
}

/* The combination c of the basis with the largest quotient, c[X] not negative; the basis shrinks to x and r
 * where p depends on these, and to nothing where r does on x. */
static kiln_status choose(double c[BASIS], struct lobpcg *t) {
    kiln_status status = KILN_OK;
    double B[BASIS][BASIS], L[BASIS][BASIS], K[BASIS][BASIS];
    const kiln_type type = kiln_matrix_type(t->v[X]);
    for (int i = 0; i < t->size; i++)
        for (int j = i; j < t->size; j++) {
            TRY(kiln_dot(&B[i][j], t->v[i], t->v[j]));
            TRY(kiln_dot(&K[i][j], t->v[i], t->image[j]));
            B[j][i] = B[i][j];
            K[j][i] = K[i][j];
        }
    memcpy(L, B, sizeof L);
    if (!factorise(L, t->size, type)) {
        t->size = 2;
        memcpy(L, B, sizeof L);
        if (!factorise(L, t->size, type)) {
            t->size = 0;
            goto done;
        }
    }
    for (int side = 0; side < 2; side++) /* K = L^-1 K L^-T, by rows and then, transposed, by rows */
        for (int j = 0; j < t->size; j++)
            for (int i = 0; i < t->size; i++) {
                double *at = side ? &K[j][i] : &K[i][j];
                for (int l = 0; l < i; l++) *at -= L[i][l] * (side ? K[j][l] : K[l][j]);
                *at /= L[i][i];
            }
    memset(c, 0, BASIS * sizeof *c);
    largest(c, K, t->size);
    for (int64_t i = t->size; i-- > 0;) {
        for (int l = i + 1; l < t->size; l++) c[i] -= L[l][i] * c[l];
        c[i] /= L[i][i];
    }
    for (int64_t i = t->size; i-- > 0;)
        if (c[X] < 0) c[i] = -c[i];
done:
    return status;
}

/* p = the step, x = x + p, for vectors or images. */
static kiln_status move(kiln_matrix *of[BASIS], const double c[BASIS], int64_t size) {
    kiln_status status;
    const double one = 1;
    TRY(kiln_combine(of[P], &c[R], of[R], size > P ? &c[P] : NULL, size > P ? of[P] : NULL));
    TRY(kiln_combine(of[X], &c[X], of[X], &one, of[P]));
done:
    return status;
}

static kiln_status step(struct lobpcg *t) {
    kiln_status status;
    double c[BASIS], length;
    TRY(scale(t, R, false, &length));
    TRY(image_of(t, R));
    TRY(choose(c, t));
    if (t->size == 0) goto done;
    TRY(move(t->v, c, t->size));
    TRY(move(t->image, c, t->size));
    TRY(scale(t, X, true, &length));
    TRY(scale(t, P, true, &length));
    t->size = length > 0 ? BASIS : 2;
    if (t->number % FRESH == 0) {
        TRY(image_of(t, X));
        t->hits->run.report.passes++;
    }
done:
    return status;
}

/* a = max(x, 0) = (x + |x|) / 2, or of -x: rounding may have turned the vector's sign, which is free. */
static kiln_status hand_back(struct lobpcg *t) {
    kiln_status status;
    const double half = 0.5, minus_half = -0.5;
    double above, all;
    TRY(kiln_map(t->room, KILN_MAP_ABS, t->v[X]));
    TRY(kiln_combine(t->hits->a, &half, t->v[X], &half, t->room));
    TRY(kiln_norm(&above, t->hits->a, KILN_NORM_1));
    TRY(kiln_norm(&all, t->room, KILN_NORM_1));
    if (2 * above < all) TRY(kiln_combine(t->hits->a, &minus_half, t->v[X], &half, t->room));
done:
    return status;
}

static void set_state(struct lobpcg *t) {
    const int first = ki_hits_state(t->state, t->hits);
    const struct ki_state parts[STATE - KI_HITS_STATE] = {
        {"x", .matrix = &t->v[X]},
        {"r", .matrix = &t->v[R]},
        {"p", .matrix = &t->v[P]},
        {"image x", .matrix = &t->image[X]},
        {"image r", .matrix = &t->image[R]},
        {"image p", .matrix = &t->image[P]},
        {"best", .matrix = &t->best},
        {"changes", .reals = t->seen, .count = SEEN},
        {"size", .integers = &t->size, .least = 2, .most = BASIS},
        {"since", .integers = &t->since},
        {"number", .integers = &t->number}};
    memcpy(t->state + first, parts, sizeof parts);
}

static kiln_status lobpcg_begin(struct lobpcg *t) {
    kiln_status status;
    struct ki_hits *s = t->hits;
    TRY(ki_checkpoint_resume(&s->run.resumed, s->run.control, t->state, STATE));
    s->cut = s->run.report.iterations >= s->run.most - 1;
    if (s->run.resumed) return KILN_OK;
    s->faster = true;
    t->seen[CHANGE] = t->seen[LEAST] = t->seen[BEST] = INFINITY;
    t->number = 1;
    TRY(image_of(t, X));
    s->run.report.passes++;
    TRY(look(t));
    TRY(remember(t));
done:
    return status;
}

/* After an iteration: whether the run ends here, but for the power step that judges it; and the
 * checkpoint. */
static kiln_status lobpcg_keep(struct lobpcg *t) {
    struct ki_hits *s = t->hits;
    const bool last = s->run.report.iterations >= s->run.most - 1;
    const kiln_stop stop = s->run.cancelled ? KILN_STOP_CANCELLED
                           : last           ? KILN_STOP_ITERATIONS
                                            : KILN_STOP_NONE;
    s->cut = stop != KILN_STOP_NONE;
    return ki_checkpoint_step(s->run.control, t->state, STATE, stop);
}

/* If the end was not what the last change said, x is as it is, or an earlier one that was better. */
static kiln_status take_best(struct lobpcg *t) {
    kiln_status status;
    TRY(image_of(t, X));
    t->hits->run.report.passes++;
    TRY(look(t));
    if (!(t->seen[CHANGE] <= t->seen[BEST])) TRY(ki_copy(t->v[X], t->best));
done:
    return status;
}

kiln_status ki_hits_accelerate(struct ki_hits *s) {
    kiln_status status;
    struct lobpcg t = {.hits = s};
    struct ki_arena arena = {0};
    TRY(lobpcg_new(&t, &arena));
    set_state(&t);
    TRY(lobpcg_begin(&t));
    while (t.seen[CHANGE] > 0.5 * s->options.tolerance && !s->cut) {
        if (!isfinite(t.seen[CHANGE])) break;
        TRY(step(&t));
        if (t.size == 0) break;
        TRY(look(&t));
        if (t.number % FRESH == 0) TRY(remember(&t));
        TRY(ki_hits_record(s, t.seen[THETA], t.seen[CHANGE]));
        t.since = t.seen[CHANGE] < t.seen[LEAST] ? 0 : t.since + 1;
        t.seen[LEAST] = fmin(t.seen[CHANGE], t.seen[LEAST]);
        if (t.since > PATIENCE) break;
        t.number++;
        TRY(lobpcg_keep(&t));
    }
    s->faster = false;
    if (!(t.seen[CHANGE] <= 0.5 * s->options.tolerance) && !s->run.cancelled) TRY(take_best(&t));
    TRY(hand_back(&t));
done:
    return ki_arena_free(&arena, status);
}
