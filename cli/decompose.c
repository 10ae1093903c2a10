/* kiln svd and kiln pca: read a matrix, find its largest singular triples, tell them. */
#include "decompose.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "graph.h"
#include "metrics.h"
#include "output.h"
#include "plot_points.h"

/* SHOWN: triples in the table for people; JSON has all. USUAL: components where -k is not given. */
enum { SHOWN = 20, USUAL = 10 };

struct decomposition {
    kiln_matrix *U, *s, *V, *mean, *deviation, *variance;
    double *values, *variances, *left, *right; /* on the host */
    kiln_model *model;
    double total;
    int64_t k;
    kiln_svd_options options;
};

#define WANTED(field) .offset = offsetof(struct decompose_wanted, field)

/* clang-format off */
const struct option decompose_options[DECOMPOSE_OPTIONS] = {
    {.name = "components", .letter = 'k', .kind = OPTION_INTEGER, .group = GROUP_MODEL, .value = "K",
     .least = 1, .most = 65536, WANTED(components),
     .help = "So many of the largest singular values; no more than the data have rows or columns. Without "
             "it 10, or as many as there are."},
    {.name = "coordinates", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     WANTED(coordinates),
     .help = "Write a line for each row of the data as CSV: its coordinates, a row of U diag(s). - is "
             "standard output."},
    {.name = "vectors", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE", WANTED(vectors),
     .help = "Write a line for each column of the data as CSV: its name and its numbers in the right "
             "singular vectors, a row of V. - is standard output."},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE", WANTED(plot),
     .help = "Draw the rows' first two coordinates to FILE, as SVG or PNG."},
};
/* clang-format on */

static const struct decompose_wanted *wanted_of(const struct solving *s) {
    return s->own;
}

int64_t decompose_width(const struct settings *settings) {
    const int64_t wanted = ((const struct decompose_wanted *)(const void *)settings->own.bytes)->components;
    return wanted > 0 ? wanted : USUAL;
}

/* The smaller side of the data. */
static int64_t most_of(const struct solving *s) {
    const int64_t rows = kiln_matrix_rows(solving_X(s)), cols = kiln_matrix_cols(solving_X(s));
    return rows < cols ? rows : cols;
}

static bool is_pca(const struct solving *s) {
    return strcmp(s->run->verb->name, "pca") == 0;
}

static int check(struct solving *s) {
    const kiln_matrix *X = solving_X(s);
    const int64_t rows = kiln_matrix_rows(X), cols = kiln_matrix_cols(X), k = wanted_of(s)->components;
    const int64_t most = most_of(s);
    if (most == 0)
        return fail_with(KILN_ERR_DATA, READING, "", "the data are %s x %s: there is nothing to decompose",
                         text_count(rows), text_count(cols));
    if (k <= most) return 0;
    return fail_with(KILN_ERR_DATA, READING, "a smaller -k", "-k %lld, but %s x %s have %s", (long long)k,
                     text_count(rows), text_count(cols), text_plural(most, "singular value"));
}

static int prepare(struct solving *s) {
    struct decomposition *d = s->state;
    const struct decompose_wanted *wanted = wanted_of(s);
    const int64_t m = kiln_matrix_rows(solving_X(s)), n = kiln_matrix_cols(solving_X(s));
    const int64_t most = most_of(s), usual = most < USUAL ? most : USUAL;
    const int64_t k = d->k = wanted->components > 0 ? wanted->components : usual;
    const struct {
        kiln_matrix **A;
        int64_t rows, cols;
        bool needed;
    } all[] = {{&d->U, m, k, wanted->coordinates || wanted->plot},
               {&d->s, k, 1, true},
               {&d->V, n, k, true},
               {&d->mean, n, 1, true},
               {&d->deviation, n, 1, true},
               {&d->variance, k, 1, true}};
    int code = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && !code; i++)
        if (all[i].needed) code = solve_allocate(all[i].A, s, all[i].rows, all[i].cols);
    return code;
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct decomposition *d = s->state;
    decompose_call *const call = is_pca(s) ? kiln_pca : kiln_svd;
    kiln_svd_options *options = &d->options;
    *options = *(const kiln_svd_options *)s->options;
    options->size = sizeof *options;
    options->mean = d->mean;
    options->deviation = d->deviation;
    options->variance = d->variance;
    options->control = *control;
    const kiln_status status = call(d->U, d->s, d->V, solving_X(s), options, &s->report);
    if (status != KILN_OK) return status;
    options->center |= is_pca(s);
    d->total = kiln_report_figure(&s->report, "variance");
    return KILN_OK;
}

