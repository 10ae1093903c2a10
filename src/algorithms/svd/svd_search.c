/* The largest eigenvalues of C by a block Krylov method: V's last block V_j is multiplied by C, what lies in
 * V taken off, twice, and the rest is the next block,
 *
 *   C V_j = V h + V_{j+1} R,    H = V^T C V,    H y = theta y:   || C V y - theta V y || = || R y_j ||,
 *
 * y_j those of y's numbers that belong to V_j. When V is full it becomes its leading Ritz vectors, and
 * V_{j+1} stays: the thick restart of Wu and Simon.
 *
 * Triples that are found move to L, when smaller ones are lost in their rounding: of vectors orthogonal to L
 * as they are, the products with C are off by epsilon s_1 times their own singular values, instead of epsilon
 * s_1^2. */
#include "algorithms/eigen.h"
#include "algorithms/svd/svd.h"

/* Columns of V that are not 0. */
static int64_t size_of(const struct ki_svd *s) {
    return ki_min(s->known, s->near - s->locked);
}

/* Columns that V may have, of those that there are beside L. */
static int64_t room_left(const struct ki_svd *s) {
    return s->near - s->locked - size_of(s);
}

bool ki_svd_is_whole(const struct ki_svd *s) {
    return room_left(s) == 0;
}

bool ki_svd_is_full(const struct ki_svd *s) {
    return s->known + s->b > s->most;
}

/* V becomes empty, and `next` the first block, from what stands in it. */
static kiln_status first_block(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    s->known = 0;
    memset(s->H, 0, (size_t)(s->most * s->most) * sizeof *s->H);
    s->least = s->seen = INFINITY;
    s->patience = s->idle = 0;
    s->wait = s->apart = 1;
    s->judged = false;
    for (int64_t i = 0; i < s->panels; i++) TRY(kiln_fill(s->V[i], 0));
    TRY(ki_svd_orthonormalise(s, &s->block, &s->next, &s->spare, ki_min(s->b, room_left(s)), true));
done:
    return status;
}

kiln_status ki_svd_begin(struct ki_svd *s) {
    kiln_status status;
    TRY(kiln_fill_random(s->next, KILN_NORMAL, (uint64_t)s->options.seed, KI_STREAM_SVD));
    s->streams = 1;
    TRY(first_block(s));
done:
    return status;
}

kiln_status ki_svd_lock(struct ki_svd *s, int64_t count, bool anew) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t k = s->k, b = s->b;
    kiln_matrix *const first = ki_arena_model(&arena, s->X, k, k);
    kiln_matrix *const next = ki_arena_model(&arena, s->X, k, b);
    double *const chosen = ki_arena_reals(&arena, k * k), *const after = ki_arena_reals(&arena, k * b);
    TRY(arena.status);
    for (int64_t c = 0; c < count; c++) chosen[c * (k + 1)] = 1;
    for (int64_t c = count; c < k && c < count + b; c++) after[c * b + c - count] = 1;
    TRY(ki_vector_set(first, chosen));
    TRY(ki_vector_set(next, after));
    if (anew)
        TRY(kiln_fill_random(s->next, KILN_NORMAL, (uint64_t)s->options.seed,
                             KI_STREAM_SVD + ((uint64_t)s->streams++ << 16)));
    else
        TRY(kiln_multiply(s->next, 1, KILN_PLAIN, s->near_v, next, 0, NULL));
    TRY(kiln_multiply(s->L, 1, KILN_PLAIN, s->near_v, first, 0, NULL));
    s->locked = count;
    s->exact = true;
    s->degree = 1;
    TRY(first_block(s));
done:
    return ki_arena_free(&arena, status);
}

/* The columns of H that belong to V's last block, and the row beside them. */
static void take_products(struct ki_svd *s, const double *h) {
    const int64_t b = s->b, w = s->most, first = s->known - b;
    for (int64_t i = 0; i < first + b; i++)
        for (int64_t c = 0; c < b; c++) s->H[i * w + first + c] = s->H[(first + c) * w + i] = h[i * b + c];
    for (int64_t i = first; i < first + b; i++) /* symmetric but for rounding */
        for (int64_t c = i + 1; c < first + b; c++)
            s->H[i * w + c] = s->H[c * w + i] = (h[i * b + c - first] + h[c * b + i - first]) / 2;
}

/* The panel of V's first `kept` Ritz vectors. */
static kiln_status combine(struct ki_svd *s, int64_t panel, int64_t kept, kiln_matrix *mix, double *values) {
    kiln_status status = KILN_OK;
    const int64_t w = s->width, size = size_of(s);
    for (int64_t i = 0; i * w < size; i++) {
        memset(values, 0, (size_t)(w * w) * sizeof *values);
        for (int64_t r = 0; r < w && i * w + r < size; r++)
            for (int64_t c = 0; c < w && panel * w + c < kept; c++)
                values[r * w + c] = s->Q[(panel * w + c) * size + i * w + r];
        TRY(ki_vector_set(mix, values));
        TRY(kiln_multiply(s->fresh[panel], 1, KILN_PLAIN, s->V[i], mix, i > 0, s->fresh[panel]));
    }
done:
    return status;
}

