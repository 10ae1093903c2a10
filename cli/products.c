/* kiln mmchain and kiln sddmm: the two fused operations on files, once. */
#include <math.h>
#include <string.h>

#include "common.h"
#include "files.h"
#include "progress.h"
#include "verbs.h"

struct mmchain_wanted {
    const char *v, *z;
    double alpha, beta;
};

struct sddmm_wanted {
    const char *kind; /* NULL: product */
    double alpha, floor;
};

enum { OPERANDS = 4 };

struct product {
    struct run *run;
    kiln_data *data[OPERANDS]; /* the files, in the order in which they were read */
    int count;
    kiln_device *host;     /* of processes: what reads the files behind the first */
    const char *operation; /* of C, without kiln_ */
    kiln_matrix *result;
    int64_t k; /* columns of the dense operands */
};

/* ------------------------------------------------------------------------------------------- operands */

/* Into the first process, where vectors and factors lie, though processes share a file's rows. */
static int read_apart(struct product *p, kiln_data **data, const char *path) {
    struct run *run = p->run;
    kiln_device *shared = run->device;
    if (!p->host && kiln_device_open(&p->host, "cpu", NULL) != KILN_OK) return fail_library(WORKING);
    run->device = p->host;
    const int code = run_read(run, data, path, type_of(run->settings->type), NULL);
    run->device = shared;
    return code || kiln_data_move(*data, shared) == KILN_OK ? code : fail_library(WORKING);
}

/* --format and --zero-based are about the first file alone. */
static int read_operand(struct product *p, const kiln_matrix **operand, const char *path) {
    struct run *run = p->run;
    const struct settings *given = run->settings;
    struct settings plain = *given;
    plain.format = NULL;
    plain.zero_based = false;
    kiln_data **data = &p->data[p->count++];
    if (p->count > 1) run->settings = &plain;
    int code = p->count > 1 && run->processes ? read_apart(p, data, path)
                                              : run_read(run, data, path, type_of(given->type), NULL);
    if (!code) code = run_read_columns(run, *data, NULL, NULL, NULL);
    run->settings = given;
    if (!code) *operand = kiln_data_X(*data);
    return code;
}

/* A dense operand, which has as many rows as the first file has of what `count` counts. */
static int read_dense(struct product *p, const kiln_matrix **operand, const char *path, int64_t count,
                      const char *counted) {
    const int code = read_operand(p, operand, path);
    if (code) return code;
    if (kiln_matrix_format(*operand) == KILN_CSR)
        return fail_with(KILN_ERR_DATA, READING, "CSV, npy and dense Matrix Market files are dense",
                         "%s is sparse, and must be dense", path);
    if (kiln_matrix_rows(*operand) == count) return 0;
    return fail_with(KILN_ERR_DATA, READING, "kiln info shows the shape of a file", "%s has %s, and %s %s",
                     path, text_plural(kiln_matrix_rows(*operand), "row"), p->run->arguments[0],
                     text_plural(count, counted));
}

/* The columns of `operand` are k, or one where that is allowed. */
static int check_columns(const struct product *p, const kiln_matrix *operand, const char *path, bool one) {
    const int64_t columns = kiln_matrix_cols(operand);
    if (columns == p->k || (one && columns == 1)) return 0;
    return fail_with(KILN_ERR_DATA, READING, "kiln info shows the shape of a file", "%s has %s, and %s %s",
                     path, text_plural(columns, "column"), p->run->arguments[1], text_count(p->k));
}

static int begin(struct product *p, struct run *run, const char *operation) {
    *p = (struct product){.run = run, .operation = operation};
    const int code = run_check_outputs(run);
    return code ? code : run_open_device(run, "cpu");
}

/* -------------------------------------------------------------------------------------------- results */

static int write_result(struct product *p) {
    struct run *run = p->run;
    kiln_control control = talk_control("write", 0);
    kiln_data *data = NULL;
    if (!run->settings->output) return 0;
    if (kiln_data_create(&data, p->result, NULL) != KILN_OK) return fail_library(WRITING);
    p->result = NULL; /* it belongs to data */
    const double start = clock_seconds();
    const kiln_status status =
        kiln_data_write(data, run->settings->output, file_format_of(run->settings->to), &control);
    run->seconds.write = clock_seconds() - start;
    kiln_data_free(data);
    return status == KILN_OK ? 0 : fail_library(WRITING);
}