static int finish(struct solving *s) {
    struct decomposition *d = s->state;
    const struct decompose_wanted *wanted = wanted_of(s);
    int code = 0;
    d->values = values_of(d->s, &code);
    if (!code) d->variances = values_of(d->variance, &code);
    if (!code && d->U) d->left = values_of(d->U, &code);
    if (!code && wanted->vectors) d->right = values_of(d->V, &code);
    for (int64_t i = 0; !code && d->left && i < kiln_matrix_rows(d->U) * d->k; i++)
        d->left[i] *= d->values[i % d->k];
    return code;
}

static void free_decomposition(struct solving *s) {
    struct decomposition *d = s->state;
    kiln_matrix *const all[] = {d->U, d->s, d->V, d->mean, d->deviation, d->variance};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    double *const numbers[] = {d->values, d->variances, d->left, d->right};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) free(numbers[i]);
}

/* ---------------------------------------------------------------------------------------- results */

/* The same tensors as kiln_svd_model's; the model itself is the caller's. */
static kiln_status keep(kiln_model *model, const struct solving *s) {
    const struct decomposition *d = s->state;
    kiln_model *made = NULL;
    kiln_status status = kiln_svd_model(&made, d->V, d->s, &d->options, &s->report);
    if (status == KILN_OK) status = solve_keep_tensors(model, s, made);
    kiln_model_free(made);
    return status;
}

/* A header, then a line a row of a rows x k matrix; name(i) stands first unless NULL. */
static int write_rows(const struct solving *s, const char *path, const double *values, int64_t rows,
                      const char *(*name)(const kiln_data *data, int64_t i)) {
    const struct decomposition *d = s->state;
    const int single = kiln_matrix_type(d->V) == KILN_F32;
    char text[SHORTEST_ROOM];
    struct output output;
    const int code = output_open(&output, path);
    if (code) return code;
    if (name) fputs("column,", output.file);
    for (int64_t c = 0; c < d->k; c++)
        fprintf(output.file, "component_%lld%s", (long long)c + 1, c + 1 < d->k ? "," : "\n");
    for (int64_t i = 0; i < rows && !ferror(output.file); i++) {
        const char *own = name ? name(s->data, i) : NULL;
        if (own)
            output_text(&output, own, ",\"\r\n");
        else if (name)
            fprintf(output.file, "%lld", (long long)i);
        if (name) fputc(',', output.file);
        for (int64_t c = 0; c < d->k; c++) {
            text_shortest(text, values[i * d->k + c], single);
            fputs(text, output.file);
            fputc(c + 1 < d->k ? ',' : '\n', output.file);
        }
    }
    return output_commit(&output);
}

static int write_files(const struct solving *s) {
    const struct decomposition *d = s->state;
    const struct decompose_wanted *wanted = wanted_of(s);
    char title[160];
    int code = 0;
    if (wanted->coordinates) code = write_rows(s, wanted->coordinates, d->left, kiln_matrix_rows(d->U), NULL);
    if (!code && wanted->vectors)
        code = write_rows(s, wanted->vectors, d->right, kiln_matrix_rows(d->V), kiln_data_feature_name);
    if (code || !wanted->plot) return code;
    snprintf(title, sizeof title, "%s rows, %s", text_count(kiln_matrix_rows(d->U)),
             text_plural(d->k, "component"));
    return plot_points(wanted->plot, &(struct points){.title = title,
                                                      .axes = {"component 1", "component 2"},
                                                      .at = d->left,
                                                      .count = kiln_matrix_rows(d->U),
                                                      .columns = d->k});
}

