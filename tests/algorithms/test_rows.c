/* Few rows in the caller's memory: predictions and lists against plain loops in double, within what rounding
 * may make of their sums; the same bits for any number of threads; what is refused. */
#include "algorithms/on_cpu.h"

#include <float.h>

enum { ROWS = 11, MOST = 700 };

static double epsilon_of(kiln_type type) {
    return type == KILN_F32 ? FLT_EPSILON : DBL_EPSILON;
}

static double number(const void *from, kiln_type type, int64_t i) {
    return type == KILN_F32 ? ((const float *)from)[i] : ((const double *)from)[i];
}

/* Numbers of the type, in [-1, 1). */
static void *numbers(kiln_type type, int64_t count, uint64_t *seed) {
    void *made = malloc((size_t)count * (type == KILN_F32 ? 4 : 8) + 1);
    for (int64_t i = 0; i < count; i++) {
        const double value = 2 * uniform(seed) - 1;
        if (type == KILN_F32)
            ((float *)made)[i] = (float)value;
        else
            ((double *)made)[i] = value;
    }
    return made;
}

/* Rows of a third of the columns, one of them without any. */
struct sparse {
    int32_t start[ROWS + 1];
    int64_t long_start[ROWS + 1];
    int32_t col[ROWS * MOST];
};

static void fill_sparse(struct sparse *s, int64_t rows, int64_t cols, uint64_t *seed) {
    s->start[0] = 0;
    s->long_start[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t at = s->start[i];
        for (int64_t j = 0; j < cols; j++)
            if (i != 2 && uniform(seed) < 0.33) s->col[at++] = (int32_t)j;
        s->start[i + 1] = at;
        s->long_start[i + 1] = at;
    }
}

struct problem {
    kiln_type type;
    int64_t m, n, k;
    bool sparse, by_outputs, wide;
};

