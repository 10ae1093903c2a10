/* Rows that take more than one vector's turn: a list of them by length, and the segments of those that would
 * take many turns of the widest vector.
 *
 * Where lengths differ much, as those of columns by popularity do, the mean says little of the rows that
 * there are most of.
 * So rows are counted by length first: the vectors suit those that are not listed, and lists are few, each
 * but the last of rows whose lengths differ by a factor of four at most. A list has a launch of its own: rows
 * that are little longer than the others, or few, stay with them. */
#include "core/arguments.h"
#include "core/limits.h"
#include "core/size.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(rows_count);
KI_ARGUMENTS(rows_list);

enum { COUNTERS = KI_ROW_CLASSES + 1 };

struct ki_lengths ki_rows_lengths(const kiln_device *device, int64_t nnz, int64_t rows) {
    const int64_t often = 8 * (nnz / ki_max(rows, 1));
    return (struct ki_lengths){
        .vector = ki_rows_vector(device, nnz, rows),
        .least = KI_TURNS,
        .segmented = (int)ki_min(ki_max(often, ki_limits.segmented_least), ki_limits.segmented_most),
        .segment = ki_limits.segment};
}

/* Rows that are listed in classes below this one. */
static int below(const int32_t ends[COUNTERS], int class) {
    return class > 0 ? ends[class - 1] : 0;
}

/* The class from which on rows are long: vectors of 2^class threads suit those below it. ends: of the
 * classes. Rows that are cut into segments count as short ones, as if there were few of them. */
static int first_long(const int32_t ends[COUNTERS], int64_t count, int vector) {
    int class = 0;
    while (1 << class < vector) class ++;
    for (; class > 0; class --) {
        double rows = (double)(count - ends[KI_ROW_CLASSES - 1]), entries = rows * KI_TURNS / 2;
        for (int i = 0, before = 0; i < class; before = ends[i++]) {
            rows += ends[i] - before;
            entries += (ends[i] - before) * 1.5 * (KI_TURNS << i);
        }
        if (entries > rows * (2 << class)) break; /* a thread has two of them at least */
    }
    return class;
}

/* Classes from `first` on that stay with the others, if that leaves none for a list: two at most. Lengths
 * taper off: a class's mean is near its lower end. */
static int classes_left(const int32_t ends[COUNTERS], int first) {
    double beyond = 0;
    int class = first;
    for (; class < first + 2 && class < KI_ROW_CLASSES; class ++)
        beyond +=
            (double)(ends[class] - below(ends, class)) * (1.25 * (KI_TURNS << class) - (KI_TURNS << first));
    return beyond <= ki_limits.launch_entries && below(ends, class) == ends[KI_ROW_CLASSES - 1]
               ? class - first
               : 0;
}

/* Two classes a list, for vectors that suit the longer one; vectors of 2^suits threads suit the rows that are
 * in none. */
static void cut(struct ki_rows *rows, const int32_t ends[COUNTERS], int suits, int first, int segmented) {
    rows->vector = 1 << suits;
    rows->longest = first < KI_ROW_CLASSES ? (int)ki_min(KI_TURNS << first, segmented) : segmented;
    for (int i = 0; i < KI_ROW_LISTS; i++) {
        const int last = (int)ki_min(first + 2 * i + 1, KI_ROW_CLASSES - 1);
        rows->vectors[i] = 2 << last;
        rows->ends[i] = ends[last] - below(ends, first);
    }
}

static kiln_status list(struct ki_rows *rows, kiln_device *device, const struct ki_buffer *start,
                        int64_t count, struct ki_lengths lengths, const char *defines,
                        const struct ki_buffer *counter, const int32_t ends[COUNTERS], int first) {
    const int base = below(ends, first), listed = ends[KI_ROW_CLASSES - 1];
    int64_t chunk;
    kiln_status status;
    (void)ki_ranges(&chunk, count);
    rows->segments = ends[KI_ROW_CLASSES] - listed;
    TRY(ki_device_alloc(device, &rows->list, (int64_t)(listed - base) * 4));
    TRY(ki_device_alloc(device, &rows->segment_row, rows->segments * 4));
    TRY(ki_device_alloc(device, &rows->segment_number, rows->segments * 4));
    TRY(ki_derive_in_ranges(device, "rows_list", defines, KILN_F32, count,
                            KI_PACK(rows_list, NULL, .list = &rows->list, .segment_row = &rows->segment_row,
                                    .segment_number = &rows->segment_number, .counter = counter,
                                    .row_start = start, .rows = count, .least = lengths.least,
                                    .segmented = lengths.segmented, .segment = lengths.segment,
                                    .first = first, .base = base, .listed = listed, .chunk = chunk)));
done:
    return status;
}

kiln_status ki_rows_list(struct ki_rows *rows, kiln_device *device, const struct ki_buffer *start,
                         int64_t count, struct ki_lengths lengths, bool compact) {
    struct ki_buffer counter = {0};
    int32_t ends[COUNTERS];
    int64_t chunk;
    const int64_t threads = ki_ranges(&chunk, count);
    kiln_status status;
    rows->longest = INT32_MAX;
    const char *defines = KI_DEFINES("-DROWS -DCLASSES=%d%s", KI_ROW_CLASSES, compact ? " -DSTART32" : "");
    TRY(ki_device_alloc(device, &counter, (COUNTERS * threads + 1) * 4));
    TRY(ki_derive_in_ranges(device, "rows_count", defines, KILN_F32, count,
                            KI_PACK(rows_count, NULL, .counter = &counter, .row_start = start, .rows = count,
                                    .least = lengths.least, .segmented = lengths.segmented,
                                    .segment = lengths.segment, .chunk = chunk)));
    TRY(ki_scan(device, KILN_F32, &counter, COUNTERS * threads));
    for (int i = 0; i < COUNTERS; i++) TRY(ki_number_at(&ends[i], device, &counter, (i + 1) * threads));
    const int of_mean = first_long(ends, count, lengths.vector);
    int suits = of_mean, first = suits + classes_left(ends, suits);
    /* If many are left that way, vectors of twice as many threads suit all of them better. */
    if (8 * (int64_t)(below(ends, first) - below(ends, suits)) > count) {
        suits++;
        first = suits + classes_left(ends, suits);
    }
    if (ends[KI_ROW_CLASSES] > below(ends, of_mean)) cut(rows, ends, suits, first, lengths.segmented);
    if (ends[KI_ROW_CLASSES] > below(ends, first))
        TRY(list(rows, device, start, count, lengths, defines, &counter, ends, first));
done:
    ki_device_release(device, &counter);
    return status;
}

/* ---- the rows of X ---- */

#define AT(buffer) offsetof(struct ki_rows, buffer)
const struct ki_slot_kind ki_slot_rows = {
    .name = "lists of long rows", KI_SLOT(struct ki_rows, AT(list), AT(segment_row), AT(segment_number))};
#undef AT

kiln_status ki_rows_make(const kiln_matrix *X) {
    const struct ki_lengths lengths = ki_rows_lengths(X->device, X->nnz, X->rows);
    struct ki_rows *rows = ki_slot_new(&ki_slot_rows);
    if (!rows) return KILN_ERR_NOMEM;
    return ki_slot_keep(X, &ki_slot_rows, rows,
                        ki_rows_list(rows, X->device, &X->row_start, X->rows, lengths, false));
}
