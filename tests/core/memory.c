/* Who leaves a device that is short of memory, in which order, and that nothing is lost on the way. */
#include <stdio.h>
#include <string.h>

#include "backends/check.h"
#include "core/fake.h"
#include "core/matrix.h"
#include "core/seams.h"
#include "faults/brutal.h"

enum { COUNT = 100, BYTES = COUNT * 8 };

static kiln_device device;

/* Room for so many matrices. */
static int open_device(void **state) {
    (void)state;
    fake = (struct fake){0};
    fake_open(&device);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    ki_memory_clear(&device);
    assert_int_equal(device.statistics.memory_used, 0);
    assert_null(device.memory.newest);
    assert_null(device.memory.oldest);
    assert_int_equal(device.memory.held, 0);
    assert_int_equal(fake.allocs, fake.releases);
    return 0;
}

static void room_for(int matrices) {
    device.budget = matrices * BYTES + BYTES / 2;
}

static kiln_matrix *make(double first) {
    double values[COUNT];
    kiln_matrix *A = NULL;
    for (int i = 0; i < COUNT; i++) values[i] = first + i;
    assert_int_equal(kiln_matrix_dense(&A, &device, KILN_F64, COUNT, 1, values), KILN_OK);
    return A;
}

static void assert_holds(const kiln_matrix *A, double first) {
    double values[COUNT];
    assert_int_equal(kiln_matrix_get(values, A), KILN_OK);
    for (int i = 0; i < COUNT; i++) assert_true(values[i] == first + i);
}

static void use(kiln_matrix *A, bool written) {
    const struct ki_operand operand = {A, written};
    assert_int_equal(ki_operands_hold(&device, &operand, 1), KILN_OK);
    assert_true(ki_matrix_resident(A));
    ki_operands_release(&device, &operand, 1);
}

/* The letters of those that are on the device. */
static const char *resident(kiln_matrix *const *matrices, int count) {
    static char text[16];
    int length = 0;
    for (int i = 0; i < count; i++)
        if (ki_matrix_resident(matrices[i])) text[length++] = (char)('a' + i);
    text[length] = '\0';
    return text;
}

static void free_all(kiln_matrix *const *matrices, int count) {
    for (int i = 0; i < count; i++) {
        assert_holds(matrices[i], 1000 * i);
        kiln_matrix_free(matrices[i]);
    }
}

static void least_recently_used_leaves(void **state) {
    (void)state;
    kiln_matrix *all[4];
    room_for(3);
    for (int i = 0; i < 3; i++) all[i] = make(1000 * i);
    assert_string_equal(resident(all, 3), "abc");
    use(all[0], true);
    all[3] = make(3000);
    assert_string_equal(resident(all, 4), "acd");
    assert_int_equal(device.statistics.evictions, 1);
    assert_int_equal(fake.downloads, 1);
    use(all[1], true); /* drives out c, the oldest now */
    assert_string_equal(resident(all, 4), "abd");
    free_all(all, 4);
}

/* A clean matrix is dropped before one that would have to be written back, even if that was used longer
 * ago. */
static void clean_copies_go_first(void **state) {
    (void)state;
    kiln_matrix *all[4];
    room_for(2);
    for (int i = 0; i < 3; i++) all[i] = make(1000 * i); /* a is out */
    use(all[0], false);                                  /* a returns, with a valid host copy; b is out */
    assert_string_equal(resident(all, 3), "ac");
    const int downloads = fake.downloads;
    use(all[1], true); /* c was used before a, but a is clean */
    assert_string_equal(resident(all, 3), "bc");
    assert_int_equal(fake.downloads, downloads);
    use(all[0], true); /* c leaves, the older of two that are dirty */
    assert_string_equal(resident(all, 3), "ab");
    assert_int_equal(fake.downloads, downloads + 1);
    all[3] = make(3000); /* a was written to: its host copy was stale, so b leaves as the older one */
    assert_string_equal(resident(all, 4), "ad");
    free_all(all, 4);
}

static void operands_stay(void **state) {
    (void)state;
    kiln_matrix *all[4];
    room_for(2);
    for (int i = 0; i < 3; i++) all[i] = make(1000 * i);
    const struct ki_operand both[] = {{all[0], false}, {NULL, false}, {all[1], true}, {all[0], false}};
    const struct ki_operand third = {all[2], false};
    assert_int_equal(ki_operands_hold(&device, both, 4), KILN_OK);
    assert_string_equal(resident(all, 3), "ab");
    assert_fails(KILN_ERR_DEVICE_NOMEM, ki_operands_hold(&device, &third, 1));
    assert_contains(kiln_last_error()->message, "left");
    assert_string_equal(resident(all, 3), "ab");
    assert_int_equal(all[2]->held, 0);
    struct ki_buffer block = {0};
    assert_fails(KILN_ERR_DEVICE_NOMEM, ki_device_alloc(&device, &block, BYTES));
    all[3] = make(3000); /* stays in host memory */
    assert_string_equal(resident(all, 4), "ab");
    ki_operands_release(&device, both, 4);
    use(all[2], false);
    use(all[3], false);
    assert_string_equal(resident(all, 4), "bd"); /* b is dirty, c clean */
    free_all(all, 4);
}

