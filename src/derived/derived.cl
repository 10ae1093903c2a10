/* These kernels make once what is derived from a sparse matrix (derived/derived.h): they sort, sum counts,
 * and find the popular columns, the panels of the others, the transpose, and the long rows. Each build
 * takes the kernels that one define names.
 *
 * A thread works through a range of `chunk` elements of its own, in order: so counting sorts are stable and
 * lists come out in the order of their elements, the same from run to run. */

#define ARGUMENTS_sort_count(FIRST, NEXT)                                                                   \
    FIRST(SPACE, index_t, counter) NEXT(TABLE, int, key) NEXT(VALUE, long, n) NEXT(VALUE, int, shift)       \
    NEXT(VALUE, long, chunk)

#define ARGUMENTS_sort_move(FIRST, NEXT)                                                                    \
    FIRST(SPACE, index_t, counter) NEXT(TABLE, int, key) NEXT(TABLE, int, payload) NEXT(TABLE, real, value) \
    NEXT(SPACE, int, key_to) NEXT(SPACE, int, payload_to) NEXT(SPACE, real, value_to)                       \
    NEXT(VALUE, long, n) NEXT(VALUE, int, shift) NEXT(VALUE, long, chunk)

#define ARGUMENTS_scan_sum(FIRST, NEXT)                                                                     \
    FIRST(SPACE, index_t, sums) NEXT(TABLE, index_t, values) NEXT(VALUE, long, n) NEXT(VALUE, long, chunk)

#define ARGUMENTS_scan_sums(FIRST, NEXT)                                                                    \
    FIRST(SPACE, index_t, sums) NEXT(VALUE, int, n)

#define ARGUMENTS_scan_apply(FIRST, NEXT)                                                                   \
    FIRST(SPACE, index_t, values) NEXT(TABLE, index_t, sums) NEXT(VALUE, long, n) NEXT(VALUE, long, chunk)

#define ARGUMENTS_popular_count(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, count) NEXT(TABLE, int, col) NEXT(VALUE, long, nnz) NEXT(VALUE, long, chunk)           \
    NEXT(VALUE, int, shift)

#define ARGUMENTS_popular_bins(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, bins) NEXT(TABLE, int, count) NEXT(VALUE, long, n)

#define ARGUMENTS_popular_find(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, counter) NEXT(TABLE, int, count) NEXT(VALUE, long, n) NEXT(VALUE, int, least)         \
    NEXT(VALUE, long, chunk)

#define ARGUMENTS_popular_list(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, key) NEXT(SPACE, int, column) NEXT(TABLE, int, counter) NEXT(TABLE, int, count)       \
    NEXT(VALUE, long, n) NEXT(VALUE, int, least) NEXT(VALUE, int, most) NEXT(VALUE, long, chunk)

#define ARGUMENTS_popular_fill(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, values) NEXT(VALUE, long, n) NEXT(VALUE, int, value)

#define ARGUMENTS_popular_counts(FIRST, NEXT)                                                               \
    FIRST(SPACE, int, to) NEXT(TABLE, int, count) NEXT(TABLE, int, column) NEXT(VALUE, long, n)

#define ARGUMENTS_popular_rank(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, rank) NEXT(TABLE, int, columns) NEXT(VALUE, long, count)

#define ARGUMENTS_popular_encode(FIRST, NEXT)                                                               \
    FIRST(SPACE, int, code) NEXT(TABLE, int, col) NEXT(TABLE, int, rank) NEXT(VALUE, long, nnz)

#define ARGUMENTS_pack_hot(FIRST, NEXT)                                                                     \
    FIRST(SPACE, real, y_hot) NEXT(SPACE, real, w_hot) NEXT(IN, real, y) NEXT(TABLE, int, popular)          \
    NEXT(VALUE, long, count) NEXT(VALUE, int, k) NEXT(VALUE, int, first) NEXT(VALUE, int, columns)

#define ARGUMENTS_unpack_hot(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, out) NEXT(TABLE, real, w_hot) NEXT(TABLE, int, popular) NEXT(VALUE, long, count)       \
    NEXT(VALUE, int, k) NEXT(VALUE, int, first) NEXT(VALUE, int, columns)

