/* Rows that take more than one vector's turn: lists of them, and the segments of those that would take many. */
#include "core/size.h"
#include "ops/layout_parts.h"

/* SEGMENTED: entries that one warp would walk through for long. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { SEGMENTED = 40 };
#else
enum { SEGMENTED = KI_SEGMENT / 2 };
#endif

void ki_layout_drop_rows(kiln_device *device, struct ki_rows *rows) {
    for (int i = 0; i < KI_ROW_LISTS; i++) ki_device_release(device, &rows->lists[i]);
    ki_device_release(device, &rows->segment_row);
    ki_device_release(device, &rows->segment_number);
    *rows = (struct ki_rows){.longest = INT32_MAX};
}

struct ki_lengths ki_layout_lengths(int VS) {
    const int turns = KI_TURNS * VS, wider = KI_WIDER * VS < 32 ? KI_WIDER * turns : turns;
    return (struct ki_lengths){(int)ki_min(turns, SEGMENTED), (int)ki_min(wider, SEGMENTED), SEGMENTED,
                               KI_SEGMENT};
}

kiln_status ki_layout_rows(struct ki_rows *rows, kiln_device *device, const struct ki_buffer *start,
                           int64_t count, struct ki_lengths lengths, bool compact) {
    const char *defines = compact ? "-DROWS -DSTART32" : "-DROWS";
    struct ki_buffer counter = {0};
    int32_t few, longer, all;
    int64_t chunk;
    const int64_t threads = ki_ranges(&chunk, count);
    kiln_status status;
    TRY(ki_device_alloc(device, &counter, (3 * threads + 1) * 4));
    const struct ki_arg counts[] = {ki_arg_buffer(&counter),     ki_arg_buffer(start),
                                    ki_arg_i64(count),           ki_arg_i32(lengths.longest),
                                    ki_arg_i32(lengths.longer),  ki_arg_i32(lengths.segmented),
                                    ki_arg_i32(lengths.segment), ki_arg_i64(chunk)};
    TRY(ki_layout_in_ranges(device, "rows_count", defines, KILN_F32, count, counts, 8));
    TRY(ki_scan(device, KILN_F32, &counter, 3 * threads));
    TRY(ki_layout_number_at(&few, device, &counter, threads));
    TRY(ki_layout_number_at(&longer, device, &counter, 2 * threads));
    TRY(ki_layout_number_at(&all, device, &counter, 3 * threads));
    if (all > 0) {
        TRY(ki_device_alloc(device, &rows->lists[0], (int64_t)few * 4));
        TRY(ki_device_alloc(device, &rows->lists[1], (int64_t)(longer - few) * 4));
        TRY(ki_device_alloc(device, &rows->segment_row, (int64_t)(all - longer) * 4));
        TRY(ki_device_alloc(device, &rows->segment_number, (int64_t)(all - longer) * 4));
        const struct ki_arg lists[] = {ki_arg_buffer(&rows->lists[0]),
                                       ki_arg_buffer(&rows->lists[1]),
                                       ki_arg_buffer(&rows->segment_row),
                                       ki_arg_buffer(&rows->segment_number),
                                       ki_arg_buffer(&counter),
                                       ki_arg_buffer(start),
                                       ki_arg_i64(count),
                                       ki_arg_i32(lengths.longest),
                                       ki_arg_i32(lengths.longer),
                                       ki_arg_i32(lengths.segmented),
                                       ki_arg_i32(lengths.segment),
                                       ki_arg_i32(few),
                                       ki_arg_i32(longer),
                                       ki_arg_i64(chunk)};
        TRY(ki_layout_in_ranges(device, "rows_list", defines, KILN_F32, count, lists, 14));
        rows->longest = lengths.longest;
        rows->counts[0] = few;
        rows->counts[1] = longer - few;
        rows->segments = all - longer;
    }
done:
    ki_device_release(device, &counter);
    if (status != KILN_OK) ki_layout_drop_rows(device, rows);
    return status;
}
