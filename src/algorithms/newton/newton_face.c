/* The least point of a face, the elements that are not 0 with their signs, by conjugate gradient with D^2,
 * the model's diagonal, where there is no Gram matrix:
 *
 *   z += alpha p,  alpha = s . p / p . H p,  p = D^-2 s + beta p,
 *   beta = max(0, s . D^-2 (s - former s) / former s . D^-2 s),
 *
 * s minus the gradient on the face. Sweeps find out which elements are 0, and are slow about how large the
 * others are. An iteration costs half of a sweep, as its two products with the columns go on all threads, and
 * fewer are needed.
 *
 * Elements that a step would take across 0 stop there and leave the face, and iterations go on. That is why s
 * is a product and not kept up to date with H p, which would be the same price: it is right wherever z went,
 * and with Polak and Ribiere's beta what is known of the face is not lost. If the model is no lower then, the
 * step ends where the first of them becomes 0. Elements at 0 are left to sweeps. */
#include "algorithms/newton/newton_descent.h"

enum { ITERATIONS = 100 }; /* after which sweeps may as well look at elements at 0 again */

struct face {
    struct ki_quadratic *of;
    int64_t size;
    int32_t *at;
    double *s, *former, *p, *z; /* former: s before; z: before a step */
    double *v, *r;              /* parts x m, the first for sum of p_a u_a; m, before a step */
    int parts;
    double sb, former_b, pb;  /* the intercept's */
    double sigma, qr;         /* of p, as the model's are of z - w */
    double rho, slope, curve; /* || D^-1 s ||^2, s . p, p . H p */
};

static kiln_status open_face(struct face *face) {
    const struct ki_quadratic *of = face->of;
    int64_t entries = 0;
    face->at = of->face;
    for (int64_t a = 0; a < of->count; a++) {
        if (of->z[a] == 0) continue;
        face->at[face->size++] = (int32_t)a;
        entries += of->u[a].count;
    }
    face->parts = ki_sparse_columns_parts(of->columns, entries);
    const int64_t elements = 4 * face->size + (face->parts + 1) * of->rows;
    face->s = ki_arena_doubles(of->arena, elements);
    if (!face->s) return of->arena->status;
    face->former = face->s + face->size;
    face->p = face->former + face->size;
    face->z = face->p + face->size;
    face->v = face->z + face->size;
    face->r = face->v + face->parts * of->rows;
    memset(face->former, 0, (size_t)face->size * 2 * sizeof *face->p);
    return KILN_OK;
}

/* s and rho at z; and what s . D^-2 former s is. */
static double face_look(struct face *face) {
    const struct ki_quadratic *of = face->of;
    const double own = of->intercept && of->total > 0 ? 1 / of->total : 0;
    ki_sparse_columns_dot(face->s, of->columns, of->u, face->at, face->size, of->r);
    face->sb = of->intercept ? -ki_quadratic_intercept_slope(of) : 0;
    face->rho = face->sb * face->sb * own;
    double mixed = face->sb * face->former_b * own;
    for (int64_t i = 0; i < face->size; i++) {
        const int64_t a = face->at[i];
        face->s[i] = -ki_quadratic_slope_by(of, a, face->s[i]) - copysign(of->l1[a], of->z[a]);
        const double scaled = face->s[i] * of->inverse[a];
        face->rho += scaled * face->s[i];
        mixed += scaled * face->former[i];
    }
    return mixed;
}

/* s at z, and p, from the former ones but for the first time. */
static void face_turn(struct face *face) {
    const struct ki_quadratic *of = face->of;
    const double own = of->intercept && of->total > 0 ? 1 / of->total : 0;
    const double before = face->rho, mixed = face_look(face);
    const double beta = before > 0 ? fmax(0, (face->rho - mixed) / before) : 0;
    face->pb = face->sb * own + beta * face->pb;
    face->slope = face->sb * face->pb;
    for (int64_t i = 0; i < face->size; i++) {
        face->p[i] = face->s[i] * of->inverse[face->at[i]] + beta * face->p[i];
        face->slope += face->s[i] * face->p[i];
        face->former[i] = face->s[i];
    }
    face->former_b = face->sb;
}

