/* Matrices over the caller's memory: nothing is copied that need not be, it is given back once, and
 * operations take memory that begins at any element. */
#include <string.h>

#include "backends/check.h"
#include "core/fake.h"
#include "core/limits.h"
#include "core/matrix.h"
#include "faults/brutal.h"

enum { ROWS = 300, COLS = 37, NNZ = 3 * ROWS, ODD = 3 };

static int released;
/* The arrays begin ODD elements into these. */
static double dense64[ODD + ROWS * COLS], values64[ODD + NNZ];
static float dense32[ODD + ROWS * COLS], values32[ODD + NNZ];
static int64_t starts64[ODD + ROWS + 1];
static int32_t starts32[ODD + ROWS + 1], cols[ODD + NNZ];

static void release(void *user) {
    (*(int *)user)++;
}

static int fill(void **state) {
    (void)state;
    released = 0;
    for (int i = 0; i < ROWS * COLS; i++) dense32[ODD + i] = (float)(dense64[ODD + i] = i % 13 - 6);
    for (int i = 0; i <= ROWS; i++) starts32[ODD + i] = (int32_t)(starts64[ODD + i] = 3 * i);
    for (int e = 0; e < NNZ; e++) {
        cols[ODD + e] = (e / 3 + 11 * (e % 3)) % COLS;
        values32[ODD + e] = (float)(values64[ODD + e] = e % 7 - 3);
    }
    return 0;
}

static kiln_memory memory_of(kiln_type type, bool sparse, int bits) {
    kiln_memory memory = {.size = sizeof memory,
                          .type = type,
                          .rows = ROWS,
                          .cols = COLS,
                          .release = release,
                          .user = &released};
    if (sparse) {
        memory.values = type == KILN_F32 ? (void *)(values32 + ODD) : values64 + ODD;
        memory.row_start = bits == 32 ? (void *)(starts32 + ODD) : starts64 + ODD;
        memory.row_start_bits = bits;
        memory.col = cols + ODD;
    } else {
        memory.values = type == KILN_F32 ? (void *)(dense32 + ODD) : dense64 + ODD;
    }
    return memory;
}

static void make_copy(kiln_matrix **A, kiln_device *device, const kiln_memory *memory) {
    if (memory->row_start)
        assert_int_equal(
            kiln_matrix_csr(A, device, memory->type, ROWS, COLS, starts64 + ODD, memory->col, memory->values),
            KILN_OK);
    else
        assert_int_equal(kiln_matrix_dense(A, device, memory->type, ROWS, COLS, memory->values), KILN_OK);
}

/* w = X^T (X y), then q = X y, for k columns: small whole numbers, whose sums are exact in any order. */
static void run(double *result, const kiln_matrix *X, int k) {
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    kiln_matrix *y = NULL, *w = NULL, *q = NULL, *wide = NULL;
    assert_int_equal(kiln_matrix_dense(&y, device, type, COLS, k, NULL), KILN_OK);
    assert_int_equal(kiln_fill(y, 2), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&w, device, type, COLS, k, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&q, device, type, ROWS, k, NULL), KILN_OK);
    for (int pass = 0; pass < 3; pass++) assert_int_equal(kiln_mmchain(w, 1, X, NULL, y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_multiply(q, 1, KILN_PLAIN, X, y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, w), KILN_OK);
    assert_int_equal(kiln_matrix_get(result, wide), KILN_OK);
    kiln_matrix_free(wide);
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, q), KILN_OK);
    assert_int_equal(kiln_matrix_get(result + COLS * k, wide), KILN_OK);
    kiln_matrix_free(wide);
    kiln_matrix_free(y);
    kiln_matrix_free(w);
    kiln_matrix_free(q);
}

