/* Rows of a factor matrix, each by a step that Cholesky's decomposition of its own matrix gives: a group goes
 * from row to row.
 *
 * The rows of B that a row's entries name are gathered into local memory, LINES at a time. A line of the tile
 * has PITCH numbers, an odd count, so that threads which read one column of many lines, or one line, meet no
 * bank twice. WIDTH: columns of B. */

#define ARGUMENTS_factor_cholesky(FIRST, NEXT)                                                               \
    FIRST(OUT, real, A)                                                                                      \
    NEXT(SPACE, real, matrices)                                                                              \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, values)                                                                                   \
    NEXT(IN, real, B)                                                                                        \
    NEXT(IN, real, gram)                                                                                     \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, real, mean)                                                                                  \
    NEXT(VALUE, real, rest)                                                                                  \
    NEXT(VALUE, real, l2)                                                                                    \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, int, proportional)                                                                           \
    NEXT(VALUE, int, biases)                                                                                 \
    NEXT(VALUE, int, counted)

#ifndef KI_HOST
#define PITCH (WIDTH | 1)

/* A group's place in local memory, the lists, and what is asked of the rows. */
struct group {
    LOCAL_PTR real *tile, *weight, *target; /* LINES lines, and two numbers for each */
    LOCAL_PTR real *x, *r, *p, *q;          /* WIDTH */
    __global const int *col;
    __global const real *values, *B, *gram;
    real mean, rest, alpha;
    int proportional, biases;
};

struct row {
    long first, end; /* entries */
    real l2;
};

/* Finds how many entries of the row the tile takes from `first` on. */
DEVICE_FN int lines_from(long first, const struct row *row) {
    return (int)(row->end - first < LINES ? row->end - first : LINES);
}

/* Entries from `first` on into the tile, with their parts of the matrix (weight) and of the right-hand side;
 * their number. */
