/* CPU body of Z^T diag(v) Z, Z = [X - 1 c^T, Y - 1 d^T, 1], or of X's part of it (gram.h). Its columns but
 * the last are those of "the matrix" here; what the ones give is added up beside it.
 *
 * Dense rows are copied, a block at a time, into panels of columns, once as x - c and once times v; a tile
 * of G is added up in registers over the block and then goes to a copy of G in double. Tiles right of the
 * diagonal are left out. Sparse rows add the products of their entries to such a copy, about zero, and c
 * is taken off at the end; where they have so many entries that tiles are quicker, they are unpacked into
 * panels. A row that keeps categories as codes is written out as entries just before. Rows of weight 0 are
 * skipped: in a support vector machine most are.
 *
 * Parts of the rows have copies of their own, added in order at the end. Where copies are large beside the
 * work there are few, and bands of G instead. Both depend on the shape and on how many rows have a weight,
 * so that the result does not depend on the number of threads. */

#include "core/codes/codes.h"
#include "core/narrow/widen.h"

enum {
    FN(GRAM_ROWS) = 64, /* in a block */
    FN(GRAM_WIDE) = 2 * LANES,
    FN(GRAM_TALL) = SIMD_BYTES == 64 ? 8 : 4, /* rows and columns of a tile; columns of a panel */
    FN(GRAM_NARROW) = 256,                    /* columns up to which parts are many */
    FN(GRAM_BAND) = 64,                       /* columns of a dense band, at least */
    FN(GRAM_ENTRIES) = 8,                     /* entries that a sparse row has in a band, at least */
    FN(GRAM_TASKS) = 16,                      /* bands of all parts, where they cost next to nothing */
    FN(GRAM_COPIES) = 1 << 24                 /* elements of all copies, if one is not more by itself */
};

typedef double FN(vwide) __attribute__((vector_size(LANES * 8)));

struct FN(gram) {
    const struct ki_gram *gram;
    bool sparse;
    int parts, bands;
    int64_t n, k, size;         /* columns of X, of Y, of both */
    int64_t padded, copy, room; /* in whole panels; elements of a copy, of a block */
    double *copies;             /* of G, padded x padded; then g; then the sum of v */
    real *c, *d, *blocks;
};

/* Rows that are worked on together. */
struct FN(gram_block) {
    real *panels, *sums, *room; /* x - c, panel by panel; the sum of v (x - c); one row */
    real v[FN(GRAM_ROWS)];
    int64_t count;
    double total; /* of v in all blocks */
};

ALWAYS_INLINE void FN(add_wide)(double *to, FN(vreal) sum) {
    FN(vwide) at;
    memcpy(&at, to, sizeof at);
    at += __builtin_convertvector(sum, FN(vwide));
    memcpy(to, &at, sizeof at);
}

/* G's tile at `to` += rows^T diag(v) columns for `count` rows; V, its vectors a row, is a constant
 * wherever this is inlined. */
ALWAYS_INLINE void FN(gram_tile)(int V, double *to, int64_t stride, const real *rows, const real *columns,
                                 const real *v, int64_t count) {
    FN(vreal) sum[FN(GRAM_TALL)][2];
#pragma GCC unroll 8
    for (int i = 0; i < FN(GRAM_TALL); i++)
#pragma GCC unroll 2
        for (int j = 0; j < V; j++) sum[i][j] = (FN(vreal)){0};
    for (int64_t r = 0; r < count; r++, rows += FN(GRAM_WIDE), columns += FN(GRAM_WIDE))
#pragma GCC unroll 2
        for (int j = 0; j < V; j++) {
            const FN(vreal) scaled = v[r] * FN(load)(columns + j * LANES);
#pragma GCC unroll 8
            for (int i = 0; i < FN(GRAM_TALL); i++) sum[i][j] += rows[i] * scaled;
        }
#pragma GCC unroll 8
    for (int i = 0; i < FN(GRAM_TALL); i++)
#pragma GCC unroll 2
        for (int j = 0; j < V; j++) FN(add_wide)(to + i * stride + j * LANES, sum[i][j]);
}

/* The tiles of rows [first, end) of G, from the panels of a block. Of one on the diagonal the left half
 * may do. */