static void what_does_not_fit_drives_nobody_out(void **state) {
    (void)state;
    kiln_matrix *all[2], *large = NULL;
    double values[4 * COUNT] = {0};
    room_for(2);
    for (int i = 0; i < 2; i++) all[i] = make(1000 * i);
    assert_int_equal(kiln_matrix_dense(&large, &device, KILN_F64, 4 * COUNT, 1, values), KILN_OK);
    assert_false(ki_matrix_resident(large));
    const struct ki_operand operand = {large, false};
    assert_fails(KILN_ERR_DEVICE_NOMEM, ki_operands_hold(&device, &operand, 1));
    assert_string_equal(resident(all, 2), "ab");
    assert_int_equal(device.statistics.evictions, 0);
    values[7] = 7;
    assert_int_equal(kiln_matrix_set(large, values), KILN_OK);
    values[7] = 0;
    assert_int_equal(kiln_matrix_get(values, large), KILN_OK);
    assert_true(values[7] == 7);
    kiln_matrix_free(large);
    free_all(all, 2);
}

/* The driver may have less than the budget says. */
static void driver_has_less(void **state) {
    (void)state;
    kiln_matrix *all[3];
    fake.memory_left = 2 * BYTES + BYTES / 2;
    for (int i = 0; i < 3; i++) all[i] = make(1000 * i);
    assert_string_equal(resident(all, 3), "bc");
    use(all[0], false);
    assert_string_equal(resident(all, 3), "ac");
    free_all(all, 3);
}

static void freed_blocks_serve_again(void **state) {
    (void)state;
    device.budget = 100 * BYTES;
    kiln_matrix_free(make(0));
    assert_int_equal(fake.allocs, 1);
    assert_int_equal(device.statistics.memory_used, 0);
    for (int i = 0; i < 10; i++) kiln_matrix_free(make(0));
    assert_int_equal(fake.allocs, 1);
    struct ki_buffer half = {0};
    assert_int_equal(ki_device_alloc(&device, &half, BYTES / 2), KILN_OK); /* too small for that block */
    assert_int_equal(fake.allocs, 2);
    /* A kept matrix does not stand in the way of one that needs the room. */
    struct ki_buffer whole = {0};
    ki_device_release(&device, &half);
    assert_int_equal(fake.releases, 0);
    assert_int_equal(ki_device_alloc(&device, &whole, device.budget), KILN_OK);
    assert_int_equal(fake.releases, 2);
    ki_device_release(&device, &whole); /* more than may be kept */
    assert_int_equal(fake.releases, 3);
    /* Many sizes: the oldest go. */
    device.budget *= 100;
    for (int i = 1; i <= 3 * KI_IDLE_BLOCKS; i++) {
        struct ki_buffer block = {0};
        assert_int_equal(ki_device_alloc(&device, &block, 8 * i * i), KILN_OK);
        ki_device_release(&device, &block);
    }
    assert_true(device.memory.idle_count <= KI_IDLE_BLOCKS);
    assert_true(device.memory.idle_bytes <= device.budget / 8);
}

static void idle_work_space_goes_before_matrices(void **state) {
    (void)state;
    kiln_matrix *all[2];
    struct ki_buffer scratch;
    room_for(2);
    all[0] = make(0);
    assert_int_equal(ki_device_scratch(&device, &scratch, BYTES), KILN_OK);
    all[1] = make(1000);
    assert_string_equal(resident(all, 2), "ab");
    assert_int_equal(device.scratch.bytes, 0);
    /* In use it stays, and a matrix goes. */
    const struct ki_operand operand = {all[1], false};
    assert_int_equal(ki_operands_hold(&device, &operand, 1), KILN_OK);
    assert_int_equal(ki_device_scratch(&device, &scratch, BYTES), KILN_OK);
    assert_string_equal(resident(all, 2), "b");
    assert_true(device.scratch.handle == scratch.handle);
    ki_operands_release(&device, &operand, 1);
    free_all(all, 2);
}

static void drop_block(kiln_device *of, void *data) {
    ki_device_release(of, data);
    ki_free(data);
}

static const struct ki_slot_kind numbers = {.name = "numbers", .drop = drop_block};
static const struct ki_slot_kind sums = {.name = "sums of numbers", .drop = drop_block};
static const struct ki_slot_kind note = {.name = "a note", .drop = drop_block};

