/* GPU body of kiln_factor_solve and kiln_factor_loss: a group goes from row to row.
 *
 * The rows of B that a row's entries name are gathered into local memory, LINES at a time; a row of up to LINES is
 * gathered once, and all steps of conjugate gradient read it there. A line of the tile has PITCH numbers, an odd count, so that
 * threads which read one column of many lines, or one line, meet no bank twice. WIDTH: columns of B; TASK: enum
 * ki_factor_task. */

#define ARGUMENTS_factor_rows(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, A)                                                                                      \
    NEXT(SPACE, wide, loss)                                                                                  \
    NEXT(SPACE, real, matrices)                                                                              \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, values)                                                                                   \
    NEXT(IN, real, B)                                                                                        \
    NEXT(IN, real, gram)                                                                                     \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, steps)                                                                                 \
    NEXT(VALUE, real, mean)                                                                                  \
    NEXT(VALUE, real, l2)                                                                                    \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, int, biases)                                                                                 \
    NEXT(VALUE, int, counted)                                                                                \
    NEXT(VALUE, int, parts)

#ifndef KI_HOST
#define PITCH (WIDTH | 1)

/* What a group works on; the lists are the kernel's arguments. */
struct row {
    long first, end, held; /* entries; the one that the tile begins with */
    real l2;
};

