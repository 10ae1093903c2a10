/* The cost model, the choice of a device, data that move to it, and plans: what they promise, on machines
 * with and without a GPU. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln.h"
#include "core/kernels/cache.h"
#include "core/check.h"
#include "core/seams.h"
#include "choose/cost.h"
#include "core/status.h"
#include "pass/group.h"
#include "choose/figures.h"
#include "choose/stopwatch.h"

static const struct ki_figures gpu = {.start = 0.2,
                                      .process = 0.3,
                                      .up = 20e9,
                                      .down = 10e9,
                                      .read = 4e12,
                                      .dense = {2e12, 3.8e12, 1.9e12},
                                      .row = 1e-9,
                                      .sparse = {2e11, 1e11, 5e10, 1e10},
                                      .thin = 1e9,
                                      .iteration = 40e-6};

static kiln_work checked(kiln_work work) {
    kiln_work full;
    assert_int_equal(ki_work_check(&full, &work), KILN_OK);
    return full;
}

static void assert_close(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) fail_msg("%.17g is not %.17g", got, want);
}

static void costs_add_up(void **state) {
    (void)state;
    const kiln_work dense = checked((kiln_work){.rows = 2500000, .cols = 40, .passes = 50});
    struct ki_cost cost = ki_cost_of(&gpu, &dense, 141e9, false);
    assert_close(cost.bytes, 8e8);
    assert_false(cost.streamed);
    assert_close(cost.start, 0.3);
    assert_close(cost.move, 8e8 / 20e9);
    assert_close(cost.pass, 8e8 / 3.8e12);
    assert_close(cost.total, cost.start + cost.move + 50 * (cost.pass + cost.overhead));
    cost = ki_cost_of(&gpu, &dense, 4e8, false);
    assert_true(cost.streamed);
    assert_close(cost.pass, 8e8 / 20e9); /* every pass moves X */
    assert_close(cost.move, 0);
    kiln_work eight = dense, nine = dense;
    eight.k = 8;
    nine.k = 9;
    assert_close(ki_cost_of(&gpu, &eight, 141e9, false).pass, 1.3 * 8e8 / 3.8e12);
    assert_true(ki_cost_of(&gpu, &nine, 141e9, false).pass >= 2 * 8e8 / 3.8e12);
}

static double dense_pass(const struct ki_figures *figures, int64_t cols) {
    const kiln_work work = checked((kiln_work){.rows = 10000, .cols = cols});
    return ki_cost_of(figures, &work, 141e9, false).pass;
}

static void dense_rates_lie_between_those_measured(void **state) {
    (void)state;
    struct ki_figures figures = gpu;
    assert_close(dense_pass(&gpu, 3), 3 * 8e4 / 2e12);
    for (int i = 0; i < KI_DENSE_WIDTHS; i++)
        assert_close(dense_pass(&gpu, ki_dense_widths[i]), (double)ki_dense_widths[i] * 8e4 / gpu.dense[i]);
    const double between = dense_pass(&gpu, 1000);
    assert_true(between > 8e7 / 3.8e12 && between < 8e7 / 1.9e12);
    assert_close(dense_pass(&gpu, 1 << 20), 0x1p20 * 8e4 / 1.9e12);
    figures.read = 1e12; /* nothing is faster than reading */
    assert_close(dense_pass(&figures, 40), 40 * 8e4 / 1e12);
}

static double sparse_pass(int64_t cols, bool thin) {
    const kiln_work work =
        checked((kiln_work){.format = KILN_CSR, .rows = 1000000, .cols = cols, .nnz = 10000000});
    return ki_cost_of(&gpu, &work, 141e9, thin).pass - 1000000 * gpu.row;
}