/* v and all else that p . H p consists of. */
static void face_multiply(struct face *face) {
    const struct ki_quadratic *of = face->of;
    double curve = 0;
    ki_sparse_columns_sum(face->v, face->parts, of->columns, of->u, face->at, face->size, face->p);
    face->sigma = face->pb;
    face->qr = 0;
    for (int64_t i = 0; i < face->size; i++) {
        const int64_t a = face->at[i];
        face->sigma -= of->mean[a] * face->p[i];
        face->qr += of->product[a] * face->p[i];
        curve += of->own[a] * face->p[i] * face->p[i];
    }
    for (int64_t i = 0; i < of->rows; i++) curve += face->v[i] * face->v[i];
    face->curve = curve + face->sigma * (2 * face->qr + face->sigma * of->total);
}

/* z += alpha p, but no further than to 0. */
static void go(struct face *face, double alpha) {
    struct ki_quadratic *of = face->of;
    for (int64_t i = 0; i < of->rows; i++) of->r[i] += alpha * face->v[i];
    of->qr += alpha * face->qr;
    of->sigma += alpha * face->sigma;
    of->b += alpha * face->pb;
    for (int64_t i = 0; i < face->size; i++) {
        const int64_t a = face->at[i];
        const double former = of->z[a], z = former + alpha * face->p[i];
        const bool stays = former > 0 ? z > DBL_EPSILON * former : z < DBL_EPSILON * former;
        of->z[a] = stays ? z : 0;
        if (!stays) ki_quadratic_move(of, a, -z);
    }
}

/* The same where elements may become 0: see above. The face is without them then. */
static void go_across(struct face *face, double alpha, double first) {
    struct ki_quadratic *of = face->of;
    const double value = ki_quadratic_value(of), qr = of->qr, sigma = of->sigma, b = of->b;
    int64_t size = 0;
    for (int64_t i = 0; i < face->size; i++) face->z[i] = of->z[face->at[i]];
    memcpy(face->r, of->r, (size_t)of->rows * sizeof *face->r);
    go(face, alpha);
    if (!(ki_quadratic_value(of) <= value)) {
        for (int64_t i = 0; i < face->size; i++) of->z[face->at[i]] = face->z[i];
        memcpy(of->r, face->r, (size_t)of->rows * sizeof *face->r);
        of->qr = qr;
        of->sigma = sigma;
        of->b = b;
        go(face, first);
    }
    for (int64_t i = 0; i < face->size; i++) {
        if (of->z[face->at[i]] == 0) continue;
        face->at[size] = face->at[i];
        face->p[size] = face->p[i];
        face->former[size++] = face->former[i];
    }
    face->size = size;
}

static void face_step(struct face *face) {
    const double alpha = face->slope / face->curve;
    double first = alpha; /* where the first element becomes 0 */
    for (int64_t i = 0; i < face->size; i++) {
        const double z = face->of->z[face->at[i]], moved = z + first * face->p[i];
        if (z > 0 ? moved <= 0 : moved >= 0) first = -z / face->p[i];
    }
    if (first < alpha)
        go_across(face, alpha, first);
    else
        go(face, alpha);
}

kiln_status ki_quadratic_face(struct ki_quadratic *of, struct ki_newton_work *work,
                              struct ki_newton_model *model, double goal, bool *reached) {
    kiln_status status;
    struct face face = {.of = of};
    TRY(open_face(&face));
    face_turn(&face);
    for (int i = 0; i < ITERATIONS && face.rho > goal && face.slope > 0 && !work->newton->run.cancelled;
         i++) {
        face_multiply(&face);
        if (!(face.curve > 0)) break;
        face_step(&face);
        face_turn(&face);
        model->inner++;
        ki_run_ask(&work->newton->run);
    }
    *reached = face.rho <= goal;
done:
    return status;
}
