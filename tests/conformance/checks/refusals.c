/* Every call with a wrong shape, type, device, format, number, NULL or alias is refused with ERR_ARGUMENT and
 * a message, and leaves what it would have written untouched. */
#include <string.h>

#include "cases.h"

enum { M = 6, N = 4, K = 2 };

/* X M x N dense, S the same in CSR, w y z N x K, p q M x K, v M x 1, d N x 1; one wrong thing each in the
 * others. */
struct set {
    kiln_device *device, *cpu;
    kiln_matrix *X, *S, *w, *y, *z, *p, *q, *v, *d;
    kiln_matrix *y_type, *y_device, *square, *none, *wide;
    double canary[N * K + 1];
};

static void refused(struct check_context *context, kiln_status status, const char *call) {
    const kiln_error *error = kiln_last_error();
    check_report(context, status == KILN_ERR_ARGUMENT && error->status == status && error->message[0] != '\0',
                 "%s: %s, \"%s\"", call, kiln_status_name(status), error->message);
}

#define REFUSED(call) refused(context, (call), #call)

static kiln_status make_set(struct set *s, kiln_device *device, kiln_type type) {
    kiln_type other = type == KILN_F32 ? KILN_F64 : KILN_F32;
    static const int64_t row_start[M + 1] = {0, 1, 1, 2, 3, 3, 4};
    static const int32_t col[] = {0, 3, 1, 2};
    s->device = device;
    CHECK_OK(kiln_device_open(&s->cpu, "cpu", NULL));
    CHECK_OK(kiln_matrix_dense(&s->X, device, type, M, N, NULL));
    CHECK_OK(kiln_matrix_csr(&s->S, device, type, M, N, row_start, col, NULL));
    CHECK_OK(kiln_matrix_dense(&s->w, device, type, N, K, NULL));
    CHECK_OK(kiln_matrix_dense(&s->y, device, type, N, K, NULL));
    CHECK_OK(kiln_matrix_dense(&s->z, device, type, N, K, NULL));
    CHECK_OK(kiln_matrix_dense(&s->p, device, type, M, K, NULL));
    CHECK_OK(kiln_matrix_dense(&s->q, device, type, M, K, NULL));
    CHECK_OK(kiln_matrix_dense(&s->v, device, type, M, 1, NULL));
    CHECK_OK(kiln_matrix_dense(&s->d, device, type, N, 1, NULL));
    /* A device without double precision refuses the other type right here; then another device must do. */
    if (kiln_matrix_dense(&s->y_type, device, other, N, K, NULL) == KILN_ERR_UNSUPPORTED)
        CHECK_OK(kiln_matrix_dense(&s->y_type, s->cpu, other, N, K, NULL));
    if (!s->y_type) return kiln_last_error()->status;
    CHECK_OK(kiln_matrix_dense(&s->y_device, s->cpu, type, N, K, NULL));
    CHECK_OK(kiln_matrix_dense(&s->square, device, type, N, N, NULL));
    CHECK_OK(kiln_matrix_dense(&s->none, device, type, N, 0, NULL));
    CHECK_OK(kiln_matrix_dense(&s->wide, device, type, N, 65537, NULL));
    for (int e = 0; e <= N * K; e++) s->canary[e] = 4711;
    CHECK_OK(kiln_fill(s->w, 4711));
    CHECK_OK(kiln_fill(s->p, 4711));
    return kiln_fill(s->d, 4711);
}

static void free_set(struct set *s) {
    kiln_matrix *const all[] = {s->X, s->S, s->w,      s->y,        s->z,      s->p,    s->q,
                                s->v, s->d, s->y_type, s->y_device, s->square, s->none, s->wide};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_device_close(s->cpu);
}

static void mmchain(struct check_context *context, struct set *s) {
    REFUSED(kiln_mmchain(NULL, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, NULL, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, NULL, 0, NULL));
    REFUSED(kiln_mmchain(s->d, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->p, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->q, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->y, s->z, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->S, s->X, s->z, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y, 1, s->q));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y, 0, s->q));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y_type, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y_device, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y, 1, s->y_device));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->S, 0, NULL));
    REFUSED(kiln_mmchain(s->S, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->w, 0, NULL));
    REFUSED(kiln_mmchain(s->square, 1, s->square, NULL, s->square, 0, NULL));
    REFUSED(kiln_mmchain(s->none, 1, s->X, s->v, s->none, 0, NULL));
    REFUSED(kiln_mmchain(s->wide, 1, s->X, s->v, s->wide, 0, NULL));
}