/* eta and how large its terms are together, for row i and output c. */
static double eta_of(double *size, const struct problem *p, const kiln_row_model *model, const kiln_memory *X,
                     const struct sparse *s, int64_t i, int64_t c) {
    const int64_t first = p->sparse ? s->start[i] : i * p->n;
    const int64_t count = p->sparse ? s->start[i + 1] - first : p->n;
    double sum = model->b ? number(model->b, p->type, c) : 0;
    *size = fabs(sum);
    for (int64_t e = 0; e < count; e++) {
        const int64_t j = p->sparse ? s->col[first + e] : e;
        const double term = number(X->values, p->type, first + e) *
                            number(model->W, p->type, j * model->input_step + c * model->output_step);
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

static void check_problem(const struct problem *p) {
    static struct sparse s;
    static double out[ROWS * MOST], again[ROWS * MOST];
    uint64_t seed = (uint64_t)(p->n * 1000 + p->k);
    void *W = numbers(p->type, p->n * p->k, &seed), *b = numbers(p->type, p->k, &seed);
    void *x = numbers(p->type, p->m * p->n, &seed);
    fill_sparse(&s, p->m, p->n, &seed);
    kiln_row_model model = {.size = sizeof model, .type = p->type, .inputs = p->n, .outputs = p->k, .W = W};
    model.input_step = p->by_outputs ? 1 : p->k;
    model.output_step = p->by_outputs ? p->n : 1;
    model.b = p->k % 2 ? b : NULL;
    kiln_memory X = {.size = sizeof X, .type = p->type, .rows = p->m, .cols = p->n, .values = x};
    if (p->sparse) {
        X.row_start = p->wide ? (const void *)s.long_start : (const void *)s.start;
        X.row_start_bits = p->wide ? 64 : 32;
        X.col = s.col;
    }
    assert_int_equal(kiln_predict_rows(out, device, &model, &X), KILN_OK);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t c = 0; c < p->k; c++) {
            double size;
            const double eta = eta_of(&size, p, &model, &X, &s, i, c);
            const double found = number(out, p->type, i * p->k + c);
            assert_true(fabs(found - eta) <= (double)(p->n + 2) * epsilon_of(p->type) * size);
        }
    kiln_device *three = NULL;
    assert_int_equal(kiln_device_open(&three, "cpu", &(kiln_device_options){.threads = 3}), KILN_OK);
    assert_int_equal(kiln_predict_rows(again, three, &model, &X), KILN_OK);
    assert_memory_equal(out, again, (size_t)(p->m * p->k) * (p->type == KILN_F32 ? 4 : 8));
    kiln_device_close(three);
    free(W);
    free(b);
    free(x);
}

static void predictors_are_sums(void **state) {
    static const int64_t shapes[][3] = {{1, 1, 1},  {1, 30, 1},   {3, 17, 3},  {11, 30, 2},  {5, 100, 37},
                                        {4, 9, 64}, {11, 64, 70}, {1, 64, 70}, {11, 700, 1}, {11, 700, 300}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 16; kind++)
            check_problem(&(struct problem){kind & 1 ? KILN_F32 : KILN_F64, shapes[i][0], shapes[i][1],
                                            shapes[i][2], kind & 2, kind & 4, kind & 8});
}

/* A model of n columns, and what kiln_predict makes of rows. */
static void check_model(const char *algorithm, int64_t k, const char *family, const char *link,
                        kiln_type type) {
    enum { N = 6, M = 5 };
    uint64_t seed = 3;
    void *w = numbers(type, N * k, &seed), *x = numbers(type, M * N, &seed), *b = numbers(type, k, &seed);
    const double classes[] = {0, 1, 2, 3, 4}, parameters[] = {1.5, 0};
    double predicted[M * 8], found[M * 8];
    kiln_model *model = NULL;
    kiln_matrix *W = NULL, *B = NULL, *X = NULL, *P = NULL, *C = NULL;
    assert_int_equal(kiln_model_create(&model, algorithm), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&W, device, type, N, k, w), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, type, 1, k, b), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&X, device, type, M, N, x), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "W", W), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "b", B), KILN_OK);
    if (strcmp(algorithm, "logreg") == 0) {
        assert_int_equal(kiln_matrix_dense(&C, device, KILN_F64, k == 1 ? 2 : k, 1, classes), KILN_OK);
        assert_int_equal(kiln_model_set_tensor(model, "classes", C), KILN_OK);
    }
    if (family) {
        assert_int_equal(kiln_matrix_dense(&C, device, KILN_F64, 1, 2, parameters), KILN_OK);
        assert_int_equal(kiln_model_set_tensor(model, "parameters", C), KILN_OK);
        assert_int_equal(kiln_model_set_text(model, "family", family), KILN_OK);
        assert_int_equal(kiln_model_set_text(model, "link", link), KILN_OK);
    }
    assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
    assert_int_equal(kiln_matrix_get(predicted, P), KILN_OK);
    kiln_row_model rows = {.size = sizeof rows};
    assert_int_equal(kiln_row_model_of(&rows, model), KILN_OK);
    assert_int_equal(kiln_row_model_columns(&rows), kiln_matrix_cols(P));
    const kiln_memory memory = {.size = sizeof memory, .type = type, .rows = M, .cols = N, .values = x};
    assert_int_equal(kiln_predict_rows(found, device, &rows, &memory), KILN_OK);
    for (int64_t i = 0; i < M * kiln_matrix_cols(P); i++) {
        const double wanted = number(predicted, type, i);
        /* eta is below 7 in size, and so wrong by 7 (N + 2) epsilon at most; a mean's slope is that of exp */
        assert_true(fabs(number(found, type, i) - wanted) <=
                    64 * epsilon_of(type) * fmax(1, 8 * fabs(wanted)));
    }
    kiln_matrix_free(W);
    kiln_matrix_free(B);
    kiln_matrix_free(C);
    kiln_matrix_free(X);
    kiln_matrix_free(P);
    kiln_model_free(model);
    free(w);
    free(x);
    free(b);
}

