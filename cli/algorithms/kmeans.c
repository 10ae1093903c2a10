/* kiln kmeans: read rows, cluster them, show the clusters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "metrics.h"
#include "output.h"
#include "plot_clusters.h"
#include "solve.h"
#include "verify.h"

enum { SHOWN = 20, PARTS = 3 }; /* clusters in the table for people; JSON and the model have all */

static const char *const parts[PARTS] = {"weight", "inertia", "radius"}; /* columns of the tensor clusters */

struct wanted {
    const char *labels, *plot, *init;
    int64_t clusters;
};

struct clustering {
    kiln_matrix *centres, *clusters, *labels, *weights;
    double *table, *label, *at; /* on the host: clusters, labels, centres; at NULL: too many */
    kiln_data *given;           /* --init FILE */
    int64_t k;
};

/* ------------------------------------------------------------------------------------------ the run */

static const char *init_file(const struct solving *s) {
    const kiln_kmeans_options *options = s->options;
    return options->init == KILN_INIT_GIVEN ? ((const struct wanted *)s->own)->init : NULL;
}

static int check_options(struct solving *s) {
    const struct wanted *wanted = s->own;
    const char *file = init_file(s);
    if (s->warm && wanted->init)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give one of them", "--init and --warm-start together");
    if (wanted->clusters == 0 && !s->warm && !file)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "-k 8, for instance",
                         "the number of clusters, -k, is missing");
    return 0;
}

static int64_t width(const struct settings *settings) {
    const struct wanted *wanted = (const void *)settings->own.bytes;
    return wanted->clusters ? wanted->clusters : 8;
}

/* Columns of CSV files are found by name, as a model's would be. */
static int read_like_data(struct solving *s, kiln_data **data, const char *path) {
    struct run *run = s->run;
    const char *schema = kiln_data_schema(s->data);
    const struct settings *const given = run->settings;
    struct settings settings = *given;
    kiln_model *model = NULL;
    settings.weights = settings.weights_file = NULL;
    settings.format = NULL;
    if (*schema && (kiln_model_create(&model, "kmeans") != KILN_OK ||
                    kiln_model_set_text(model, "schema", schema) != KILN_OK)) {
        kiln_model_free(model);
        return fail_library(WORKING);
    }
    run->settings = &settings;
    run->alike = "--init";
    const int code = run_read(run, data, path, kiln_matrix_type(solving_X(s)), model);
    run->settings = given;
    run->alike = NULL;
    kiln_model_free(model);
    return code;
}

/* The rows of a file are the first centres. */
static int read_centres(struct solving *s, const char *path) {
    struct clustering *c = s->state;
    const struct wanted *wanted = s->own;
    const kiln_matrix *X = solving_X(s);
    const int code = read_like_data(s, &c->given, path);
    if (code) return code;
    const kiln_matrix *found = kiln_data_X(c->given);
    const int64_t rows = kiln_matrix_rows(found), cols = kiln_matrix_cols(found);
    if (kiln_matrix_format(found) != KILN_DENSE || cols != kiln_matrix_cols(X) ||
        (wanted->clusters && rows != wanted->clusters))
        return fail_with(KILN_ERR_DATA, READING,
                         "a dense file with a row for each of the -k centres, and the columns of the data",
                         "--init %s has %s and %s", path, text_plural(rows, "row"),
                         text_plural(cols, "column"));
    c->k = rows;
    return kiln_matrix_copy(&c->centres, s->run->device, KILN_TYPE_DEFAULT, found) == KILN_OK
               ? 0
               : fail_library(READING);
}

static int take_model(struct solving *s) {
    struct clustering *c = s->state;
    const struct wanted *wanted = s->own;
    kiln_type type;
    int64_t rows = 0, cols = 0;
    if (!model_tensor_shape(s->warm, "centres", &type, &rows, &cols) ||
        cols != kiln_matrix_cols(solving_X(s)) || (wanted->clusters && rows != wanted->clusters))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "leave out -k, and give data with the same columns",
                         "%s has %lld centres in %lld columns", s->run->settings->warm_start, (long long)rows,
                         (long long)cols);
    c->k = rows;
    const int code = solve_take(&c->centres, s, "centres");
    return code ? code : solve_take(&c->clusters, s, "clusters");
}