static void put_triple(struct result *row, const void *of, int64_t i) {
    const struct decomposition *d = of;
    const double share = d->total > 0 ? d->variances[i] / d->total : (double)NAN;
    PUT(row, NULL, COUNT(i + 1), .label = "component", .before = "  ", .width = 9);
    PUT(row, "value", NUMBER(d->values[i]), .label = "value", .width = 13);
    PUT(row, "variance", NUMBER(d->variances[i]), .label = "variance", .width = 13);
    PUT(row, "ratio", NUMBER(share), .label = "ratio", .format = "%.6f", .width = 10);
}

static void put_rest(struct result *result, const struct solving *s) {
    const struct decomposition *d = s->state;
    const struct decompose_wanted *wanted = wanted_of(s);
    double explained = 0;
    for (int64_t c = 0; c < d->k; c++) explained += d->variances[c];
    PUT(result, "components", COUNT(d->k));
    PUT(result, "explained", NUMBER(d->total > 0 ? explained / d->total : (double)NAN));
    if (d->total > 0)
        PUT(result, NULL, NUMBER(100 * explained / d->total), .format = "%.2f", .label = "explained",
            .after = " % of the variance");
    PUT(result, "variance", NUMBER(d->total));
    PUT(result, "rank", COUNT((int64_t)kiln_report_figure(&s->report, "rank")));
    PUT(result, "orthogonality", NUMBER(kiln_report_figure(&s->report, "orthogonality")));
    PUT(result, "coordinates", TEXT(wanted->coordinates));
    PUT(result, "vectors", TEXT(wanted->vectors));
    PUT(result, "plot", TEXT(wanted->plot));
    PUT(result, "triples", TABLE(d->k, put_triple, d), .most = SHOWN);
}

static void put_head(struct result *result, const struct solving *s) {
    const kiln_matrix *X = solving_X(s);
    PUT_LINE(result, "%s: %s x %s, %s", is_pca(s) ? "principal components" : "singular values",
             text_count(kiln_matrix_rows(X)), text_count(kiln_matrix_cols(X)),
             text_plural(((const struct decomposition *)s->state)->k, "component"));
}

int decompose_take(struct run *run, struct settings *settings) {
    (void)run;
    ((kiln_svd_options *)(void *)settings->algorithm.bytes)->seed = settings->seed;
    return 0;
}

const struct solver decompose_solver = {.schema = "kiln.decomposition/1",
                                        .words.objective = "squares",
                                        .words.change = "residual",
                                        .words.ranks = true,
                                        .bytes = sizeof(struct decomposition),
                                        .take = decompose_take,
                                        .check = check,
                                        .prepare = prepare,
                                        .solve = solve,
                                        .finish = finish,
                                        .keep = keep,
                                        .write = write_files,
                                        .head = put_head,
                                        .put = put_rest,
                                        .free = free_decomposition};

/* ----------------------------------------------------------------------------------------- verify */

struct claimed {
    kiln_matrix *V, *s, *mean, *deviation;
};

static int take_if_there(kiln_matrix **A, const struct run *run, const struct verifying *v, const char *name,
                         kiln_type type) {
    kiln_type kept;
    int64_t rows, cols;
    if (!model_tensor_shape(v->model, name, &kept, &rows, &cols)) return 0;
    return kiln_model_tensor(A, run->device, type, v->model, name) == KILN_OK ? 0 : fail_library(USING_MODEL);
}

/* A tensor that the options ask for; one that they do not is an entry that does not hold. */
static int take_optional(kiln_matrix **A, struct run *run, struct verifying *v, const char *name, bool there,
                         kiln_type type) {
    kiln_type kept;
    int64_t rows, cols;
    verify_entry(v, model_tensor_shape(v->model, name, &kept, &rows, &cols) == there, "", name);
    return there ? take_if_there(A, run, v, name, type) : 0;
}

