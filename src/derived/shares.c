/* Shares of equal work: two slots, one for rows and one for columns. */
#include "derived/shares.h"

#include "core/arguments.h"
#include "core/kernels/kernels.h"
#include "core/seams.h"
#include "core/size.h"
#include "derived/shares.cl"

KI_ARGUMENTS(shares);

enum { GROUP = 128, GROUPS_MOST = 1 << 15 };

#define SHARES KI_SLOT(struct ki_shares, offsetof(struct ki_shares, begin), offsetof(struct ki_shares, row))
static const struct ki_slot_kind slot_rows = {.name = "shares of a matrix's rows", SHARES};
static const struct ki_slot_kind slot_columns = {.name = "shares of a matrix's columns", SHARES};
#undef SHARES

static kiln_status fill(struct ki_shares *shares, const kiln_matrix *S, const struct ki_buffer *start,
                        bool short_starts, int64_t rows) {
    kiln_device *device = S->device;
    kiln_status status;
    shares->count = ki_ceil_div(S->nnz + KI_SHARE_ROW * rows, KI_SHARE_ENTRIES);
    const char *defines = KI_DEFINES("-DENTRIES=%d -DROW=%d -DALIGNED=%d%s", KI_SHARE_ENTRIES, KI_SHARE_ROW,
                                     KI_SHARE_ALIGNED, short_starts ? " -DSHORT_STARTS" : "");
    TRY(ki_device_alloc(device, &shares->begin, (shares->count + 1) * 8));
    TRY(ki_device_alloc(device, &shares->row, (shares->count + 1) * 8));
    TRY(ki_kernel_run(device, "shares", "shares", KILN_F32, defines,
                      ki_min(ki_ceil_div(shares->count + 1, GROUP), GROUPS_MOST), GROUP,
                      KI_PACK(shares, S, .begin = &shares->begin, .row = &shares->row, .start = start,
                              .rows = rows, .nnz = S->nnz, .count = shares->count)));
done:
    return status;
}

kiln_status ki_shares_get(const struct ki_shares **shares, const kiln_matrix *S, bool by_columns,
                          const struct ki_buffer *start, bool short_starts, int64_t rows) {
    const struct ki_slot_kind *kind = by_columns ? &slot_columns : &slot_rows;
    const double began = ki_clock();
    if ((*shares = ki_slot_get(S, kind))) return KILN_OK;
    struct ki_shares *made = ki_slot_new(kind);
    if (!made) return KILN_ERR_NOMEM;
    const kiln_status status = ki_slot_keep(S, kind, made, fill(made, S, start, short_starts, rows));
    if (status != KILN_OK) return status;
    S->device->statistics.layout_seconds += ki_clock() - began;
    *shares = made;
    return KILN_OK;
}