/* V becomes its first `kept` Ritz vectors, which ki_svd_ritz has found. */
static kiln_status restart(struct ki_svd *s, int64_t kept) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t w = s->width, n = s->most;
    kiln_matrix *const mix = ki_arena_model(&arena, s->X, w, w);
    double *const values = ki_arena_doubles(&arena, w * w);
    TRY(arena.status);
    for (int64_t j = 0; j * w < kept; j++) {
        if (!s->fresh[j]) s->fresh[j] = ki_run_model(&s->run, s->near, w);
        TRY(s->run.arena.status);
        TRY(combine(s, j, kept, mix, values));
    }
    for (int64_t j = 0; j < s->panels; j++) {
        kiln_matrix *const former = s->V[j];
        if (j * w >= kept) {
            TRY(kiln_fill(former, 0));
            continue;
        }
        s->V[j] = s->fresh[j];
        s->fresh[j] = former;
    }
    memset(s->H, 0, (size_t)(n * n) * sizeof *s->H);
    for (int64_t c = 0; c < kept; c++) s->H[c * (n + 1)] = s->theta[c];
    s->known = kept;
done:
    return ki_arena_free(&arena, status);
}

/* The search begins anew for another polynomial: in column c stands the sum of every b-th of the first `kept`
 * Ritz vectors from the c-th on, which as many steps as there are in a sum tell apart again. */
static kiln_status begin_anew(struct ki_svd *s, int64_t kept) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t w = s->width, b = s->b, size = size_of(s);
    kiln_matrix *const mix = ki_arena_model(&arena, s->X, w, b);
    double *const values = ki_arena_doubles(&arena, w * b);
    TRY(arena.status);
    for (int64_t i = 0; i * w < size; i++) {
        memset(values, 0, (size_t)(w * b) * sizeof *values);
        for (int64_t r = 0; r < w && i * w + r < size; r++)
            for (int64_t c = 0; c < kept; c++) values[r * b + c % b] += s->Q[c * size + i * w + r];
        TRY(ki_vector_set(mix, values));
        TRY(kiln_multiply(s->next, 1, KILN_PLAIN, s->V[i], mix, i > 0, s->next));
    }
    TRY(ki_svd_collect(s));
    TRY(first_block(s));
done:
    return ki_arena_free(&arena, status);
}

/* Ritz vectors that a restart keeps: those that are wanted, and a third of the room beside them. */
static int64_t kept_of(const struct ki_svd *s) {
    const int64_t wanted = s->k - s->locked, b = s->b;
    const int64_t kept = (wanted + (s->most - wanted) / 3 + b - 1) / b * b;
    return ki_max(ki_min(kept, s->most - b), b);
}

/* V gets `next` behind its columns. */
static kiln_status append(struct ki_svd *s) {
    kiln_status status;
    const int64_t b = s->b, w = s->width, panel = s->known / w;
    double *const values = s->K; /* b x width; the panels have most columns together */
    memset(values, 0, (size_t)(b * w) * sizeof *values);
    for (int64_t c = 0; c < b; c++) values[c * w + s->known % w + c] = 1;
    TRY(ki_vector_set(s->place, values));
    TRY(kiln_multiply(s->V[panel], 1, KILN_PLAIN, s->next, s->place, 1, s->V[panel]));
    s->known += b;
done:
    return status;
}

/* The block behind V's last one; none where V spans all that there is. */
static kiln_status next_block(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    const int64_t wanted = ki_min(s->b, room_left(s));
    memset(s->R, 0, (size_t)(s->b * s->b) * sizeof *s->R);
    if (wanted == 0) goto done;
    TRY(ki_copy(s->next, s->W));
    TRY(ki_svd_orthonormalise(s, &s->block, &s->next, &s->spare, wanted, true));
    TRY(kiln_multiply(s->block.small, 1, KILN_TRANSPOSED, s->next, s->W, 0, NULL));
    TRY(ki_vector_get(s->R, s->block.small));
done:
    return status;
}

kiln_status ki_svd_step(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    const int64_t passes = s->run.report.passes;
    s->judged = false;
    if (ki_svd_is_full(s)) {
        const int64_t kept = kept_of(s);
        TRY(ki_svd_ritz(s, ki_max(kept, s->k - s->locked)));
        if (s->run.cancelled) goto done;
        TRY((ki_svd_spread(s, kept) ? begin_anew : restart)(s, kept));
    }
    TRY(ki_svd_apply(s, s->next));
    if (s->run.cancelled) { /* the state is that of before the step */
        s->run.report.passes = passes;
        goto done;
    }
    TRY(append(s));
    TRY(ki_svd_project(s, s->W, s->h));
    take_products(s, s->h);
    TRY(next_block(s));
done:
    return status;
}

static int64_t take_H(struct ki_svd *s) {
    const int64_t size = size_of(s);
    for (int64_t i = 0; i < size; i++)
        memcpy(s->K + i * size, s->H + i * s->most, (size_t)size * sizeof *s->K);
    return size;
}

