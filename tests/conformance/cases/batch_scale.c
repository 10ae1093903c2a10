/* Y_e = scale_v X_e for the elements of each vector; what belongs to none stays as it is. */
#include "batches.h"

#include <string.h>

static void list(struct problem_list *list) {
    batches_list(list, (struct problem){.kind = 1});
    batches_list(list, (struct problem){.kind = 2, .flags = WITH_X_ALIAS});
}

/* Y starts with X's structure, and values that show where nothing was written. */
static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(batches_prepare(work));
    CHECK_OK(make_random(work, &work->v, batches_count(work), 1));
    if (p->format == KILN_DENSE && !(p->flags & WITH_X_ALIAS))
        return make_random(work, &work->w, p->rows, p->cols);
    work->w = work->X;
    work->X = (struct operand){0};
    if (p->flags & WITH_X_ALIAS) {
        make_alias(work, &work->X);
        return KILN_OK;
    }
    make_csr(&work->X.host, p, work->type);
    return kiln_matrix_csr(&work->X.matrix, work->device, work->type, p->rows, p->cols,
                           work->X.host.row_start, work->X.host.col, work->X.host.values);
}

static kiln_status run(struct work *work) {
    return kiln_batch_scale(work->w.matrix, work->X.matrix, work->v.matrix, batches_batch(work));
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    struct expected *out = &expected[RESULT_W];
    *out = expected_new(work->type, work->w.host.nnz);
    for (int64_t e = 0; e < out->count; e++) out->value[e] = host_get(&work->w.host, e);
    for (int64_t v = 0; v < batches_count(work); v++)
        for (int64_t i = 0; i < batches_length(work, v); i++) {
            const int64_t e = batches_element(work, v, i);
            out->value[e] = (long double)host_get(&work->v.host, v) * host_get(&work->X.host, e);
        }
    for (int64_t e = 0; e < out->count; e++) out->gauge[e] = fabsl(out->value[e]);
    out->gate = 1.01;
}

static double flops(const struct work *work) {
    return (double)work->X.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->v) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    kiln_batch *rows = NULL;
    REFUSED(kiln_batch_scale(NULL, s->y, s->d, NULL));
    REFUSED(kiln_batch_scale(s->w, NULL, s->d, NULL));
    REFUSED(kiln_batch_scale(s->w, s->y, NULL, NULL));
    REFUSED(kiln_batch_scale(s->w, s->y, s->v, NULL));
    REFUSED(kiln_batch_scale(s->p, s->y, s->d, NULL));
    REFUSED(kiln_batch_scale(s->w, s->y_type, s->d, NULL));
    REFUSED_AS("dense", kiln_batch_scale(s->S, s->S, s->v, NULL));
    REFUSED_AS("must not be scale", kiln_batch_scale(s->d, s->d, s->d, NULL));
    check_report(context, kiln_batch_rows(&rows, s->S) == KILN_OK, "making a batch: %s",
                 kiln_last_error()->message);
    if (rows) REFUSED(kiln_batch_scale(s->X, s->S, s->v, rows));
    kiln_batch_free(rows);
}

const struct operation operation_batch_scale = {.name = "batch_scale",
                                                .list = list,
                                                .prepare = prepare,
                                                .run = run,
                                                .expect = expect,
                                                .flops = flops,
                                                .bytes = bytes,
                                                .refuse = refuse,
                                                .benchmark = {.k = 1, .kind = 1}};