static void sparse_rates_fall_with_the_columns(void **state) {
    (void)state;
    double before = 0;
    for (int64_t cols = 256; cols < 1 << 26; cols *= 2) {
        const double pass = sparse_pass(cols, false);
        for (int i = 0; i < KI_SPARSE_WIDTHS; i++)
            if (cols == ki_sparse_widths[i]) assert_close(pass, 10000000 / gpu.sparse[i]);
        if (cols > ki_sparse_widths[KI_SPARSE_WIDTHS - 1]) assert_close(pass, before);
        assert_true(pass >= before * (1 - 1e-9));
        before = pass;
    }
}

/* They go on falling, from where tiles would begin. */
/* Work of one kind on more and more data: a GPU is dear to begin with and cheap to go on with, so that it
 * takes over once and for good; later where there are few passes, as then moving the data counts. */
static double takes_over_at(kiln_format format, int64_t passes) {
    static const struct ki_figures processor = {.read = 2e10,
                                                .dense = {1.5e10, 2e10, 1.8e10},
                                                .row = 4e-9,
                                                .sparse = {1e9, 5e8, 3e8, 1e8},
                                                .thin = 5e7,
                                                .iteration = 2e-6};
    double taken = 0;
    for (double rows = 100; rows < 1e8; rows *= 2) {
        kiln_work work = {.format = format, .rows = (int64_t)rows, .cols = 1000, .passes = passes};
        if (format == KILN_CSR) work.nnz = 10 * work.rows;
        work = checked(work);
        const bool faster =
            ki_cost_of(&gpu, &work, 1e13, false).total < ki_cost_of(&processor, &work, 1e13, false).total;
        assert_true(faster || taken == 0);
        if (faster && taken == 0) taken = rows;
    }
    return taken;
}

static void the_gpu_takes_over_once(void **state) {
    (void)state;
    for (int format = KILN_DENSE; format <= KILN_CSR; format++) {
        const double many = takes_over_at((kiln_format)format, 200),
                     few = takes_over_at((kiln_format)format, 10);
        assert_true(many > 100 && many < few && few < 1e8);
    }
}

static void thin_rates_fall_without_end(void **state) {
    (void)state;
    const int64_t edge = ki_sparse_widths[KI_SPARSE_WIDTHS - 2],
                  widest = ki_sparse_widths[KI_SPARSE_WIDTHS - 1];
    assert_close(sparse_pass(edge, true), sparse_pass(edge, false));
    assert_close(sparse_pass(widest, true), 10000000 / gpu.thin);
    assert_close(sparse_pass(16 * widest, true), 10000000 / (gpu.thin * gpu.thin / gpu.sparse[2]));
}

static void senseless_work_is_refused(void **state) {
    (void)state;
    static const kiln_work bad[] = {
        {.rows = -1, .cols = 1},
        {.rows = 1, .cols = INT64_C(1) << 31},
        {.rows = INT64_MAX / 4, .cols = 1000},
        {.format = KILN_CSR, .rows = 3, .cols = 3, .nnz = 10},
        {.rows = 3, .cols = 3, .passes = -1},
        {.rows = 3, .cols = 3, .k = -1},
    };
    kiln_work full;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ki_work_check(&full, &bad[i]), KILN_ERR_ARGUMENT);
    assert_int_equal(ki_work_check(&full, NULL), KILN_ERR_ARGUMENT);
}

/* A program of the first release has a kiln_work that ends with trial: what lies behind is not its. */
static void work_of_the_first_release(void **state) {
    (void)state;
    const size_t sizes[] = {0, offsetof(kiln_work, steps), sizeof(kiln_work)};
    for (int i = 0; i < 3; i++) {
        const kiln_work work = {.size = sizes[i], .rows = 1, .cols = 1, .steps = 40};
        kiln_work full;
        assert_int_equal(ki_work_check(&full, &work), KILN_OK);
        assert_int_equal(full.steps, i < 2 ? 0 : 40);
    }
}

/* ------------------------------------------------------------------------------------------- choosing */

static kiln_device *host;

/* With the kernels that other tests have built: before a test that has a cache of its own. */
static int open_with_kernels(void **state) {
    (void)state;
    return kiln_device_open(&host, "cpu", NULL) == KILN_OK ? 0 : -1;
}

