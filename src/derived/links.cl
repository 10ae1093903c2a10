/* The hybrid layout of a graph's links and equal shares of links are made with these, once (derived/links.h,
 * derived/links_gpu.c).
 *
 * A window of WINDOW rows is sorted by length: each row counts how many come before it, from on-chip memory,
 * which needs no atomics and gives the same order from run to run. Runs of equal rows then lie column by
 * column, one behind the other and without padding, as all rows of a run have the same length. */

#define ARGUMENTS_links_mark(FIRST, NEXT)                                                                    \
    FIRST(SPACE, int, is_long) NEXT(SPACE, int, long_links) NEXT(TABLE, int, start) NEXT(VALUE, long, n)     \
    NEXT(VALUE, int, most)

/* place, short_start: by place; long_links: scanned. */
#define ARGUMENTS_links_order(FIRST, NEXT)                                                                   \
    FIRST(SPACE, int, place) NEXT(SPACE, int, short_start) NEXT(TABLE, int, start)                           \
    NEXT(TABLE, int, long_links) NEXT(VALUE, long, n) NEXT(VALUE, int, most)

#define ARGUMENTS_links_short(FIRST, NEXT)                                                                   \
    FIRST(SPACE, int, to) NEXT(SPACE, real, weight_to) NEXT(TABLE, int, place) NEXT(TABLE, int, short_start) \
    NEXT(TABLE, int, start) NEXT(TABLE, int, source) NEXT(TABLE, real, weight) NEXT(VALUE, long, n)

#define ARGUMENTS_links_list(FIRST, NEXT)                                                                    \
    FIRST(SPACE, int, row) NEXT(SPACE, int, row_start) NEXT(TABLE, int, is_long)                             \
    NEXT(TABLE, int, long_links) NEXT(VALUE, long, n)

#define ARGUMENTS_links_long(FIRST, NEXT)                                                                    \
    FIRST(SPACE, int, to) NEXT(SPACE, real, weight_to) NEXT(TABLE, int, row) NEXT(TABLE, int, row_start)     \
    NEXT(TABLE, int, start) NEXT(TABLE, int, source) NEXT(TABLE, real, weight) NEXT(VALUE, long, rows)

/* block_start: by block and row; a block has `height` sources. */
#define ARGUMENTS_links_blocks(FIRST, NEXT)                                                                  \
    FIRST(SPACE, int, block_start) NEXT(TABLE, int, start) NEXT(TABLE, int, source) NEXT(VALUE, long, n)     \
    NEXT(VALUE, long, height) NEXT(VALUE, int, blocks)

/* to: `items` of them in shares, `rows` rows of each block; a thread of a team of `lanes` has `each` side by
 * side in the line. */
#define ARGUMENTS_links_items(FIRST, NEXT)                                                                   \
    FIRST(SPACE, int, to) NEXT(SPACE, real, weight_to) NEXT(TABLE, int, block_start) NEXT(TABLE, int, start) \
    NEXT(TABLE, int, source) NEXT(TABLE, real, weight) NEXT(VALUE, long, rows) NEXT(VALUE, int, blocks)      \
    NEXT(VALUE, long, items) NEXT(VALUE, int, lanes) NEXT(VALUE, int, each)

#ifndef KI_HOST
#define FOR_ALL(i, n) for (long i = (long)get_global_id(0); i < (n); i += (long)get_global_size(0))

#ifdef LAYOUT
__kernel void links_mark(PARAMETERS(links_mark)) {
    FOR_ALL(v, n) {
        const int length = start[v + 1] - start[v];
        is_long[v] = length > most;
        long_links[v] = length > most ? length : 0;
    }
}

/* Every window by a group: for each row how many come before it, how many of those in its run, and how long
 * the run is. */