#define ARGUMENTS_transpose_list(FIRST, NEXT)                                                               \
    FIRST(TABLE, long, row_start) NEXT(TABLE, int, col) NEXT(TABLE, real, X) NEXT(VALUE, long, rows)        \
    NEXT(SPACE, int, key) NEXT(SPACE, int, row) NEXT(SPACE, real, value) NEXT(VALUE, long, nnz)             \
    NEXT(VALUE, long, chunk) NEXT(VALUE, int, cols) NEXT(VALUE, int, height)

#define ARGUMENTS_transpose_starts(FIRST, NEXT)                                                             \
    FIRST(SPACE, index_t, start) NEXT(TABLE, int, key) NEXT(VALUE, long, entries) NEXT(VALUE, long, n)

/* Both kernels that make panels take these. */
#define ARGUMENTS_panels_make(FIRST, NEXT)                                                                  \
    FIRST(SPACE, int, start) NEXT(TABLE, long, row_start) NEXT(TABLE, int, col) NEXT(VALUE, long, rows)     \
    NEXT(VALUE, int, panels) NEXT(VALUE, int, bits) NEXT(VALUE, int, height) NEXT(TABLE, real, X)           \
    NEXT(SPACE, int, entry) NEXT(SPACE, real, value)

#define ARGUMENTS_values_differ(FIRST, NEXT)                                                                \
    FIRST(SPACE, int, found) NEXT(TABLE, real, X) NEXT(VALUE, long, nnz)

#define ARGUMENTS_starts_widen(FIRST, NEXT)                                                                 \
    FIRST(SPACE, long, to) NEXT(TABLE, int, from) NEXT(VALUE, long, n)

#define ARGUMENTS_columns_ascend(FIRST, NEXT)                                                               \
    FIRST(SPACE, int, found) NEXT(TABLE, long, row_start) NEXT(TABLE, int, col) NEXT(VALUE, long, rows)     \
    NEXT(VALUE, long, cols) NEXT(VALUE, long, nnz)

#define ARGUMENTS_rows_count(FIRST, NEXT)                                                                   \
    FIRST(SPACE, int, counter) NEXT(TABLE, start_t, row_start) NEXT(VALUE, long, rows)                      \
    NEXT(VALUE, int, least) NEXT(VALUE, int, segmented) NEXT(VALUE, int, segment)                           \
    NEXT(VALUE, long, chunk)

#define ARGUMENTS_rows_list(FIRST, NEXT)                                                                    \
    FIRST(SPACE, int, list) NEXT(SPACE, int, segment_row) NEXT(SPACE, int, segment_number)                  \
    NEXT(SPACE, int, counter) NEXT(TABLE, start_t, row_start) NEXT(VALUE, long, rows)                       \
    NEXT(VALUE, int, least) NEXT(VALUE, int, segmented) NEXT(VALUE, int, segment)                           \
    NEXT(VALUE, int, first) NEXT(VALUE, int, base) NEXT(VALUE, int, listed) NEXT(VALUE, long, chunk)

/* Frequencies that columns are told apart by where the most frequent are looked for. */
#define POPULAR_BINS 4096
/* Threads of a group that makes panels, the most panels, and the most rows of a block. */
#define PANELS_GROUP 128
#define PANELS_MAX 32
#define PANELS_HEIGHT 2048
#define PANELS_EACH 12
#define PANELS_SHARE_BITS 2                   /* of a panel's counters: each share is added up by a thread */
#define PANELS_SHARES (1 << PANELS_SHARE_BITS) /* PANELS_GROUP / PANELS_MAX */
#define PANELS_CODES (PANELS_GROUP * (PANELS_EACH + 1))
#define PANELS_COUNTS (PANELS_MAX * (PANELS_GROUP + PANELS_SHARES))
/* Numbers on chip that making them takes; OpenCL promises room for 8192. */
#define PANELS_LOCAL (PANELS_CODES + PANELS_COUNTS + PANELS_HEIGHT + 1 + PANELS_MAX + PANELS_GROUP)