static void FN(gram_tiles)(const struct FN(gram) * all, double *copy, const struct FN(gram_block) * block,
                           int64_t first, int64_t end) {
    const int64_t panel = FN(GRAM_ROWS) * FN(GRAM_WIDE), stride = all->padded;
    const real *columns = block->panels;
    end = ki_min(end, all->size);
    for (int64_t j = 0; j < end; j += FN(GRAM_WIDE), columns += panel)
        for (int64_t i = ki_max(first, j); i < end; i += FN(GRAM_TALL)) {
            const real *rows = block->panels + i / FN(GRAM_WIDE) * panel + i % FN(GRAM_WIDE);
            double *to = copy + i * stride + j;
            if (i + FN(GRAM_TALL) <= j + LANES)
                FN(gram_tile)(1, to, stride, rows, columns, block->v, block->count);
            else
                FN(gram_tile)(2, to, stride, rows, columns, block->v, block->count);
        }
}

/* The next row of a block: x - c, y - d. x may be read to the end of its last vector. */
static void FN(gram_pack)(const struct FN(gram) * all, struct FN(gram_block) * block, const real *x,
                          const real *y, real v) {
    const int64_t n = all->n, row = block->count * FN(GRAM_WIDE);
    block->v[block->count++] = v;
    block->total += (double)v;
    for (int64_t j = 0; j < n; j += LANES) {
        FN(vreal) value = FN(load)(x + j) - FN(load)(all->c + j);
        if (n - j < LANES) value = FN(masked)(value, FN(first_lanes)(n - j));
        FN(store)
        (block->panels + j / FN(GRAM_WIDE) * FN(GRAM_ROWS) * FN(GRAM_WIDE) + row + j % FN(GRAM_WIDE), value);
        FN(store)(block->sums + j, FN(load)(block->sums + j) + v * value);
    }
    for (int64_t j = n; j < all->size; j++) {
        const real value = y[j - n] - all->d[j - n];
        block->panels[j / FN(GRAM_WIDE) * FN(GRAM_ROWS) * FN(GRAM_WIDE) + row + j % FN(GRAM_WIDE)] = value;
        block->sums[j] += v * value;
    }
}

/* A sparse row. */
struct FN(row_entries) {
    const real *value;
    const int32_t *col;
    int64_t count;
};

/* Returns how many elements the room has that a row is written to. */
static int64_t FN(entries_room)(const kiln_matrix *X) {
    if (X->format == KILN_CSR && X->element) return X->cols;
    return X->codes ? 2 * (X->codes->numbers->cols + X->codes->count + 2) : 0;
}

/* The room of an X that has one number in place of values holds as many of it as a row may need. */
static void FN(entries_begin)(const kiln_matrix *X, real *room) {
    for (int64_t j = 0; X->format == KILN_CSR && X->element && j < X->cols; j++) room[j] = (real)X->same;
}

/* The row's entries lie in X, or, numbers and then categories, without zeros, in `room`. None of either takes
 * a branch: what is none is overwritten by what comes next. */
static struct FN(row_entries) FN(entries_of)(const kiln_matrix *X, int64_t row, real *room) {
    if (!X->codes) {
        const int64_t *start = ki_host(&X->row_start);
        return (struct FN(row_entries)){X->element ? room : VALUES(X) + start[row],
                                        (int32_t *)ki_host(&X->col) + start[row],
                                        start[row + 1] - start[row]};
    }
    const struct ki_codes *codes = X->codes;
    const int64_t n = codes->numbers->cols;
    const real *x = VALUES(codes->numbers) + row * n;
    int32_t *col = (int32_t *)(void *)(room + FN(entries_room)(X) / 2);
    int64_t at = 0;
    for (int64_t j = 0; j < n; j++) {
        room[at] = x[j];
        col[at] = codes->place[j];
        at += x[j] != 0;
    }
    for (int64_t c = 0; c < codes->count; c++) {
        const struct ki_code_column *column = &codes->column[c];
        const int64_t level = ki_code_at(column, row);
        room[at] = 1;
        col[at] = (int32_t)(column->first + level);
        at += level < column->levels;
    }
    return (struct FN(row_entries)){room, col, at};
}