/* The same sum for all threads. */
DEVICE_FN wide group_total(LOCAL_PTR wide *partial, wide x) {
    const int lane = (int)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    partial[lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        if (lane < reach) partial[lane] += partial[lane + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return partial[0];
}

DEVICE_FN wide group_dot(LOCAL_PTR wide *partial, LOCAL_PTR const real *x, LOCAL_PTR const real *y) {
    wide sum = 0;
    for (int j = (int)get_local_id(0); j < WIDTH; j += GROUP) sum += (wide)x[j] * (wide)y[j];
    return group_total(partial, sum);
}

/* Entries [first, first + count) into the tile, with their parts of the matrix (weight) and of the right-hand side. */
DEVICE_FN void gather(LOCAL_PTR real *tile, LOCAL_PTR real *weight, LOCAL_PTR real *target,
                      __global const int *col, __global const real *values, __global const real *B,
                      long first, int count, int implicit, real mean, real alpha, int biases) {
    const int lane = (int)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < count * WIDTH; i += GROUP) {
        const int e = i / WIDTH, j = i - e * WIDTH;
        tile[e * PITCH + j] = biases && j == WIDTH - 1 ? (real)1 : B[(long)col[first + e] * WIDTH + j];
    }
    for (int e = lane; e < count; e += GROUP) {
        const real rating = values[first + e], seen = alpha * (rating < 0 ? -rating : rating);
        weight[e] = implicit ? seen : (real)1;
        if (implicit)
            target[e] = rating > 0 ? 1 + seen : (real)0;
        else
            target[e] = rating - mean - (biases ? B[(long)col[first + e] * WIDTH + WIDTH - 1] : (real)0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

DEVICE_FN real tile_dot(LOCAL_PTR const real *line, LOCAL_PTR const real *v) {
    real sum = 0;
    for (int j = 0; j < WIDTH; j++) sum += line[j] * v[j];
    return sum;
}

/* to += sum_e factor_e tile_e. */
DEVICE_FN void add_lines(LOCAL_PTR real *to, LOCAL_PTR const real *tile, LOCAL_PTR const real *factor,
                         int count) {
    for (int j = (int)get_local_id(0); j < WIDTH; j += GROUP) {
        real sum = to[j];
        for (int e = 0; e < count; e++) sum += factor[e] * tile[e * PITCH + j];
        to[j] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel GROUP_OF(GROUP) void factor_rows(PARAMETERS(factor_rows)) {
    LOCAL real tile[LINES * PITCH], weight[LINES], target[LINES], factor[LINES], x[WIDTH], r[WIDTH], p[WIDTH],
        q[WIDTH];
    LOCAL wide partial[GROUP];
    const int lane = (int)get_local_id(0), implicit = gram != 0;
    for (long u = (long)get_group_id(0); u < rows; u += (long)get_num_groups(0)) {
        struct row row = {row_start[u], row_start[u + 1], -1, l2};
        if (counted) row.l2 *= (real)(row.end - row.first);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = lane; j < WIDTH; j += GROUP) {
            x[j] = row.first == row.end && TASK != 3 ? (real)0 : A[u * WIDTH + j];
            r[j] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#if TASK == 1
        /* r = right-hand side - H x at first, then q = H p, a step each. */
        wide rho = 0;
        for (long step = 0; step <= steps && row.first < row.end; step++) {
            const int begins = step == 0;
            for (int j = lane; j < WIDTH; j += GROUP) {
                real sum = 0;
                if (implicit)
                    for (int i = 0; i < WIDTH; i++) sum += gram[(long)i * WIDTH + j] * (begins ? x[i] : p[i]);
                sum += row.l2 * (begins ? x[j] : p[j]);
                q[j] = begins ? -sum : sum;
            }
            for (long first = row.first; first < row.end; first += LINES) {
                const int count = (int)(row.end - first < LINES ? row.end - first : LINES);
                if (row.held != first)
                    gather(tile, weight, target, col, values, B, first, count, implicit, mean, alpha, biases);
                row.held = first;
                for (int e = lane; e < count; e += GROUP)
                    factor[e] = begins ? target[e] - weight[e] * tile_dot(tile + e * PITCH, x)
                                       : weight[e] * tile_dot(tile + e * PITCH, p);
                barrier(CLK_LOCAL_MEM_FENCE);
                add_lines(q, tile, factor, count);
            }
            wide ratio = 0;
            if (!begins) {
                const wide curvature = group_dot(partial, p, q), length = rho / curvature;
                if (!(curvature > 0) || !(length <= (wide)1e30)) break;
                for (int j = lane; j < WIDTH; j += GROUP) {
                    x[j] += (real)length * p[j];
                    r[j] -= (real)length * q[j];
                }
            } else {
                for (int j = lane; j < WIDTH; j += GROUP) r[j] = q[j];
            }
            const wide before = rho;
            rho = group_dot(partial, r, r);
            if (!(rho > 0)) break;
            ratio = begins ? 0 : rho / before;
            for (int j = lane; j < WIDTH; j += GROUP) p[j] = r[j] + (begins ? (real)0 : (real)ratio * p[j]);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#elif TASK == 2
        /* The matrix lies in memory that is the group's own: its lower triangle, made and decomposed in place. */
        __global real *matrix = matrices + (long)get_group_id(0) * WIDTH * WIDTH;
        for (int i = lane; i < WIDTH * WIDTH; i += GROUP)
            matrix[i] = (implicit ? gram[i] : (real)0) + (i / WIDTH == i % WIDTH ? row.l2 : (real)0);
        for (long first = row.first; first < row.end; first += LINES) {
            const int count = (int)(row.end - first < LINES ? row.end - first : LINES);
            gather(tile, weight, target, col, values, B, first, count, implicit, mean, alpha, biases);
            add_lines(r, tile, target, count);
            for (int i = lane; i < WIDTH * WIDTH; i += GROUP) {
                const int line = i / WIDTH, column = i - line * WIDTH;
                real sum = 0;
                if (column > line) continue;
                for (int e = 0; e < count; e++)
                    sum += weight[e] * tile[e * PITCH + line] * tile[e * PITCH + column];
                matrix[i] += sum;
            }
        }
        for (int j = lane; j < WIDTH; j += GROUP) p[j] = matrix[j * WIDTH + j];
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < WIDTH && row.first < row.end; k++) {
            const real least = sizeof(real) == 4 ? (real)1e-6 : (real)1e-14;
            for (int j = k + lane; j < WIDTH; j += GROUP) q[j] = matrix[j * WIDTH + k];
            barrier(CLK_LOCAL_MEM_FENCE);
            const real pivot = q[k] > least * p[k] ? sqrt(q[k]) : (real)0;
            for (int j = k + lane; j < WIDTH; j += GROUP)
                matrix[j * WIDTH + k] = pivot > 0 ? (j == k ? pivot : q[j] / pivot) : (real)0;
            for (int i = lane; i < (WIDTH - k - 1) * (WIDTH - k - 1) && pivot > 0; i += GROUP) {
                const int line = k + 1 + i / (WIDTH - k - 1), column = k + 1 + i % (WIDTH - k - 1);
                if (column <= line) matrix[line * WIDTH + column] -= q[line] / pivot * (q[column] / pivot);
            }
            barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
        }
        /* L z = r, then L^T x = z: each unknown, once known, leaves the others. */
        for (int i = 0; i < WIDTH && row.first < row.end; i++) {
            const real pivot = matrix[i * WIDTH + i], z = pivot > 0 ? r[i] / pivot : (real)0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int j = i + lane; j < WIDTH; j += GROUP)
                r[j] = j == i ? z : r[j] - matrix[j * WIDTH + i] * z;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (int i = WIDTH - 1; i >= 0 && row.first < row.end; i--) {
            const real pivot = matrix[i * WIDTH + i], z = pivot > 0 ? r[i] / pivot : (real)0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int j = lane; j <= i; j += GROUP) r[j] = j == i ? z : r[j] - matrix[i * WIDTH + j] * z;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (int j = lane; j < WIDTH && row.first < row.end; j += GROUP) x[j] = r[j];
#else
        wide fit = 0, penalty = 0;
        for (long first = row.first; (parts & 1) && first < row.end; first += LINES) {
            const int count = (int)(row.end - first < LINES ? row.end - first : LINES);
            gather(tile, weight, target, col, values, B, first, count, implicit, mean, alpha, biases);
            for (int e = lane; e < count; e += GROUP) {
                const wide d = (wide)tile_dot(tile + e * PITCH, x);
                const wide wanted = implicit ? (wide)(target[e] > 0) : (wide)target[e];
                fit += implicit ? (1 + (wide)weight[e]) * (wanted - d) * (wanted - d) - d * d
                                : (wanted - d) * (wanted - d);
            }
        }
        for (int j = lane; j < WIDTH; j += GROUP) {
            wide sum = 0;
            penalty += (wide)x[j] * (wide)x[j];
            if (implicit && (parts & 1))
                for (int i = 0; i < WIDTH; i++) sum += (wide)gram[(long)i * WIDTH + j] * (wide)x[i];
            fit += sum * (wide)x[j];
        }
        fit = group_total(partial, fit + (parts & 2 ? (wide)row.l2 * penalty : 0));
        if (lane == 0) loss[u] = fit / 2;
#endif
#if TASK != 3
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = lane; j < WIDTH; j += GROUP) A[u * WIDTH + j] = x[j];
#endif
    }
}

/* The variants that differ in text, as the tests build them. */
// build TASK=1 WIDTH=8 LINES=16 GROUP=64
// build TASK=2 WIDTH=8 LINES=16 GROUP=64
// build TASK=3 WIDTH=8 LINES=16 GROUP=64
#endif
