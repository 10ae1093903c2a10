/* GPU body of kiln_assign with bounds: the rows that have another centre than in the pass before, and what
 * centres that have moved make of the distances.
 *
 * A row that changed its centre is two entries: ~row of the centre that it leaves, row of the one that it
 * comes to. A group counts those of a tile of rows, and lists them behind those of the tiles before, so that
 * their order is the same in every run.
 * Distances follow a centre from a to b by
 *     sum s ||x - b||^2 = sum s ||x - a||^2 + W (b - a).(b + a - 2 mean). */

/* counts: of each tile, without `entry`; with it, those of all tiles before. */
#define ARGUMENTS_moved_rows(FIRST, NEXT)                                                                    \
    FIRST(SPACE, int, counts)                                                                                \
    NEXT(SPACE, int, key)                                                                                    \
    NEXT(SPACE, int, entry)                                                                                  \
    NEXT(TABLE, int, before)                                                                                 \
    NEXT(TABLE, int, now)                                                                                    \
    NEXT(VALUE, int, rows)

/* running: k x n sums, then the weight and the distances of each of the k. last: the centres that those are
 * of. */
#define ARGUMENTS_moved_centres(FIRST, NEXT)                                                                 \
    FIRST(SPACE, wide, running)                                                                              \
    NEXT(SPACE, real, last)                                                                                  \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, n)

#ifndef KI_HOST
#ifdef ROWS
/* Finds how many rows changed in this thread and those before it. */
DEVICE_FN int changed_so_far(LOCAL_PTR int *shared, int mine) {
    const int id = (int)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[id] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = 1; reach < GROUP; reach *= 2) {
        const int add = id >= reach ? shared[id - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] += add;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return shared[id];
}

__kernel GROUP_OF(GROUP) void moved_rows(PARAMETERS(moved_rows)) {
    LOCAL int shared[GROUP];
    const int id = (int)get_local_id(0);
    for (long tile = (long)get_group_id(0); tile * AT_ONCE < rows; tile += (long)get_num_groups(0)) {
        const long first = tile * AT_ONCE + id,
                   end = (tile + 1) * AT_ONCE < rows ? (tile + 1) * AT_ONCE : rows;
        int mine = 0;
        for (long i = first; i < end; i += GROUP) mine += before[i] != now[i];
        const int so_far = changed_so_far(shared, mine);
        if (!entry && id == GROUP - 1) counts[tile] = so_far;
        int at = entry ? 2 * (counts[tile] + so_far - mine) : 0;
        for (long i = first; entry && mine > 0 && i < end; i += GROUP) {
            if (before[i] == now[i]) continue;
            key[at] = before[i];
            entry[at++] = ~(int)i;
            key[at] = now[i];
            entry[at++] = (int)i;
        }
    }
}
#endif

#ifdef CENTRES
/* A group a cluster. */
__kernel GROUP_OF(GROUP) void moved_centres(PARAMETERS(moved_centres)) {
    LOCAL wide shared[GROUP];
    const int id = (int)get_local_id(0);
    for (int c = (int)get_group_id(0); c < k; c += (int)get_num_groups(0)) {
        __global wide *const totals = running + (long)k * n + 2 * c;
        const wide weight = totals[0], per = weight > 0 ? 1 / weight : 0;
        wide nearer = 0;
        for (long j = (long)c * n + id; j < (long)(c + 1) * n; j += GROUP) {
            const wide from = (wide)last[j], to = (wide)C[j];
            nearer += (to - from) * (to + from - 2 * per * running[j]);
            last[j] = C[j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] = nearer;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = GROUP / 2; reach > 0; reach /= 2) {
            if (id < reach) shared[id] += shared[id + reach];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (id > 0 || !(weight > 0)) continue;
        const wide apart = totals[1] + weight * shared[0];
        totals[1] = apart > 0 ? apart : 0;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build ROWS GROUP=128 AT_ONCE=4096
// build CENTRES GROUP=128
// pack {f32|f64} {CENTRES GROUP=128|ROWS GROUP=128 AT_ONCE=4096}
#endif