/* Memory that a wrapped matrix says it uses, against what its copy's. */
static void same_as_copy(kiln_device *device, const kiln_memory *memory) {
    enum { K = 3 };
    static double got[(ROWS + COLS) * K], want[(ROWS + COLS) * K];
    kiln_matrix *X = NULL, *copy = NULL;
    make_copy(&copy, device, memory);
    assert_int_equal(kiln_matrix_wrap(&X, device, memory), KILN_OK);
    for (int k = 1; k <= K; k += 2) {
        memset(want, 0, sizeof want);
        run(want, copy, k);
        run(got, X, k);
        for (int i = 0; i < (ROWS + COLS) * k; i++)
            if (got[i] != want[i]) fail_msg("k %d, entry %d: %g, not %g", k, i, got[i], want[i]);
    }
    assert_int_equal(released, 0);
    kiln_matrix_free(X);
    assert_int_equal(released, 1);
    released = 0;
    kiln_matrix_free(copy);
}

static void on_device(const char *name) {
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, name, NULL), KILN_OK);
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (int form = 0; form < 4; form++) {
            kiln_memory memory = memory_of(type, form > 0, form == 1 ? 32 : 64);
            memory.trusted = form == 3;
            same_as_copy(device, &memory);
        }
    kiln_device_close(device);
}

static void on_the_cpu(void **state) {
    (void)state;
    on_device("cpu");
}

static void on_opencl(void **state) {
    (void)state;
    on_device("opencl");
}

/* The CPU works in the caller's memory itself. */
static void nothing_is_copied(void **state) {
    (void)state;
    kiln_device *device = NULL;
    kiln_matrix *A = NULL;
    kiln_device_statistics statistics = {0};
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    kiln_memory memory = memory_of(KILN_F64, false, 64);
    assert_int_equal(kiln_matrix_wrap(&A, device, &memory), KILN_OK);
    assert_int_equal(kiln_fill(A, 7), KILN_OK);
    for (int i = 0; i < ROWS * COLS; i++) assert_true(dense64[ODD + i] == 7);
    assert_int_equal(kiln_device_get_statistics(device, &statistics), KILN_OK);
    assert_int_equal(statistics.memory_used, 0);
    kiln_matrix_free(A);
    memory = memory_of(KILN_F64, true, 32);
    assert_int_equal(kiln_matrix_wrap(&A, device, &memory), KILN_OK);
    assert_int_equal(kiln_device_get_statistics(device, &statistics), KILN_OK);
    assert_int_equal(statistics.memory_used, (ROWS + 1) * 8);
    assert_ptr_equal(ki_host(&A->col), memory.col);
    kiln_matrix_free(A);
    assert_int_equal(released, 2);
    kiln_device_close(device);
}

/* The lender hears of it once, after the last that shares the structure. */
static void structure_is_lent_on(void **state) {
    (void)state;
    kiln_device *device = NULL;
    kiln_matrix *A = NULL, *B = NULL;
    int32_t col[NNZ];
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    const kiln_memory memory = memory_of(KILN_F32, true, 64);
    assert_int_equal(kiln_matrix_wrap(&A, device, &memory), KILN_OK);
    assert_int_equal(kiln_matrix_like(&B, A, KILN_F64, NULL), KILN_OK);
    kiln_matrix_free(A);
    assert_int_equal(released, 0);
    assert_int_equal(kiln_matrix_get_csr(NULL, col, NULL, B), KILN_OK);
    assert_memory_equal(col, cols + ODD, sizeof col);
    kiln_matrix_free(B);
    assert_int_equal(released, 1);
    kiln_device_close(device);
}

