/* Every call with a wrong shape, type, device, format, number, NULL or alias is refused with ERR_ARGUMENT and
 * a message, and leaves what it would have written untouched. */
#include "refusals.h"

static void matrices(struct check_context *context, struct refusal_set *s) {
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
    REFUSED(kiln_matrix_set(NULL, s->canary));
    REFUSED(kiln_matrix_set(s->w, NULL));
    REFUSED(kiln_matrix_get_csr(row_start, NULL, NULL, s->X));
    check_report(context, A == s->X && row_start[0] == 0, "a refused call changed its out-parameter");
}

static void untouched(struct check_context *context, const kiln_matrix *A, const char *name) {
    struct host_matrix host = {.type = context->type};
    double values[REFUSAL_M * REFUSAL_K] = {0};
    bool all = kiln_matrix_get(values, A) == KILN_OK;
    host.values = values;
    for (int64_t e = 0; e < kiln_matrix_nnz(A); e++) all = all && host_get(&host, e) == 4711;
    check_report(context, all, "a refused call wrote to %s", name);
}

static void run(struct check_context *context) {
    struct refusal_set s = {0};
    kiln_status status = refusal_set_make(&s, context->device, context->type);
    check_report(context, status == KILN_OK, "making matrices: %s", kiln_last_error()->message);
    if (status == KILN_OK) {
        for (int i = 0; operations[i]; i++)
            if (operations[i]->refuse) operations[i]->refuse(context, &s);
        matrices(context, &s);
        untouched(context, s.w, "w");
        untouched(context, s.p, "p");
        untouched(context, s.d, "d");
        for (int e = 0; e <= REFUSAL_N * REFUSAL_K; e++)
            check_report(context, s.canary[e] == 4711, "a refused call wrote to number %d of its results", e);
    }
    refusal_set_free(&s);
}

const struct check check_refusals = {.name = "refusals", .run = run};
