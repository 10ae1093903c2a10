/* What a sparse matrix's layout is made with, once (ops/layout.c): sorting, sums of counts, the popular columns, the
 * transpose of the rare ones, and the long rows. Each build takes the kernels that one define names.
 *
 * A thread works through a range of `chunk` elements of its own, in order: so counting sorts are stable and lists come out
 * in the order of their elements, the same from run to run. */
#define THREAD ((long)get_global_id(0))
#define FROM (THREAD * chunk)
#define UP_TO(n) (FROM + chunk < (n) ? FROM + chunk : (n))
#define FOR_ALL(i, n) for (long i = (long)get_global_id(0); i < (n); i += (long)get_global_size(0))
#define DIGITS 64
#define DIGIT(key, shift) (((key) >> (shift)) & (DIGITS - 1))

/* ---- a radix sort of int keys with one or two further arrays: counters, digit by digit and thread by thread ---- */
#ifdef SORT
__kernel void sort_count(__global int *counter, __global const int *key, long n, int shift, long chunk) {
    const long threads = (long)get_global_size(0);
    for (int d = 0; d < DIGITS; d++) counter[d * threads + THREAD] = 0;
    for (long i = FROM; i < UP_TO(n); i++) counter[DIGIT(key[i], shift) * threads + THREAD]++;
}

__kernel void sort_move(__global int *counter, __global const int *key, __global const int *payload,
                        __global const real *value, __global int *key_to, __global int *payload_to,
                        __global real *value_to, long n, int shift, long chunk) {
    const long threads = (long)get_global_size(0);
    for (long i = FROM; i < UP_TO(n); i++) {
        const int to = counter[DIGIT(key[i], shift) * threads + THREAD]++;
        key_to[to] = key[i];
        payload_to[to] = payload[i];
        if (value) value_to[to] = value[i];
    }
}
#endif

/* ---- values[i] = the sum of those before i; the sum of all comes behind them: values has n + 1 elements ---- */
#ifdef SCAN
__kernel void scan_sum(__global int *sums, __global const int *values, long n, long chunk) {
    int sum = 0;
    for (long i = FROM; i < UP_TO(n); i++) sum += values[i];
    sums[THREAD] = sum;
}

