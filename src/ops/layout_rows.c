/* Rows that take more than one vector's turn: a list of them, and the segments of those that would take many. */
#include "core/size.h"
#include "ops/layout_parts.h"

/* SEGMENTED: entries that one warp would walk through for long. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { SEGMENTED = 40 };
#else
enum { SEGMENTED = KI_SEGMENT / 2 };
#endif

void ki_layout_drop_rows(kiln_device *device, struct ki_rows *rows) {
    ki_device_release(device, &rows->list);
    ki_device_release(device, &rows->segment_row);
    ki_device_release(device, &rows->segment_number);
    *rows = (struct ki_rows){.longest = INT32_MAX};
}

struct ki_lengths ki_layout_lengths(int VS) {
    return (struct ki_lengths){(int)ki_min(KI_TURNS * VS, SEGMENTED), SEGMENTED, KI_SEGMENT};
}

kiln_status ki_layout_rows(struct ki_rows *rows, kiln_device *device, const struct ki_buffer *start,
                           int64_t count, struct ki_lengths lengths, bool compact) {
    const char *defines = compact ? "-DROWS -DSTART32" : "-DROWS";
    struct ki_buffer counter = {0};
    int32_t longer, both;
    int64_t chunk;
    const int64_t threads = ki_ranges(&chunk, count);
    kiln_status status;
    TRY(ki_device_alloc(device, &counter, (2 * threads + 1) * 4));
    const struct ki_arg counts[] = {ki_arg_buffer(&counter),
                                    ki_arg_buffer(start),
                                    ki_arg_i64(count),
                                    ki_arg_i32(lengths.longest),
                                    ki_arg_i32(lengths.segmented),
                                    ki_arg_i32(lengths.segment),
                                    ki_arg_i64(chunk)};
    TRY(ki_layout_in_ranges(device, "rows_count", defines, KILN_F32, count, counts, 7));
    TRY(ki_scan(device, KILN_F32, &counter, 2 * threads));
    TRY(ki_layout_number_at(&longer, device, &counter, threads));
    TRY(ki_layout_number_at(&both, device, &counter, 2 * threads));
    if (both > 0) {
        TRY(ki_device_alloc(device, &rows->list, (int64_t)longer * 4));
        TRY(ki_device_alloc(device, &rows->segment_row, (int64_t)(both - longer) * 4));
        TRY(ki_device_alloc(device, &rows->segment_number, (int64_t)(both - longer) * 4));
        const struct ki_arg lists[] = {ki_arg_buffer(&rows->list),
                                       ki_arg_buffer(&rows->segment_row),
                                       ki_arg_buffer(&rows->segment_number),
                                       ki_arg_buffer(&counter),
                                       ki_arg_buffer(start),
                                       ki_arg_i64(count),
                                       ki_arg_i32(lengths.longest),
                                       ki_arg_i32(lengths.segmented),
                                       ki_arg_i32(lengths.segment),
                                       ki_arg_i32(longer),
                                       ki_arg_i64(chunk)};
        TRY(ki_layout_in_ranges(device, "rows_list", defines, KILN_F32, count, lists, 11));
        rows->longest = lengths.longest;
        rows->longer = longer;
        rows->segments = both - longer;
    }
done:
    ki_device_release(device, &counter);
    if (status != KILN_OK) ki_layout_drop_rows(device, rows);
    return status;
}