static void models_predict_alike(void **state) {
    (void)state;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        check_model("linreg", 1, NULL, NULL, type);
        check_model("linreg", 3, NULL, NULL, type);
        check_model("logreg", 1, NULL, NULL, type);
        check_model("logreg", 5, NULL, NULL, type);
        check_model("glm", 1, "poisson", "log", type);
        check_model("glm", 1, "binomial", "default", type);
        check_model("glm", 1, "tweedie", "log", type);
    }
}

/* ------------------------------------------------------------------------------------------- lists */

struct lists {
    kiln_row_lists of;
    struct sparse seen;
    unsigned char allowed[MOST];
};

static bool is_left_out(const struct lists *l, int64_t i, int64_t j) {
    if (l->of.allowed && !l->allowed[j]) return true;
    for (int32_t e = l->seen.start[i]; l->of.seen && e < l->seen.start[i + 1]; e++)
        if (l->seen.col[e] == j) return true;
    return false;
}

/* The score, and what rounding may make of it. */
static double score_of(double *bound, const kiln_row_lists *of, int64_t i, int64_t j) {
    double product = 0, size = 0, a2 = 0, b2 = 0;
    for (int64_t r = 0; r < of->factors; r++) {
        const double a = number(of->A, of->type, i * of->factors + r);
        const double b = number(of->B, of->type, j * of->factors + r);
        product += a * b;
        size += fabs(a * b);
        a2 += a * a;
        b2 += b * b;
    }
    const double unit = (double)(of->factors + 4) * epsilon_of(of->type);
    if (!of->cosines) {
        const double offset = of->offsets ? number(of->offsets, of->type, j) : 0;
        *bound = unit * (size + fabs(offset));
        return product + offset;
    }
    *bound = 4 * unit;
    return a2 * b2 > 0 ? product / sqrt(a2 * b2) : 0;
}

static void check_list(const struct lists *l, const int64_t *columns, const double *scores, int64_t i) {
    const kiln_row_lists *of = &l->of;
    bool listed[MOST] = {false};
    double bound, last = INFINITY;
    int64_t left = 0;
    for (int64_t j = 0; j < of->columns; j++) left += !is_left_out(l, i, j);
    for (int64_t t = 0; t < of->top; t++) {
        const int64_t j = columns[i * of->top + t];
        if (t >= left) {
            assert_int_equal(j, -1);
            assert_true(isnan(scores[i * of->top + t]));
            continue;
        }
        assert_true(j >= 0 && j < of->columns && !listed[j] && !is_left_out(l, i, j));
        const double score = score_of(&bound, of, i, j);
        assert_true(fabs(scores[i * of->top + t] - score) <= bound);
        assert_true(scores[i * of->top + t] <= last);
        last = scores[i * of->top + t];
        listed[j] = true;
    }
    for (int64_t j = 0; j < of->columns; j++)
        if (!listed[j] && !is_left_out(l, i, j)) {
            const double score = score_of(&bound, of, i, j);
            assert_true(left <= of->top || score <= last + 2 * bound);
        }
}

