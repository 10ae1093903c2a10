/* Popular columns: which they are, the copy of X's column numbers that has their ranks, and their y and w,
 * which lie together in the order of the ranks. X's own numbers stay, for whoever else reads X, at the price
 * of 4 bytes an entry: a third of an X in f64, half of one in f32. */
#include "core/arguments.h"
#include "core/group/group.h"
#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(popular_count);
KI_ARGUMENTS(popular_bins);
KI_ARGUMENTS(popular_find);
KI_ARGUMENTS(popular_list);
KI_ARGUMENTS(popular_fill);
KI_ARGUMENTS(popular_counts);
KI_ARGUMENTS(popular_rank);
KI_ARGUMENTS(popular_encode);
KI_ARGUMENTS(pack_hot);
KI_ARGUMENTS(unpack_hot);

/* Part of X's entries that the columns on chip must hold for them to be worth it. */
static const double CHIP_SHARE = 0.1;
enum { KEY_BITS = 18, KEY_MOST = (1 << KEY_BITS) - 1 };
/* Threads of a group that counts. Each has so much of a compute unit's local memory for counters of its own
 * that there is one group a unit. */
enum { COUNT_GROUP = 1024, COUNT_GROUP_CPU = 64 };
/* A column has its number and its counter. */
static const int64_t COUNTER_BYTES = 8;

kiln_status ki_derived_fill(kiln_device *device, const struct ki_buffer *words, int64_t n, int32_t value) {
    return ki_derive_for_all(device, "popular_fill", "-DPOPULAR", KILN_F32, n,
                             KI_PACK(popular_fill, NULL, .values = words, .n = n, .value = value));
}

static int64_t counting_group(const kiln_device *device) {
    return device->properties.is_gpu ? ki_min(COUNT_GROUP, device->properties.group_max) : COUNT_GROUP_CPU;
}

#define COUNTING(device) KI_DEFINES("-DCOUNT_GROUP=%d", (int)counting_group(device))

void ki_popular_programs(struct ki_programs *programs, const kiln_device *device) {
    ki_programs_add(programs, "derived", "popular_count", KILN_F32, COUNTING(device));
    ki_programs_add(programs, "derived", "popular_fill", KILN_F32, "-DPOPULAR");
}

static kiln_status count_entries(const struct ki_buffer *count, const kiln_matrix *X) {
    kiln_device *device = X->device;
    const int64_t limit = device->properties.is_gpu ? ki_limits.chip_bytes : ki_limits.chip_bytes_cpu;
    const int64_t room = ki_min(limit, device->properties.local_max);
    const int64_t group = counting_group(device);
    struct ki_arg args[popular_count_count + 1];
    struct ki_kernel *kernel;
    int64_t groups;
    int shift = 31;
    kiln_status status;
    while (shift > 0 && COUNTER_BYTES << (33 - shift) <= room) shift--;
    const int64_t bytes = COUNTER_BYTES << (32 - shift);
    TRY(ki_derived_fill(device, count, X->cols, 0));
    TRY(ki_kernel_get(&kernel, device, "derived", "popular_count", KILN_F32, COUNTING(device)));
    TRY(ki_kernel_resident_with(device, &groups, kernel, group, bytes));
    const int64_t chunk = ki_max(ki_ceil_div(X->nnz, ki_max(groups, 1)), group);
    popular_count_pack(args, X,
                       &(struct popular_count_arguments){
                           .count = count, .col = &X->col, .nnz = X->nnz, .chunk = chunk, .shift = shift});
    args[popular_count_count] = ki_arg_local(bytes);
    TRY(ki_kernel_launch(device, kernel, ki_ceil_div(X->nnz, chunk), group, args, popular_count_count + 1));
done:
    return status;
}

/* *least: how often a column comes up that is popular; *selected: how many do. Columns that come up as often
 * as each other are popular together or not at all, so that fewer may be than are allowed. */
static kiln_status choose(int32_t *least, int64_t *selected, const struct ki_buffer *count,
                          const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer counter = {0};
    int32_t bins[POPULAR_BINS];
    int bin = POPULAR_BINS;
    int64_t columns = 0;
    kiln_status status;
    TRY(ki_device_alloc(device, &counter, sizeof bins));
    TRY(ki_derived_fill(device, &counter, POPULAR_BINS, 0));
    TRY(ki_kernel_run(device, "derived", "popular_bins", KILN_F32, COUNTING(device),
                      device->properties.compute_units, counting_group(device),
                      KI_PACK(popular_bins, X, .bins = &counter, .count = count, .n = X->cols)));
    TRY(ki_device_download(device, bins, &counter, 0, sizeof bins));
    do columns += bins[--bin];
    while (bin > 0 && columns + bins[bin - 1] <= ki_limits.popular_columns);
    *least = bin;
    *selected = columns;
done:
    ki_device_release(device, &counter);
    return status;
}

static kiln_status list(struct ki_sort *columns, const struct ki_buffer *count, int32_t least,
                        const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer counter = {0};
    int64_t chunk;
    const int64_t n = X->cols, threads = ki_ranges(&chunk, n);
    kiln_status status;
    TRY(ki_device_alloc(device, &counter, (threads + 1) * 4));
    TRY(ki_derive_in_ranges(device, "popular_find", "-DPOPULAR", KILN_F32, n,
                            KI_PACK(popular_find, X, .counter = &counter, .count = count, .n = n,
                                    .least = least, .chunk = chunk)));
    TRY(ki_scan(device, KILN_F32, &counter, threads));
    TRY(ki_derive_in_ranges(device, "popular_list", "-DPOPULAR", KILN_F32, n,
                            KI_PACK(popular_list, X, .key = &columns->key, .column = &columns->payload,
                                    .counter = &counter, .count = count, .n = n, .least = least,
                                    .most = KEY_MOST, .chunk = chunk)));
done:
    ki_device_release(device, &counter);
    return status;
}

