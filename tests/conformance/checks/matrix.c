/* A matrix gives back what went into it: dense and CSR, set, and copies to another type and to the CPU. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"

static void same(struct check_context *context, const char *what, kiln_status status, const void *a,
                 const void *b, size_t bytes) {
    check_report(context, status == KILN_OK && memcmp(a, b, bytes) == 0, "%s: %s", what,
                 status == KILN_OK ? "values differ" : kiln_last_error()->message);
}

static void dense(struct check_context *context, struct work *work) {
    size_t bytes = (size_t)work->y.host.nnz * (work->type == KILN_F32 ? 4 : 8);
    void *back = calloc(1, bytes);
    same(context, "dense get", kiln_matrix_get(back, work->y.matrix), back, work->y.host.values, bytes);
    kiln_status status = kiln_matrix_set(work->z.matrix, work->y.host.values);
    if (status == KILN_OK) status = kiln_matrix_get(back, work->z.matrix);
    same(context, "dense set", status, back, work->y.host.values, bytes);
    free(back);
}

static void csr(struct check_context *context, const kiln_matrix *A, const struct host_matrix *h,
                const char *what) {
    size_t element = h->type == KILN_F32 ? 4 : 8, nnz = (size_t)h->nnz, rows = (size_t)h->rows;
    int64_t *row_start = calloc(rows + 1, sizeof *row_start);
    int32_t *col = calloc(nnz, sizeof *col);
    void *values = calloc(nnz, element);
    kiln_status status = kiln_matrix_get_csr(row_start, col, values, A);
    same(context, what, status, row_start, h->row_start, (rows + 1) * sizeof *row_start);
    same(context, what, status, col, h->col, nnz * sizeof *col);
    same(context, what, status, values, h->values, nnz * element);
    check_report(context, kiln_matrix_nnz(A) == h->nnz && kiln_matrix_format(A) == KILN_CSR, "%s: shape",
                 what);
    free(row_start);
    free(col);
    free(values);
}

/* There and back through the wider or narrower type: exact, because every value is an f32. */
static void copies(struct check_context *context, struct work *work) {
    kiln_device *cpu = NULL;
    kiln_matrix *moved = NULL, *back = NULL;
    kiln_type other = work->type == KILN_F32 ? KILN_F64 : KILN_F32;
    for (int64_t e = 0; e < work->X.host.nnz; e++) host_set(&work->X.host, e, (double)(e % 1000) / 8);
    kiln_matrix_free(work->X.matrix);
    work->X.matrix = NULL;
    kiln_status status = operand_upload(work, &work->X);
    if (status == KILN_OK) status = kiln_device_open(&cpu, "cpu", NULL);
    if (status == KILN_OK) status = kiln_matrix_copy(&moved, cpu, other, work->X.matrix);
    if (status == KILN_OK) status = kiln_matrix_copy(&back, work->device, work->type, moved);
    check_report(context, status == KILN_OK, "copy: %s", kiln_last_error()->message);
    if (status == KILN_OK) {
        check_report(context, kiln_matrix_type(moved) == other && kiln_matrix_device(moved) == cpu,
                     "copy: type, device");
        csr(context, back, &work->X.host, "csr copy");
    }
    kiln_matrix_free(moved);
    kiln_matrix_free(back);
    kiln_device_close(cpu);
}

static void run(struct check_context *context) {
    struct problem p = {
        .format = KILN_CSR, .pattern = PATTERN_UNSORTED, .rows = 100, .cols = 70, .per_row = 9};
    struct work work = {.problem = &p, .device = context->device, .type = context->type};
    kiln_status status = make_X(&work);
    if (status == KILN_OK) status = make_random(&work, &work.y, 37, 5);
    if (status == KILN_OK) status = make_random(&work, &work.z, 37, 5);
    check_report(context, status == KILN_OK, "making matrices: %s", kiln_last_error()->message);
    if (status == KILN_OK) {
        dense(context, &work);
        csr(context, work.X.matrix, &work.X.host, "csr get");
        copies(context, &work);
    }
    work_free(&work);
}

const struct check check_matrix = {.name = "matrix", .run = run};