static void lists_are_the_best(void **state) {
    static struct lists l;
    static int64_t columns[ROWS * 80], same[ROWS * 80];
    static double scores[ROWS * 80], again[ROWS * 80];
    kiln_device *three = NULL;
    (void)state;
    assert_int_equal(kiln_device_open(&three, "cpu", &(kiln_device_options){.threads = 3}), KILN_OK);
    for (int kind = 0; kind < 64; kind++) {
        const kiln_type type = kind & 1 ? KILN_F32 : KILN_F64;
        const int64_t factors = kind & 2 ? 32 : 5, n = kind & 4 ? MOST : 6, top = kind & 8 ? 80 : 10;
        uint64_t seed = (uint64_t)kind;
        void *A = numbers(type, ROWS * factors, &seed), *B = numbers(type, n * factors, &seed);
        void *offsets = numbers(type, n, &seed);
        memset(B, 0, (size_t)factors * (type == KILN_F32 ? 4 : 8)); /* of length 0 */
        fill_sparse(&l.seen, ROWS, n, &seed);
        for (int64_t j = 0; j < n; j++) l.allowed[j] = uniform(&seed) < 0.7;
        const kiln_memory seen = {.size = sizeof seen,
                                  .rows = ROWS,
                                  .cols = n,
                                  .row_start = l.seen.start,
                                  .row_start_bits = 32,
                                  .col = l.seen.col};
        l.of = (kiln_row_lists){.size = sizeof l.of,
                                .type = type,
                                .rows = ROWS,
                                .columns = n,
                                .factors = factors,
                                .A = A,
                                .B = B,
                                .cosines = (kind & 16) != 0,
                                .offsets = kind & 16 || kind & 1 ? NULL : offsets,
                                .seen = kind & 32 ? &seen : NULL,
                                .allowed = kind & 32 ? l.allowed : NULL,
                                .top = top};
        assert_int_equal(kiln_list_rows(columns, scores, device, &l.of), KILN_OK);
        for (int64_t i = 0; i < ROWS; i++) check_list(&l, columns, scores, i);
        assert_int_equal(kiln_list_rows(same, again, three, &l.of), KILN_OK);
        assert_memory_equal(columns, same, sizeof *columns * ROWS * (size_t)top);
        free(A);
        free(B);
        free(offsets);
    }
    kiln_device_close(three);
}

/* One row and so many products that its list is made in slices; scores are equal in threes. */
static void slices_are_merged(void **state) {
    enum { N = 40000, R = 32 };
    float *B = malloc(sizeof *B * N * R), a[R];
    int64_t columns[20];
    double scores[20];
    kiln_device *three = NULL;
    (void)state;
    assert_int_equal(kiln_device_open(&three, "cpu", &(kiln_device_options){.threads = 3}), KILN_OK);
    for (int r = 0; r < R; r++) a[r] = r == 0;
    for (int j = 0; j < N; j++)
        for (int r = 0; r < R; r++) B[j * R + r] = (float)(j % (N / 3));
    const kiln_row_lists of = {.size = sizeof of,
                               .type = KILN_F32,
                               .rows = 1,
                               .columns = N,
                               .factors = R,
                               .A = a,
                               .B = B,
                               .top = 20};
    assert_int_equal(kiln_list_rows(columns, scores, three, &of), KILN_OK);
    for (int t = 0; t < 20; t++) {
        const int64_t value = N / 3 - 1 - t / 3;
        assert_true(scores[t] == (double)value);
        assert_int_equal(columns[t], value + t % 3 * (N / 3));
    }
    kiln_device_close(three);
    free(B);
}

/* ---------------------------------------------------------------------------------------- refusals */

