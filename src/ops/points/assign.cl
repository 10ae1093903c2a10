/* GPU body of kiln_assign: the nearest centre of each row without a matrix of distances, then sums of each cluster's rows.
 *
 * Dense rows: a group takes BR rows against BC centres at a time, a thread TR x TC of their products in registers, from slabs
 * of columns in local memory; scores h - x.c, h = ||c||^2 / 2, go straight into the least, the second least and the number of
 * the least. Rows for which f32 leaves the nearest in doubt (assign.cpu.h has the bound) go on a list, which the same kernel
 * takes AGAIN: it measures in `wide` whatever scores at most the row's limit. Sparse rows: a group a row, whose threads share
 * the centres, column by column of the transposed centres.
 *
 * Sums: rows are sorted by cluster, each cluster's are cut into slices, a group adds one up, and slices are added in order: the
 * same bits from run to run, as nothing is added atomically. */

#define ARGUMENTS_assign_halves(FIRST, NEXT)                                                                 \
    FIRST(SPACE, real, halves)                                                                                 \
    NEXT(SPACE, int, state)                                                                                  \
    NEXT(IN, real, C)                                                                                        \
    NEXT(SPACE, real, transposed)                                                                            \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, n)

/* state: rows in doubt; whether squares of centres are too large for f32. */
#define ARGUMENTS_assign_dense(FIRST, NEXT)                                                                  \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(SPACE, int, doubtful)                                                                               \
    NEXT(SPACE, real, limits)                                                                                \
    NEXT(SPACE, int, state)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)                                                                                        \
    NEXT(TABLE, real, halves)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)

#define ARGUMENTS_assign_sparse(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(TABLE, real, transposed)                                                                            \
    NEXT(IN, real, C)                                                                                        \
    NEXT(TABLE, real, halves)                                                                                  \
    NEXT(TABLE, int, state)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)

#define ARGUMENTS_assign_rows(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, labels)                                                                                 \
    NEXT(OUT, real, distances)                                                                               \
    NEXT(SPACE, int, payload)                                                                                \
    NEXT(TABLE, int, found)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, long, first)

#define ARGUMENTS_assign_bounds(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, start)                                                                                 \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(VALUE, int, rows)                                                                                   \
    NEXT(VALUE, int, k)

#define ARGUMENTS_assign_sums(FIRST, NEXT)                                                                   \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, order)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, C)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, slices)

#define ARGUMENTS_assign_join(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, sums)                                                                                   \
    NEXT(SPACE, wide, totals)                                                                                \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, slices)

#ifndef KI_HOST
#define HUGE_SQUARE 4.2535295865117308e37f /* 2^125 */
#ifdef REAL_F64
#define REAL4 double4
#define DOUBTS 0
#else
#define REAL4 float4
#define DOUBTS 1
#endif

DEVICE_FN wide squared(wide x) {
    return x * x;
}

DEVICE_FN real margin_of(real square, real best, int entries) {
    const real norm = sqrt(square), inside = square + 2 * best;
    const real reach = norm + sqrt(inside > 0 ? inside : REAL(0.0));
    return REAL(1.7881393432617188e-07) * (((real)entries + 3) * norm * reach + reach * reach);
}

/* What is known of the scores of a row. */
struct nearest {
    real best, second;
    int index;
};

DEVICE_FN void nearest_step(struct nearest *to, real score, int index) {
    const bool less = score < to->best;
    if (DOUBTS) {
        const real larger = less ? to->best : score;
        to->second = larger < to->second ? larger : to->second;
    }
    to->best = less ? score : to->best;
    to->index = less ? index : to->index;
}

DEVICE_FN void nearest_join(struct nearest *to, real best, real second, int index) {
    const bool less = best < to->best || (best == to->best && index < to->index);
    const real larger = less ? to->best : best;
    if (larger < to->second) to->second = larger;
    if (second < to->second) to->second = second;
    if (less) to->best = best, to->index = index;
}

#ifdef PREPARE
/* Half the squared norms of the centres; the transposed centres where they are wanted. */
__kernel GROUP_OF(64) void assign_halves(PARAMETERS(assign_halves)) {
    for (int c = (int)get_global_id(0); c < k; c += (int)get_global_size(0)) {
        wide square = 0;
        for (int j = 0; j < n; j++) {
            const real value = C[(long)c * n + j];
            square += squared((wide)value);
            if (transposed) transposed[(long)j * k + c] = value;
        }
        halves[c] = (real)(square / 2);
        if (!(square < HUGE_SQUARE)) state[1] = 1;
    }
}

