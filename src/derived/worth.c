/* When it pays to rank a sparse X's columns and to cut the rare ones into panels: a sample of the entries tells how many lie in
 * the first columns, which a pass keeps on chip as they are, and in those that the second cache level holds. What passes take
 * with that and without, and what the making takes, are entries a second on an H200 (bench/results/h200-first-call.json and
 * h200-sparse.json); on another device all of them scale alike, so that the quotient stands. */
#include <math.h>

#include "core/arguments.h"
#include "core/limits.h"
#include "core/size.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(popular_leading);

enum { SAMPLES = 1 << 18 };
/* Part of X's entries that the columns on chip must hold for them to be worth their places there. */
const double ki_chip_share = 0.1;

/* Parts of X's entries in columns of at most a rank, if the columns stood in the order of their frequency. */
struct shares {
    double chip, cached;
};

static kiln_status sample(struct shares *shares, const kiln_matrix *X, int64_t chip, int64_t cached) {
    kiln_device *device = X->device;
    const int64_t step = ki_max(X->nnz / SAMPLES, 1), n = X->nnz / step;
    int64_t chunk;
    int32_t found[2] = {0, 0};
    struct ki_buffer counts = {0};
    kiln_status status;
    ki_ranges(&chunk, n);
    TRY(ki_device_alloc(device, &counts, sizeof found));
    TRY(ki_device_upload(device, &counts, 0, found, sizeof found));
    TRY(ki_derive_in_ranges(device, "popular_leading", "-DPOPULAR", KILN_F32, n,
                            KI_PACK(popular_leading, X, .found = &counts, .col = &X->col, .n = n,
                                    .chunk = chunk, .step = step, .chip = chip, .cached = cached)));
    TRY(ki_device_download(device, found, &counts, 0, sizeof found));
    *shares = (struct shares){(double)found[0] / (double)n, (double)found[1] / (double)n};
done:
    ki_device_release(device, &counts);
    return status;
}

/* Passes after which what they would have saved is what the making takes; infinite if they would save nothing. */
static double passes_to_pay(struct shares shares, bool panels) {
    static const double chip = 230e9, cached_load = 180e9, cached_sum = 100e9, load = 52e9, sum = 9e9,
                        ranked = 110e9, ranking = 7e9, panelling = 9e9;
    const double without = shares.chip / chip +
                           (shares.cached - shares.chip) * (1 / cached_load + 1 / cached_sum) +
                           (1 - shares.cached) * (1 / load + 1 / sum);
    const double saved = without - 1 / ranked, making = 1 / ranking + (panels ? 1 / panelling : 0);
    return saved > 0 ? making / saved : INFINITY;
}

kiln_status ki_worth_find(struct ki_worth *worth, const kiln_matrix *X, int64_t chip) {
    const int64_t cached = ki_max(ki_limits.cached_bytes / ki_type_bytes(X->type), chip);
    struct shares shares;
    const kiln_status status = sample(&shares, X, chip, cached);
    if (status != KILN_OK) return status;
    const double passes = passes_to_pay(shares, X->cols > cached);
    *worth = (struct ki_worth){.known = true, .leading = shares.chip >= ki_chip_share};
    if (passes > ki_limits.paying_passes) worth->due = passes < 1e9 ? (int64_t)ceil(passes) : INT64_MAX;
    return KILN_OK;
}