__kernel GROUP_OF(128) void scan_sums(__global int *sums, int n) {
    LOCAL int part[128];
    const int id = (int)get_local_id(0), chunk = (n + 127) / 128;
    const int from = id * chunk, to = from + chunk < n ? from + chunk : n;
    int sum = 0;
    for (int i = from; i < to; i++) sum += sums[i];
    part[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (int i = 0; i < id; i++) sum += part[i];
    for (int i = from; i < to; i++) {
        const int value = sums[i];
        sums[i] = sum;
        sum += value;
    }
}

__kernel void scan_apply(__global int *values, __global const int *sums, long n, long chunk) {
    int sum = sums[THREAD];
    for (long i = FROM; i < UP_TO(n); i++) {
        const int value = values[i];
        values[i] = sum;
        sum += value;
    }
    if (FROM < n && UP_TO(n) == n) values[n] = sum;
}
#endif

/* ---- popular columns ---- */
#ifdef POPULAR
__kernel void popular_count(__global int *count, __global const int *col, long nnz) {
    FOR_ALL(e, nnz) atomic_add_int(count + col[e], 1);
}

/* Keys in whose order the most frequent column is the first. */
__kernel void popular_keys(__global int *key, __global int *column, __global const int *count, long n, int most) {
    FOR_ALL(c, n) {
        key[c] = most - (count[c] < most ? count[c] : most);
        column[c] = (int)c;
    }
}

__kernel void popular_fill(__global int *values, long n, int value) {
    FOR_ALL(i, n) values[i] = value;
}

__kernel void popular_rank(__global int *rank, __global const int *slots, long coded) {
    FOR_ALL(s, coded) rank[slots[s]] = (int)s;
}

__kernel void popular_encode(__global int *col, __global const int *rank, long nnz) {
    FOR_ALL(e, nnz) {
        const int slot = rank[col[e]];
        if (slot >= 0) col[e] = ~slot;
    }
}

__kernel void popular_decode(__global int *col, __global const int *slots, long nnz) {
    FOR_ALL(e, nnz) if (col[e] < 0) col[e] = slots[~col[e]];
}
#endif

/* ---- y of the popular columns before a pass, and their w after it ---- */
#ifdef PACK
__kernel void pack_hot(__global real *y_hot, __global real *w_hot, __global const real *y, __global const int *slots,
                       long coded, int k, int first, int columns) {
    FOR_ALL(i, coded * columns) {
        const long s = i / columns;
        const int j = (int)(i % columns);
        if (y) y_hot[i] = first + j < k ? y[(long)slots[s] * k + first + j] : REAL(0.0);
        if (w_hot) w_hot[i] = REAL(0.0);
    }
}

__kernel void unpack_hot(__global real *out, __global const real *w_hot, __global const int *slots, long coded, int k,
                         int first, int columns) {
    FOR_ALL(i, coded * columns) {
        const int j = (int)(i % columns);
        if (first + j < k) out[(long)slots[i / columns] * k + first + j] += w_hot[i];
    }
}
#endif

/* ---- the transpose of the columns that are not coded: their entries, to be sorted by column ---- */
#ifdef RARE
__kernel void rare_count(__global int *counter, __global const int *col, long nnz, long chunk) {
    int count = 0;
    for (long e = FROM; e < UP_TO(nnz); e++) count += col[e] >= 0;
    counter[THREAD] = count;
}

__kernel void rare_move(__global const int *counter, __global const long *row_start, __global const int *col,
                        __global const real *X, long rows, __global int *key, __global int *row_of,
                        __global real *value, long nnz, long chunk) {
    long low = 0, high = rows;
    int to = counter[THREAD];
    if (FROM >= nnz) return;
    while (high - low > 1) { /* the last row that begins at FROM or before */
        const long middle = (low + high) / 2;
        if (row_start[middle] <= FROM)
            low = middle;
        else
            high = middle;
    }
    for (long e = FROM; e < UP_TO(nnz); e++) {
        while (row_start[low + 1] <= e) low++;
        if (col[e] < 0) continue;
        key[to] = col[e];
        row_of[to] = (int)low;
        if (X) value[to] = X[e];
        to++;
    }
}

/* Where each column begins among the sorted entries. */
__kernel void rare_starts(__global int *start, __global const int *key, long entries, long n) {
    FOR_ALL(c, n + 1) {
        long low = 0, high = entries;
        while (low < high) {
            const long middle = (low + high) / 2;
            if (key[middle] < c)
                low = middle + 1;
            else
                high = middle;
        }
        start[c] = (int)low;
    }
}
#endif

/* ---- rows that take more than one vector's turn: counts, then lists, of longer rows and of segments of long ones ---- */
#ifdef ROWS
#ifdef START32
typedef int start_t;
#else
typedef long start_t;
#endif

__kernel void rows_count(__global int *counter, __global const start_t *row_start, long rows, int longest,
                         int segmented, int segment, long chunk) {
    int longer = 0, segments = 0;
    for (long row = FROM; row < UP_TO(rows); row++) {
        const long length = (long)(row_start[row + 1] - row_start[row]);
        if (length > segmented)
            segments += (int)((length + segment - 1) / segment);
        else
            longer += length > longest;
    }
    counter[THREAD] = longer;
    counter[(long)get_global_size(0) + THREAD] = segments;
}

__kernel void rows_list(__global int *longer, __global int *segment_row, __global int *segment_number,
                        __global const int *counter, __global const start_t *row_start, long rows, int longest,
                        int segmented, int segment, int all_longer, long chunk) {
    int to = counter[THREAD], at = counter[(long)get_global_size(0) + THREAD] - all_longer;
    for (long row = FROM; row < UP_TO(rows); row++) {
        const long length = (long)(row_start[row + 1] - row_start[row]);
        if (length > segmented) {
            for (int number = 0; (long)number * segment < length; number++) {
                segment_row[at] = (int)row;
                segment_number[at++] = number;
            }
        } else if (length > longest) {
            longer[to++] = (int)row;
        }
    }
}
#endif
