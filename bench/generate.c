/* Data sets of published shapes, from a seed: HIGGS (dense, 11,000,000 x 28) and KDD2010 (sparse, 15,009,374
 * x 29,890,095 with 423,865,484 entries, popular columns as in Zipf's law), at any scale.
 *
 * Every row has a random stream of its own, so that the data do not depend on the number of threads. A sparse
 * row draws until it has as many distinct columns as it should, hence the number of entries is exact; its
 * values are alike and of unit norm, as in the KDD2010 set. Targets are X w + noise with a w from the seed,
 * also known without X. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln.h"

struct shape {
    const char *name;
    int64_t rows, cols, nnz; /* nnz 0: dense */
    bool columns_scale;
};
static const struct shape shapes[] = {{"higgs", 11000000, 28, 0, false},
                                      {"kdd2010", 15009374, 29890095, 423865484, true}};

struct options {
    struct shape shape;
    uint64_t seed;
    kiln_type type;
    int threads;
    double condition; /* of X^T X, dense; 1: columns alike */
    bool shuffled, uniform;
    char path[4000];
};

/* Arrays of the whole matrix. */
struct arrays {
    const struct options *options;
    void *values, *y;
    int64_t *row_start;
    int32_t *col;
};

struct part {
    const struct arrays *arrays;
    int64_t from, to;
    pthread_t thread;
};

static const char usage[] =
    "usage: kiln_generate higgs|kdd2010 OUT [--scale S] [--seed N] [--type f32|f64] [--threads N] "
    "[--shuffled|--uniform]\n"
    "                     [--rows N] [--cols N] [--nnz N] [--condition C]\n"
    "  writes OUT.npy (higgs) or OUT.npz (kdd2010), and the targets OUT.y.npy\n"
    "  --scale     a fraction of the rows; of kdd2010 also of columns and entries (default 1)\n"
    "  --shuffled  popular columns anywhere instead of first\n"
    "  --uniform   columns equally likely instead of popular ones\n"
    "  --condition of higgs: the condition number of X^T X (default 1), by columns of different sizes\n"
    "  --rows ...  a shape of one's own\n";

/* ------------------------------------------------------------------------------------- random numbers */

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t next(uint64_t *state) {
    return mix(*state += 0x9e3779b97f4a7c15u);
}

static double uniform(uint64_t *state) {
    return (double)(next(state) >> 11) * 0x1p-53;
}

