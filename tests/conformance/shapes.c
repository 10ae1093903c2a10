/* Narrow and wide, empty and full, regular and ragged: see shapes.h. Widths lie around the sizes of SIMD
 * registers, warps and work-groups, around what a work-group's memory holds, and beyond. */
#include "shapes.h"

#include <stdlib.h>

enum { COUNT_OF_K = 6 };
static const int64_t several[COUNT_OF_K] = {2, 3, 8, 9, 17, 100};

static void add_dense(struct problem_list *list, int64_t rows, int64_t cols, int64_t k) {
    problem_add(
        list,
        (struct problem){.format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = rows, .cols = cols, .k = k});
}

/* Widths for devices whose kernels build slowly (problem_list.thin); the others try them all. */
static const int64_t thin_narrow[] = {1, 2, 3, 5, 7, 8, 16, 28, 31, 33, 40};
static const int64_t thin_wide[] = {65, 100, 257, 1025, 2049, 7000};
static const int64_t thin_blocked[] = {7, 33, 257};
static const int64_t thin_sparse[] = {1, 7, 33, 257, 1025, 5000};
static const int64_t wide[] = {63,   64,   65,   100,  255,  256,   257,  1000,
                               1024, 1025, 2049, 5000, 7000, 20000, 61501};
static const int64_t blocked[] = {1, 7, 28, 33, 100, 257, 1025};
static const int64_t sparse[] = {1, 7, 28, 31, 33, 63, 65, 100, 257, 1000, 1025, 5000};
#define LENGTH(array) (int)(sizeof(array) / sizeof *(array))

static void dense(struct problem_list *list) {
    const bool thin = list->thin;
    add_dense(list, 1, 1, 1);
    add_dense(list, 0, 5, 1);
    add_dense(list, 5, 0, 1);
    add_dense(list, 0, 5, 3);
    for (int i = 0; i < (thin ? LENGTH(thin_narrow) : 40); i++) {
        int64_t cols = thin ? thin_narrow[i] : i + 1;
        add_dense(list, 20 + 7 * cols, cols, 1);
    }
    for (int i = 0; i < (thin ? LENGTH(thin_wide) : LENGTH(wide)); i++) {
        int64_t cols = thin ? thin_wide[i] : wide[i];
        add_dense(list, cols > 5000 ? 5 : 83, cols, 1);
        add_dense(list, 1, cols, 1);
    }
    for (int i = 0; i < (thin ? LENGTH(thin_blocked) : LENGTH(blocked)); i++)
        for (int t = 0; t < COUNT_OF_K; t++)
            add_dense(list, 45, thin ? thin_blocked[i] : blocked[i], several[t]);
    add_dense(list, 40000, 28, 1);
    add_dense(list, 30000, 1, 1);
    add_dense(list, 1500, 300, 1);
    add_dense(list, 3001, 28, 8);
    for (int k = 20; k <= 44; k += 4) add_dense(list, 131, k == 32 ? 403 : 67, k); /* tiles of vectors */
    add_dense(list, 45, 7, 1030); /* a row's products are more than a block's usually */
    /* Several turns of the rings that GPUs keep: of narrow rows, of rows that warps share, and of rows over
     * teams. */
    add_dense(list, 100003, 28, 8);
    add_dense(list, 12007, 256, 4);
    add_dense(list, 481, 8192, 8);
    add_dense(list, 403, 17003, 1);
}

static void add_csr(struct problem_list *list, enum pattern pattern, int64_t rows, int64_t cols,
                    int64_t per_row, int64_t k) {
    problem_add(
        list,
        (struct problem){
            .format = KILN_CSR, .pattern = pattern, .rows = rows, .cols = cols, .per_row = per_row, .k = k});
}

static void csr(struct problem_list *list) {
    static const enum pattern patterns[] = {PATTERN_UNIFORM,    PATTERN_DENSE,         PATTERN_NO_ENTRIES,
                                            PATTERN_EMPTY_ROWS, PATTERN_EMPTY_COLUMNS, PATTERN_DENSE_ROW,
                                            PATTERN_HOT_COLUMN, PATTERN_POWER_LAW,     PATTERN_ZIPF,
                                            PATTERN_UNSORTED,   PATTERN_CODES};
    const int64_t *widths = list->thin ? thin_sparse : sparse;
    enum { PATTERNS = LENGTH(patterns) };
    add_csr(list, PATTERN_DENSE, 1, 1, 1, 1);
    add_csr(list, PATTERN_NO_ENTRIES, 0, 5, 1, 1);
    add_csr(list, PATTERN_NO_ENTRIES, 5, 0, 1, 1);
    add_csr(list, PATTERN_NO_ENTRIES, 0, 5, 1, 3);
    for (int i = 0; i < (list->thin ? LENGTH(thin_sparse) : LENGTH(sparse)); i++)
        for (int t = 0; t < PATTERNS; t++)
            add_csr(list, patterns[t], patterns[t] == PATTERN_DENSE ? 23 : 301, widths[i], 3 + (i + t) % 20,
                    1);
    for (int t = 0; t < PATTERNS; t++)
        for (int c = 0; c < COUNT_OF_K; c++) add_csr(list, patterns[t], 77, t % 2 ? 130 : 33, 7, several[c]);
    for (int c = 0; c < COUNT_OF_K; c++) add_csr(list, PATTERN_UNIFORM, 90, 1025, 40, several[c]);
    add_csr(list, PATTERN_UNIFORM, 77, 33, 7, 1030);
    add_csr(list, PATTERN_UNIFORM, 20000, 1000, 10, 1);
    add_csr(list, PATTERN_HOT_COLUMN, 30000, 50, 3, 1);
    add_csr(list, PATTERN_POWER_LAW, 5000, 20000, 30, 1);
    add_csr(list, PATTERN_DENSE_ROW, 1000, 70000, 20, 1);
    add_csr(list, PATTERN_DENSE_ROW, 301, 5000, 240,
            1); /* what a warp takes several turns for, and segments */
    add_csr(list, PATTERN_ZIPF, 2001, 3000, 12, 8);
    add_csr(list, PATTERN_UNIFORM, 2000, 3000000, 5, 1);
    add_csr(list, PATTERN_UNIFORM, 2000, 30000000, 5, 1);
    add_csr(list, PATTERN_CODES, 9001, 300, 0, 1);
    add_csr(list, PATTERN_CODES, 3001, 200000, 0, 1);
    add_csr(list, PATTERN_CODES, 131, 67, 0, 100);
    struct problem ones = {.format = KILN_CSR,
                           .pattern = PATTERN_UNIFORM,
                           .rows = 200,
                           .cols = 64,
                           .per_row = 9,
                           .k = 1,
                           .flags = WITH_ONES};
    problem_add(list, ones);
    ones.k = 3;
    ones.pattern = PATTERN_POWER_LAW;
    problem_add(list, ones);
}

void shapes_add(struct problem_list *list) {
    dense(list);
    csr(list);
}

void shapes_free(struct problem_list *list) {
    free(list->problems);
    *list = (struct problem_list){0};
}