static void multiply(struct check_context *context, struct set *s) {
    REFUSED(kiln_multiply(NULL, 1, KILN_PLAIN, s->X, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, NULL, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, NULL, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, (kiln_transpose)7, s->X, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->w, 1, KILN_PLAIN, s->X, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, s->q, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_TRANSPOSED, s->X, s->q, 0, NULL));
    REFUSED(kiln_multiply(s->w, 1, KILN_TRANSPOSED, s->S, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, s->y, 1, s->z));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, s->y_type, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->S, s->y_device, 0, NULL));
    REFUSED(kiln_multiply(s->w, 1, KILN_PLAIN, s->square, s->w, 0, NULL));
    REFUSED(kiln_multiply(s->none, 1, KILN_PLAIN, s->square, s->none, 0, NULL));
    REFUSED(kiln_multiply(s->wide, 1, KILN_PLAIN, s->square, s->wide, 0, NULL));
}

static void gram_diagonal(struct check_context *context, struct set *s) {
    REFUSED(kiln_gram_diagonal(NULL, s->X, s->v));
    REFUSED(kiln_gram_diagonal(s->d, NULL, s->v));
    REFUSED(kiln_gram_diagonal(s->w, s->X, s->v));
    REFUSED(kiln_gram_diagonal(s->v, s->X, NULL));
    REFUSED(kiln_gram_diagonal(s->d, s->S, s->q));
    REFUSED(kiln_gram_diagonal(s->d, s->square, s->d));
}

static void gram(struct check_context *context, struct set *s) {
    REFUSED(kiln_gram(NULL, s->d, s->X, s->v, NULL));
    REFUSED(kiln_gram(s->square, s->d, NULL, s->v, NULL));
    REFUSED(kiln_gram(s->w, s->d, s->X, s->v, NULL));
    REFUSED(kiln_gram(s->square, s->w, s->square, NULL, NULL));
    REFUSED(kiln_gram(s->square, NULL, s->square, NULL, NULL));
}

static void elementwise(struct check_context *context, struct set *s) {
    static const double ones[MOST_COLUMNS] = {1, 1};
    REFUSED(kiln_combine(NULL, ones, s->y, ones, s->z));
    REFUSED(kiln_combine(s->w, NULL, s->y, ones, s->z));
    REFUSED(kiln_combine(s->w, ones, NULL, ones, s->z));
    REFUSED(kiln_combine(s->w, ones, s->y, NULL, s->z));
    REFUSED(kiln_combine(s->w, ones, s->q, ones, s->z));
    REFUSED(kiln_combine(s->w, ones, s->y, ones, s->v));
    REFUSED(kiln_combine(s->w, ones, s->y_type, NULL, NULL));
    REFUSED(kiln_combine(s->w, ones, s->y, ones, s->y_device));
    REFUSED(kiln_combine(s->S, ones, s->X, ones, s->X));
    REFUSED(kiln_times(NULL, s->y, s->z));
    REFUSED(kiln_times(s->w, NULL, s->z));
    REFUSED(kiln_times(s->w, s->y, NULL));
    REFUSED(kiln_times(s->w, s->square, s->z));
    REFUSED(kiln_times(s->w, s->y, s->y_device));
    REFUSED(kiln_map(NULL, KILN_MAP_ABS, s->y));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, NULL));
    REFUSED(kiln_map(s->w, (kiln_map_kind)0, s->y));
    REFUSED(kiln_map(s->w, (kiln_map_kind)(KILN_MAP_EXP + 1), s->y));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, s->q));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, s->d));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, s->y_type));
    REFUSED(kiln_fill(NULL, 1));
    REFUSED(kiln_fill(s->S, 1));
    REFUSED(kiln_fill_random(NULL, KILN_UNIFORM, 1, 1));
    REFUSED(kiln_fill_random(s->S, KILN_UNIFORM, 1, 1));
    REFUSED(kiln_fill_random(s->w, (kiln_distribution)2, 1, 1));
}

static void reductions(struct check_context *context, struct set *s) {
    REFUSED(kiln_dot(NULL, s->y, s->z));
    REFUSED(kiln_dot(s->canary, NULL, s->z));
    REFUSED(kiln_dot(s->canary, s->y, NULL));
    REFUSED(kiln_dot(s->canary, s->y, s->q));
    REFUSED(kiln_dot(s->canary, s->y, s->v));
    REFUSED(kiln_dot(s->canary, s->d, s->y));
    REFUSED(kiln_dot(s->canary, s->y, s->y_type));
    REFUSED(kiln_dot(s->canary, s->y, s->y_device));
    REFUSED(kiln_dot(s->canary, s->S, s->X));
    REFUSED(kiln_norm(NULL, s->y, KILN_NORM_2));
    REFUSED(kiln_norm(s->canary, NULL, KILN_NORM_2));
    REFUSED(kiln_norm(s->canary, s->S, KILN_NORM_2));
    REFUSED(kiln_norm(s->canary, s->y, (kiln_norm_kind)0));
    REFUSED(kiln_norm(s->canary, s->y, (kiln_norm_kind)4));
}