__kernel GROUP_OF(BS) void links_order(PARAMETERS(links_order)) {
    LOCAL int length[WINDOW];
    for (long first = (long)get_group_id(0) * WINDOW; first < n; first += (long)get_num_groups(0) * WINDOW) {
        const int rows = n - first < WINDOW ? (int)(n - first) : WINDOW;
        const int base = start[first] - long_links[first];
        for (int i = (int)get_local_id(0); i < rows; i += BS) {
            const int own = start[first + i + 1] - start[first + i];
            length[i] = own > most ? most + 1 : own;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = (int)get_local_id(0); i < rows; i += BS) {
            const int own = length[i];
            int shorter = 0, equal = 0, before = 0, links = 0;
            for (int j = 0; j < rows; j++) {
                const int other = length[j];
                const bool less = other < own, same = other == own, earlier = same && j < i;
                shorter += less;
                equal += same;
                before += earlier;
                links += (less || earlier) && other <= most ? other : 0;
            }
            const long at = first + shorter + before;
            place[at] = own > most ? -1 : i | shorter << 10 | (equal - 1) << 20;
            short_start[at] = base + links;
        }
        if (first + rows == n && get_local_id(0) == 0) short_start[n] = start[n] - long_links[n];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel void links_short(PARAMETERS(links_short)) {
    FOR_ALL(i, n) {
        const int word = place[i];
        if (word < 0) continue;
        const long window = i / WINDOW * WINDOW, run = window + (word >> 10 & 1023);
        const int from = start[window + (word & 1023)], rows = (word >> 20) + 1;
        const int at = short_start[run] + (int)(i - run), length = short_start[i + 1] - short_start[i];
        for (int j = 0; j < length; j++) {
            to[at + j * rows] = source[from + j];
            if (weight) weight_to[at + j * rows] = weight[from + j];
        }
    }
}

__kernel void links_list(PARAMETERS(links_list)) {
    FOR_ALL(v, n) {
        if (is_long[v + 1] == is_long[v]) continue;
        row[is_long[v]] = (int)v;
        row_start[is_long[v]] = long_links[v];
    }
    if (get_global_id(0) == 0) row_start[is_long[n]] = long_links[n];
}

__kernel GROUP_OF(BS) void links_long(PARAMETERS(links_long)) {
    for (long r = (long)get_group_id(0); r < rows; r += (long)get_num_groups(0)) {
        const int from = start[row[r]], at = row_start[r], length = row_start[r + 1] - at;
        for (int j = (int)get_local_id(0); j < length; j += BS) {
            to[at + j] = source[from + j];
            if (weight) weight_to[at + j] = weight[from + j];
        }
    }
}
#endif

#ifdef BLOCKS
/* Finds how many of a row's links come from each block: its sources ascend. */
__kernel void links_blocks(PARAMETERS(links_blocks)) {
    FOR_ALL(v, n) {
        const int end = start[v + 1];
        int from = start[v];
        for (int b = 0; b < blocks; b++) {
            const long behind = (b + 1) * height;
            int low = from, high = end;
            while (low < high) {
                const int middle = low + (high - low) / 2;
                if (source[middle] < behind)
                    low = middle + 1;
                else
                    high = middle;
            }
            block_start[b * n + v] = low - from;
            from = low;
        }
    }
}

/* Returns where the item lies that is at that place of the line: in a share, those of a team's threads side
 * by side, the first of each first. */
DEVICE_FN long place_of(long line, int lanes, int each) {
    const long share = line / ((long)lanes * each);
    const int within = (int)(line % ((long)lanes * each));
    return share * lanes * each + within % each * lanes + within / each;
}

/* A row to 32 threads side by side, block by block: its links, and behind them the row itself. What is behind
 * the line's end are links of a row that never ends. */
__kernel GROUP_OF(BS) void links_items(PARAMETERS(links_items)) {
    const int lane = (int)get_global_id(0) % 32;
    for (long v = (long)get_global_id(0) / 32; v < rows; v += (long)get_global_size(0) / 32) {
        int from = start[v];
        for (int b = 0; b < blocks; b++) {
            const long row = b * rows + v;
            const int begin = block_start[row], length = block_start[row + 1] - begin;
            for (int j = lane; j < length; j += 32) {
                const long at = place_of(begin + j + row, lanes, each);
                to[at] = source[from + j];
                if (weight) weight_to[at] = weight[from + j];
            }
            if (lane == 0) to[place_of(begin + length + row, lanes, each)] = ~(int)row;
            from += length;
        }
    }
    for (long line = block_start[blocks * rows] + blocks * rows + (long)get_global_id(0); line < items;
         line += (long)get_global_size(0)) {
        to[place_of(line, lanes, each)] = 0;
        if (weight) weight_to[place_of(line, lanes, each)] = REAL(0.0);
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build LAYOUT BS=256 WINDOW=1024
// build BLOCKS BS=256
#endif
