/* This file says where shares of a sparse matrix begin (derived/shares.h): a thread finds one. Row r's work
 * begins at start[r] + ROW r. */
#define ARGUMENTS_shares(FIRST, NEXT)                                                                        \
    FIRST(SPACE, long, begin)                                                                                \
    NEXT(SPACE, long, row)                                                                                   \
    NEXT(TABLE, start_t, start)                                                                              \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, nnz)                                                                                   \
    NEXT(VALUE, long, count)

#ifndef KI_HOST
#ifdef SHORT_STARTS
typedef int start_t;
#else
typedef long start_t;
#endif

/* The last row whose work, or, where a row is worth nothing, whose entries, begin at `goal` or before. */
DEVICE_FN long last_row(__global const start_t *start, long rows, long goal, int worth) {
    long low = 0, high = rows;
    while (high - low > 1) {
        const long middle = (low + high) / 2;
        if ((long)start[middle] + worth * middle <= goal)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__kernel void shares(PARAMETERS(shares)) {
    for (long i = (long)get_global_id(0); i <= count; i += (long)get_global_size(0)) {
        const long goal = i * ENTRIES, within = last_row(start, rows, goal, ROW);
        const long reached = goal - ROW * within, end = (long)start[within + 1];
        const long entry = i == count ? nnz : (reached < end ? reached : end) / ALIGNED * ALIGNED;
        begin[i] = entry;
        row[i] = last_row(start, rows, entry, 0);
    }
}

/* The variants that differ in text, as the tests build them. */
// build ENTRIES=32 ROW=4 ALIGNED=8
// build ENTRIES=32 ROW=4 ALIGNED=8 SHORT_STARTS
// pack {f32|f64} ENTRIES=32 ROW=4 ALIGNED=8 {|SHORT_STARTS}
#endif