DEVICE_FN int gather(const struct group *g, const struct row *row, long first) {
    const int lane = (int)get_local_id(0), count = lines_from(first, row);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < count * WIDTH; i += GROUP) {
        const int e = i / WIDTH, j = i - e * WIDTH;
        g->tile[e * PITCH + j] =
            g->biases && j == WIDTH - 1 ? (real)1 : g->B[(long)g->col[first + e] * WIDTH + j];
    }
    for (int e = lane; e < count; e += GROUP) {
        const real rating = g->values[first + e], size = g->alpha * (rating < 0 ? -rating : rating);
        g->weight[e] = !g->gram ? (real)1 : g->proportional ? size - 1 : size;
        if (g->gram)
            g->target[e] = rating > 0 ? (g->proportional ? size : 1 + size) : (real)0;
        else
            g->target[e] = rating - g->mean - g->rest -
                           (g->biases ? g->B[(long)g->col[first + e] * WIDTH + WIDTH - 1] : (real)0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return count;
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

/* target = what x leaves of it. */
DEVICE_FN void take_products(const struct group *g, int count) {
    for (int e = (int)get_local_id(0); e < count; e += GROUP) {
        real product = 0;
        for (int j = 0; j < WIDTH; j++) product += g->tile[e * PITCH + j] * g->x[j];
        g->target[e] -= g->weight[e] * product;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* The lower triangle of the row's matrix H, the right-hand side less H x in r, and the diagonal in p. */
DEVICE_FN void form(__global real *matrix, const struct group *g, const struct row *row) {
    const int lane = (int)get_local_id(0);
    for (int i = lane; i < WIDTH * WIDTH; i += GROUP)
        matrix[i] = (g->gram ? g->gram[i] : (real)0) + (i / WIDTH == i % WIDTH ? row->l2 : (real)0);
    for (long first = row->first; first < row->end; first += LINES) {
        const int count = gather(g, row, first);
        take_products(g, count);
        add_lines(g->r, g->tile, g->target, count);
        for (int i = lane; i < WIDTH * WIDTH; i += GROUP) {
            const int line = i / WIDTH, column = i - line * WIDTH;
            real sum = 0;
            if (column > line) continue;
            for (int e = 0; e < count; e++)
                sum += g->weight[e] * g->tile[e * PITCH + line] * g->tile[e * PITCH + column];
            matrix[i] += sum;
        }
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    for (int j = lane; j < WIDTH; j += GROUP) {
        real own = row->l2 * g->x[j];
        for (int i = 0; g->gram && i < WIDTH; i++) own += g->gram[i * WIDTH + j] * g->x[i];
        g->r[j] -= own;
        g->p[j] = matrix[j * WIDTH + j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Cholesky's factor in place. A pivot is no less than what rounding may have made of it, so that L L^T is
 * hardly ever below half the matrix; without a penalty one that rounding has left nothing of is 0, and its
 * unknown stays. Such a pivot's column is rounding, too, which divided by the pivot would grow from column to
 * column: it becomes 0. false: rounding is felt. */
DEVICE_FN bool decompose(__global real *matrix, const struct group *g, real l2) {
    const int lane = (int)get_local_id(0);
    const real least = sizeof(real) == 4 ? (real)4e-6 : (real)1e-14;
    bool exact = true;
    for (int k = 0; k < WIDTH; k++) {
        for (int j = k + lane; j < WIDTH; j += GROUP) g->q[j] = matrix[j * WIDTH + k];
        barrier(CLK_LOCAL_MEM_FENCE);
        const real lowest = least * g->p[k];
        const bool sound = g->q[k] > lowest;
        const real pivot = sound ? sqrt(g->q[k]) : l2 > 0 ? sqrt(lowest) : (real)0;
        exact = exact && g->q[k] > 256 * lowest;
        for (int j = k + lane; j < WIDTH; j += GROUP)
            matrix[j * WIDTH + k] = j == k ? pivot : sound ? g->q[j] / pivot : (real)0;
        for (int i = lane; i < (WIDTH - k - 1) * (WIDTH - k - 1) && sound; i += GROUP) {
            const int line = k + 1 + i / (WIDTH - k - 1), column = k + 1 + i % (WIDTH - k - 1);
            if (column <= line) matrix[line * WIDTH + column] -= g->q[line] / pivot * (g->q[column] / pivot);
        }
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    }
    return exact;
}

/* L z = r, then L^T x = z: each unknown, once known, leaves the others. */
DEVICE_FN void substitute(__global const real *matrix, const struct group *g) {
    const int lane = (int)get_local_id(0);
    for (int i = 0; i < WIDTH; i++) {
        const real pivot = matrix[i * WIDTH + i], z = pivot > 0 ? g->r[i] / pivot : (real)0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = i + lane; j < WIDTH; j += GROUP)
            g->r[j] = j == i ? z : g->r[j] - matrix[j * WIDTH + i] * z;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = WIDTH - 1; i >= 0; i--) {
        const real pivot = matrix[i * WIDTH + i], z = pivot > 0 ? g->r[i] / pivot : (real)0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = lane; j <= i; j += GROUP) g->r[j] = j == i ? z : g->r[j] - matrix[i * WIDTH + j] * z;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Returns how many times the step r leads to where f is least along it; p is what x left of the right-hand
 * side. The products of no line where `exact`, and then it is once. */
DEVICE_FN real length_of(const struct group *g, const struct row *row, bool exact) {
    const int lane = (int)get_local_id(0);
    wide along = 0, curvature = 0;
    for (long first = exact ? row->end : row->first; first < row->end; first += LINES) {
        const int count = gather(g, row, first);
        for (int e = lane; e < count; e += GROUP) {
            real product = 0;
            for (int j = 0; j < WIDTH; j++) product += g->tile[e * PITCH + j] * g->r[j];
            g->target[e] = g->weight[e] * product * product;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = 0; e < count; e++) curvature += (wide)g->target[e];
    }
    for (int j = lane; j < WIDTH; j += GROUP) {
        real own = row->l2 * g->r[j];
        for (int i = 0; g->gram && i < WIDTH; i++) own += g->gram[i * WIDTH + j] * g->r[i];
        g->q[j] = own;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < WIDTH; j++) {
        curvature += (wide)g->q[j] * (wide)g->r[j];
        along += (wide)g->p[j] * (wide)g->r[j];
    }
    return exact ? (real)1 : along > 0 && curvature > 0 ? (real)(along / curvature) : (real)0;
}

__kernel GROUP_OF(GROUP) void factor_cholesky(PARAMETERS(factor_cholesky)) {
    LOCAL real tile[LINES * PITCH], weight[LINES], target[LINES], x[WIDTH], r[WIDTH], p[WIDTH], q[WIDTH];
    const struct group g = {tile,   weight, target, x,    r,    p,     q,            col,
                            values, B,      gram,   mean, rest, alpha, proportional, biases};
    const int lane = (int)get_local_id(0);
    /* The matrix lies in memory that is the group's own. */
    __global real *matrix = matrices + (long)get_group_id(0) * WIDTH * WIDTH;
    for (long u = (long)get_group_id(0); u < rows; u += (long)get_num_groups(0)) {
        struct row row = {row_start[u], row_start[u + 1], l2};
        if (counted) row.l2 *= (real)(row.end - row.first);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = lane; j < WIDTH; j += GROUP) {
            x[j] = A[u * WIDTH + j];
            r[j] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        /* A row without entries is formed as well: PoCL 3.1, where it optimises, goes wrong with barriers in
         * a condition. */
        form(matrix, &g, &row);
        const bool exact = decompose(matrix, &g, row.l2);
        for (int j = lane; j < WIDTH; j += GROUP) p[j] = r[j];
        substitute(matrix, &g);
        barrier(CLK_LOCAL_MEM_FENCE);
        const real length = length_of(&g, &row, exact);
        for (int j = lane; j < WIDTH; j += GROUP)
            A[u * WIDTH + j] = row.end > row.first ? x[j] + length * r[j] : (real)0;
    }
}

/* The variants that differ in text, as the tests build them. */
// build WIDTH=8 LINES=16 GROUP=64
#endif