/* Two independent normal numbers (Box and Muller, 1958). */
static void normals(double out[2], uint64_t *state) {
    const double radius = sqrt(-2 * log(uniform(state) + 0x1p-54)),
                 angle = 6.283185307179586 * uniform(state);
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

/* By which column j is smaller than the first: equal factors apart. Conjugate gradients see a matrix's
 * eigenvalues alone, so that columns of different sizes stand for correlated ones. */
static double size_of(const struct options *options, int64_t j) {
    const double last = (double)(options->shape.cols - 1);
    return last > 0 ? pow(options->condition, -0.5 * (double)j / last) : 1;
}

/* The weight that column j has in the targets, in [-1, 1). */
static double weight_of(const struct options *options, int64_t j) {
    uint64_t state = mix(options->seed + 0x5bd1e995u) ^ mix((uint64_t)j + 1);
    return 2 * uniform(&state) - 1;
}

static void store(void *array, kiln_type type, int64_t i, double value) {
    if (type == KILN_F32)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

/* -------------------------------------------------------------------------------------------------- rows */

static double dense_row(const struct arrays *arrays, int64_t i, uint64_t *state) {
    const struct options *options = arrays->options;
    const int64_t cols = options->shape.cols;
    double pair[2] = {0, 0}, sum = 0;
    for (int64_t j = 0; j < cols; j++) {
        if (j % 2 == 0) normals(pair, state);
        const double value = pair[j % 2] * size_of(options, j);
        store(arrays->values, options->type, i * cols + j, value);
        sum += weight_of(options, j) * value;
    }
    return sum;
}

/* i of the rows' even share of the entries. */
static int64_t even_start(const struct shape *shape, int64_t i) {
    return shape->nnz / shape->rows * i + shape->nnz % shape->rows * i / shape->rows;
}

/* The first entry of row i. Rows come in pairs, whose second lacks what the first has beyond the mean. */
static int64_t start_of(const struct options *options, int64_t i) {
    const struct shape *shape = &options->shape;
    if (i % 2 == 0 || i + 1 >= shape->rows) return even_start(shape, i);
    const int64_t room = shape->nnz / shape->rows / 2;
    return even_start(shape, i) + (int64_t)(mix(options->seed ^ (uint64_t)i) % (uint64_t)(2 * room + 1)) -
           room;
}

static int32_t draw_column(const struct options *options, uint64_t *state) {
    const double cols = (double)options->shape.cols;
    if (options->uniform) return (int32_t)(uniform(state) * cols);
    int64_t j = (int64_t)(exp(uniform(state) * log(cols + 1))) - 1;
    if (j >= options->shape.cols) j = options->shape.cols - 1;
    /* A hash: some columns then never occur, as in real data. */
    if (options->shuffled) j = (int64_t)(mix((uint64_t)j) % (uint64_t)options->shape.cols);
    return (int32_t)j;
}

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static double sparse_row(const struct arrays *arrays, int64_t i, uint64_t *state) {
    const struct options *options = arrays->options;
    const int64_t from = arrays->row_start[i], n = arrays->row_start[i + 1] - from;
    int32_t *col = arrays->col + from;
    for (int64_t have = 0; have < n;) {
        for (int64_t e = have; e < n; e++) col[e] = draw_column(options, state);
        qsort(col, (size_t)n, sizeof *col, ascending);
        have = 0;
        for (int64_t e = 0; e < n; e++)
            if (e == 0 || col[e] != col[have - 1]) col[have++] = col[e];
    }
    const double value = 1 / sqrt((double)n);
    double sum = 0;
    for (int64_t e = 0; e < n; e++) {
        store(arrays->values, options->type, from + e, value);
        sum += value * weight_of(options, col[e]);
    }
    return sum;
}

static void *fill(void *argument) {
    const struct part *part = argument;
    const struct arrays *arrays = part->arrays;
    const struct options *options = arrays->options;
    for (int64_t i = part->from; i < part->to; i++) {
        uint64_t state = mix(options->seed * 2 + 1) + mix((uint64_t)i);
        double noise[2];
        const double sum = arrays->col ? sparse_row(arrays, i, &state) : dense_row(arrays, i, &state);
        normals(noise, &state);
        store(arrays->y, options->type, i, sum + 0.1 * noise[0]);
    }
    return NULL;
}

static void fill_all(const struct arrays *arrays) {
    enum { MOST = 256 };
    struct part parts[MOST];
    const int count = arrays->options->threads < MOST ? arrays->options->threads : MOST;
    const int64_t rows = arrays->options->shape.rows;
    for (int t = 0; t < count; t++) {
        parts[t] = (struct part){arrays, rows * t / count, rows * (t + 1) / count, 0};
        if (t > 0 && pthread_create(&parts[t].thread, NULL, fill, &parts[t]) != 0) {
            parts[t].to = 0; /* its rows go to this thread */
            struct part own = {arrays, rows * t / count, rows * (t + 1) / count, 0};
            fill(&own);
        }
    }
    fill(&parts[0]);
    for (int t = 1; t < count; t++)
        if (parts[t].to) pthread_join(parts[t].thread, NULL);
}

/* ------------------------------------------------------------------------------------------------ writing */

static int complain(const char *what) {
    fprintf(stderr, "kiln_generate: %s: %s\n", what, kiln_last_error()->message);
    return 1;
}

static int write_matrix(kiln_matrix *A, const char *path) {
    kiln_data *data = NULL;
    if (kiln_data_create(&data, A, NULL) != KILN_OK) {
        kiln_matrix_free(A);
        return complain(path);
    }
    const int code = kiln_data_write(data, path, KILN_FILE_AUTO, NULL) == KILN_OK ? 0 : complain(path);
    kiln_data_free(data);
    return code;
}

static int write_all(struct arrays *arrays) {
    const struct options *o = arrays->options;
    char path[4100];
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *y = NULL;
    if (kiln_device_open(&device, "cpu", &(kiln_device_options){.threads = o->threads}) != KILN_OK)
        return complain("cpu");
    int code =
        kiln_matrix_dense(&y, device, o->type, o->shape.rows, 1, arrays->y) == KILN_OK ? 0 : complain("y");
    snprintf(path, sizeof path, "%s.y.npy", o->path);
    if (!code) code = write_matrix(y, path);
    kiln_status made = KILN_OK;
    if (!code && o->shape.nnz)
        made = kiln_matrix_csr(&X, device, o->type, o->shape.rows, o->shape.cols, arrays->row_start,
                               arrays->col, arrays->values);
    else if (!code)
        made = kiln_matrix_dense(&X, device, o->type, o->shape.rows, o->shape.cols, arrays->values);
    if (made != KILN_OK) code = complain("X");
    /* The library has its copies: what data of this size take twice is memory. */
    free(arrays->values);
    free(arrays->col);
    arrays->values = NULL;
    arrays->col = NULL;
    snprintf(path, sizeof path, "%s.%s", o->path, o->shape.nnz ? "npz" : "npy");
    if (!code) code = write_matrix(X, path);
    kiln_device_close(device);
    if (!code)
        printf("%s: %" PRId64 " x %" PRId64 ", %" PRId64 " entries\n", path, o->shape.rows, o->shape.cols,
               o->shape.nnz ? o->shape.nnz : o->shape.rows * o->shape.cols);
    return code;
}

static int generate(const struct options *options) {
    const struct shape *shape = &options->shape;
    const int64_t entries = shape->nnz ? shape->nnz : shape->rows * shape->cols;
    const size_t element = options->type == KILN_F32 ? 4 : 8;
    struct arrays arrays = {.options = options};
    int code = 1;
    arrays.values = malloc((size_t)entries * element);
    arrays.y = malloc((size_t)shape->rows * element);
    if (shape->nnz) {
        arrays.row_start = malloc(((size_t)shape->rows + 1) * sizeof *arrays.row_start);
        arrays.col = malloc((size_t)entries * sizeof *arrays.col);
    }
    if (!arrays.values || !arrays.y || (shape->nnz && (!arrays.row_start || !arrays.col))) {
        fprintf(stderr, "kiln_generate: no memory for %" PRId64 " entries; try --scale\n", entries);
    } else {
        for (int64_t i = 0; shape->nnz && i <= shape->rows; i++) arrays.row_start[i] = start_of(options, i);
        fill_all(&arrays);
        code = write_all(&arrays);
    }
    free(arrays.values);
    free(arrays.y);
    free(arrays.row_start);
    free(arrays.col);
    return code;
}

static bool parse(struct options *options, int argc, char **argv) {
    double scale = 1;
    int64_t own[3] = {0, 0, 0};
    bool found = false;
    for (size_t s = 0; argc >= 3 && s < sizeof shapes / sizeof *shapes; s++)
        if (strcmp(argv[1], shapes[s].name) == 0) {
            options->shape = shapes[s];
            found = true;
        }
    for (int i = 3; found && i < argc; i++) {
        static const char *const numbers[] = {"--rows", "--cols", "--nnz"};
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--shuffled") == 0 || strcmp(name, "--uniform") == 0) {
            *(name[2] == 's' ? &options->shuffled : &options->uniform) = true;
            continue;
        }
        if (!value) return false;
        i++;
        found = false;
        for (int n = 0; n < 3; n++)
            if (strcmp(name, numbers[n]) == 0) {
                own[n] = strtoll(value, NULL, 10);
                found = own[n] > 0;
            }
        if (strcmp(name, "--scale") == 0) found = (scale = strtod(value, NULL)) > 0;
        if (strcmp(name, "--condition") == 0) found = (options->condition = strtod(value, NULL)) >= 1;
        if (strcmp(name, "--seed") == 0) found = true, options->seed = strtoull(value, NULL, 10);
        if (strcmp(name, "--threads") == 0) found = (options->threads = (int)strtol(value, NULL, 10)) > 0;
        if (strcmp(name, "--type") == 0 && (found = !strcmp(value, "f32") || !strcmp(value, "f64")))
            options->type = strcmp(value, "f32") ? KILN_F64 : KILN_F32;
    }
    if (!found) return false;
    struct shape *shape = &options->shape;
    shape->rows = own[0] ? own[0] : (int64_t)ceil((double)shape->rows * scale);
    shape->cols = own[1]                 ? own[1]
                  : shape->columns_scale ? (int64_t)ceil((double)shape->cols * scale)
                                         : shape->cols;
    if (shape->nnz) shape->nnz = own[2] ? own[2] : (int64_t)ceil((double)shape->nnz * scale);
    snprintf(options->path, sizeof options->path, "%s", argv[2]);
    /* A row must find its distinct columns among the popular ones in reasonable time. */
    return shape->nnz == 0 || (double)shape->nnz / (double)shape->rows * 8 <= (double)shape->cols;
}

int main(int argc, char **argv) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct options options = {
        .seed = 1, .type = KILN_F64, .condition = 1, .threads = processors > 0 ? (int)processors : 1};
    if (!parse(&options, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    return generate(&options);
}
