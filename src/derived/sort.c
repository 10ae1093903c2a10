/* Sorting by counting, six bits of the key at a time, and sums of counts: each thread has a range of elements
 * and counters of its own, so that no order is lost and nothing is added atomically. */
#include "core/arguments.h"
#include "core/limits.h"
#include "core/size.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(sort_count);
KI_ARGUMENTS(sort_move);
KI_ARGUMENTS(scan_sum);
KI_ARGUMENTS(scan_sums);
KI_ARGUMENTS(scan_apply);

enum { DIGIT_BITS = 6, DIGITS = 1 << DIGIT_BITS, RANGES_MAX = 65536, RANGE_LEAST = 64 };

int64_t ki_ranges(int64_t *chunk, int64_t n) {
    int64_t threads = KI_RANGE_GROUP;
    while (threads < RANGES_MAX && threads * RANGE_LEAST < n) threads *= 2;
    *chunk = ki_max(ki_ceil_div(n, threads), 1);
    return threads;
}

/* long_sums: the values, too, are of 64 bits. */
static kiln_status scan(kiln_device *device, kiln_type type, const struct ki_buffer *values, int64_t n,
                        bool long_sums) {
    const char *defines = long_sums ? "-DSCAN -DINDEX64" : "-DSCAN";
    struct ki_buffer sums;
    int64_t chunk;
    const int64_t threads = ki_ranges(&chunk, n);
    kiln_status status;
    TRY(ki_device_scratch(device, &sums, threads * (long_sums ? 8 : 4)));
    TRY(ki_derive_in_ranges(
        device, "scan_sum", defines, type, n,
        KI_PACK(scan_sum, NULL, .sums = &sums, .values = values, .n = n, .chunk = chunk)));
    TRY(ki_derive_in_ranges(device, "scan_sums", defines, type, 1, /* a group */
                            KI_PACK(scan_sums, NULL, .sums = &sums, .n = (int32_t)threads)));
    TRY(ki_derive_in_ranges(
        device, "scan_apply", defines, type, n,
        KI_PACK(scan_apply, NULL, .values = values, .sums = &sums, .n = n, .chunk = chunk)));
done:
    return status;
}

kiln_status ki_scan(kiln_device *device, kiln_type type, const struct ki_buffer *values, int64_t n) {
    return scan(device, type, values, n, false);
}

/* Counts of more elements than 32 bits reach are of 64 bits. */
static bool has_long_counts(int64_t n) {
    return n > ki_limits.index32;
}

static kiln_status sort_digit(kiln_device *device, const struct ki_buffer *counter,
                              const struct ki_sort *from, const struct ki_sort *to, int64_t n, kiln_type type,
                              int shift) {
    const bool long_counts = has_long_counts(n);
    const char *defines = long_counts ? "-DSORT -DINDEX64" : "-DSORT";
    int64_t chunk;
    const int64_t threads = ki_ranges(&chunk, n);
    kiln_status status;
    TRY(ki_derive_in_ranges(device, "sort_count", defines, type, n,
                            KI_PACK(sort_count, NULL, .counter = counter, .key = &from->key, .n = n,
                                    .shift = shift, .chunk = chunk)));
    TRY(scan(device, type, counter, threads * DIGITS, long_counts));
    TRY(ki_derive_in_ranges(
        device, "sort_move", defines, type, n,
        KI_PACK(sort_move, NULL, .counter = counter, .key = &from->key, .payload = &from->payload,
                .value = from->value.handle ? &from->value : NULL, .key_to = &to->key,
                .payload_to = &to->payload, .value_to = from->value.handle ? &to->value : NULL, .n = n,
                .shift = shift, .chunk = chunk)));
done:
    return status;
}

kiln_status ki_sort(kiln_device *device, kiln_type type, struct ki_sort *data, struct ki_sort *other,
                    int64_t n, int bits) {
    struct ki_buffer counter = {0};
    int64_t chunk;
    kiln_status status = KILN_OK;
    if (n == 0) return KILN_OK;
    TRY(ki_device_alloc(device, &counter,
                        (ki_ranges(&chunk, n) * DIGITS + 1) * (has_long_counts(n) ? 8 : 4)));
    for (int shift = 0; shift < bits; shift += DIGIT_BITS) {
        TRY(sort_digit(device, &counter, data, other, n, type, shift));
        const struct ki_sort sorted = *other;
        *other = *data;
        *data = sorted;
    }
done:
    ki_device_release(device, &counter);
    return status;
}

void ki_sort_drop(kiln_device *device, struct ki_sort *sort) {
    ki_device_release(device, &sort->key);
    ki_device_release(device, &sort->payload);
    ki_device_release(device, &sort->value);
}