static int close_with_kernels(void **state) {
    (void)state;
    kiln_device_close(host);
    return 0;
}

static int open_host(void **state) {
    (void)state;
    char folder[] = "/tmp/kiln-choose-XXXXXX";
    if (!mkdtemp(folder) || setenv("KILN_CACHE_DIR", folder, 1) != 0) return -1;
    return kiln_device_open(&host, "cpu", NULL) == KILN_OK ? 0 : -1;
}

static int close_host(void **state) {
    (void)state;
    char command[300];
    kiln_device_close(host);
    snprintf(command, sizeof command, "rm -r '%s'", getenv("KILN_CACHE_DIR"));
    return system(command) == 0 ? 0 : -1;
}

/* The choice's rows; closes a GPU that was opened. Returns whether the host was chosen. */
static bool choose(kiln_estimate rows[2], const kiln_work *work, int thorough) {
    kiln_device *device = NULL;
    kiln_estimate *estimates = NULL;
    int64_t count = 0;
    assert_int_equal(kiln_device_choose(&device, &estimates, &count, host, work,
                                        &(kiln_choose_options){.thorough = thorough}),
                     KILN_OK);
    assert_int_equal(count, 2);
    memcpy(rows, estimates, 2 * sizeof *rows);
    kiln_free(estimates);
    assert_int_equal(rows[0].chosen + rows[1].chosen, 1);
    assert_int_equal(rows[0].chosen, device == host);
    assert_true(rows[0].considered);
    if (device != host) kiln_device_close(device);
    return rows[0].chosen;
}

static void small_work_stays_and_measures_nothing(void **state) {
    (void)state;
    kiln_estimate rows[2];
    char path[300];
    assert_true(choose(rows, &(kiln_work){.rows = 1000, .cols = 28, .passes = 40}, 0));
    assert_false(rows[0].measured);
    assert_false(rows[1].considered);
    assert_non_null(strstr(rows[1].why, "not looked at"));
    snprintf(path, sizeof path, "%s/profile", getenv("KILN_CACHE_DIR"));
    assert_int_not_equal(access(path, F_OK), 0);
}

static void recall(void) {
    const struct ki_figures slow = {.read = 1e9, .iteration = 1e-5};
    const struct ki_figures fast = {.start = 0.01, .up = 1e11, .down = 1e11, .read = 4e12, .iteration = 1e-5};
    const struct {
        const char *name;
        double host, other;
    } figures[] = {{"start", 0, fast.start},
                   {"up", 0, fast.up},
                   {"down", 0, fast.down},
                   {"bandwidth", slow.read, fast.read},
                   {"dense 5 f64", slow.read, fast.read},
                   {"dense 40 f64", slow.read, fast.read},
                   {"dense 32768 f64", slow.read, fast.read},
                   {"dense latency f64", 0, 1},
                   {"dense issue f64", 0, 1},
                   {"iteration f64", slow.iteration, fast.iteration}};
    char name[300], owner[KI_FIGURE_OWNER];
    ki_figures_owner(owner, &host->info);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        snprintf(name, sizeof name, "%s %s", figures[i].name, owner);
        if (figures[i].host > 0) assert_int_equal(ki_cache_profile_put(host, name, figures[i].host), KILN_OK);
        snprintf(name, sizeof name, "%s cuda:9 Gone", figures[i].name);
        assert_int_equal(ki_cache_profile_put(host, name, figures[i].other), KILN_OK);
    }
}

static void remember(const char *text) {
    struct ki_cache *cache;
    const struct ki_piece piece = {text, strlen(text)};
    assert_int_equal(ki_cache_of(&cache, host), KILN_OK);
    ki_cache_write_file(cache, host, "gpu", &piece, 1);
}