static void refused(void **state) {
    (void)state;
    kiln_device *cpu = NULL, *opencl = NULL;
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_device_open(&cpu, "cpu", NULL), KILN_OK);
    assert_int_equal(kiln_device_open(&opencl, "opencl", NULL), KILN_OK);
    kiln_memory memory = memory_of(KILN_F64, true, 16);
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap(&A, cpu, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap(&A, cpu, &memory));
    memory.row_start_bits = 64;
    memory.values = (char *)memory.values + 4;
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap(&A, cpu, &memory));
    memory.values = NULL;
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap(&A, cpu, &memory));
    memory = memory_of(KILN_F64, true, 64);
    memory.col = NULL;
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_wrap(&A, cpu, &memory));
    memory.col = cols + ODD;
    memory.on_device = 1;
    assert_fails(KILN_ERR_UNSUPPORTED, kiln_matrix_wrap(&A, opencl, &memory));
    memory.on_device = 0;
    cols[ODD + 5] = COLS;
    assert_fails(KILN_ERR_DATA, kiln_matrix_wrap(&A, cpu, &memory));
    starts64[ODD + 7] = 0;
    assert_fails(KILN_ERR_DATA, kiln_matrix_wrap(&A, cpu, &memory));
    assert_null(A);
    assert_int_equal(released, 0);
    kiln_device_close(cpu);
    kiln_device_close(opencl);
}

/* Device memory of another matrix, in place: it is neither copied, nor evicted, nor freed with the wrapping
 * matrix. */
static void device_memory(kiln_device *device, const kiln_memory *host) {
    kiln_matrix *owner = NULL, *X = NULL;
    static double got[(ROWS + COLS) * 2], want[(ROWS + COLS) * 2];
    make_copy(&owner, device, host);
    const int64_t used = device->statistics.memory_used;
    kiln_memory memory = *host;
    memory.on_device = 1;
    memory.values = ki_host(&owner->values);
    if (host->row_start) {
        memory.row_start = ki_host(&owner->row_start);
        memory.row_start_bits = 64;
        memory.col = ki_host(&owner->col);
    }
    assert_int_equal(kiln_matrix_wrap(&X, device, &memory), KILN_OK);
    assert_int_equal(device->statistics.memory_used, used);
    assert_true(X->values.handle == owner->values.handle);
    if (device->backend->launch && device->backend != &fake_backend) {
        run(got, X, 2);
        run(want, owner, 2);
        assert_memory_equal(got, want, sizeof got);
    }
    const int64_t room = ki_memory_room(device);
    kiln_matrix_free(X);
    assert_int_equal(released, 1);
    released = 0;
    assert_int_equal(ki_memory_room(device), room);
    assert_true(ki_matrix_resident(owner));
    kiln_matrix_free(owner);
}

static void in_device_memory(void **state) {
    (void)state;
    kiln_device device, *cuda = NULL;
    fake = (struct fake){0};
    fake_open(&device);
    device.properties.addresses = true;
    device.properties.align = 8;
    const kiln_memory sparse = memory_of(KILN_F64, true, 64), dense = memory_of(KILN_F64, false, 64);
    device_memory(&device, &sparse);
    device_memory(&device, &dense);
    ki_memory_clear(&device);
    assert_int_equal(device.statistics.memory_used, 0);
    assert_int_equal(fake.allocs, fake.releases);
    if (kiln_device_open(&cuda, "cuda", NULL) == KILN_OK) {
        device_memory(cuda, &sparse);
        device_memory(cuda, &dense);
        kiln_device_close(cuda);
    } else {
        print_message("    skip cuda: %s\n", kiln_last_error()->message);
    }
}

/* A matrix in the memory of PoCL's device, whose handles serve as addresses: its columns by another, its row
 * starts as they are there. */
static kiln_status wrap_there(kiln_matrix **X, kiln_matrix *owner, const struct ki_buffer *starts, int bits) {
    kiln_memory there = memory_of(KILN_F64, true, bits);
    there.on_device = 1;
    there.values = ki_host(&owner->values);
    there.row_start = ki_host(starts);
    there.col = ki_host(&owner->col);
    return kiln_matrix_wrap(X, owner->device, &there);
}

static void assert_wrapped(kiln_matrix *owner, const struct ki_buffer *starts, int bits, kiln_status wanted) {
    static int64_t got[ROWS + 1];
    kiln_matrix *X = NULL;
    assert_int_equal(wrap_there(&X, owner, starts, bits), wanted);
    assert_int_equal(released, 0);
    if (wanted != KILN_OK) {
        assert_null(X);
        return;
    }
    assert_int_equal(ki_device_download(X->device, got, &X->row_start, 0, sizeof got), KILN_OK);
    assert_memory_equal(got, starts64 + ODD, sizeof got);
    kiln_matrix_free(X);
    assert_int_equal(released, 1);
    released = 0;
}

