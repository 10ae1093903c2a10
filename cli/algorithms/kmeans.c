/* kiln kmeans: read rows, cluster them, show the clusters. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "metrics.h"
#include "output.h"
#include "solve.h"
#include "train.h"

enum { SHOWN = 20 }; /* clusters in the table for people; JSON and the model have all */

struct wanted {
    const char *labels;
    int64_t clusters;
};

struct clustering {
    kiln_matrix *centres, *clusters, *labels, *weights, *offset;
    double *table, *label; /* on the host */
    int64_t k;
};

/* ------------------------------------------------------------------------------------------ the run */

static int check_options(struct solving *s) {
    const struct wanted *wanted = s->own;
    kiln_kmeans_options *options = (kiln_kmeans_options *)(uintptr_t)s->options;
    options->seed =
        s->run->settings->seed; /* an option of every verb, which the model is to keep with the others */
    if (wanted->clusters == 0 && !s->warm)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "-k 8, for instance",
                         "the number of clusters, -k, is missing");
    if (options->init == KILN_INIT_GIVEN && !s->warm)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--warm-start MODEL, or another --init",
                         "--init given: there are no centres to begin with");
    return 0;
}

static int64_t width(const struct solving *s) {
    const struct wanted *wanted = s->own;
    return wanted->clusters ? wanted->clusters : 8;
}

static int prepare(struct solving *s) {
    struct clustering *c = s->state;
    const struct wanted *wanted = s->own;
    const kiln_matrix *X = solving_X(s);
    kiln_type type;
    int64_t rows = wanted->clusters, cols = kiln_matrix_cols(X);
    if (s->warm && (!model_tensor_shape(s->warm, "centres", &type, &rows, &cols) ||
                    cols != kiln_matrix_cols(X) || (wanted->clusters && rows != wanted->clusters)))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "leave out -k, and give data with the same columns",
                         "%s has %lld centres in %lld columns", s->run->settings->warm_start, (long long)rows,
                         (long long)cols);
    c->k = rows;
    int code = run_read_columns(s->run, s->data, &c->weights, &c->offset);
    if (!code)
        code = s->warm ? solve_take(&c->centres, s, "centres") : solve_allocate(&c->centres, s, rows, cols);
    if (!code)
        code = s->warm ? solve_take(&c->clusters, s, "clusters") : solve_allocate(&c->clusters, s, rows, 2);
    if (!code && wanted->labels) code = solve_allocate(&c->labels, s, kiln_matrix_rows(X), 1);
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
    if (!code && kiln_report_figure(&s->report, "clusters") < (double)c->k)
        say_error("kiln: warning: %.0f of %lld clusters have rows; the data have no more different ones",
                  kiln_report_figure(&s->report, "clusters"), (long long)c->k);
    return code;
}

static void free_clustering(struct solving *s) {
    struct clustering *c = s->state;
    kiln_matrix *const all[] = {c->centres, c->clusters, c->labels, c->weights, c->offset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    free(c->table);
    free(c->label);
}

/* ---------------------------------------------------------------------------------------- results */

static kiln_status keep(kiln_model *model, const struct solving *s) {
    const struct clustering *c = s->state;
    const char *schema = kiln_data_schema(s->data);
    kiln_status status = kiln_model_set_tensor(model, "centres", c->centres);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "clusters", c->clusters);
    return status == KILN_OK && *schema ? kiln_model_set_text(model, "schema", schema) : status;
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

/* The root of the mean squared distance of a cluster's rows from its centre. */
static double spread(const double *cluster) {
    return cluster[0] > 0 ? sqrt(cluster[1] / cluster[0]) : NAN;
}

static void put_json(json_t *object, const struct solving *s) {
    const struct clustering *c = s->state;
    json_t *array = json_array();
    for (int64_t i = 0; i < c->k; i++) {
        json_t *row = json_object();
        json_put_number(row, "weight", c->table[2 * i]);
        json_put_number(row, "inertia", c->table[2 * i + 1]);
        json_put_number(row, "spread", spread(c->table + 2 * i));
        json_add(array, row);
    }
    json_put_text(object, "labels", ((const struct wanted *)s->own)->labels);
    json_put(object, "clusters", array);
}

static void print_head(FILE *file, const struct solving *s) {
    const struct clustering *c = s->state;
    const kiln_matrix *X = solving_X(s);
    fprintf(file, "K-Means: %s x %s, %s\n", text_count(kiln_matrix_rows(X)), text_count(kiln_matrix_cols(X)),
            text_plural(c->k, "cluster"));
}

static void print_table(FILE *file, const struct solving *s) {
    const struct clustering *c = s->state;
    fprintf(file, "  cluster        weight       inertia        spread\n");
    for (int64_t i = 0; i < c->k && i < SHOWN; i++)
        fprintf(file, "  %7lld %13.6g %13.6g %13.6g\n", (long long)i, c->table[2 * i], c->table[2 * i + 1],
                spread(c->table + 2 * i));
    if (c->k > SHOWN) fprintf(file, "  and %s more\n", text_count(c->k - SHOWN));
}

/* ---------------------------------------------------------------------------------------- the verb */

static int run_kmeans(struct run *run) {
    static const struct solver solver = {.schema = "kiln.clustering/1",
                                         .objective = "inertia",
                                         .bytes = sizeof(struct clustering),
                                         .check = check_options,
                                         .prepare = prepare,
                                         .solve = solve,
                                         .finish = finish,
                                         .keep = keep,
                                         .write = write_labels,
                                         .json = put_json,
                                         .head = print_head,
                                         .print = print_table,
                                         .free = free_clustering,
                                         .width = width};
    return solve_run(run, &solver);
}

static const struct option own[] = {
    {"clusters", 'k', OPTION_INTEGER, GROUP_MODEL, 0, "K", NULL, NULL, 1, 16777216, "The number of clusters.",
     .offset = offsetof(struct wanted, clusters)},
    {"labels", 0, OPTION_OUTPUT, GROUP_OUTPUT, 0, "FILE", NULL, NULL, 0, 0,
     "Write the number of each row's cluster, from 0, one a line. - is standard output.",
     .offset = offsetof(struct wanted, labels)},
};

const struct verb verb_of_kmeans = {
    "kmeans",
    "DATA",
    1,
    1,
    NULL,
    "Cluster rows around K centres",
    "Lloyd's algorithm: each centre goes to the mean of the rows nearest to it, until none moves any more. "
    "Minimises the inertia, the sum of the squared distances of the rows from their nearest centres; the "
    "minimum is a local one, and --restarts keeps the best of several. Labels in f32 are those of exact "
    "arithmetic: where rounding leaves two centres in doubt, distances are computed again in f64.\n\n"
    "DATA is a LIBSVM, Matrix Market, CSV, npy or npz file, dense or sparse, plain or through gzip or zstd; "
    "- is "
    "standard input, which is read once. Columns are taken as they are: scale them where their units "
    "differ.\n\n"
    "A table of the clusters goes to standard output: the weight of their rows, their part of the inertia, "
    "and "
    "how far their rows are from the centre (root mean square). kiln predict gives label and distance of new "
    "rows. With --warm-start MODEL the run begins with its centres, and with --batch goes on counting.",
    "kiln kmeans points.csv -k 8 --labels labels.txt -o clusters.kiln\n"
    "kiln kmeans mnist.npy -k 100 --init k-means-parallel --restarts 5 --json\n"
    "kiln kmeans docs.npz -k 20 --batch 4096 --seed 7\n"
    "kiln predict clusters.kiln new.csv",
    .run = run_kmeans,
    .kinds = VERB_BIT(ALGORITHM),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .otherwise = "seed",
};