/* A GPU that the profile praises but that is not there any more: the host takes over and says so. */
static void remembered_gpu_may_be_gone(void **state) {
    (void)state;
    kiln_estimate rows[2];
    const kiln_work work = {.rows = 4000000, .cols = 100, .passes = 5};
    recall();
    remember("cuda:9\tGone\t1000000000000\n");
    if (choose(rows, &work, 0)) {
        assert_true(rows[0].measured);
        assert_close(rows[0].pass_seconds, 3.2);
        assert_true(*rows[1].why);
    } else {
        assert_string_not_equal(rows[1].device, "cuda:9"); /* a real one */
    }
    /* With hardly any work a GPU that is remembered is not opened. */
    assert_true(choose(rows, &(kiln_work){.rows = 1000, .cols = 10, .passes = 2}, 0));
    assert_false(rows[1].considered);
}

static void damaged_memory_of_a_gpu_is_dropped(void **state) {
    (void)state;
    static const char *const damaged[] = {"", "cuda:0", "cuda:0\tX\t0\n", "cuda:0\tX\t12 and more\n",
                                          "\t\t\n"};
    kiln_estimate rows[2];
    char path[300];
    snprintf(path, sizeof path, "%s/gpu", getenv("KILN_CACHE_DIR"));
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        remember(damaged[i]);
        assert_true(choose(rows, &(kiln_work){.rows = 1000, .cols = 10}, 0));
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

static void thorough_measures(void **state) {
    (void)state;
    kiln_estimate rows[2];
    const kiln_work work = {.format = KILN_CSR, .rows = 1000, .cols = 50, .nnz = 5000};
    choose(rows, &work, 1);
    assert_true(rows[0].measured);
    assert_true(rows[0].read > 1e8 && rows[0].seconds > 0);
    assert_true(rows[1].considered || rows[1].why[0]);
}

static void wrong_arguments_of_a_choice(void **state) {
    (void)state;
    kiln_device *device = NULL;
    kiln_estimate *estimates = NULL;
    int64_t count;
    const kiln_work work = {.rows = 1, .cols = 1}, bad = {.rows = -1, .cols = 1};
    assert_int_equal(kiln_device_choose(NULL, &estimates, &count, host, &work, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_device_choose(&device, &estimates, &count, NULL, &work, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_device_choose(&device, &estimates, &count, host, &bad, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_device_choose(&device, &estimates, &count, host, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_null(device);
    assert_null(estimates);
}

/* ------------------------------------------------------------------------------- unlike devices' shares */

/* Figures of dense passes at so many bytes a second, as if they had been measured now. */
static void keep_rates(const kiln_device_info *info, double rate) {
    static const char *const rates[] = {"bandwidth",       "dense 5 f64", "dense 40 f64",
                                        "dense 32768 f64", "up",          "down"};
    static const char *const ones[] = {"dense latency f64", "dense issue f64", "iteration f64"};
    char name[300], owner[KI_FIGURE_OWNER];
    ki_figures_owner(owner, info);
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%s %s", rates[i], owner);
        assert_int_equal(ki_cache_profile_put(host, name, rate), KILN_OK);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s %s", ones[i], owner);
        assert_int_equal(ki_cache_profile_put(host, name, 1), KILN_OK);
    }
    snprintf(name, sizeof name, "dense until f64 %s", owner);
    assert_int_equal(ki_cache_profile_put(host, name, 1e11), KILN_OK);
}

static void no_message(void *user, const char *text) {
    (void)user;
    fail_msg("%s", text);
}

/* Returns the rows of the first member, OpenCL's, whose passes take three times as long as the CPU's. */
static int64_t rows_of_first(int64_t budget) {
    enum { ROWS = 1000, COLS = 9 };
    static double values[ROWS * COLS];
    const kiln_device_options options = {.memory = budget, .message = no_message};
    const struct ki_split *split;
    kiln_device *device = NULL;
    kiln_matrix *X = NULL;
    if (kiln_device_open(&device, "cpu,opencl:0.0", &options) != KILN_OK) skip();
    keep_rates(&device->group->own, 1e9);
    keep_rates(&device->group->member[1]->info, 3e9);
    assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLS, values), KILN_OK);
    assert_int_equal(ki_split_of(&split, X, KI_BY_ROWS), KILN_OK);
    const int64_t rows = split->first[1];
    kiln_matrix_free(X);
    kiln_device_close(device);
    return rows;
}

static void speeds_and_budgets_cut_rows(void **state) {
    (void)state;
    assert_int_equal(rows_of_first(0), 250);
    assert_int_equal(rows_of_first(7921), 100); /* a tenth of X, and a tenth of that beside it */
    assert_int_equal(rows_of_first(40000), 250);
}

/* ---------------------------------------------------------------------------------- moving, and plans */

enum { ROWS = 70, COLS = 9 };

static kiln_matrix *sample(kiln_device *device, kiln_format format) {
    kiln_matrix *X = NULL;
    double values[ROWS * COLS];
    int64_t start[ROWS + 1];
    int32_t col[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        values[i] = sin(i);
        col[i] = i % COLS;
    }
    for (int i = 0; i <= ROWS; i++) start[i] = i * COLS;
    if (format == KILN_DENSE)
        assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLS, values), KILN_OK);
    else
        assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, ROWS, COLS, start, col, values), KILN_OK);
    return X;
}