/* A row that can be read to the end of its last vector: one in the matrix's middle as it is, others, and
 * narrow ones, in `room`. */
static const real *FN(gram_row)(const struct FN(gram) * all, int64_t row, real *room) {
    const kiln_matrix *X = all->gram->X;
    const int64_t n = all->n;
    if (X->format == KILN_DENSE && X->element) {
        FN(widen)(room, X->element, ki_host(&X->values), row * n, n);
        return room;
    }
    if (X->format == KILN_DENSE) {
        const real *x = VALUES(X) + row * n;
        if (row * n + ki_ceil_div(n, LANES) * LANES <= X->rows * n) return x;
        memcpy(room, x, (size_t)n * sizeof(real));
        return room;
    }
    const struct FN(row_entries) of = FN(entries_of)(X, row, room + all->padded);
    memset(room, 0, (size_t)all->padded * sizeof(real));
    for (int64_t e = 0; e < of.count; e++) room[of.col[e]] += of.value[e];
    return room;
}

/* Rows [first, end) of X into rows [top, bottom) of a copy and of g. */
static void FN(gram_dense)(const struct FN(gram) * all, double *copy, real *work, int64_t top, int64_t bottom,
                           int64_t first, int64_t end) {
    const real *v = all->gram->v ? VALUES(all->gram->v) : NULL,
               *Y = all->gram->Y ? VALUES(all->gram->Y) : NULL;
    const int64_t padded = all->padded;
    struct FN(gram_block) block = {.panels = work, .sums = work + FN(GRAM_ROWS) * padded};
    block.room = block.sums + padded;
    memset(work, 0, (size_t)all->room * sizeof(real));
    FN(entries_begin)(all->gram->X, block.room + padded);
    for (int64_t row = first; row < end;) {
        for (block.count = 0; row < end && block.count < FN(GRAM_ROWS); row++)
            if (!v || v[row] != 0) FN(gram_pack)
        (all, &block, FN(gram_row)(all, row, block.room), Y ? Y + row * all->k : NULL, v ? v[row] : 1);
        FN(gram_tiles)(all, copy, &block, top, bottom);
        for (int64_t j = top; j < bottom; j++) copy[padded * padded + j] += block.sums[j];
        memset(block.sums, 0, (size_t)padded * sizeof(real));
    }
    if (top == 0) copy[padded * padded + padded] += block.total;
}

/* Rows [top, bottom) of copy + its transpose = the products of the rows' entries: an entry's own product
 * is halved. */
static void FN(gram_sparse)(const struct FN(gram) * all, double *copy, real *room, int64_t top,
                            int64_t bottom, int64_t first, int64_t end) {
    const int64_t padded = all->padded;
    const real *v = all->gram->v ? VALUES(all->gram->v) : NULL;
    const real *Y = all->gram->Y ? VALUES(all->gram->Y) : NULL;
    double *g = copy + padded * padded;
    FN(entries_begin)(all->gram->X, room);
    for (int64_t row = first; row < end; row++) {
        const double weight = v ? (double)v[row] : 1;
        if (weight == 0) continue;
        const struct FN(row_entries) of = FN(entries_of)(all->gram->X, row, room);
        const int32_t *col = of.col;
        const real *value = of.value;
        if (top == 0) g[padded] += weight;
        for (int64_t e = 0; e < of.count; e++) {
            if (col[e] < top || col[e] >= bottom) continue;
            const double scaled = weight * value[e];
            double *to = copy + col[e] * padded;
            for (int64_t f = 0; f < e; f++) to[col[f]] += scaled * value[f];
            to[col[e]] += 0.5 * scaled * value[e];
            g[col[e]] += scaled;
        }
        for (int64_t j = ki_max(top, all->n); j < ki_min(bottom, all->size); j++) {
            const real *y = Y + row * all->k;
            const double scaled = weight * (double)(y[j - all->n] - all->d[j - all->n]);
            double *to = copy + j * padded;
            for (int64_t f = 0; f < of.count; f++) to[col[f]] += scaled * value[f];
            for (int64_t i = all->n; i <= j; i++)
                to[i] += (i == j ? 0.5 : 1) * scaled * (double)(y[i - all->n] - all->d[i - all->n]);
            g[j] += scaled;
        }
    }
}

