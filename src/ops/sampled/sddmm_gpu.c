/* Sampled products on a GPU: the layout of a launch, its work space, and what is left to add up. */
#include <stdio.h>

#include "core/arguments.h"
#include "core/seams.h"
#include "core/size.h"
#include "ops/sampled/sddmm.cl"
#include "ops/sampled/sddmm.h"

KI_ARGUMENTS(sddmm);
KI_ARGUMENTS(sddmm_join);

#define JOIN_DEFINES "-DJOIN=128" /* JOIN threads a group */
enum {
    GROUP = 128,
    JOIN = 128,
    VECTOR_MOST = 256,
    PIECES = 4,   /* of a row, in a thread; more only where a vector has the most threads */
    NUMBERS = 32, /* of rows of B, on their way to a thread */
    SHARE = 32    /* entries that are worth a vector */
};

/* VS threads of BS share a row in Q pieces of W numbers each, and take R entries at a time. */
struct layout {
    int VS, BS, Q, W, R;
    int64_t groups, each;
};

static struct layout layout_of(const struct ki_sampled *s, kiln_type type) {
    struct layout l = {.VS = 1};
    const int widest = type == KILN_F32 ? 4 : 2;
    l.W = s->k % widest == 0 ? widest : s->k % 2 == 0 ? 2 : 1;
    const int64_t pieces = s->k / l.W;
    while (l.VS < VECTOR_MOST && (l.VS < pieces && (l.VS < 8 || l.VS * PIECES < pieces))) l.VS *= 2;
    l.Q = (int)ki_ceil_div(pieces, l.VS);
    l.BS = (int)ki_max(l.VS, GROUP);
    l.R = (int)ki_max(2, ki_min(8, NUMBERS / (l.Q * l.W)));
    return l;
}

static kiln_status build(struct ki_kernel **kernel, struct layout *l, const struct ki_sampled *s,
                         const kiln_matrix *S) {
    char defines[160];
    snprintf(defines, sizeof defines, "-DSAMPLE=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=%d%s%s%s%s", s->kind,
             l->VS, l->BS, l->Q, l->W, l->R, s->P ? " -DWITH_P" : "", s->Y ? " -DWITH_Y" : "",
             s->sum ? " -DWITH_SUM" : "", s->by_columns ? " -DSHORT_STARTS" : "");
    kiln_status status = ki_kernel_get(kernel, S->device, "sddmm", "sddmm", S->type, defines);
    if (status == KILN_OK) status = ki_kernel_resident(S->device, &l->groups, *kernel, l->BS);
    const int64_t vectors = l->BS / l->VS;
    l->groups = ki_max(1, ki_min(l->groups, ki_ceil_div(s->nnz, SHARE * vectors)));
    l->each = ki_ceil_div(ki_ceil_div(s->nnz, l->groups * vectors), l->R) * l->R;
    return status;
}

static kiln_status add_sums(double *sum, kiln_device *device, const struct ki_buffer *sums, int64_t groups) {
    const int64_t element = ki_type_bytes(ki_wide_type(device));
    kiln_status status;
    double all = 0;
    void *host = ki_alloc((size_t)(groups * element));
    if (!host) return ki_fail_nomem((size_t)(groups * element), "a sum");
    TRY(ki_device_download(device, host, sums, 0, groups * element));
    for (int64_t g = 0; g < groups; g++) all += element == 8 ? ((double *)host)[g] : ((float *)host)[g];
    *sum = all;
done:
    ki_free(host);
    return status;
}

/* Y's rows that go beyond a group, and those without entries. */
static kiln_status join(const struct ki_sampled *s, const kiln_matrix *S, const struct layout *l,
                        struct ki_kernel *kernel, const struct ki_buffer *cut,
                        const struct ki_buffer *cut_row) {
    const int64_t vectors = l->BS / l->VS;
    return ki_kernel_launch(S->device, kernel, l->groups, JOIN,
                            KI_PACK(sddmm_join, S, .Y = s->Y, .Z = s->Z, .start = s->start, .cut = cut,
                                    .cut_row = cut_row, .rows = s->rows, .groups = l->groups,
                                    .each = l->each * vectors, .vectors = l->groups * vectors,
                                    .k = (int32_t)s->k, .alpha = s->alpha, .beta = s->beta));
}

kiln_status ki_sampled_gpu(const struct ki_sampled *s, const kiln_matrix *S) {
    kiln_device *device = S->device;
    struct ki_kernel *kernel, *joins = NULL;
    struct ki_buffer sums = {0}, cut = {0}, cut_row = {0};
    struct layout l = layout_of(s, S->type);
    kiln_status status;
    TRY(build(&kernel, &l, s, S));
    const int64_t vectors = l.groups * (l.BS / l.VS);
    const int64_t parts = vectors + 2 * l.groups; /* of rows of Y */
    if (s->sum) TRY(ki_device_space(device, 0, &sums, l.groups * 8));
    if (s->Y) TRY(ki_device_space(device, 1, &cut, parts * s->k * ki_type_bytes(S->type)));
    if (s->Y) TRY(ki_device_space(device, 2, &cut_row, l.groups * 8));
    if (s->Y)
        TRY(ki_kernel_get(&joins, device, "sddmm", "sddmm_join", S->type,
                          s->by_columns ? JOIN_DEFINES " -DSHORT_STARTS" : JOIN_DEFINES));
    /* from here on only the driver can fail */
    TRY(ki_kernel_launch(device, kernel, l.groups, l.BS,
                         KI_PACK(sddmm, S, .start = s->start, .col = s->col, .value = s->value, .A = s->A,
                                 .B = s->B, .P = s->P, .Y = s->Y, .Z = s->Z, .sums = s->sum ? &sums : NULL,
                                 .cut = s->Y ? &cut : NULL, .cut_row = s->Y ? &cut_row : NULL,
                                 .rows = s->rows, .nnz = s->nnz, .each = l.each, .vectors = vectors,
                                 .k = (int32_t)s->k, .alpha = s->alpha, .beta = s->beta, .least = s->floor)));
    if (s->Y) TRY(join(s, S, &l, joins, &cut, &cut_row));
    if (s->sum) TRY(add_sums(s->sum, device, &sums, l.groups));
done:
    return status;
}