DEVICE_FN real distance_of(long row, int label, __global const real *X, __global const long *row_start,
                           __global const int *col, __global const real *C, int n) {
    __global const real *centre = C + (long)label * n;
    if (!row_start) {
        real sum = 0;
        for (int j = 0; j < n; j++) {
            const real apart = X[row * n + j] - centre[j];
            sum += apart * apart;
        }
        return sum;
    }
    wide sum = 0;
    for (int j = 0; j < n; j++) sum += squared((wide)centre[j]);
    for (long e = row_start[row]; e < row_start[row + 1]; e++)
        sum += (wide)X[e] * ((wide)X[e] - 2 * (wide)centre[col[e]]);
    return sum > 0 ? (real)sum : REAL(0.0);
}

/* What is wanted of each row. */
__kernel GROUP_OF(128) void assign_rows(PARAMETERS(assign_rows)) {
    for (long row = (long)get_global_id(0); row < rows; row += (long)get_global_size(0)) {
        const int label = found[row];
        bool better = true;
        if (distances) {
            const real distance = distance_of(row, label, X, row_start, col, C, n);
            better = first == 0 || distance < distances[row];
            if (better) distances[row] = distance;
        }
        if (labels && better) labels[row] = (real)(first + label);
        if (payload) payload[row] = (int)row;
    }
}

/* Where each cluster begins among the sorted rows. */
__kernel GROUP_OF(128) void assign_bounds(PARAMETERS(assign_bounds)) {
    for (int i = (int)get_global_id(0); i <= rows; i += (int)get_global_size(0)) {
        const int from = i == 0 ? 0 : key[i - 1] + 1, to = i == rows ? k : key[i];
        for (int c = from; c <= to; c++) start[c] = i;
    }
}

/* The slices of a cluster, added up in order. A slice: n sums, then two totals. */
__kernel GROUP_OF(128) void assign_join(PARAMETERS(assign_join)) {
    const long width = n + 2, count = (long)k * width;
    for (long i = (long)get_global_id(0); i < count; i += (long)get_global_size(0)) {
        const long c = i / width, j = i % width;
        wide sum = 0;
        for (int s = 0; s < slices; s++) sum += partial[(c * slices + s) * width + j];
        if (j >= n)
            totals[c * 2 + j - n] = sum;
        else if (sums)
            sums[c * n + j] = (real)sum;
    }
}
#endif

#ifdef DENSE
#define GROUP (GR * GC)
#define BR (TR * GR)
#define BC (TC * GC)
#define PITCH_R (BR + 4)
#define PITCH_C (BC + 4)
#define EACH_ROW(i) _Pragma("unroll") for (int i = 0; i < TR; i++)
#define EACH_CENTRE(i) _Pragma("unroll") for (int i = 0; i < TC; i++)
/* Of the rows and centres of a tile a thread has every fourth four, so that threads side by side read side by side. */
#define OF_THREAD(i, at, across) ((i) / 4 * (across)*4 + (at)*4 + (i) % 4)

DEVICE_FN void load_four(real *to, LOCAL_PTR const real *from) {
    const REAL4 all = *(LOCAL_PTR const REAL4 *)from;
    to[0] = all.x;
    to[1] = all.y;
    to[2] = all.z;
    to[3] = all.w;
}

#ifdef AGAIN
#define ROWS_OF_TILE(r) ((r) < count ? (long)doubtful[r] : -1)
typedef wide measured;
#else
#define ROWS_OF_TILE(r) ((r) < count ? (r) : -1)
typedef real measured;
#endif

/* SLAB columns of COUNT rows of `from`, the first of them `first`, into local memory, column by column. */
#define LOAD_SLAB(to, PITCH, COUNT, from, row_of)                                                            \
    for (int e = id; e < (COUNT)*SLAB; e += GROUP) {                                                         \
        const int r = e / SLAB, s = e % SLAB;                                                                \
        const long row = row_of;                                                                             \
        to[s * (PITCH) + r] = row >= 0 && slab + s < n ? from[row * n + slab + s] : REAL(0.0);               \
    }