static void derive(const kiln_matrix *A, const struct ki_slot_kind *kind, int64_t bytes) {
    struct ki_buffer *block = ki_calloc(sizeof *block);
    assert_non_null(block);
    if (bytes > 0) assert_int_equal(ki_device_alloc(&device, block, bytes), KILN_OK);
    assert_int_equal(ki_slot_put(A, kind, block, bytes), KILN_OK);
}

/* The letters of A's slots. */
static const char *slots_of(const kiln_matrix *A) {
    static char text[4];
    snprintf(text, sizeof text, "%s%s%s", ki_slot_get(A, &numbers) ? "n" : "",
             ki_slot_get(A, &sums) ? "s" : "", ki_slot_get(A, &note) ? "-" : "");
    return text;
}

static void what_is_derived_goes_before_matrices(void **state) {
    (void)state;
    kiln_matrix *all[3];
    room_for(4);
    all[0] = make(0);
    all[1] = make(1000);
    derive(all[0], &numbers, BYTES / 2);
    derive(all[0], &sums, BYTES / 2);
    derive(all[0], &note, 0);
    derive(all[1], &numbers, BYTES);
    assert_int_equal(device.statistics.layout_bytes, 2 * BYTES);
    assert_int_equal(ki_memory_room(&device), device.budget);
    /* The newest of the least recently used first, and what takes nothing stays. */
    all[2] = make(2000);
    assert_string_equal(slots_of(all[0]), "n-");
    assert_string_equal(slots_of(all[1]), "n");
    assert_string_equal(resident(all, 3), "abc");
    assert_int_equal(device.statistics.layout_bytes, BYTES + BYTES / 2);
    /* A held matrix keeps what it has. */
    struct ki_buffer block = {0};
    const struct ki_operand operand = {all[0], false};
    assert_int_equal(ki_operands_hold(&device, &operand, 1), KILN_OK);
    assert_int_equal(ki_device_alloc(&device, &block, BYTES), KILN_OK);
    assert_string_equal(slots_of(all[0]), "n-");
    assert_string_equal(slots_of(all[1]), "");
    ki_operands_release(&device, &operand, 1);
    assert_int_equal(device.statistics.evictions, 0);
    /* A matrix that leaves takes everything along. */
    assert_int_equal(ki_matrix_to_host(all[0]), KILN_OK);
    assert_string_equal(slots_of(all[0]), "");
    assert_int_equal(device.statistics.layout_bytes, 0);
    ki_device_release(&device, &block);
    free_all(all, 3);
}

/* Every host allocation fails once while sparse and dense matrices come and go. */
static void body(void *context) {
    (void)context;
    int64_t row_start[COUNT + 1], got_start[COUNT + 1];
    int32_t col[COUNT], got_col[COUNT];
    double values[COUNT], got[COUNT];
    kiln_matrix *A = NULL, *B = NULL, *S = NULL;
    for (int i = 0; i < COUNT; i++) row_start[i] = i, col[i] = i % 3, values[i] = i;
    row_start[COUNT] = COUNT;
    fake_open(&device);
    device.budget = 3 * BYTES;
    STEP(kiln_matrix_csr(&S, &device, KILN_F64, COUNT, 3, row_start, col, values));
    STEP(kiln_matrix_dense(&A, &device, KILN_F64, COUNT, 1, values));
    STEP(kiln_matrix_dense(&B, &device, KILN_F64, COUNT, 1, values));
    for (int round = 0; round < 3; round++) {
        const struct ki_operand sparse = {S, false}, dense[] = {{A, true}, {B, round > 0}};
        STEP(ki_operands_hold(&device, &sparse, 1));
        ki_operands_release(&device, &sparse, 1);
        STEP(ki_operands_hold(&device, dense, 2));
        ki_operands_release(&device, dense, 2);
    }
    STEP(kiln_matrix_get_csr(got_start, got_col, got, S));
    assert_memory_equal(got_start, row_start, sizeof row_start);
    assert_memory_equal(got_col, col, sizeof col);
    assert_memory_equal(got, values, sizeof values);
    STEP(kiln_matrix_get(got, A));
    assert_memory_equal(got, values, sizeof values);
    assert_true(device.statistics.evictions >= 5);
    assert_true(device.statistics.memory_peak <= device.budget);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
    kiln_matrix_free(S);
    ki_memory_clear(&device);
}

static void faults_lose_nothing(void **state) {
    (void)state;
    brutal_memory("eviction and return", 2, body, NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_device, close_device)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(least_recently_used_leaves),
                                       TEST(clean_copies_go_first),
                                       TEST(operands_stay),
                                       TEST(what_does_not_fit_drives_nobody_out),
                                       TEST(driver_has_less),
                                       TEST(freed_blocks_serve_again),
                                       TEST(idle_work_space_goes_before_matrices),
                                       TEST(what_is_derived_goes_before_matrices),
                                       TEST(faults_lose_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
