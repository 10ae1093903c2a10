/* Operands for calls that must be refused, and the judgement: see refusals.h. */
#include "refusals.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { M = REFUSAL_M, N = REFUSAL_N, K = REFUSAL_K };

void check_report(struct check_context *context, bool passed, const char *format, ...) {
    char text[512];
    va_list args;
    context->passed += passed;
    context->failed += !passed;
    if (passed && !context->verbose) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%s %s %s %s\n", passed ? "pass" : "FAIL", context->device_name,
           context->type == KILN_F32 ? "f32" : "f64", text);
}

void refused(struct check_context *context, kiln_status status, const char *call, const char *words) {
    const kiln_error *error = kiln_last_error();
    const size_t name = strcspn(call, "(");
    const bool begins = strncmp(error->message, call, name) == 0 && error->message[name] == ':';
    const bool named = begins || (error->message[0] != '\0' && !strstr(error->message, "kiln_"));
    check_report(context,
                 status == KILN_ERR_ARGUMENT && error->status == status && named &&
                     strstr(error->message, words),
                 "%s: %s, \"%s\"", call, kiln_status_name(status), error->message);
}

kiln_status refusal_set_make(struct refusal_set *s, kiln_device *device, kiln_type type) {
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
    kiln_device_info info = {0};
    CHECK_OK(kiln_device_get_info(device, &info));
    CHECK_OK(kiln_matrix_dense(&s->scalars, device, info.has_f64 ? KILN_F64 : KILN_F32, 1, K, NULL));
    for (int e = 0; e <= N * K; e++) s->canary[e] = 4711;
    CHECK_OK(kiln_fill(s->w, 4711));
    CHECK_OK(kiln_fill(s->p, 4711));
    return kiln_fill(s->d, 4711);
}

void refusal_set_free(struct refusal_set *s) {
    kiln_matrix *const all[] = {s->X, s->S,      s->w,        s->y,      s->z,    s->p,    s->q,      s->v,
                                s->d, s->y_type, s->y_device, s->square, s->none, s->wide, s->scalars};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_device_close(s->cpu);
}