static void assert_columns(kiln_matrix *owner) {
    static const struct {
        int32_t entry, column;
        kiln_status status;
    } cases[] = {{1, COLS - 1, KILN_OK},  {5, COLS, KILN_ERR_DATA}, {NNZ - 1, -1, KILN_ERR_DATA},
                 {301, 2, KILN_ERR_DATA}, {301, 0, KILN_OK},        {299, COLS - 1, KILN_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t at = cases[i].entry * 4;
        assert_int_equal(ki_device_upload(owner->device, &owner->col, at, &cases[i].column, 4), KILN_OK);
        assert_wrapped(owner, &owner->row_start, 64, cases[i].status);
        assert_int_equal(ki_device_upload(owner->device, &owner->col, at, cols + ODD + cases[i].entry, 4),
                         KILN_OK);
    }
}

static void assert_narrow_starts(kiln_matrix *owner) {
    const int32_t wrong = 7;
    struct ki_buffer narrow = {0};
    assert_int_equal(ki_device_alloc(owner->device, &narrow, (ROWS + 1) * 4), KILN_OK);
    assert_int_equal(ki_device_upload(owner->device, &narrow, 0, starts32 + ODD, (ROWS + 1) * 4), KILN_OK);
    assert_wrapped(owner, &narrow, 32, KILN_OK);
    const int64_t places[] = {0, 100, ROWS};
    for (int i = 0; i < 3; i++) { /* not 0; less than the one before; the last of them */
        assert_int_equal(ki_device_upload(owner->device, &narrow, places[i] * 4, &wrong, 4), KILN_OK);
        assert_wrapped(owner, &narrow, 32, KILN_ERR_DATA);
        assert_int_equal(
            ki_device_upload(owner->device, &narrow, places[i] * 4, starts32 + ODD + places[i], 4), KILN_OK);
    }
    ki_device_release(owner->device, &narrow);
}

/* A matrix that lies on the device is looked at there: columns in any order are right, outside the matrix or
 * twice in a row they are refused, as are row starts that decrease. */
static void structure_on_the_device(void **state) {
    (void)state;
    kiln_device *opencl = NULL;
    kiln_matrix *owner = NULL;
    const int64_t entries = ki_limits.rows_entries;
    const kiln_memory memory = memory_of(KILN_F64, true, 64);
    for (int e = 0; e < NNZ; e++)
        cols[ODD + e] = (e / 3 % 7) + e % 3 * 9; /* 0 to 24, ascending in each row */
    assert_int_equal(kiln_device_open(&opencl, "opencl", NULL), KILN_OK);
    opencl->properties.addresses = true;
    opencl->properties.align = 8;
    make_copy(&owner, opencl, &memory);
    ki_limits.rows_entries = 1;
    assert_wrapped(owner, &owner->row_start, 64, KILN_OK);
    assert_columns(owner);
    assert_narrow_starts(owner);
    ki_limits.rows_entries = entries;
    assert_narrow_starts(owner);
    kiln_matrix_free(owner);
    kiln_device_close(opencl);
}

/* A matrix whose address others have: they see what operations write, and it stays where it is while others
 * are driven out. */
static void lent_from_the_cpu(void **state) {
    (void)state;
    kiln_device *cpu = NULL;
    kiln_matrix *A = NULL;
    kiln_memory memory = {.size = sizeof memory};
    double most[COLS];
    assert_int_equal(kiln_device_open(&cpu, "cpu", NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&A, cpu, KILN_F64, ROWS, COLS, dense64 + ODD), KILN_OK);
    assert_int_equal(kiln_matrix_lend(&memory, A), KILN_OK);
    assert_true(memory.rows == ROWS && memory.cols == COLS && memory.type == KILN_F64 && !memory.on_device);
    assert_memory_equal(memory.values, dense64 + ODD, ROWS * COLS * 8);
    ((double *)memory.values)[5] = 1000;
    assert_int_equal(kiln_norm(most, A, KILN_NORM_MAX), KILN_OK);
    assert_true(most[5] == 1000);
    assert_int_equal(kiln_fill(A, 7), KILN_OK);
    assert_true(((const double *)memory.values)[5] == 7);
    kiln_matrix_free(A);
    kiln_device_close(cpu);
}

static void lending_refused(void **state) {
    (void)state;
    kiln_device *cpu = NULL, *opencl = NULL;
    kiln_matrix *B = NULL, *S = NULL;
    kiln_memory memory = {.size = sizeof memory};
    const kiln_memory sparse = memory_of(KILN_F64, true, 64);
    assert_int_equal(kiln_device_open(&cpu, "cpu", NULL), KILN_OK);
    assert_int_equal(kiln_device_open(&opencl, "opencl", NULL), KILN_OK);
    make_copy(&S, cpu, &sparse);
    assert_int_equal(kiln_matrix_dense(&B, opencl, KILN_F64, 2, 2, NULL), KILN_OK);
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_lend(&memory, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_lend(NULL, B));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_lend(&memory, S));
    assert_fails(KILN_ERR_UNSUPPORTED, kiln_matrix_lend(&memory, B));
    assert_null(memory.values);
    kiln_matrix_free(B);
    kiln_matrix_free(S);
    kiln_device_close(cpu);
    kiln_device_close(opencl);
}

