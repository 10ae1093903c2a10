/* This file computes how far least squares are above the optimum at most. With a penalty by certificate.h.
 * Without one by the factor of the normal equations, where there is one of all columns:
 *
 *   objective - optimum = 1/2 g^T H^-1 g,   D^-1 H D^-1 = U^T U + E,   |E_ij| <= part,
 *
 * so that with r = || U^-1 ||^2 n part < 1 it is at most 1/2 || U^-T D g ||^2 / (1 - r) (ki_inverse_square,
 * factor_gap.c). */
#include "algorithms/linreg/linreg_block.h"

/* Returns what a target knows of its rows. */
static struct ki_certificate problem_of(const struct ki_block *t, int j) {
    const struct ki_system *system = t->system;
    return (struct ki_certificate){.X = system->X,
                                   .k = 1,
                                   .l2 = system->options.l2,
                                   .intercept = !system->options.no_intercept,
                                   .standardize = system->options.standardize != 0,
                                   .weight = system->weight,
                                   .flats = system->flats,
                                   .b = &t->b[j],
                                   .slope = sqrt(fmax(t->rss[j], 0)),
                                   .curvature = 1,
                                   .excess = t->rss[j] / 2,
                                   .terms = t->rss[j] / 2,
                                   .quadratic = true};
}

/* By U of the target's problem; its g is of no use any more. */
static double gap_of_factor(const struct ki_certificate *at, const struct ki_direct *direct, double share,
                            double norm, double *r) {
    double off = 0;
    for (int64_t i = 0; i < direct->size; i++) {
        const double blur = direct->scale[i] * ki_certificate_blur(at, i);
        off += blur * blur;
        r[i] = direct->scale[i] * at->g[i];
    }
    const double length = sqrt(ki_substitute(direct->U, r, direct->size)) + sqrt(off * norm);
    return fmin(0.5 * length * length / (1 - share), at->excess) + ki_certificate_rounding(at);
}

/* The columns' figures, and of a target its coefficients and gradient, and work space, n each; NULL: nobody
 * asks for it. `alike`: the penalty weighs all columns alike, and the norm of a gradient is enough. */
struct room {
    double *square, *mean, *variance, *W, *G, *w, *g, *work;
    bool alike;
};

/* Millions of columns are more memory, and more of the link, than the iterations of a sparse X took: so only
 * what is asked for comes home, and a single target's coefficients stand as they are. */
static kiln_status room_new(struct room *room, struct ki_arena *arena, const struct ki_block *t) {
    kiln_status status;
    const struct ki_system *system = t->system;
    const int64_t n = kiln_matrix_cols(system->X);
    const bool several = t->k > 1, penalised = system->options.l2 > 0;
    room->alike = penalised && !several && !system->options.standardize;
    room->square = ki_arena_reals(arena, n);
    room->W = ki_arena_reals(arena, n * t->k);
    room->w = several ? ki_arena_reals(arena, n) : room->W;
    if (system->mean) room->mean = ki_arena_reals(arena, n);
    if (!room->alike) {
        room->variance = ki_arena_reals(arena, n);
        room->G = ki_arena_reals(arena, n * t->k);
        room->g = several ? ki_arena_reals(arena, n) : room->G;
        if (!penalised) room->work = ki_arena_reals(arena, n);
    }
    TRY(arena->status);
    TRY(ki_vector_get(room->square, system->square));
    TRY(ki_vector_get(room->W, t->W));
    if (system->mean) TRY(ki_vector_get(room->mean, system->mean));
    if (room->alike) return KILN_OK;
    TRY(ki_vector_get(room->variance, system->centred));
    for (int64_t j = 0; j < n; j++) room->variance[j] /= system->weight;
    /* minus the gradient, whose sign counts for nothing without an l1 term */
    TRY(ki_vector_get(room->G, t->G));
done:
    return status;
}

/* sqrt(sum_i s_i y_ij^2) of the targets. */
static kiln_status target_norms(double *norms, const struct ki_block *t) {
    kiln_status status;
    TRY(kiln_times(t->SR, t->y, t->system->s)); /* work space after the last check */
    TRY(kiln_dot(norms, t->SR, t->y));
    for (int j = 0; j < t->k; j++) norms[j] = sqrt(norms[j]);
done:
    return status;
}

/* || U^-1 ||^2 of the factor, where it is that of all columns, and, as *part, what its entries may be off by;
 * else INFINITY. */
static double norm_of_factor(const struct ki_block *t, const struct room *room, double *part) {
    const struct ki_system *system = t->system;
    const struct ki_direct *direct = &system->direct;
    const int64_t n = kiln_matrix_cols(system->X);
    const bool sparse = kiln_matrix_format(system->X) == KILN_CSR; /* whose sums are about zero first */
    const bool whole = system->options.no_intercept || system->flats.count == 0;
    *part = 0;
    if (!whole || !direct->U || !direct->usable || direct->by_rows || direct->left != 0) return INFINITY;
    for (int64_t i = 0; i < n && sparse; i++)
        *part =
            fmax(*part, room->variance[i] > 0 ? room->square[i] / (room->variance[i] * system->weight) : 0);
    *part = fmax(*part * ki_units(kiln_matrix_rows(system->X), kiln_matrix_type(system->X)),
                 ki_direct_part(system->X));
    return ki_inverse_square(direct->U, n, part, room->work);
}

kiln_status ki_block_certify(struct ki_block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    const int64_t n = kiln_matrix_cols(system->X);
    double part = 0;
    struct ki_arena arena = {0};
    struct room room = {0};
    double norms[KI_BLOCK], norm = INFINITY, gap = 0;
    TRY(room_new(&room, &arena, t));
    TRY(target_norms(norms, t));
    const bool penalised = system->options.l2 > 0;
    if (!penalised) norm = norm_of_factor(t, &room, &part);
    for (int j = 0; j < t->k; j++) {
        for (int64_t i = 0; i < n && t->k > 1; i++)
            room.w[i] = room.W[i * t->k + j], room.g[i] = room.G[i * t->k + j];
        struct ki_certificate at = problem_of(t, j);
        at.w = room.w;
        at.g = room.g;
        if (room.alike) {
            TRY(kiln_norm(&at.norm, t->G, KILN_NORM_2));
            at.norm *= 1 + ki_units(n, kiln_matrix_type(system->X));
        }
        at.square = room.square;
        at.mean = room.mean;
        at.variance = room.variance;
        at.target = norms[j];
        gap += penalised        ? ki_certificate_gap(&at)
               : isfinite(norm) ? gap_of_factor(&at, &system->direct, part, norm, room.work)
                                : (double)INFINITY;
    }
    system->gap += gap;
done:
    return ki_arena_free(&arena, status);
}