static void put_begin(struct result *result, const struct product *p) {
    result_begin(result);
    run_put(result, p->run, "kiln.product/1");
    run_put_device(result, p->run);
    run_put_shape(result, kiln_data_X(p->data[0]));
    PUT(result, "operation", TEXT(p->operation));
    PUT(result, "k", COUNT(p->k), .label = "k");
}

static int tell(struct product *p, struct result *result) {
    const char *output = p->run->settings->output;
    PUT(result, "output", .kind = output ? ROW_TEXT : ROW_NONE, .text = output,
        .label = output ? "written" : NULL);
    run_put_seconds(result, p->run, true);
    return run_tell(p->run, result);
}

/* Frees, and returns `code`. */
static int end(struct product *p, int code) {
    progress_end();
    for (int i = 0; i < p->count; i++) kiln_data_free(p->data[i]);
    kiln_matrix_free(p->result);
    kiln_device_close(p->host);
    return code;
}

/* The operation's status, after the device has done it; its time goes to run->seconds. */
static int account(struct product *p, kiln_status status, const kiln_device_statistics *before,
                   double start) {
    if (status == KILN_OK) status = kiln_device_sync(p->run->device);
    if (status != KILN_OK) return fail_library(WORKING);
    p->run->seconds.solve += run_account(p->run, before, clock_seconds() - start);
    return 0;
}

/* -------------------------------------------------------------------------------------------- mmchain */

static int read_chain(struct product *p, const struct mmchain_wanted *wanted,
                      const kiln_matrix *operands[4]) {
    const kiln_matrix **X = &operands[0], **y = &operands[1], **v = &operands[2], **z = &operands[3];
    const char *const *paths = p->run->arguments;
    int code = read_operand(p, X, paths[0]);
    if (!code) code = read_dense(p, y, paths[1], kiln_matrix_cols(*X), "column");
    if (!code) p->k = kiln_matrix_cols(*y);
    if (!code && wanted->v) {
        code = read_dense(p, v, wanted->v, kiln_matrix_rows(*X), "row");
        if (!code) code = check_columns(p, *v, wanted->v, true);
    }
    if (!code && wanted->z) {
        code = read_dense(p, z, wanted->z, kiln_matrix_cols(*X), "column");
        if (!code) code = check_columns(p, *z, wanted->z, false);
    }
    return code;
}

static int chain(struct product *p, const struct mmchain_wanted *wanted, const kiln_matrix *operands[4]) {
    const kiln_matrix *X = operands[0], *y = operands[1];
    kiln_device_statistics before = {.size = sizeof before};
    kiln_device_get_statistics(p->run->device, &before);
    const double start = clock_seconds();
    kiln_status status =
        kiln_matrix_dense(&p->result, p->run->device, kiln_matrix_type(X), kiln_matrix_cols(X), p->k, NULL);
    if (status == KILN_OK)
        status = kiln_mmchain(p->result, wanted->alpha, X, operands[2], y, operands[3] ? wanted->beta : 0,
                              operands[3]);
    return account(p, status, &before, start);
}

int verb_mmchain(struct run *run) {
    const struct mmchain_wanted *wanted = (const void *)run->settings->own.bytes;
    const kiln_matrix *operands[OPERANDS] = {NULL};
    struct product p;
    struct result result;
    int code = begin(&p, run, "mmchain");
    if (!code && !wanted->z && wanted->beta != 1)
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, "--z names the file of z", "--beta needs --z");
    if (!code) code = read_chain(&p, wanted, operands);
    if (!code) code = chain(&p, wanted, operands);
    if (!code) code = write_result(&p);
    if (!code) {
        put_begin(&result, &p);
        PUT(&result, "alpha", NUMBER(wanted->alpha));
        PUT(&result, "beta", NUMBER(wanted->z ? wanted->beta : 0));
        code = tell(&p, &result);
    }
    return end(&p, code);
}

/* clang-format off */
const struct option mmchain_options[MMCHAIN_OPTIONS] = {
    {.name = "v", .kind = OPTION_PATH, .group = GROUP_MODEL, .value = "FILE",
     .offset = offsetof(struct mmchain_wanted, v),
     .help = "A number for each row of X, or a column for each of y; without it ones."},
    {.name = "z", .kind = OPTION_PATH, .group = GROUP_MODEL, .value = "FILE",
     .offset = offsetof(struct mmchain_wanted, z),
     .help = "What is added, beta times: as long as X has columns, with as many columns as y."},
    {.name = "alpha", .kind = OPTION_REAL, .group = GROUP_MODEL, .value = "NUMBER", .standard = "1",
     .least = -INFINITY, .most = INFINITY, .offset = offsetof(struct mmchain_wanted, alpha),
     .help = "The factor of the product."},
    {.name = "beta", .kind = OPTION_REAL, .group = GROUP_MODEL, .value = "NUMBER", .standard = "1",
     .least = -INFINITY, .most = INFINITY, .offset = offsetof(struct mmchain_wanted, beta),
     .help = "The factor of z, with --z."},
};
/* clang-format on */