static void lent_matrices_stay(void **state) {
    (void)state;
    kiln_device device;
    kiln_matrix *A = NULL, *B = NULL;
    kiln_memory memory = {.size = sizeof memory};
    fake = (struct fake){0};
    fake_open(&device);
    device.properties.addresses = true;
    device.budget = ROWS * COLS * 12; /* of two matrices of 8 bytes an element one has room */
    assert_int_equal(kiln_matrix_dense(&A, &device, KILN_F64, ROWS, COLS, dense64 + ODD), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, &device, KILN_F64, ROWS, COLS, dense64 + ODD), KILN_OK);
    assert_int_equal(kiln_matrix_lend(&memory, A), KILN_OK);
    assert_true(memory.on_device && memory.values == ki_host(&A->values));
    assert_false(ki_matrix_resident(B));
    assert_fails(KILN_ERR_DEVICE_NOMEM, kiln_matrix_lend(&memory, B));
    assert_fails(KILN_ERR_DEVICE_NOMEM, ki_matrix_to_stream(A));
    assert_true(ki_matrix_resident(A));
    kiln_matrix_free(A);
    assert_int_equal(kiln_matrix_lend(&memory, B), KILN_OK);
    kiln_matrix_free(B);
    ki_memory_clear(&device);
    assert_int_equal(fake.allocs, fake.releases);
}

/* Every host allocation fails once: nothing is given back that was not taken. */
static void body(void *context) {
    (void)context;
    kiln_device *device = NULL;
    const kiln_memory memory = memory_of(KILN_F64, true, 32);
    kiln_matrix *A = NULL;
    released = 0;
    STEP(kiln_device_open(&device, "cpu", NULL));
    STEP(kiln_matrix_wrap(&A, device, &memory));
    assert_int_equal(released, 0);
    kiln_matrix_free(A);
    assert_int_equal(released, 1);
    kiln_device_close(device);
}

static void faults_lose_nothing(void **state) {
    (void)state;
    brutal_memory("wrapping", 2, body, NULL);
}

#define TEST(function) cmocka_unit_test_setup(function, fill)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(on_the_cpu),
                                       TEST(on_opencl),
                                       TEST(nothing_is_copied),
                                       TEST(structure_is_lent_on),
                                       TEST(refused),
                                       TEST(in_device_memory),
                                       TEST(structure_on_the_device),
                                       TEST(lent_from_the_cpu),
                                       TEST(lending_refused),
                                       TEST(lent_matrices_stay),
                                       TEST(faults_lose_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