static int prepare(struct solving *s) {
    struct clustering *c = s->state;
    const struct wanted *wanted = s->own;
    const kiln_matrix *X = solving_X(s);
    const char *file = init_file(s);
    c->k = wanted->clusters;
    int code = run_read_columns(s->run, s->data, NULL, &c->weights, NULL);
    if (!code && s->warm) code = take_model(s);
    if (!code && !s->warm)
        code = file ? read_centres(s, file) : solve_allocate(&c->centres, s, c->k, kiln_matrix_cols(X));
    if (!code && !s->warm) code = solve_allocate(&c->clusters, s, c->k, PARTS);
    if (!code && (wanted->labels || wanted->plot))
        code = solve_allocate(&c->labels, s, kiln_matrix_rows(X), 1);
    return code;
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct clustering *c = s->state;
    kiln_kmeans_options options = *(const kiln_kmeans_options *)s->options;
    options.size = sizeof options;
    if (s->warm) options.init = KILN_INIT_GIVEN;
    options.weights = c->weights;
    options.labels = c->labels;
    options.clusters = c->clusters;
    options.control = *control;
    return kiln_kmeans(c->centres, solving_X(s), &options, &s->report);
}

static int finish(struct solving *s) {
    struct clustering *c = s->state;
    int code = 0;
    c->table = values_of(c->clusters, &code);
    if (!code && c->labels) c->label = values_of(c->labels, &code);
    if (!code && c->k * kiln_matrix_cols(c->centres) <= NUMBERS_MOST) c->at = values_of(c->centres, &code);
    return code;
}

static void free_clustering(struct solving *s) {
    struct clustering *c = s->state;
    kiln_matrix *const all[] = {c->centres, c->clusters, c->labels, c->weights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_data_free(c->given);
    free(c->table);
    free(c->label);
    free(c->at);
}

/* ---------------------------------------------------------------------------------------- results */

static kiln_status keep(kiln_model *model, const struct solving *s) {
    const struct clustering *c = s->state;
    const kiln_kmeans_options *options = s->options;
    kiln_status status = kiln_model_set_tensor(model, "centres", c->centres);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "clusters", c->clusters);
    if (status == KILN_OK) status = kiln_model_set_text(model, "targets", "[\"cluster\",\"distance\"]");
    return status == KILN_OK && options->spherical ? kiln_model_set_text(model, "geometry", "spherical")
                                                   : status;
}

static int write_labels(const struct solving *s) {
    const struct clustering *c = s->state;
    const char *path = ((const struct wanted *)s->own)->labels;
    struct output output;
    const int code = path ? output_open(&output, path) : 0;
    if (code || !path) return code;
    const int64_t rows = kiln_matrix_rows(solving_X(s));
    for (int64_t i = 0; i < rows && !ferror(output.file); i++) fprintf(output.file, "%.0f\n", c->label[i]);
    return output_commit(&output);
}

static int write_files(const struct solving *s) {
    const struct clustering *c = s->state;
    const char *path = ((const struct wanted *)s->own)->plot;
    char title[160];
    int code = write_labels(s);
    if (code || !path) return code;
    double *centres = values_of(c->centres, &code), *weights = malloc((size_t)c->k * sizeof *weights);
    if (!code && !weights) code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory");
    for (int64_t i = 0; !code && i < c->k; i++) weights[i] = c->table[PARTS * i];
    snprintf(title, sizeof title, "%s rows in %s, inertia %s", text_count(kiln_matrix_rows(solving_X(s))),
             text_plural(c->k, "cluster"), text_number(s->report.objective));
    const char *names[2] = {kiln_data_feature_name(s->data, 0), kiln_data_feature_name(s->data, 1)};
    if (!names[0]) names[0] = "column 1";
    if (!names[1]) names[1] = "column 2";
    if (!code) code = plot_clusters(path, title, solving_X(s), c->labels, centres, weights, c->k, names);
    free(centres);
    free(weights);
    return code;
}

static void put_cluster(struct result *row, const void *of, int64_t i) {
    const double *parted = (const double *)of + PARTS * i;
    PUT(row, NULL, COUNT(i), .label = "cluster", .before = "  ", .width = 7);
    for (int part = 0; part < PARTS; part++)
        PUT(row, parts[part], NUMBER(parted[part]), .label = parts[part], .width = 13);
}