/* ---------------------------------------------------------------------------------------------- sddmm */

static const struct {
    const char *name;
    kiln_sample_kind kind;
} kinds[] = {{"product", KILN_SAMPLE_PRODUCT}, /* the default, as in Python */
             {"times", KILN_SAMPLE_TIMES},
             {"quotient", KILN_SAMPLE_QUOTIENT},
             {"residual", KILN_SAMPLE_RESIDUAL}};

static size_t kind_of(const char *name) {
    size_t i = 0;
    while (name && strcmp(kinds[i].name, name) != 0) i++;
    return i;
}

static int read_sample(struct product *p, kiln_sample *sample) {
    const char *const *paths = p->run->arguments;
    int code = read_operand(p, &sample->S, paths[0]);
    if (!code && kiln_matrix_format(sample->S) != KILN_CSR)
        code = fail_with(KILN_ERR_DATA, READING, "LIBSVM, Matrix Market with coordinates and .npz are sparse",
                         "%s is dense, and S must be sparse", paths[0]);
    if (!code) code = read_dense(p, &sample->A, paths[1], kiln_matrix_rows(sample->S), "row");
    if (!code) p->k = kiln_matrix_cols(sample->A);
    if (!code) code = read_dense(p, &sample->B, paths[2], kiln_matrix_cols(sample->S), "column");
    return code ? code : check_columns(p, sample->B, paths[2], false);
}

static int sample_it(struct product *p, double *sum, double alpha, const kiln_sample *sample) {
    kiln_device_statistics before = {.size = sizeof before};
    kiln_device_get_statistics(p->run->device, &before);
    const double start = clock_seconds();
    kiln_status status = kiln_matrix_like(&p->result, sample->S, KILN_TYPE_DEFAULT, NULL);
    if (status == KILN_OK) status = kiln_sddmm(p->result, sum, alpha, sample, 0);
    return account(p, status, &before, start);
}

int verb_sddmm(struct run *run) {
    const struct sddmm_wanted *wanted = (const void *)run->settings->own.bytes;
    const size_t kind = kind_of(wanted->kind);
    kiln_sample sample = {.size = sizeof sample, .kind = kinds[kind].kind, .floor = wanted->floor};
    struct product p;
    struct result result;
    double sum = 0;
    int code = begin(&p, run, "sddmm");
    if (!code && wanted->floor > 0 && sample.kind != KILN_SAMPLE_QUOTIENT)
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, "leave it out", "--floor is for --kind quotient");
    if (!code) code = read_sample(&p, &sample);
    if (!code) code = sample_it(&p, &sum, wanted->alpha, &sample);
    if (!code) code = write_result(&p);
    if (!code) {
        put_begin(&result, &p);
        PUT(&result, "kind", TEXT(kinds[kind].name), .label = "kind");
        PUT(&result, "alpha", NUMBER(wanted->alpha));
        PUT(&result, "sum", NUMBER(sum), .label = "sum");
        code = tell(&p, &result);
    }
    return end(&p, code);
}

/* clang-format off */
const struct option sddmm_options[SDDMM_OPTIONS] = {
    {.name = "kind", .kind = OPTION_CHOICE, .group = GROUP_MODEL, .value = "KIND",
     .choices = "product|times|quotient|residual", .standard = "product",
     .offset = offsetof(struct sddmm_wanted, kind),
     .help = "What becomes of an entry s and the product d = a_i . b_j at its place: d, s d (the SDDMM "
             "paper's), s / d, or s - d. The sum that is told is that of d^2, s d^2, s log d, or (s - d)^2."},
    {.name = "alpha", .kind = OPTION_REAL, .group = GROUP_MODEL, .value = "NUMBER", .standard = "1",
     .least = -INFINITY, .most = INFINITY, .offset = offsetof(struct sddmm_wanted, alpha),
     .help = "The factor of what is written; the sum is without it."},
    {.name = "floor", .kind = OPTION_POSITIVE, .group = GROUP_MODEL, .value = "NUMBER", .least = 0,
     .most = INFINITY, .offset = offsetof(struct sddmm_wanted, floor),
     .help = "Of --kind quotient: a smaller product counts as this (1e-290; of f32 1e-30)."},
};
/* clang-format on */
