/* The runs by which the cost model learns what PageRank, K-Means, multi-dimensional scaling, factor and topic
 * models take (choose/trial.h): their data, and what an iteration's time grows with. None of these runs is to
 * converge before its iterations are over. */
#include "algorithms/algorithm.h"
#include "algorithms/registry.h"
#include "choose/trial.h"

enum { LINKS = 8, COLUMNS = 16, CLUSTERS = 16, DIMENSIONS = 2, FACTORS = 16 };
static const double NEVER = 1e-300; /* a tolerance */

/* Rows spread evenly in a cube. */
static kiln_status make_points(kiln_matrix **X, kiln_device *device, kiln_type type, int64_t rows) {
    kiln_status status;
    struct ki_draws draws = {.stream = KI_STREAM_MADE};
    const int64_t count = rows * COLUMNS;
    void *values = ki_alloc((size_t)(count * ki_type_bytes(type)));
    if (!values)
        return ki_fail_nomem((size_t)(count * ki_type_bytes(type)), "points to measure a device with");
    for (int64_t i = 0; i < count; i++) {
        const double value = ki_draw(&draws);
        if (type == KILN_F32)
            ((float *)values)[i] = (float)value;
        else
            ((double *)values)[i] = value;
    }
    status = kiln_matrix_dense(X, device, type, rows, COLUMNS, values);
    ki_free(values);
    return status;
}

static kiln_work work_on_points(int64_t rows) {
    return (kiln_work){.format = KILN_DENSE,
                       .type = KILN_F64,
                       .rows = rows,
                       .cols = COLUMNS,
                       .nnz = rows * COLUMNS,
                       .k = CLUSTERS};
}

/* ------------------------------------------------------------------------------------------- PageRank */

static kiln_work work_on_links(int64_t rows) {
    return (kiln_work){
        .format = KILN_CSR, .type = KILN_F64, .rows = rows, .cols = rows, .nnz = rows * LINKS, .k = 1};
}

/* Rankings share each link; eight of them take about as long as three. */
static double links_of(const kiln_work *work) {
    return (double)work->nnz * (1 + 0.3 * (double)(work->k - 1)) + (double)work->rows;
}

/* Ones to fives by turns. */
static void rate(void *values, kiln_type type, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int value = 1 + (int)(i * 7 % 11 % 5);
        if (type == KILN_F32)
            ((float *)values)[i] = (float)value;
        else
            ((double *)values)[i] = value;
    }
}

/* A link of each vertex to somewhere in each eighth of the vertices, so that links ascend and differ. */
static kiln_status make_links(kiln_matrix **X, kiln_device *device, kiln_type type, int64_t rows,
                              bool rated) {
    kiln_status status = KILN_OK;
    struct ki_draws draws = {.stream = KI_STREAM_MADE};
    const int64_t count = rows * LINKS, stretch = rows / LINKS;
    int64_t *start = ki_alloc((size_t)(rows + 1) * 8);
    int32_t *to = ki_alloc((size_t)count * 4);
    void *values = ki_calloc((size_t)(count * ki_type_bytes(type)));
    if (!start || !to || !values)
        TRY(ki_fail_nomem((size_t)(count * (4 + ki_type_bytes(type))), "a graph to measure a device with"));
    for (int64_t i = 0; i <= rows; i++) start[i] = i * LINKS;
    for (int64_t i = 0; i < count; i++)
        to[i] = (int32_t)(i % LINKS * stretch + (int64_t)(ki_draw(&draws) * (double)stretch));
    if (rated) rate(values, type, count);
    TRY(kiln_matrix_csr(X, device, type, rows, rows, start, to, values));
done:
    ki_free(start);
    ki_free(to);
    ki_free(values);
    return status;
}

static kiln_status make_graph(kiln_matrix **X, kiln_device *device, kiln_type type, int64_t rows) {
    return make_links(X, device, type, rows, false);
}

static kiln_status run_pagerank(int64_t *done, const kiln_matrix *X, int64_t iterations) {
    kiln_matrix *ranks = NULL;
    kiln_status status;
    TRY(kiln_matrix_dense(&ranks, kiln_matrix_device(X), kiln_matrix_type(X), kiln_matrix_rows(X), 1, NULL));
    TRY(kiln_pagerank(ranks, X, &(kiln_pagerank_options){.iterations = iterations}, NULL));
    *done = iterations;
done:
    kiln_matrix_free(ranks);
    return status;
}

const struct kiln_trial ki_trial_pagerank = {.name = "pagerank",
                                             .rows = {1 << 10, 1 << 15, 1 << 18},
                                             .times_gpu = 8,
                                             .slow = 8e-9,
                                             .bytes = 64,
                                             .work = work_on_links,
                                             .units = links_of,
                                             .make = make_graph,
                                             .run = run_pagerank};

/* -------------------------------------------------------------------------------------------- K-Means */

/* Each centre is a product with each row, and reading and adding up the rows is as much as four. */
static double products_of(const kiln_work *work) {
    return (double)work->nnz * (double)(work->k + 4);
}

static kiln_status run_kmeans(int64_t *done, const kiln_matrix *X, int64_t iterations) {
    kiln_matrix *centres = NULL;
    kiln_report report = {.size = sizeof report};
    kiln_status status;
    TRY(kiln_matrix_dense(&centres, kiln_matrix_device(X), kiln_matrix_type(X), CLUSTERS, COLUMNS, NULL));
    TRY(kiln_kmeans(centres, X, &(kiln_kmeans_options){.tolerance = NEVER, .max_iterations = iterations},
                    &report));
    *done = report.iterations;
done:
    kiln_report_free(&report);
    kiln_matrix_free(centres);
    return status;
}