static void claim(struct verifying *v, const kiln_svd_verification *found, const struct claimed *c) {
    const kiln_type type = kiln_matrix_type(c->V);
    const double units = type == KILN_F32 ? 1e-6 : 1e-14;
    const double claimed = fmax(verify_number(v->report, "residual"), verify_number(v->options, "tolerance"));
    const double variance = verify_number(v->report, "variance");
    /* the means' rounding, squared, which is all that columns of one number each have */
    const double blur = units * units * fmax(verify_number(v->report, "squares"), 0);
    claim_bound(v, "values", "values' error", claimed, found->values, 2, claimed + found->values_rounding);
    claim_bound(v, "residual", "residual", claimed, found->residual, 2,
                2 * claimed + found->residual_rounding);
    claim_bound(v, "orthogonality", "orthogonality", found->orthogonality_rounding, found->orthogonality, 1,
                0);
    if (!isnan(variance))
        claim_equal(v, "variance", "variance", variance, found->variance, 0,
                    1e3 * units * found->variance + blur);
    if (c->mean) claim_bound(v, "means", "means' error", 100 * units, found->means, 1, 0);
    if (c->deviation) claim_bound(v, "deviations", "deviations' error", 1e4 * units, found->deviations, 1, 0);
}

static int64_t count_from(const double *s, int64_t k, double least) {
    int64_t count = 0;
    while (count < k && s[count] > least) count++;
    return count;
}

/* A count of values beyond a bound that the run may have seen on either side of it. */
static void claim_count(struct verifying *v, const char *key, int64_t least, int64_t most) {
    const double claimed = verify_number(v->report, key);
    verify_entry(v, claimed >= (double)least && claimed <= (double)most, "report", key);
}

/* Claims that follow from the values alone. */
static void claim_counts(struct verifying *v, const double *s, int64_t k, const kiln_matrix *X) {
    const bool narrow = kiln_matrix_type(X) == KILN_F32;
    const double epsilon = narrow ? (double)FLT_EPSILON : DBL_EPSILON;
    const int64_t rows = kiln_matrix_rows(X), cols = kiln_matrix_cols(X);
    const double least = (double)(rows > cols ? rows : cols) * epsilon * s[0];
    double squares = 0;
    for (int64_t c = 0; c < k; c++) squares += s[c] * s[c];
    if (isfinite(squares))
        claim_equal(v, "squares", "squares", verify_number(v->report, "squares"), squares, 16 * epsilon, 0);
    claim_count(v, "rank", count_from(s, k, 2 * least), count_from(s, k, least / 2));
}

/* The last value over the first: nothing beside the vectors may be larger. */
static int claim_last(struct verifying *v, const kiln_svd_verification *found, const struct claimed *c,
                      const kiln_matrix *X, bool graph) {
    const double claimed = fmax(verify_number(v->report, "residual"), verify_number(v->options, "tolerance"));
    int code = 0;
    double *s = values_of(c->s, &code);
    if (code) return code;
    const double last = s[0] > 0 ? s[kiln_matrix_rows(c->s) - 1] / s[0] : 0;
    claim_bound(v, "beyond", "largest value beside these", last, found->beyond, 1,
                last * (1 + 1e-6) + 2 * claimed + found->values_rounding);
    claim_counts(v, s, kiln_matrix_rows(c->s), X);
    if (graph) claim_count(v, "connected_components", found->components, found->components);
    free(s);
    return 0;
}

/* The variances of coordinates that the model gives for its data, and their sum over all columns, which the
 * model has where the report knows it. */