static void matrices(struct check_context *context, struct set *s) {
    kiln_type type = context->type;
    kiln_matrix *A = s->X;
    int64_t row_start[] = {0, 0};
    REFUSED(kiln_matrix_dense(NULL, s->device, type, 2, 2, NULL));
    REFUSED(kiln_matrix_dense(&A, NULL, type, 2, 2, NULL));
    REFUSED(kiln_matrix_dense(&A, s->device, (kiln_type)3, 2, 2, NULL));
    REFUSED(kiln_matrix_dense(&A, s->device, KILN_TYPE_DEFAULT, 2, 2, NULL));
    REFUSED(kiln_matrix_dense(&A, s->device, type, -1, 2, NULL));
    REFUSED(kiln_matrix_dense(&A, s->device, type, 2, -1, NULL));
    REFUSED(kiln_matrix_dense(&A, s->device, type, 1, INT64_C(1) << 31, NULL));
    REFUSED(kiln_matrix_dense(&A, s->device, type, INT64_MAX / 4, 1000, NULL));
    REFUSED(kiln_matrix_csr(NULL, s->device, type, 1, 2, row_start, NULL, NULL));
    REFUSED(kiln_matrix_csr(&A, NULL, type, 1, 2, row_start, NULL, NULL));
    REFUSED(kiln_matrix_csr(&A, s->device, type, 1, 2, NULL, NULL, NULL));
    REFUSED(kiln_matrix_csr(&A, s->device, type, -1, 2, row_start, NULL, NULL));
    REFUSED(kiln_matrix_copy(NULL, s->device, type, s->X));
    REFUSED(kiln_matrix_copy(&A, s->device, type, NULL));
    REFUSED(kiln_matrix_copy(&A, s->device, (kiln_type)3, s->X));
    REFUSED(kiln_matrix_get(NULL, s->w));
    REFUSED(kiln_matrix_get(s->canary, NULL));
    REFUSED(kiln_matrix_get(s->canary, s->S));
    REFUSED(kiln_matrix_set(NULL, s->canary));
    REFUSED(kiln_matrix_set(s->w, NULL));
    REFUSED(kiln_matrix_set(s->S, s->canary));
    REFUSED(kiln_matrix_get_csr(row_start, NULL, NULL, s->X));
    check_report(context, A == s->X && row_start[0] == 0, "a refused call changed its out-parameter");
}

static void untouched(struct check_context *context, const kiln_matrix *A, const char *name) {
    struct host_matrix host = {.type = context->type};
    double values[M * K] = {0};
    bool all = kiln_matrix_get(values, A) == KILN_OK;
    host.values = values;
    for (int64_t e = 0; e < kiln_matrix_nnz(A); e++) all = all && host_get(&host, e) == 4711;
    check_report(context, all, "a refused call wrote to %s", name);
}

/* S or the curvature are not there, or of the wrong shape. */
static void conjugate_gradient(struct check_context *context, struct set *s) {
    const kiln_cg missing = {.E = s->w, .G = s->w, .P = s->y, .Q = s->w};
    const kiln_cg wrong = {.S = s->w, .E = s->z, .G = s->z, .P = s->y, .Q = s->w, .curvature = s->w};
    REFUSED(kiln_cg_pass(NULL, s->X, NULL));
    REFUSED(kiln_cg_pass(&missing, s->X, NULL));
    REFUSED(kiln_cg_pass(&wrong, s->X, NULL));
    REFUSED(kiln_cg_pass(&wrong, NULL, NULL));
    REFUSED(kiln_cg_begin(&missing));
    REFUSED(kiln_cg_begin(&wrong));
    REFUSED(kiln_cg_step(&missing, 0));
    REFUSED(kiln_cg_step(&wrong, -1));
}

static void run(struct check_context *context) {
    struct set s = {0};
    kiln_status status = make_set(&s, context->device, context->type);
    check_report(context, status == KILN_OK, "making matrices: %s", kiln_last_error()->message);
    if (status == KILN_OK) {
        mmchain(context, &s);
        multiply(context, &s);
        gram_diagonal(context, &s);
        gram(context, &s);
        elementwise(context, &s);
        reductions(context, &s);
        conjugate_gradient(context, &s);
        matrices(context, &s);
        untouched(context, s.w, "w");
        untouched(context, s.p, "p");
        untouched(context, s.d, "d");
        for (int e = 0; e <= N * K; e++)
            check_report(context, s.canary[e] == 4711, "a refused call wrote to number %d of its results", e);
    }
    free_set(&s);
}

const struct check check_refusals = {.name = "refusals", .run = run};