static void what_does_not_fit_is_refused(void **state) {
    double w[6] = {0}, x[6] = {0}, out[6] = {0}, scores[4];
    int64_t columns[4];
    const int32_t starts[] = {0, 2}, falling[] = {0, -1}, from_one[] = {1, 2}, col[] = {1, 0}, far[] = {0, 3};
    (void)state;
    const kiln_row_model good = {.size = sizeof good,
                                 .type = KILN_F64,
                                 .inputs = 3,
                                 .outputs = 2,
                                 .W = w,
                                 .input_step = 2,
                                 .output_step = 1};
    const kiln_memory X = {.size = sizeof X, .type = KILN_F64, .rows = 1, .cols = 3, .values = x};
    assert_int_equal(kiln_predict_rows(out, device, &good, &X), KILN_OK);
    kiln_row_model model = good;
    kiln_memory memory = X;
    assert_int_equal(kiln_predict_rows(NULL, device, &good, &X), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_predict_rows(out, NULL, &good, &X), KILN_ERR_ARGUMENT);
#define REFUSED(status, struct_, good_, field, value)                                                        \
    struct_ = good_;                                                                                         \
    struct_.field = (value);                                                                                 \
    assert_int_equal(kiln_predict_rows(out, device, &model, &memory), status);                               \
    struct_ = good_
    REFUSED(KILN_ERR_ARGUMENT, model, good, type, KILN_F32);
    REFUSED(KILN_ERR_ARGUMENT, model, good, type, (kiln_type)7);
    REFUSED(KILN_ERR_ARGUMENT, model, good, W, NULL);
    REFUSED(KILN_ERR_ARGUMENT, model, good, outputs, 0);
    REFUSED(KILN_ERR_ARGUMENT, model, good, input_step, 1);
    REFUSED(KILN_ERR_ARGUMENT, memory, X, values, NULL);
    REFUSED(KILN_ERR_ARGUMENT, memory, X, on_device, 1);
    REFUSED(KILN_ERR_MODEL, memory, X, cols, 4);
    model.has_mean = 1;
    REFUSED(KILN_ERR_ARGUMENT, memory, X, rows, 1); /* no kind of loss */
    model.has_mean = 1;
    model.kind = KILN_LOSS_LOGISTIC; /* of one output */
    assert_int_equal(kiln_predict_rows(out, device, &model, &memory), KILN_ERR_ARGUMENT);
    model = good;
    memory.row_start = starts;
    memory.row_start_bits = 32;
    assert_int_equal(kiln_predict_rows(out, device, &model, &memory), KILN_ERR_ARGUMENT); /* no col */
    memory.col = col;
    const kiln_memory sparse = memory;
    assert_int_equal(kiln_predict_rows(out, device, &model, &sparse), KILN_OK); /* in any order */
    REFUSED(KILN_ERR_DATA, memory, sparse, row_start, falling);
    REFUSED(KILN_ERR_DATA, memory, sparse, row_start, from_one);
    REFUSED(KILN_ERR_DATA, memory, sparse, col, far);
    REFUSED(KILN_ERR_ARGUMENT, memory, sparse, row_start_bits, 16);
#undef REFUSED
    kiln_row_lists lists = {.size = sizeof lists,
                            .type = KILN_F64,
                            .rows = 1,
                            .columns = 3,
                            .factors = 2,
                            .A = x,
                            .B = w,
                            .top = 2,
                            .seen = &sparse};
    assert_int_equal(kiln_list_rows(columns, scores, device, &lists), KILN_ERR_DATA); /* not ascending */
    lists.seen = NULL;
    assert_int_equal(kiln_list_rows(columns, scores, device, &lists), KILN_OK);
    assert_int_equal(kiln_list_rows(NULL, scores, device, &lists), KILN_ERR_ARGUMENT);
    lists.top = 0;
    assert_int_equal(kiln_list_rows(columns, scores, device, &lists), KILN_ERR_ARGUMENT);
    lists.top = 2;
    lists.cosines = 1;
    lists.offsets = w;
    assert_int_equal(kiln_list_rows(columns, scores, device, &lists), KILN_ERR_ARGUMENT);
    lists.offsets = NULL;
    lists.seen = &X;
    assert_int_equal(kiln_list_rows(columns, scores, device, &lists), KILN_ERR_ARGUMENT); /* dense */
    kiln_model *centres = NULL;
    kiln_row_model rows = {.size = sizeof rows};
    assert_int_equal(kiln_model_create(&centres, "kmeans"), KILN_OK);
    assert_int_equal(kiln_row_model_of(&rows, centres), KILN_ERR_MODEL);
    assert_int_equal(kiln_row_model_of(NULL, centres), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_row_model_columns(NULL), 0);
    kiln_model_free(centres);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictors_are_sums), cmocka_unit_test(models_predict_alike),
        cmocka_unit_test(lists_are_the_best), cmocka_unit_test(slices_are_merged),
        cmocka_unit_test(what_does_not_fit_is_refused)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
