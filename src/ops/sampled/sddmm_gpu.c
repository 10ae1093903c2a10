/* Sampled products on a GPU: the layout of a launch, its work space, and what is left to add up. */
#include <stdio.h>

#include "core/arguments.h"
#include "core/limits.h"
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
    int64_t groups, each, width;
    bool sliced; /* a sampled product, in slices */
};

/* Numbers of a row that a launch takes: all, unless B is too large for the cache, its rows are gathered often, and what the product
 * adds up to has a place meanwhile. */
static int64_t width_of(const struct ki_sampled *s, const kiln_matrix *S) {
    const int64_t bytes = ki_type_bytes(S->type), rows = s->B->rows;
    const bool has_place = s->kind == 0 || (s->P && !s->Y && s->P != S && s->beta == 0);
    return has_place && rows * s->k * bytes > ki_limits.gathered_bytes &&
                   s->nnz >= ki_limits.gathered_entries * rows
               ? ki_min(s->k, ki_limits.gathered_slice / bytes)
               : s->k;
}

static struct layout layout_of(int64_t k, int64_t width, kiln_type type) {
    struct layout l = {.VS = 1, .width = width};
    const int widest = type == KILN_F32 ? 4 : 2;
    l.W = k % widest == 0 ? widest : k % 2 == 0 ? 2 : 1;
    const int64_t pieces = ki_ceil_div(width, l.W);
    while (l.VS < VECTOR_MOST && (l.VS < pieces && (l.VS < 8 || l.VS * PIECES < pieces))) l.VS *= 2;
    l.Q = (int)ki_ceil_div(pieces, l.VS);
    l.BS = (int)ki_max(l.VS, GROUP);
    l.R = (int)ki_max(2, ki_min(8, NUMBERS / (l.Q * l.W)));
    return l;
}

static kiln_status build(struct ki_kernel **kernel, struct layout *l, const struct ki_sampled *s,
                         const kiln_matrix *S) {
    char defines[160];
    snprintf(defines, sizeof defines, "-DSAMPLE=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=%d%s%s%s%s%s", s->kind,
             l->VS, l->BS, l->Q, l->W, l->R, s->P ? " -DWITH_P" : "", s->Y ? " -DWITH_Y" : "",
             s->sum ? " -DWITH_SUM" : "", s->by_columns ? " -DSHORT_STARTS" : "",
             l->sliced ? " -DSLICED" : "");
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

/* What a product works with, beside its operands. */
struct space {
    struct ki_kernel *kernel, *join;
    struct ki_buffer sums, cut, cut_row;
};

static kiln_status prepare(struct space *space, struct layout *l, const struct ki_sampled *s,
                           const kiln_matrix *S) {
    kiln_device *device = S->device;
    kiln_status status;
    TRY(build(&space->kernel, l, s, S));
    const int64_t parts = l->groups * (l->BS / l->VS + 2); /* of rows of Y */
    if (s->sum) TRY(ki_device_space(device, 0, &space->sums, l->groups * 8));
    if (!s->Y) return KILN_OK;
    TRY(ki_device_space(device, 1, &space->cut, parts * l->width * ki_type_bytes(S->type)));
    TRY(ki_device_space(device, 2, &space->cut_row, l->groups * 8));
    TRY(ki_kernel_get(&space->join, device, "sddmm", "sddmm_join", S->type,
                      s->by_columns ? JOIN_DEFINES " -DSHORT_STARTS" : JOIN_DEFINES));
done:
    return status;
}

/* The numbers of each row from `first` on. */
static kiln_status launch(const struct ki_sampled *s, const kiln_matrix *S, const struct layout *l,
                          const struct space *space, int64_t first) {
    const int64_t in_group = l->BS / l->VS, vectors = l->groups * in_group;
    const int32_t k = (int32_t)s->k, width = (int32_t)ki_min(l->width, s->k - first);
    const struct ki_buffer *cut = s->Y ? &space->cut : NULL, *cut_row = s->Y ? &space->cut_row : NULL;
    kiln_status status;
    TRY(ki_kernel_launch(S->device, space->kernel, l->groups, l->BS,
                         KI_PACK(sddmm, S, .start = s->start, .col = s->col, .value = s->value, .A = s->A,
                                 .B = s->B, .P = s->P, .Y = s->Y, .Z = s->Z,
                                 .sums = s->sum ? &space->sums : NULL, .cut = cut, .cut_row = cut_row,
                                 .rows = s->rows, .nnz = s->nnz, .each = l->each, .vectors = vectors, .k = k,
                                 .first = (int32_t)first, .width = width, .alpha = s->alpha, .beta = s->beta,
                                 .least = s->floor)));
    if (s->Y) /* its rows that go beyond a group, and those without entries */
        TRY(ki_kernel_launch(
            S->device, space->join, l->groups, JOIN,
            KI_PACK(sddmm_join, S, .Y = s->Y, .Z = s->Z, .start = s->start, .cut = cut, .cut_row = cut_row,
                    .rows = s->rows, .groups = l->groups, .each = l->each * in_group, .vectors = vectors,
                    .k = k, .first = (int32_t)first, .width = width, .alpha = s->alpha, .beta = s->beta)));
done:
    return status;
}

kiln_status ki_sampled_gpu(const struct ki_sampled *s, const kiln_matrix *S) {
    struct layout l = layout_of(s->k, width_of(s, S), S->type);
    struct space space = {0};
    kiln_status status;
    l.sliced = s->kind && l.width < s->k;
    TRY(prepare(&space, &l, s, S));
    /* from here on only the driver can fail */
    for (int64_t first = 0; first < s->k; first += l.width) TRY(launch(s, S, &l, &space, first));
    if (s->sum) TRY(add_sums(s->sum, S->device, &space.sums, l.groups));
done:
    return status;
}