/* A second CPU device, and PoCL's or a GPU's where there is one. */
static kiln_device *open_other(int i) {
    kiln_device *device = NULL;
    if (kiln_device_open(&device, i ? "opencl" : "cpu", NULL) != KILN_OK)
        print_message("skip: no OpenCL device here\n");
    return device;
}

static void data_move_there_and_back(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        kiln_device *other = open_other(i / 2);
        kiln_data *data = NULL;
        double before[ROWS], after[ROWS];
        if (!other) continue;
        const int64_t used = host->statistics.memory_used;
        kiln_matrix *X = sample(host, i % 2 ? KILN_CSR : KILN_DENSE), *y = NULL;
        for (int r = 0; r < ROWS; r++) before[r] = r;
        assert_int_equal(kiln_matrix_dense(&y, host, KILN_F64, ROWS, 1, before), KILN_OK);
        assert_int_equal(kiln_data_create(&data, X, y), KILN_OK);
        assert_int_equal(kiln_data_move(data, other), KILN_OK);
        assert_ptr_equal(kiln_matrix_device(kiln_data_X(data)), other);
        assert_ptr_equal(kiln_matrix_device(kiln_data_y(data)), other);
        assert_int_equal(host->statistics.memory_used, used);
        assert_int_equal(kiln_matrix_get(after, kiln_data_y(data)), KILN_OK);
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(kiln_data_move(data, host), KILN_OK);
        assert_int_equal(kiln_matrix_get(after, kiln_data_y(data)), KILN_OK);
        assert_memory_equal(before, after, sizeof before);
        kiln_data_free(data);
        kiln_device_close(other);
    }
    assert_int_equal(kiln_data_move(NULL, host), KILN_ERR_ARGUMENT);
}