#ifndef KI_HOST
#define THREAD ((long)get_global_id(0))
#define FROM (THREAD * chunk)
#define UP_TO(n) (FROM + chunk < (n) ? FROM + chunk : (n))
#define FOR_ALL(i, n) for (long i = (long)get_global_id(0); i < (n); i += (long)get_global_size(0))
#define DIGITS 64
#define DIGIT(key, shift) (((key) >> (shift)) & (DIGITS - 1))

/* ---- a radix sort of int keys with one or two further arrays: counters, digit by digit and thread by thread
 * ---- */
#ifdef SORT
__kernel void sort_count(PARAMETERS(sort_count)) {
    const long threads = (long)get_global_size(0);
    for (int d = 0; d < DIGITS; d++) counter[d * threads + THREAD] = 0;
    for (long i = FROM; i < UP_TO(n); i++) counter[DIGIT(key[i], shift) * threads + THREAD]++;
}

__kernel void sort_move(PARAMETERS(sort_move)) {
    const long threads = (long)get_global_size(0);
    for (long i = FROM; i < UP_TO(n); i++) {
        const index_t to = counter[DIGIT(key[i], shift) * threads + THREAD]++;
        key_to[to] = key[i];
        payload_to[to] = payload[i];
        if (value) value_to[to] = value[i];
    }
}
#endif

/* ---- values[i] = the sum of those before i; the sum of all comes behind them: values has n + 1 elements
 * ---- */
#ifdef SCAN
__kernel void scan_sum(PARAMETERS(scan_sum)) {
    index_t sum = 0;
    for (long i = FROM; i < UP_TO(n); i++) sum += values[i];
    sums[THREAD] = sum;
}