kiln_status ki_svd_ritz(struct ki_svd *s, int64_t count) {
    kiln_status status;
    const int64_t size = take_H(s), found = ki_min(count, size);
    TRY(ki_eigen(s->theta, s->Q, found, s->K, size, &s->run));
    if (!s->run.cancelled) goto done;
    for (int64_t c = 0; c < size; c++) s->theta[c] = s->H[c * (s->most + 1)];
    for (int64_t i = 0; i < found * size; i++) s->Q[i] = i % (size + 1) == 0;
done:
    return status;
}

/* theta, and the lengths `rest` of the wanted ones, unless the caller asks to stop. */
static kiln_status find_rest(struct ki_svd *s, int64_t wanted) {
    kiln_status status;
    const int64_t size = take_H(s), b = s->b, last = s->known - b;
    TRY(ki_eigen(s->theta, s->Q, wanted, s->K, size, &s->run));
    for (int64_t c = 0; c < size && !s->run.cancelled; c++) {
        const double p = s->theta[c];
        double square = 0;
        s->theta[c] = ki_svd_value(s, p);
        for (int64_t r = 0; c < wanted && r < b; r++) {
            const double part = ki_dot(s->R + r * b, s->Q + c * size + last, size - last);
            square += part * part;
        }
        /* Along the eigenvalue l a residual of P is C's, (l - theta) / (P(l) - P(theta)) times as long:
         * theta / (P(theta) - 1) at most. */
        s->rest[c] = sqrt(square) * (s->degree == 1 ? 1 : p > 1 ? s->theta[c] / (p - 1) : INFINITY);
    }
done:
    return status;
}

/* Returns what products with C are off by, of vectors orthogonal to L: as a value of A. */
static double rounding_of(const struct ki_svd *s) {
    const double units = 8 * ki_epsilon(kiln_matrix_type(s->X));
    return units * (s->locked > 0 ? s->s[0] : sqrt(fmax(s->theta[0], 0)));
}

/* Returns the square of A's value, from C's. */
static double square_of(const struct ki_svd *s, double value) {
    return s->options.graph ? value * value : value;
}

/* Rounding may make C y - theta y so long: the means that are taken off add to it. */
static double blur_of(const struct ki_svd *s, double first) {
    enum { MANY = 64 };
    return MANY * 8 * ki_epsilon(kiln_matrix_type(s->X)) * (first * first + s->taken * s->unit * s->unit);
}

/* C's eigenvalue may be off by so much, and its vector is known: turned by little, or by what a tolerance
 * that is not half of the type's digits allows. */
static double enough_of(const struct ki_svd *s, double value, double first) {
    const double half = s->run.tolerance / 2, known = sqrt(ki_epsilon(kiln_matrix_type(s->X)));
    return fmax(value / 8, half > known ? half * sqrt(fmax(value, 0)) * first : 0);
}

int64_t ki_svd_agreed(const struct ki_svd *s, int64_t certain) {
    int64_t count = 0;
    for (; count < certain; count++) {
        const double value = ki_svd_value(s, s->theta[count]), found = s->s[s->locked + count];
        const double own = s->options.graph ? found : found * found;
        if (!(fabs(own - value) <= enough_of(s, value, s->s[0]))) break;
    }
    return count;
}

kiln_status ki_svd_look(struct ki_svd_outlook *to, struct ki_svd *s) {
    kiln_status status = KILN_OK;
    const int64_t wanted = ki_min(s->k - s->locked, s->near - s->locked), size = size_of(s);
    struct ki_svd_outlook look = {.settled = size >= wanted, .estimate = INFINITY};
    if (!look.settled) { /* all of V's values are wanted */
        for (int64_t c = 0; c < size; c++)
            look.squares += square_of(s, ki_svd_value(s, s->H[c * (s->most + 1)]));
        goto done;
    }
    TRY(find_rest(s, wanted));
    if (s->run.cancelled) goto done;
    const double largest = sqrt(fmax(s->theta[0], 0)), first = s->locked > 0 ? s->s[0] : largest;
    const double rounding = rounding_of(s) * largest;
    bool lacks = false, held = false; /* a triple is not there yet; it is as near as rounding may let it */
    look.estimate = 0;
    look.vanished = largest <= (double)ki_max(s->m, s->n) * rounding_of(s);
    for (int64_t c = 0; c < wanted; c++) {
        const double own = sqrt(fmax(s->theta[c], 0)) * first;
        const double part = s->rest[c] == 0 ? 0 : own > 0 ? s->rest[c] / own : INFINITY;
        look.squares += square_of(s, fmax(s->theta[c], 0));
        look.estimate = fmax(look.estimate, part);
        look.blur = fmax(look.blur, own > 0 ? blur_of(s, first) / own : INFINITY);
        if (part > s->run.tolerance / 2 && s->rest[c] > rounding) lacks = true;
        if (part > s->run.tolerance / 2 && s->rest[c] <= rounding) held = true;
        const bool is_known = rounding < enough_of(s, s->theta[c], first);
        if (look.certain == c && part <= s->run.tolerance / 2 && is_known) look.certain++;
    }
    look.settled = !lacks && !(held && look.estimate < s->least / 2); /* while it falls, it is no rounding */
done:
    *to = look;
    return status;
}