__kernel GROUP_OF(GR * GC) void assign_dense(PARAMETERS(assign_dense)) {
    LOCAL real xs[SLAB * PITCH_R] ALIGNED_16, cs[SLAB * PITCH_C] ALIGNED_16;
    LOCAL measured bests[BR * GC];
    LOCAL int indices[BR * GC];
#ifndef AGAIN
    LOCAL real seconds[BR * GC], squares[BR];
#endif
    const int id = (int)get_local_id(0), at_row = id / GC, at_centre = id % GC;
#ifdef AGAIN
    const long count = state[0];
#else
    const long count = rows;
#endif
    for (long top = (long)get_group_id(0) * BR; top < count; top += (long)get_num_groups(0) * BR) {
        struct nearest nearest[TR];
        real square[TR];
#ifdef AGAIN
        measured least[TR];
        real limit[TR];
#endif
        EACH_ROW(i) {
            nearest[i].best = nearest[i].second = REAL_INFINITY;
            nearest[i].index = 0;
            square[i] = 0;
#ifdef AGAIN
            const long r = top + OF_THREAD(i, at_row, GR);
            least[i] = (wide)INFINITY;
            limit[i] = r < count ? limits[r] : -REAL_INFINITY;
#endif
        }
        for (int first = 0; first < k; first += BC) {
            real sum[TR][TC];
            EACH_ROW(i) EACH_CENTRE(j) sum[i][j] = 0;
            for (int slab = 0; slab < n; slab += SLAB) {
                barrier(CLK_LOCAL_MEM_FENCE);
                LOAD_SLAB(xs, PITCH_R, BR, X, ROWS_OF_TILE(top + r))
                LOAD_SLAB(cs, PITCH_C, BC, C, (first + r < k ? first + r : -1))
                barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
                for (int s = 0; s < SLAB; s++) {
                    real x[TR], c[TC];
#pragma unroll
                    for (int i = 0; i < TR; i += 4) load_four(x + i, xs + s * PITCH_R + OF_THREAD(i, at_row, GR));
#pragma unroll
                    for (int j = 0; j < TC; j += 4)
                        load_four(c + j, cs + s * PITCH_C + OF_THREAD(j, at_centre, GC));
                    EACH_ROW(i) EACH_CENTRE(j) sum[i][j] += x[i] * c[j];
                    if (DOUBTS && first == 0) EACH_ROW(i) square[i] += x[i] * x[i];
                }
            }
            EACH_CENTRE(j) {
                const int c = first + OF_THREAD(j, at_centre, GC);
                const real h = c < k ? halves[c] : REAL_INFINITY;
                EACH_ROW(i) {
#ifdef AGAIN
                    const long r = top + OF_THREAD(i, at_row, GR);
                    if (r >= count || c >= k || h - sum[i][j] > limit[i]) continue;
                    const long row = doubtful[r];
                    wide distance = 0;
                    for (int a = 0; a < n; a++)
                        distance += squared((wide)X[row * n + a] - (wide)C[(long)c * n + a]);
                    if (distance < least[i]) least[i] = distance, nearest[i].index = c;
#else
                    nearest_step(&nearest[i], h - sum[i][j], c);
#endif
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ROW(i) {
            const int r = OF_THREAD(i, at_row, GR);
#ifdef AGAIN
            bests[r * GC + at_centre] = least[i];
#else
            bests[r * GC + at_centre] = nearest[i].best;
            seconds[r * GC + at_centre] = nearest[i].second;
            if (at_centre == 0) squares[r] = square[i];
#endif
            indices[r * GC + at_centre] = nearest[i].index;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = id; r < BR && top + r < count; r += GROUP) {
#ifdef AGAIN
            wide best = (wide)INFINITY;
            int index = 0;
            for (int t = 0; t < GC; t++) {
                const wide other = bests[r * GC + t];
                const int its = indices[r * GC + t];
                if (other < best || (other == best && its < index)) best = other, index = its;
            }
            found[doubtful[top + r]] = index;
#else
            struct nearest all = {REAL_INFINITY, REAL_INFINITY, 0};
            for (int t = 0; t < GC; t++)
                nearest_join(&all, bests[r * GC + t], seconds[r * GC + t], indices[r * GC + t]);
            found[top + r] = all.index;
            if (DOUBTS && k > 1) {
                const real margin = margin_of(squares[r], all.best, n);
                const bool huge = state[1] || !(squares[r] < HUGE_SQUARE);
                if (huge || !(all.second - all.best > margin)) {
                    const int place = count_up(&state[0]);
                    doubtful[place] = (int)(top + r);
                    limits[place] = huge ? REAL_INFINITY : all.best + margin;
                }
            }
#endif
        }
    }
}
#endif

#ifdef SPARSE
/* A group a row; a thread the centres that are GROUP apart. */
__kernel GROUP_OF(GROUP) void assign_sparse(PARAMETERS(assign_sparse)) {
    LOCAL real bests[GROUP], seconds[GROUP];
    LOCAL wide leasts[GROUP];
    LOCAL int indices[GROUP];
    const int id = (int)get_local_id(0);
    for (long row = (long)get_group_id(0); row < rows; row += (long)get_num_groups(0)) {
        const long begin = row_start[row], end = row_start[row + 1];
        struct nearest all = {REAL_INFINITY, REAL_INFINITY, 0};
        for (int c = id; c < k; c += GROUP) {
            real sum = 0;
            for (long e = begin; e < end; e++) sum += X[e] * transposed[(long)col[e] * k + c];
            nearest_step(&all, halves[c] - sum, c);
        }
        bests[id] = all.best;
        seconds[id] = all.second;
        indices[id] = all.index;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t < GROUP; t++)
            if (t != id) nearest_join(&all, bests[t], seconds[t], indices[t]);
        barrier(CLK_LOCAL_MEM_FENCE);
        bool doubt = false;
        real limit = REAL_INFINITY;
        if (DOUBTS && k > 1) {
            real square = 0;
            for (long e = begin; e < end; e++) square += X[e] * X[e];
            const real margin = margin_of(square, all.best, (int)(end - begin));
            const bool huge = state[1] || !(square < HUGE_SQUARE);
            doubt = huge || !(all.second - all.best > margin);
            if (!huge) limit = all.best + margin;
        }
        if (doubt) { /* in all threads or in none */
            wide least = (wide)INFINITY;
            int index = 0;
            for (int c = id; c < k; c += GROUP) {
                real sum = 0;
                for (long e = begin; e < end; e++) sum += X[e] * transposed[(long)col[e] * k + c];
                if (halves[c] - sum > limit) continue;
                wide score = 0;
                for (int j = 0; j < n; j++) score += squared((wide)C[(long)c * n + j]);
                for (long e = begin; e < end; e++) score -= 2 * (wide)X[e] * (wide)C[(long)c * n + col[e]];
                if (score < least) least = score, index = c;
            }
            leasts[id] = least;
            indices[id] = index;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int t = 0; t < GROUP; t++)
                if (leasts[t] < least || (leasts[t] == least && indices[t] < index))
                    least = leasts[t], index = indices[t];
            all.index = index;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (id == 0) found[row] = all.index;
    }
}
#endif

#ifdef SUMS
/* A slice of a cluster: sums of s x, of s, and of s ||x - c||^2. LANES_OF columns side by side, and as many rows as fit. */
__kernel GROUP_OF(GROUP) void assign_sums(PARAMETERS(assign_sums)) {
    LOCAL wide shared[GROUP], apart[GROUP];
    const int id = (int)get_local_id(0), lane = id % ACROSS, along = id / ACROSS, DOWN = GROUP / ACROSS;
    const int cluster = (int)get_group_id(0) / slices, slice = (int)get_group_id(0) % slices;
    const long all = start[cluster + 1] - start[cluster];
    const long begin = start[cluster] + all * slice / slices, end = start[cluster] + all * (slice + 1) / slices;
    __global wide *to = partial + (long)get_group_id(0) * (n + 2);
    __global const real *centre = C + (long)cluster * n;
    wide distance = 0, total = 0;
    for (long i = begin + id; i < end; i += GROUP) total += weights ? (wide)weights[order[i]] : 1;
#ifdef CSR
    wide norm = 0;
    for (int j = id; j < n + 2; j += GROUP) to[j] = 0;
    if (id == 0)
        for (int j = 0; j < n; j++) norm += squared((wide)centre[j]);
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (long i = begin; i < end; i++) {
        const int row = order[i];
        const wide s = weights ? (wide)weights[row] : 1;
        distance += id == 0 ? s * norm : 0;
        for (long e = row_start[row] + id; e < row_start[row + 1]; e += GROUP) {
            const wide x = (wide)X[e];
            distance += s * x * (x - 2 * (wide)centre[col[e]]);
            to[col[e]] += s * x;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
#else
    for (int base = 0; base < n; base += ACROSS) {
        const int j = base + lane;
        wide sum = 0;
        if (j < n)
            for (long i = begin + along; i < end; i += DOWN) {
                const long row = order[i];
                const wide s = weights ? (wide)weights[row] : 1, x = (wide)X[row * n + j];
                sum += s * x;
                distance += s * squared(x - (wide)centre[j]);
            }
        shared[id] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (along == 0 && j < n) {
            for (int r = 1; r < DOWN; r++) sum += shared[r * ACROSS + lane];
            to[j] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
    shared[id] = total;
    apart[id] = distance;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        if (id < reach) {
            shared[id] += shared[id + reach];
            apart[id] += apart[id + reach];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) {
        to[n] = shared[0];
        to[n + 1] = apart[0] > 0 ? apart[0] : 0;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build PREPARE
// build DENSE TR=4 TC=4 GR=8 GC=8 SLAB=8
// build DENSE TR=8 TC=8 GR=8 GC=8 SLAB=8
// build DENSE AGAIN TR=4 TC=4 GR=8 GC=8 SLAB=8
// build SPARSE GROUP=64
// build SUMS GROUP=128 ACROSS=32
// build SUMS CSR GROUP=128 ACROSS=1
#endif