const struct kiln_trial ki_trial_kmeans = {.name = "kmeans",
                                           .rows = {1 << 10, 1 << 15, 1 << 18},
                                           .times_gpu = 8,
                                           .slow = 5e-10,
                                           .bytes = 2,
                                           .work = work_on_points,
                                           .units = products_of,
                                           .make = make_points,
                                           .run = run_kmeans};

/* -------------------------------------------------------------------------- multi-dimensional scaling */

/* A pair's dissimilarity and distance cost as much as three dimensions. */
static double pairs_of(const kiln_work *work) {
    return (double)work->rows * (double)work->rows / 2 * (double)(work->k + 3);
}

static kiln_work work_on_layout(int64_t rows) {
    kiln_work work = work_on_points(rows);
    work.k = DIMENSIONS;
    return work;
}

static kiln_status run_mds(int64_t *done, const kiln_matrix *X, int64_t iterations) {
    kiln_matrix *Y = NULL;
    kiln_report report = {.size = sizeof report};
    kiln_status status;
    TRY(kiln_matrix_dense(&Y, kiln_matrix_device(X), kiln_matrix_type(X), kiln_matrix_rows(X), DIMENSIONS,
                          NULL));
    TRY(kiln_mds(Y, X, &(kiln_mds_options){.tolerance = NEVER, .max_iterations = iterations}, &report));
    *done = report.iterations;
done:
    kiln_report_free(&report);
    kiln_matrix_free(Y);
    return status;
}

const struct kiln_trial ki_trial_mds = {.name = "layout",
                                        .rows = {1 << 7, 1 << 10, 1 << 12},
                                        .times_gpu = 3,
                                        .slow = 1e-9,
                                        .bytes = 13,
                                        .work = work_on_layout,
                                        .units = pairs_of,
                                        .make = make_points,
                                        .run = run_mds};

/* -------------------------------------------------------------------------------- factors and topics */

/* Numbers of rows and columns that an iteration takes up: those that meet at an entry, and each one's own. */
static double factors_of(const kiln_work *work) {
    return (double)(work->nnz + work->rows + work->cols) * (double)(work->k + 4);
}

/* A step of LDA goes over the entries, for each of which a document's and a word's topics meet, and takes
 * digammas and exponentials of the documents' topics; what follows the steps goes over the entries twice, and
 * takes logarithms of gamma functions of both besides. STEP, AFTER: such a number in times of an entry's, as
 * measured on a processor with 500 to 8,192 documents, 500 to 30,000 words, 16 and 64 topics. */
static double documents_of(const kiln_work *work) {
    static const double STEP = 25, AFTER = 75;
    const double steps = work->steps > 0 ? (double)work->steps : 2;
    return (double)work->nnz * (double)(work->k + 4) * (steps + 2) +
           (double)work->k * ((double)work->rows * (STEP * steps + AFTER) + (double)work->cols * AFTER);
}

static kiln_work work_on_factors(int64_t rows) {
    kiln_work work = work_on_links(rows);
    work.k = FACTORS;
    return work;
}

static kiln_status make_ratings(kiln_matrix **X, kiln_device *device, kiln_type type, int64_t rows) {
    return make_links(X, device, type, rows, true);
}

enum model { ALS, SFA, LDA, GAP };

static kiln_status train(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, enum model model,
                         int64_t iterations, kiln_report *report) {
    switch (model) {
    case ALS:
        return kiln_als(A, B, X, &(kiln_als_options){.tolerance = NEVER, .max_iterations = iterations},
                        report);
    case SFA:
        return kiln_sfa(A, B, X, &(kiln_sfa_options){.tolerance = NEVER, .max_iterations = iterations},
                        report);
    case LDA:
        return kiln_lda(A, B, X, &(kiln_lda_options){.tolerance = NEVER, .max_iterations = iterations},
                        report);
    default:
        return kiln_gap(A, B, X, &(kiln_gap_options){.tolerance = NEVER, .max_iterations = iterations},
                        report);
    }
}

static kiln_status run_factors(int64_t *done, const kiln_matrix *X, int64_t iterations, enum model model) {
    kiln_device *device = kiln_matrix_device(X);
    kiln_matrix *A = NULL, *B = NULL;
    kiln_report report = {.size = sizeof report};
    kiln_status status;
    TRY(kiln_matrix_dense(&A, device, kiln_matrix_type(X), kiln_matrix_rows(X), FACTORS, NULL));
    TRY(kiln_matrix_dense(&B, device, kiln_matrix_type(X), kiln_matrix_cols(X), FACTORS, NULL));
    TRY(train(A, B, X, model, iterations, &report));
    *done = report.iterations;
done:
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
    return status;
}

#define FACTOR_TRIAL(of, model, called, grows, longest, room)                                                \
    static kiln_status run_##of(int64_t *done, const kiln_matrix *X, int64_t iterations) {                   \
        return run_factors(done, X, iterations, model);                                                      \
    }                                                                                                        \
    const struct kiln_trial ki_trial_##of = {.name = called,                                                 \
                                             .rows = {1 << 7, 1 << 10, 1 << 13},                             \
                                             .times_gpu = 16,                                                \
                                             .slow = longest,                                                \
                                             .bytes = room,                                                  \
                                             .work = work_on_factors,                                        \
                                             .units = grows,                                                 \
                                             .make = make_ratings,                                           \
                                             .run = run_##of};

FACTOR_TRIAL(als, ALS, "als", factors_of, 1e-7, 24)
FACTOR_TRIAL(sfa, SFA, "sfa", factors_of, 1e-7, 24)
FACTOR_TRIAL(lda, LDA, "documents", documents_of, 5e-9, 2)
FACTOR_TRIAL(gap, GAP, "gap", factors_of, 1e-7, 24)