/* The most frequent columns, *selected of them, in descending order of their frequency, which is `count`. A
 * frequency beyond KEY_MOST counts as that many. */
static kiln_status rank_columns(struct ki_sort *sorted, int64_t *selected, struct ki_buffer *count,
                                const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_sort other = {{0}, {0}, {0}};
    struct ki_buffer *const parts[] = {&sorted->key, &sorted->payload, &other.key, &other.payload};
    int32_t least;
    kiln_status status;
    TRY(ki_device_alloc(device, count, X->cols * 4));
    TRY(count_entries(count, X));
    TRY(choose(&least, selected, count, X));
    for (int i = 0; i < 4; i++) TRY(ki_device_alloc(device, parts[i], *selected * 4));
    TRY(list(sorted, count, least, X));
    TRY(ki_sort(device, KILN_F32, sorted, &other, *selected, KEY_BITS));
done:
    ki_sort_drop(device, &other);
    return status;
}

/* Entries in the first `chip` columns. */
static kiln_status count_on_chip(double *entries, const struct ki_sort *sorted, const struct ki_buffer *count,
                                 const kiln_matrix *X, int64_t chip) {
    struct ki_buffer first = {0};
    int32_t *counts = ki_alloc((size_t)chip * 4 + 1);
    double sum = 0;
    kiln_status status;
    if (!counts) return ki_fail_nomem((size_t)chip * 4, "the counts of columns");
    TRY(ki_device_alloc(X->device, &first, chip * 4));
    TRY(ki_derive_for_all(
        X->device, "popular_counts", "-DPOPULAR", KILN_F32, chip,
        KI_PACK(popular_counts, X, .to = &first, .count = count, .column = &sorted->payload, .n = chip)));
    TRY(ki_device_download(X->device, counts, &first, 0, chip * 4));
    for (int64_t s = 0; s < chip; s++) sum += counts[s];
    *entries = sum;
done:
    ki_device_release(X->device, &first);
    ki_free(counts);
    return status;
}

static kiln_status encode(struct ki_popular *popular, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer rank = {0};
    kiln_status status;
    TRY(ki_device_alloc(device, &popular->code, X->nnz * 4));
    TRY(ki_device_alloc(device, &rank, X->cols * 4));
    TRY(ki_derived_fill(device, &rank, X->cols, -1));
    TRY(ki_derive_for_all(
        device, "popular_rank", "-DPOPULAR", KILN_F32, popular->count,
        KI_PACK(popular_rank, X, .rank = &rank, .columns = &popular->columns, .count = popular->count)));
    TRY(ki_derive_for_all(
        device, "popular_encode", "-DPOPULAR", KILN_F32, X->nnz,
        KI_PACK(popular_encode, X, .code = &popular->code, .col = &X->col, .rank = &rank, .nnz = X->nnz)));
done:
    ki_device_release(device, &rank);
    return status;
}

static kiln_status find(struct ki_popular *popular, const kiln_matrix *X, int64_t chip) {
    kiln_device *device = X->device;
    struct ki_sort sorted = {{0}, {0}, {0}};
    struct ki_buffer count = {0};
    int64_t selected = 0;
    double on_chip = 0;
    kiln_status status;
    TRY(rank_columns(&sorted, &selected, &count, X));
    TRY(count_on_chip(&on_chip, &sorted, &count, X, ki_min(chip, selected)));
    if (on_chip < CHIP_SHARE * (double)X->nnz) goto done;
    const int64_t most = ki_min(selected, ki_limits.popular_columns);
    TRY(ki_device_alloc(device, &popular->columns, most * 4));
    TRY(ki_device_copy(device, device, &popular->columns, 0, device, &sorted.payload, 0, most * 4));
    popular->count = most;
done:
    ki_device_release(device, &count);
    ki_sort_drop(device, &sorted);
    return status;
}

#define AT(buffer) offsetof(struct ki_popular, buffer)
const struct ki_slot_kind ki_slot_popular = {.name = "popular columns",
                                             KI_SLOT(struct ki_popular, AT(columns), AT(code))};
#undef AT

kiln_status ki_popular_make(const kiln_matrix *X, int64_t chip) {
    struct ki_popular *popular = ki_slot_new(&ki_slot_popular);
    if (!popular) return KILN_ERR_NOMEM;
    kiln_status status = find(popular, X, chip);
    if (status == KILN_OK && popular->count) status = encode(popular, X);
    return ki_slot_keep(X, &ki_slot_popular, popular, status);
}

kiln_status ki_popular_pack(const struct ki_popular *popular, const struct ki_buffer *y_hot,
                            const struct ki_buffer *w_hot, const kiln_matrix *X, const kiln_matrix *y,
                            int first, int columns) {
    return ki_derive_for_all(X->device, "pack_hot", "-DPACK", X->type, popular->count * columns,
                             KI_PACK(pack_hot, X, .y_hot = y ? y_hot : NULL, .w_hot = w_hot, .y = y,
                                     .popular = &popular->columns, .count = popular->count,
                                     .k = y ? (int32_t)y->cols : 0, .first = first, .columns = columns));
}

kiln_status ki_popular_unpack(const struct ki_popular *popular, kiln_matrix *out,
                              const struct ki_buffer *w_hot, int first, int columns) {
    return ki_derive_for_all(out->device, "unpack_hot", "-DPACK", out->type, popular->count * columns,
                             KI_PACK(unpack_hot, out, .out = out, .w_hot = w_hot,
                                     .popular = &popular->columns, .count = popular->count,
                                     .k = (int32_t)out->cols, .first = first, .columns = columns));
}