static int claim_variances(struct run *run, struct verifying *v, const struct claimed *c) {
    const kiln_matrix *X = kiln_data_X(v->data);
    const kiln_type type = kiln_matrix_type(c->V);
    const int64_t m = kiln_matrix_rows(X), k = kiln_matrix_cols(c->V);
    kiln_matrix *variance = NULL, *total = NULL, *P = NULL;
    const double known = verify_number(v->report, "variance"), digits = type == KILN_F32 ? 1e-3 : 1e-8;
    double off = 0, most = 0, far = 0; /* the length of the row of means, in units of the columns */
    int code = take_if_there(&variance, run, v, "variance", type);
    if (!code) code = take_if_there(&total, run, v, "total", KILN_F64);
    if (!code && variance && kiln_predict(&P, v->model, X) != KILN_OK) code = fail_library(READING);
    double *const t = !code && P ? values_of(P, &code) : NULL;
    double *const claimed = !code && P ? values_of(variance, &code) : NULL;
    double *const means = !code && P && c->mean ? values_of(c->mean, &code) : NULL;
    double *const spread = means && c->deviation ? values_of(c->deviation, &code) : NULL;
    for (int64_t j = 0; means && j < kiln_matrix_rows(c->mean); j++)
        far = hypot(far, means[j] / (spread && spread[j] > 0 ? spread[j] : 1));
    for (int64_t j = 0; t && claimed && j < k; j++) {
        double mean = 0, square = 0, size = 0;
        for (int64_t i = 0; i < m; i++) mean += t[i * k + j] / (double)m;
        for (int64_t i = 0; i < m; i++) {
            square += (t[i * k + j] - mean) * (t[i * k + j] - mean);
            size += t[i * k + j] * t[i * k + j];
        }
        const double rows = m > 1 ? (double)m - 1 : 1;
        off = fmax(off, fabs(claimed[j] - square / rows));
        most = fmax(most, size / rows);
    }
    /* Vectors that are not exact have variances beside those of their values, and what X's means take of a
     * coordinate's digits its variance does not have. */
    const double inexact = fmax(verify_number(v->report, "residual"), 0);
    const double lost = far * (type == KILN_F32 ? FLT_EPSILON : DBL_EPSILON);
    const double allowed = (digits + 4 * inexact) * most + 2 * sqrt(most) * lost + lost * lost;
    if (t && claimed) verify_entry(v, off <= allowed, "tensor", "variance");
    double *const sum = !code && total ? values_of(total, &code) : NULL;
    if (sum && !isnan(known)) verify_entry(v, fabs(*sum - known) <= digits * known, "tensor", "total");
    double *const numbers[] = {t, claimed, means, spread, sum};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) free(numbers[i]);
    kiln_matrix *const all[] = {variance, total, P};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    return code;
}

int decompose_verify(struct run *run, struct verifying *v) {
    struct claimed c = {0};
    kiln_svd_verification found = {.size = sizeof found};
    kiln_svd_options options = {.size = sizeof options,
                                .center = strcmp(kiln_model_text(v->model, "algorithm"), "pca") == 0 ||
                                          json_is_true(json_object_get(v->options, "center")),
                                .scale = json_is_true(json_object_get(v->options, "scale")),
                                .graph = strcmp(kiln_model_text(v->model, "algorithm"), "spectral") == 0};
    int code = verify_read(run, v, "V", "residual");
    if (!code && options.graph) code = graph_verify_vertices(run, v);
    const kiln_matrix *X = code ? NULL : kiln_data_X(v->data);
    if (!code) code = verify_tensor(&c.V, run, v, "V", kiln_matrix_cols(X), "decomposition of the data");
    if (!code) code = verify_tensor(&c.s, run, v, "s", kiln_matrix_cols(c.V), "decomposition of the data");
    if (!code) code = take_optional(&c.mean, run, v, "mean", options.center, kiln_matrix_type(c.V));
    if (!code)
        code = take_optional(&c.deviation, run, v, "deviation", options.scale || options.graph,
                             kiln_matrix_type(c.V));
    options.mean = c.mean;
    options.deviation = c.deviation;
    const double start = clock_seconds();
    if (!code && kiln_verify_svd(&found, c.V, c.s, X, &options) != KILN_OK) code = fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    if (!code) claim(v, &found, &c);
    if (!code) code = claim_last(v, &found, &c, X, options.graph);
    if (!code && !options.graph) code = claim_variances(run, v, &c);
    kiln_matrix *const all[] = {c.V, c.s, c.mean, c.deviation};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    return code;
}
