/* For tests of algorithms in f32 and f64 against plain loops: one device "cpu" for all of them, and numbers
 * from a seed. */
#ifndef TEST_ON_CPU_H
#define TEST_ON_CPU_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

static kiln_device *device;

static inline int open_device(void **state) {
    (void)state;
    return kiln_device_open(&device, "cpu", NULL);
}

static inline int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

/* Dense, of values that are given in f64. */
static inline kiln_matrix *dense_on(kiln_device *on, kiln_type type, int64_t rows, int64_t cols,
                                    const double *values) {
    kiln_matrix *wide = NULL, *A = NULL;
    assert_int_equal(kiln_matrix_dense(&wide, on, KILN_F64, rows, cols, values), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, on, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    return A;
}

static inline kiln_matrix *dense_matrix(kiln_type type, int64_t rows, int64_t cols, const double *values) {
    return dense_on(device, type, rows, cols, values);
}

/* In [0, 1). */
static inline double uniform(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

#endif