/* A part's rows into a band of its copy; the sum of v belongs to the first. */
static void FN(gram_task)(void *arg, int task) {
    const struct FN(gram) *all = arg;
    const int part = task / all->bands, band = task % all->bands;
    const int64_t rows = all->gram->X->rows, tiles = all->padded / FN(GRAM_TALL),
                  square = all->padded * all->padded;
    const int64_t first = ki_part_begin(rows, part, all->parts),
                  end = ki_part_begin(rows, part + 1, all->parts);
    const int64_t top = FN(GRAM_TALL) * ki_part_begin(tiles, band, all->bands);
    const int64_t bottom = FN(GRAM_TALL) * ki_part_begin(tiles, band + 1, all->bands);
    double *copy = all->copies + part * all->copy;
    memset(copy + top * all->padded, 0, (size_t)((bottom - top) * all->padded) * sizeof *copy);
    memset(copy + square + top, 0, (size_t)(bottom - top) * sizeof *copy);
    if (band == 0)
        memset(copy + square + all->padded, 0, (size_t)(all->copy - square - all->padded) * sizeof *copy);
    real *work = all->blocks + task * all->room;
    if (all->sparse)
        FN(gram_sparse)(all, copy, work, top, bottom, first, end);
    else
        FN(gram_dense)(all, copy, work, top, bottom, first, end);
}

enum { FN(GRAM_SUMS) = 64 };

/* A share of the first copy += that of the others, in order. */
static void FN(gram_sum)(void *arg, int share) {
    const struct FN(gram) *all = arg;
    const int64_t first = ki_part_begin(all->copy, share, FN(GRAM_SUMS));
    const int64_t end = ki_part_begin(all->copy, share + 1, FN(GRAM_SUMS));
    for (int part = 1; part < all->parts; part++) {
        const double *from = all->copies + part * all->copy;
        for (int64_t i = first; i < end; i++) all->copies[i] += from[i];
    }
}

/* Element (i, j <= i) of the matrix, and i of its products with v. */
ALWAYS_INLINE double FN(gram_element)(const struct FN(gram) * all, int64_t i, int64_t j) {
    const int64_t padded = all->padded;
    const double *sum = all->copies, *g = sum + padded * padded;
    if (!all->sparse) return sum[i * padded + j];
    const double ci = i < all->n ? (double)all->c[i] : 0, cj = j < all->n ? (double)all->c[j] : 0;
    return sum[i * padded + j] + sum[j * padded + i] - ci * g[j] - cj * g[i] + g[padded] * ci * cj;
}

ALWAYS_INLINE double FN(gram_product)(const struct FN(gram) * all, int64_t i) {
    const double *g = all->copies + all->padded * all->padded;
    return all->sparse && i < all->n ? g[i] - g[all->padded] * (double)all->c[i] : g[i];
}

/* A share of the rows of all of it from the sum of the copies. */
static void FN(gram_finish_all)(void *arg, int share) {
    const struct FN(gram) *all = arg;
    const int64_t size = all->size, stride = size + 1, end = ki_part_begin(size, share + 1, FN(GRAM_SUMS));
    double *to = all->gram->all;
    for (int64_t i = ki_part_begin(size, share, FN(GRAM_SUMS)); i < end; i++) {
        for (int64_t j = 0; j <= i; j++)
            to[i * stride + j] = to[j * stride + i] = FN(gram_element)(all, i, j);
        to[i * stride + size] = to[size * stride + i] = FN(gram_product)(all, i);
    }
    if (share == 0) to[stride * stride - 1] = all->copies[(all->padded + 1) * all->padded];
}

/* The same of G and of g. */
static void FN(gram_finish)(void *arg, int share) {
    const struct FN(gram) *all = arg;
    const int64_t n = all->n, end = ki_part_begin(n, share + 1, FN(GRAM_SUMS));
    real *G = VALUES(all->gram->G), *out = all->gram->g ? VALUES(all->gram->g) : NULL;
    for (int64_t i = ki_part_begin(n, share, FN(GRAM_SUMS)); i < end; i++) {
        if (out) out[i] = (real)FN(gram_product)(all, i);
        for (int64_t j = 0; j <= i; j++) G[i * n + j] = G[j * n + i] = (real)FN(gram_element)(all, i, j);
    }
}