__kernel GROUP_OF(128) void scan_sums(PARAMETERS(scan_sums)) {
    LOCAL index_t part[128];
    const int id = (int)get_local_id(0), chunk = (n + 127) / 128;
    const int from = id * chunk, to = from + chunk < n ? from + chunk : n;
    index_t sum = 0;
    for (int i = from; i < to; i++) sum += sums[i];
    part[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (int i = 0; i < id; i++) sum += part[i];
    for (int i = from; i < to; i++) {
        const index_t value = sums[i];
        sums[i] = sum;
        sum += value;
    }
}

__kernel void scan_apply(PARAMETERS(scan_apply)) {
    index_t sum = sums[THREAD];
    for (long i = FROM; i < UP_TO(n); i++) {
        const index_t value = values[i];
        values[i] = sum;
        sum += value;
    }
    if (FROM < n && UP_TO(n) == n) values[n] = sum;
}
#endif

/* ---- popular columns ---- */
#ifdef COUNT_GROUP
#define COUNTER_OF(c) ((int)((uint32)(c) * (uint32)2654435769u >> shift))

/* A group counts `chunk` entries, those of some columns on chip: the memory adds to one address in its turn,
 * and a frequent column has millions of entries. Which columns these are, a look at the first entries says:
 * one that comes up often is the more likely to be the last of those that want the same counter, of which
 * there are 2^(32 - shift). */
__kernel GROUP_OF(COUNT_GROUP) void popular_count(PARAMETERS(popular_count) LOCAL_PARAMETER(counters)) {
    LOCAL_BEGIN(counters)
    const int counted = 1 << (32 - shift);
    LOCAL_PTR int *const column = (LOCAL_PTR int *)counters, *const times = column + counted;
    const int id = (int)get_local_id(0), threads = (int)get_local_size(0);
    const long from = (long)get_group_id(0) * chunk, end = from + chunk < nnz ? from + chunk : nnz;
    const long seen = from + 4 * counted < end ? from + 4 * counted : end;
    for (int i = id; i < counted; i += threads) {
        column[i] = -1;
        times[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long e = from + id; e < seen; e += threads) column[COUNTER_OF(col[e])] = col[e];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long e = from + id; e < end; e += threads) {
        const int c = col[e], at = COUNTER_OF(c);
        if (column[at] == c)
            count_local(times + at, 1);
        else
            atomic_add_int(count + c, 1);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < counted; i += threads)
        if (times[i] > 0) atomic_add_int(count + column[i], times[i]);
}

/* Counts how many columns have so many entries, or for the last bin that many and more. */
__kernel GROUP_OF(COUNT_GROUP) void popular_bins(PARAMETERS(popular_bins)) {
    LOCAL int times[POPULAR_BINS];
    const int id = (int)get_local_id(0), threads = (int)get_local_size(0);
    for (int i = id; i < POPULAR_BINS; i += threads) times[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_ALL(c, n) count_local(times + (count[c] < POPULAR_BINS ? count[c] : POPULAR_BINS - 1), 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < POPULAR_BINS; i += threads)
        if (times[i] > 0) atomic_add_int(bins + i, times[i]);
}
#endif

#ifdef POPULAR
/* The columns of `least` entries and more, in their order; keys in whose order the most frequent column is
 * the first. */
__kernel void popular_find(PARAMETERS(popular_find)) {
    int found = 0;
    for (long c = FROM; c < UP_TO(n); c++) found += count[c] >= least;
    counter[THREAD] = found;
}

__kernel void popular_list(PARAMETERS(popular_list)) {
    int at = counter[THREAD];
    for (long c = FROM; c < UP_TO(n); c++)
        if (count[c] >= least) {
            key[at] = most - (count[c] < most ? count[c] : most);
            column[at++] = (int)c;
        }
}

__kernel void popular_fill(PARAMETERS(popular_fill)) {
    FOR_ALL(i, n) values[i] = value;
}

/* The counts of the columns of the first n ranks. */
__kernel void popular_counts(PARAMETERS(popular_counts)) {
    FOR_ALL(s, n) to[s] = count[column[s]];
}

__kernel void popular_rank(PARAMETERS(popular_rank)) {
    FOR_ALL(r, count) rank[columns[r]] = (int)r;
}

__kernel void popular_encode(PARAMETERS(popular_encode)) {
    FOR_ALL(e, nnz) {
        const int found = rank[col[e]];
        code[e] = found >= 0 ? ~found : col[e];
    }
}
#endif

/* ---- y of the popular columns before a pass, and their w after it ---- */
#ifdef PACK
__kernel void pack_hot(PARAMETERS(pack_hot)) {
    FOR_ALL(i, count * columns) {
        const long r = i / columns;
        const int j = (int)(i % columns);
        if (y) y_hot[i] = first + j < k ? y[(long)popular[r] * k + first + j] : REAL(0.0);
        if (w_hot) w_hot[i] = REAL(0.0);
    }
}

__kernel void unpack_hot(PARAMETERS(unpack_hot)) {
    FOR_ALL(i, count * columns) {
        const int j = (int)(i % columns);
        if (first + j < k) out[(long)popular[i / columns] * k + first + j] += w_hot[i];
    }
}
#endif

/* ---- the transpose: entries, to be sorted by band of rows and column ---- */
#if defined(TRANSPOSE) || defined(ASCEND)
/* The last of the rows from `low` up to `high` that begins at entry e or before. */
DEVICE_FN long row_of(__global const long *row_start, long low, long high, long e) {
    while (high - low > 1) {
        const long middle = (low + high) / 2;
        if (row_start[middle] <= e)
            low = middle;
        else
            high = middle;
    }
    return low;
}
#endif

#ifdef TRANSPOSE
/* A key is the number of a column in a band of `height` rows. */
__kernel void transpose_list(PARAMETERS(transpose_list)) {
    if (FROM >= nnz) return;
    long at = row_of(row_start, 0, rows, FROM);
    for (long e = FROM; e < UP_TO(nnz); e++) {
        while (row_start[at + 1] <= e) at++;
        key[e] = col[e] + (int)(at / height) * cols;
        row[e] = (int)at;
        if (X) value[e] = X[e];
    }
}

/* Finds where each of n numbers begins among the sorted entries. */
__kernel void transpose_starts(PARAMETERS(transpose_starts)) {
    FOR_ALL(c, n + 1) {
        long low = 0, high = entries;
        while (low < high) {
            const long middle = (low + high) / 2;
            if (key[middle] < c)
                low = middle + 1;
            else
                high = middle;
        }
        start[c] = (index_t)low;
    }
}
#endif

/* ---- panels: a group for each block of `height` rows, which counts and then moves its entries that are not
 * in popular columns, whose codes are negative. Counters of a thread lie side by side with the other threads'
 * of the same panel. ---- */
#ifdef PANELS
#define BLOCK                                                                                                \
    const int id = (int)get_local_id(0), block = (int)get_group_id(0), blocks = (int)get_num_groups(0);      \
    const long row0 = (long)block * height, row1 = row0 + height < rows ? row0 + height : rows;              \
    const long begin = row_start[row0], end = row_start[row1];

__kernel GROUP_OF(PANELS_GROUP) void panels_count(PARAMETERS(panels_make)) {
    LOCAL int counts[PANELS_MAX * PANELS_GROUP];
    BLOCK
    for (int p = 0; p < panels; p++) counts[p * PANELS_GROUP + id] = 0;
    for (long e = begin + id; e < end; e += PANELS_GROUP)
        if (col[e] >= 0) counts[(col[e] >> bits) * PANELS_GROUP + id]++;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < panels) {
        int sum = 0;
        for (int i = 0; i < PANELS_GROUP; i++) sum += counts[id * PANELS_GROUP + (id + i) % PANELS_GROUP];
        start[(long)id * blocks + block] = sum;
    }
}

/* A tile of entries is read side by side, and then each thread has EACH of them in a row, for their order is
 * kept. What threads read at once lies in different banks: hence the gaps. A % beside a / of the same number
 * is avoided, as in reduce.cl. */
#define EACH PANELS_EACH
#define TILE (PANELS_GROUP * EACH)
#define CODE(i) ((i) + (i) / EACH)
#define SHARES PANELS_SHARES
#define SHARE (PANELS_GROUP / SHARES)
#define COUNT(p, thread) ((p) * (PANELS_GROUP + SHARES) + (thread) + (thread) / SHARE)

__kernel GROUP_OF(PANELS_GROUP) void panels_move(PARAMETERS(panels_make)) {
    LOCAL int codes[PANELS_CODES], counts[PANELS_COUNTS];
    LOCAL int starts[PANELS_HEIGHT + 1], next[PANELS_MAX], sums[PANELS_GROUP];
    BLOCK
    const int entries = (int)(end - begin), height_here = (int)(row1 - row0);
    const int panel = id >> PANELS_SHARE_BITS, share = id & (SHARES - 1);
    for (int r = id; r <= height_here; r += PANELS_GROUP) starts[r] = (int)(row_start[row0 + r] - begin);
    if (id < panels) next[id] = start[(long)id * blocks + block];
    for (int tile = 0; tile < entries; tile += TILE) {
        for (int p = 0; p < panels; p++) counts[COUNT(p, id)] = 0;
        for (int i = id; i < TILE; i += PANELS_GROUP)
            codes[CODE(i)] = tile + i < entries ? col[begin + tile + i] : -1;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < EACH; i++) {
            const int c = codes[CODE(id * EACH + i)];
            if (c >= 0) counts[COUNT(c >> bits, id)]++;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        int at = 0;
        if (panel < panels)
            for (int i = 0; i < SHARE; i++) at += counts[COUNT(panel, share * SHARE + i)];
        sums[id] = at;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (panel < panels) {
            at = next[panel];
            for (int i = 0; i < share; i++) at += sums[panel * SHARES + i];
            for (int i = 0; i < SHARE; i++) {
                const int count = counts[COUNT(panel, share * SHARE + i)];
                counts[COUNT(panel, share * SHARE + i)] = at;
                at += count;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (panel < panels && share == SHARES - 1) next[panel] = at;
        int row = 0, above = height_here;
        const int from = tile + id * EACH;
        while (above - row > 1) {
            const int middle = (row + above) / 2;
            if (starts[middle] <= from)
                row = middle;
            else
                above = middle;
        }
        for (int e = from; e < from + EACH && e < entries; e++) {
            const int c = codes[CODE(e - tile)];
            if (c < 0) continue;
            while (starts[row + 1] <= e) row++;
            const int to = counts[COUNT(c >> bits, id)]++;
            entry[to] = (int)((uint32)row << bits | ((uint32)c & (((uint32)1 << bits) - 1)));
            if (X) value[to] = X[begin + e];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

/* ---- whether a value differs from the first, a NaN included ---- */
#ifdef ALIKE
__kernel void values_differ(PARAMETERS(values_differ)) {
    const real first = X[0];
    int differs = 0;
    FOR_ALL(e, nnz) differs |= !(X[e] == first);
    if (differs) *found = 1;
}
#endif

/* ---- another's row starts; whether they decrease, or a column lies outside the matrix or not right of the
 * one before it ---- */
#ifdef ASCEND
__kernel void starts_widen(PARAMETERS(starts_widen)) {
    FOR_ALL(i, n) to[i] = from[i];
}

__kernel void columns_ascend(PARAMETERS(columns_ascend)) {
    int wrong = 0;
    FOR_ALL(r, rows) wrong |= row_start[r + 1] < row_start[r];
    FOR_ALL(e, nnz) {
        const int c = col[e];
        wrong |= c < 0 || c >= cols;
        if (e > 0 && c <= col[e - 1]) wrong |= row_start[row_of(row_start, 0, rows, e)] != e;
    }
    if (wrong) *found = 1;
}
#endif

/* ---- rows that take more than one vector's turn: counts, then lists, of longer rows and of segments of long
 * ones ---- */
#ifdef ROWS
#ifdef START32
typedef int start_t;
#else
typedef long start_t;
#endif

/* The class of a row that is not cut into segments: 0 .. CLASSES - 1, or -1 for those of up to `least`
 * entries. */
DEVICE_FN int class_of(long length, int least) {
    int found = -1;
#pragma unroll
    for (int j = 0; j < CLASSES; j++) found += length > (long)least << j;
    return found;
}

__kernel void rows_count(PARAMETERS(rows_count)) {
    int count[CLASSES + 1];
#pragma unroll
    for (int j = 0; j <= CLASSES; j++) count[j] = 0;
    for (long row = FROM; row < UP_TO(rows); row++) {
        const long length = (long)(row_start[row + 1] - row_start[row]);
        const int found = class_of(length, least);
        if (length > segmented) count[CLASSES] += (int)((length + segment - 1) / segment);
#pragma unroll
        for (int j = 0; j < CLASSES; j++) count[j] += found == j && length <= segmented;
    }
#pragma unroll
    for (int j = 0; j <= CLASSES; j++) counter[j * (long)get_global_size(0) + THREAD] = count[j];
}

/* The rows of the classes from `first` on; `base` rows are of those before, `listed` of all. */
__kernel void rows_list(PARAMETERS(rows_list)) {
    for (long row = FROM; row < UP_TO(rows); row++) {
        const long length = (long)(row_start[row + 1] - row_start[row]);
        const int found = class_of(length, least);
        if (length > segmented) {
            const int at = counter[CLASSES * (long)get_global_size(0) + THREAD] - listed;
            int number = 0;
            for (; (long)number * segment < length; number++) {
                segment_row[at + number] = (int)row;
                segment_number[at + number] = number;
            }
            counter[CLASSES * (long)get_global_size(0) + THREAD] += number;
        } else if (found >= first) {
            list[counter[found * (long)get_global_size(0) + THREAD]++ - base] = (int)row;
        }
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SORT
// build SORT INDEX64
// build SCAN
// build SCAN INDEX64
// build COUNT_GROUP=64
// build COUNT_GROUP=1024
// build POPULAR
// build PACK
// build TRANSPOSE
// build TRANSPOSE INDEX64
// build PANELS
// build ALIKE
// build ROWS CLASSES=5
// build ROWS CLASSES=5 START32
// pack f32 {ALIKE|COUNT_GROUP=1024|PACK|POPULAR|SCAN|SORT|TRANSPOSE|ROWS CLASSES=5}
// pack f64 {ALIKE|TRANSPOSE}
#endif