static void put_number(struct result *row, const void *of, int64_t i) {
    PUT(row, "", NUMBER(((const struct clustering *)of)->at[i]));
}

static void put_centre(struct result *row, const void *of, int64_t i) {
    const int64_t n = kiln_matrix_cols(((const struct clustering *)of)->centres);
    PUT(row, "", TABLE(n, put_number, of), .first = i * n);
}

static void put_rest(struct result *result, const struct solving *s) {
    const struct clustering *c = s->state;
    const struct wanted *wanted = s->own;
    const double skipped = kiln_report_figure(&s->report, "skipped");
    PUT(result, "init_file", TEXT(init_file(s)));
    PUT(result, "labels", TEXT(wanted->labels));
    PUT(result, "plot", TEXT(wanted->plot));
    PUT(result, "clusters", TABLE(c->k, put_cluster, c->table), .most = SHOWN);
    PUT(result, "centres", TABLE(c->k, c->at ? put_centre : NULL, c), .hidden = true);
    PUT(result, "skipped", NUMBER(skipped));
    if (!isnan(skipped))
        PUT(result, NULL, NUMBER(100 * skipped), .format = "%.0f", .label = "bounds",
            .after = " % of the distances skipped");
}

static void put_head(struct result *result, const struct solving *s) {
    const kiln_matrix *X = solving_X(s);
    PUT_LINE(result, "K-Means: %s x %s, %s", text_count(kiln_matrix_rows(X)), text_count(kiln_matrix_cols(X)),
             text_plural(((const struct clustering *)s->state)->k, "cluster"));
}

/* ----------------------------------------------------------------------------------------- verify */

static int load_verified(struct run *run, struct verifying *v, kiln_matrix **centres,
                         kiln_matrix **clusters) {
    kiln_type type = KILN_F64;
    int64_t k, n;
    if (!model_tensor_shape(v->model, "centres", &type, &k, &n) || isnan(verify_number(v->report, "inertia")))
        return verify_no_claims();
    int code = run_open_device(run, "cpu");
    if (!code) code = run_read(run, &v->data, run->arguments[1], type, v->model);
    if (code) return code;
    if (n != kiln_matrix_cols(kiln_data_X(v->data)))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "the data that were clustered are needed",
                         "%s has centres in %lld columns, %s has %lld", run->arguments[0], (long long)n,
                         run->arguments[1], (long long)kiln_matrix_cols(kiln_data_X(v->data)));
    if (kiln_model_tensor(centres, run->device, type, v->model, "centres") != KILN_OK ||
        kiln_model_tensor(clusters, run->device, type, v->model, "clusters") != KILN_OK)
        return fail_library(USING_MODEL);
    return 0;
}

static void claim_clustering(struct verifying *v, const kiln_kmeans_verification *found, kiln_type type) {
    claim_equal(v, "inertia", "inertia", verify_number(v->report, "inertia"), found->inertia, 0,
                found->inertia_rounding);
    claim_equal(v, "residual", "residual", verify_number(v->report, "residual"), found->residual, 0,
                found->residual_rounding);
    claim_bound(v, "weights", "weights' error", type == KILN_F32 ? 1e-6 : 1e-12, found->weights, 1, 0);
    claim_bound(v, "squares", "squares' error", type == KILN_F32 ? 1e-5 : 1e-9, found->squares, 1, 0);
    claim_bound(v, "radii", "radii's error", type == KILN_F32 ? 1e-4 : 1e-9, found->radii, 1, 0);
    claim_equal(v, "clusters", "clusters", verify_number(v->report, "clusters"), found->clusters, 0, 0);
}

