/* Checked arithmetic: every pair of edge values against 128-bit arithmetic. */
#include "core/size.h"

#include "core/check.h"

#define EDGES                                                                                                \
    {                                                                                                        \
        INT64_MIN, -1, 0, 1, 2, 3, 7, INT32_MAX, (int64_t)INT32_MAX + 1, (int64_t)UINT32_MAX,                \
            (int64_t)UINT32_MAX + 1, 3037000499, 3037000500, INT64_MAX / 2, INT64_MAX / 2 + 1,               \
            INT64_MAX - 1, INT64_MAX                                                                         \
    }
static const int64_t edges[] = EDGES;
enum { COUNT = sizeof edges / sizeof *edges };

__extension__ typedef __int128 wide;

static bool fits(wide exact, int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && exact <= INT64_MAX;
}

static void products_and_sums(void **state) {
    (void)state;
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            int64_t a = edges[i], b = edges[j], result;
            wide product = (wide)a * b, sum = (wide)a + b;
            assert_int_equal(ki_mul(a, b, &result), fits(product, a, b));
            if (fits(product, a, b)) assert_true(result == (int64_t)product);
            assert_int_equal(ki_add(a, b, &result), fits(sum, a, b));
            if (fits(sum, a, b)) assert_true(result == (int64_t)sum);
        }
}

static void products_of_three(void **state) {
    (void)state;
    int64_t result;
    assert_true(ki_mul3(1 << 20, 1 << 20, 1 << 20, &result) && result == (int64_t)1 << 60);
    assert_false(ki_mul3(1 << 21, 1 << 21, 1 << 21, &result));
    assert_false(ki_mul3(-1, 0, 1, &result));
    assert_false(ki_mul3(0, 1, -1, &result));
    assert_false(ki_mul3(INT64_MAX, 2, 0, &result)); /* the way there overflows already */
}

static void ceilings(void **state) {
    (void)state;
    assert_int_equal(ki_ceil_div(0, 5), 0);
    assert_int_equal(ki_ceil_div(1, 5), 1);
    assert_int_equal(ki_ceil_div(5, 5), 1);
    assert_int_equal(ki_ceil_div(6, 5), 2);
    assert_true(ki_ceil_div(INT64_MAX, 2) == INT64_MAX / 2 + 1);
    assert_true(ki_ceil_div(INT64_MAX, INT64_MAX) == 1);
    assert_true(ki_min(INT64_MIN, INT64_MAX) == INT64_MIN && ki_max(INT64_MIN, INT64_MAX) == INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_and_sums),
                                       cmocka_unit_test(products_of_three), cmocka_unit_test(ceilings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