static void with_every_plan(kiln_device *device, kiln_format format) {
    kiln_plan *plans = NULL;
    int64_t count = 0, chosen = 0;
    kiln_matrix *X = sample(device, format), *v = NULL, *y = NULL, *w = NULL;
    double ones[ROWS], want[COLS], got[COLS];
    for (int i = 0; i < ROWS; i++) ones[i] = 1 + i % 3;
    assert_int_equal(kiln_matrix_dense(&v, device, KILN_F64, ROWS, 1, ones), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&y, device, KILN_F64, COLS, 1, ones), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&w, device, KILN_F64, COLS, 1, NULL), KILN_OK);
    assert_int_equal(kiln_mmchain(w, 1, X, v, y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_get(want, w), KILN_OK);
    const kiln_work work = {.format = format, .rows = ROWS, .cols = COLS, .nnz = ROWS * COLS};
    assert_int_equal(kiln_mmchain_plans(&plans, &count, device, &work), KILN_OK);
    assert_true(count >= 1);
    for (int64_t i = 0; i < count; i++) {
        chosen += plans[i].chosen;
        assert_int_equal(plans[i].number, i);
        assert_int_equal(kiln_fill(w, (double)NAN), KILN_OK);
        assert_int_equal(kiln_mmchain_with(&plans[i], w, X, v, y), KILN_OK);
        assert_int_equal(kiln_matrix_get(got, w), KILN_OK);
        for (int j = 0; j < COLS; j++)
            if (!(fabs(got[j] - want[j]) <= 1e-12 * 9 * ROWS))
                fail_msg("plan %d, element %d: %g, not %g", (int)i, j, got[j], want[j]);
    }
    assert_int_equal(chosen, 1);
    plans[0].number = count;
    plans[0].group = 1 << 20;
    assert_int_equal(kiln_mmchain_with(&plans[0], w, X, v, y), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_mmchain_with(NULL, w, X, v, y), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_mmchain_with(plans, w, X, v, w), KILN_ERR_ARGUMENT);
    kiln_free(plans);
    kiln_matrix_free(X);
    kiln_matrix_free(v);
    kiln_matrix_free(y);
    kiln_matrix_free(w);
}

static void every_plan_computes_the_same(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        kiln_device *device = open_other(i);
        if (!device) continue;
        with_every_plan(device, KILN_DENSE);
        with_every_plan(device, KILN_CSR);
        kiln_device_close(device);
    }
}

static void plans_of_nothing_are_refused(void **state) {
    (void)state;
    kiln_plan *plans = NULL;
    int64_t count;
    static const kiln_work bad[] = {{.rows = 0, .cols = 5},
                                    {.format = KILN_CSR, .rows = 5, .cols = 5},
                                    {.rows = 5, .cols = 5, .k = 65537}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(kiln_mmchain_plans(&plans, &count, host, &bad[i]), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_mmchain_plans(&plans, &count, NULL, &bad[0]), KILN_ERR_ARGUMENT);
    assert_null(plans);
}

/* While others have the processor, time passes that is not the work's. */
static void waiting_is_not_work(void **state) {
    (void)state;
    struct ki_stopwatch start = ki_stopwatch_begin();
    usleep(200000);
    assert_true(ki_stopwatch_seconds(start, host) < 0.1);
    start = ki_stopwatch_begin();
    const double until = ki_clock() + 0.02;
    while (ki_clock() < until) continue;
    assert_true(ki_stopwatch_seconds(start, host) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_add_up),
        cmocka_unit_test(dense_rates_lie_between_those_measured),
        cmocka_unit_test(sparse_rates_fall_with_the_columns),
        cmocka_unit_test(thin_rates_fall_without_end),
        cmocka_unit_test(the_gpu_takes_over_once),
        cmocka_unit_test(senseless_work_is_refused),
        cmocka_unit_test(work_of_the_first_release),
        cmocka_unit_test_setup_teardown(data_move_there_and_back, open_with_kernels, close_with_kernels),
        cmocka_unit_test_setup_teardown(every_plan_computes_the_same, open_with_kernels, close_with_kernels),
        cmocka_unit_test_setup_teardown(small_work_stays_and_measures_nothing, open_host, close_host),
        cmocka_unit_test_setup_teardown(remembered_gpu_may_be_gone, open_host, close_host),
        cmocka_unit_test_setup_teardown(speeds_and_budgets_cut_rows, open_host, close_host),
        cmocka_unit_test_setup_teardown(damaged_memory_of_a_gpu_is_dropped, open_host, close_host),
        cmocka_unit_test_setup_teardown(thorough_measures, open_host, close_host),
        cmocka_unit_test_setup_teardown(wrong_arguments_of_a_choice, open_host, close_host),
        cmocka_unit_test_setup_teardown(waiting_is_not_work, open_host, close_host),
        cmocka_unit_test_setup_teardown(plans_of_nothing_are_refused, open_host, close_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