static int verify_kmeans(struct run *run, struct verifying *v) {
    kiln_matrix *centres = NULL, *clusters = NULL, *weights = NULL;
    kiln_kmeans_verification found = {.size = sizeof found};
    int code = load_verified(run, v, &centres, &clusters);
    if (!code) code = run_read_columns(run, v->data, v->model, &weights, NULL);
    const double start = clock_seconds();
    const kiln_kmeans_options options = {.spherical = json_is_true(json_object_get(v->options, "spherical")),
                                         .weights = weights,
                                         .clusters = clusters};
    if (!code && kiln_verify_kmeans(&found, centres, kiln_data_X(v->data), &options) != KILN_OK)
        code = fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    if (!code) claim_clustering(v, &found, kiln_matrix_type(centres));
    kiln_matrix *const all[] = {centres, clusters, weights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    return code;
}

/* ---------------------------------------------------------------------------------------- the verb */

#define STARTS "k-means++|k-means-parallel|random"

/* --init is a way to begin, or else a file; the seed is an option of the tool, which the model is to keep
 * with the others. */
static int take_options(struct run *run, struct settings *settings) {
    (void)run;
    static const char *const starts[] = {"k-means++", "k-means-parallel", "random"};
    kiln_kmeans_options *options = (void *)settings->algorithm.bytes;
    const struct wanted *wanted = (const void *)settings->own.bytes;
    options->seed = settings->seed;
    if (!wanted->init) return 0;
    options->init = KILN_INIT_GIVEN;
    for (int i = 0; i < 3; i++)
        if (strcmp(wanted->init, starts[i]) == 0) options->init = (kiln_init)(i + 1);
    if (options->init != KILN_INIT_GIVEN || access(wanted->init, R_OK) == 0) return 0;
    return fail_with(KILN_ERR_ARGUMENT, WORKING, "k-means++, k-means-parallel, random, or a file of centres",
                     "--init %s is neither a way to begin nor a file that can be read", wanted->init);
}

static const struct solver solver = {.schema = "kiln.clustering/1",
                                     .words.objective = "inertia",
                                     .bytes = sizeof(struct clustering),
                                     .take = take_options,
                                     .check = check_options,
                                     .prepare = prepare,
                                     .solve = solve,
                                     .finish = finish,
                                     .keep = keep,
                                     .write = write_files,
                                     .head = put_head,
                                     .put = put_rest,
                                     .free = free_clustering};

/* clang-format off */
static const struct option own[] = {
    {.name = "clusters", .letter = 'k', .kind = OPTION_INTEGER, .group = GROUP_MODEL, .value = "K",
     .least = 1, .most = 16777216, .offset = offsetof(struct wanted, clusters),
     .help = "The number of clusters."},
    {.name = "init", .kind = OPTION_TEXT, .group = GROUP_MODEL, .value = "START", .choices = STARTS,
     .standard = "k-means++", .offset = offsetof(struct wanted, init),
     .help = "How to begin: rows drawn one by one by their distance from those drawn before (k-means++), "
             "some 2K of them at once in five rounds (k-means-parallel: fewer passes where K is large), "
             "any K rows (random), or the rows of a file."},
    {.name = "labels", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, labels),
     .help = "Write the number of each row's cluster, from 0, one a line. - is standard output."},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, plot),
     .help = "Draw the rows, coloured by cluster, to FILE, as SVG or PNG: two columns as they are, more in "
             "the plane in which the centres lie furthest apart."},
};
/* clang-format on */

const struct verb verb_of_kmeans = {
    "kmeans",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Cluster rows around K centres",
    "Lloyd's algorithm: each centre goes to the mean of the rows nearest to it, until none moves any more. "
    "Minimises the inertia, the sum of the squared distances of the rows from their nearest centres; the "
    "minimum is a local one, and --restarts keeps the best of several. Labels in f32 are those of exact "
    "arithmetic: where rounding leaves two centres in doubt, distances are computed again in f64.\n\n"
    "DATA is a LIBSVM, Matrix Market, CSV, npy or npz file, dense or sparse, plain or through gzip or zstd; "
    "- is standard input, which is read once. Columns are taken as they are: scale them where their units "
    "differ.\n\n"
    "A table of the clusters goes to standard output: the weight of their rows, their part of the inertia, "
    "and the distance of the furthest row from the centre. kiln predict gives label and distance of new "
    "rows. With --warm-start MODEL the run begins with its centres, and with --batch goes on counting.",
    "kiln kmeans points.csv -k 8 --labels labels.txt --plot clusters.svg -o clusters.kiln\n"
    "kiln kmeans mnist.npy -k 100 --init k-means-parallel --restarts 5 --json\n"
    "kiln kmeans docs.npz -k 20 --spherical --batch 4096 --seed 7\n"
    "kiln predict clusters.kiln new.csv",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(RANDOM) | VERB_BIT(ROWS) | VERB_BIT(WEIGHS) |
             VERB_BIT(PASSES),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .otherwise = "init|seed",
    .verify = verify_kmeans,
    .width = width,
    .sharing = SHARES_NEAREST,
};