/* Those of a weight, which alone take time. */
static int64_t FN(gram_rows)(const struct FN(gram) * all) {
    const real *v = all->gram->v ? VALUES(all->gram->v) : NULL;
    int64_t count = v ? 0 : all->gram->X->rows;
    for (int64_t i = 0; v && i < all->gram->X->rows; i++) count += v[i] != 0;
    return count;
}

/* Finds what the parts and bands are cut by: see above. */
static void FN(gram_plan)(struct FN(gram) * all) {
    const kiln_matrix *X = all->gram->X;
    const int64_t n = all->size, square = all->padded * all->padded, rows = FN(gram_rows)(all);
    const int64_t mean = X->nnz / ki_max(X->rows, 1); /* of a row's entries */
    all->sparse = X->format == KILN_CSR && 2 * LANES * mean * mean < n * n;
    const int64_t worth = all->sparse ? rows * mean / 32 * mean / square : rows / 1024;
    const int64_t most = ki_min(n <= FN(GRAM_NARROW) ? 64 : 16, FN(GRAM_COPIES) / square);
    all->parts = (int)ki_power_below(ki_max(ki_min(worth, most), 1));
    const int64_t bands = all->sparse ? mean / FN(GRAM_ENTRIES) : n / FN(GRAM_BAND);
    all->bands = (int)ki_max(ki_min(bands, FN(GRAM_TASKS) / all->parts), 1);
}

kiln_status FN(gram)(const struct ki_gram *gram) {
    enum { LINE = 64 };
    struct FN(gram) all = {.gram = gram, .n = gram->X->cols, .k = gram->Y ? gram->Y->cols : 0};
    struct ki_buffer scratch;
    int64_t doubles, reals, bytes;
    all.size = all.n + all.k;
    all.padded = ki_ceil_div(all.size, FN(GRAM_WIDE)) * FN(GRAM_WIDE);
    if (all.n == 0) return KILN_OK;
    if (!ki_mul(all.padded, all.padded, &all.copy) || !ki_add(all.copy, all.padded + LINE / 8, &all.copy))
        return ki_fail(KILN_ERR_ARGUMENT, "the work space overflows: %lld columns", (long long)all.n);
    FN(gram_plan)(&all);
    all.room = (all.sparse ? 0 : (FN(GRAM_ROWS) + 2) * all.padded) +
               ki_ceil_div(FN(entries_room)(gram->X), LINE) * LINE;
    if (!ki_mul3(all.copy, all.parts, 8, &doubles) ||
        !ki_mul3(all.room, all.parts * all.bands, sizeof(real), &reals) || !ki_add(doubles, reals, &bytes) ||
        !ki_add(bytes, 2 * all.padded * (int64_t)sizeof(real) + LINE, &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the work space overflows: %lld columns", (long long)all.n);
    const kiln_status status = ki_device_scratch(gram->X->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    char *base = ki_host(&scratch);
    base += -(uintptr_t)base % LINE;
    all.copies = (double *)(void *)base;
    all.c = (real *)(void *)(base + doubles);
    all.d = all.c + all.padded;
    all.blocks = all.d + all.padded;
    memset(all.c, 0, (size_t)(2 * all.padded) * sizeof(real));
    if (gram->d) memcpy(all.d, VALUES(gram->d), (size_t)all.k * sizeof(real));
    if (gram->c) memcpy(all.c, VALUES(gram->c), (size_t)all.n * sizeof(real));
    ki_parallel(gram->X->device->threads, all.parts * all.bands, FN(gram_task), &all);
    const int threads = all.copy * all.parts > 262144 ? gram->X->device->threads : 1;
    ki_parallel(threads, FN(GRAM_SUMS), FN(gram_sum), &all);
    ki_parallel(threads, FN(GRAM_SUMS), gram->all ? FN(gram_finish_all) : FN(gram_finish), &all);
    return KILN_OK;
}
