/* kiln mds: read points or dissimilarities, lay them out, write the coordinates and a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "files.h"
#include "metrics.h"
#include "output.h"
#include "plot_points.h"
#include "shepard.h"
#include "solve.h"
#include "verify.h"

struct wanted {
    const char *coordinates, *plot, *color, *shepard;
    int64_t dimensions;
};

struct layout {
    kiln_matrix *Y, *points;      /* the layout; each point's stress */
    double *at, *stress, *colour; /* on the host */
    const char **names;           /* of the colours */
    int64_t classes;
};

static int64_t width(const struct settings *settings) {
    return ((const struct wanted *)(const void *)settings->own.bytes)->dimensions;
}

static int64_t dimensions_of(const struct solving *s) {
    return ((const struct wanted *)s->own)->dimensions;
}

/* The target that --color named is the colour: its numbers, or its classes. */
static int take_colour(struct solving *s) {
    struct layout *layout = s->state;
    const kiln_matrix *y = kiln_data_y(s->data);
    int code = 0;
    if (!((const struct wanted *)s->own)->color || !y) return 0;
    if (!(layout->colour = values_of(y, &code))) return code;
    while (kiln_data_class_name(s->data, 0, layout->classes)) layout->classes++;
    const int64_t known = layout->classes, n = kiln_matrix_rows(y);
    if (!known) return 0;
    if (!(layout->names = malloc((size_t)(known + 1) * sizeof *layout->names)))
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory");
    for (int64_t c = 0; c < known; c++) layout->names[c] = kiln_data_class_name(s->data, 0, c);
    layout->names[known] = ""; /* a class that a model of the reading did not know */
    for (int64_t i = 0; i < n; i++)
        if (layout->colour[i] < 0) layout->colour[i] = (double)known, layout->classes = known + 1;
    return 0;
}

/* In f64 where the device has it: the square of 1e20 is no f32. */
static int allocate_points(kiln_matrix **points, const struct solving *s, int64_t n) {
    kiln_device_info info = {0};
    if (kiln_device_get_info(s->run->device, &info) != KILN_OK) return fail_library(WORKING);
    const kiln_type type = info.has_f64 ? KILN_F64 : kiln_matrix_type(solving_X(s));
    return kiln_matrix_dense(points, s->run->device, type, n, 1, NULL) == KILN_OK ? 0 : fail_library(WORKING);
}

static int prepare(struct solving *s) {
    struct layout *layout = s->state;
    const int64_t n = kiln_matrix_rows(solving_X(s));
    kiln_type type;
    int64_t rows = 0, cols = 0;
    int code = take_colour(s);
    if (!code && ((const struct wanted *)s->own)->shepard && n > SHEPARD_POINTS)
        code =
            fail_with(KILN_ERR_LIMIT, WORKING, "leave out --shepard, or take a sample of the points",
                      "--shepard writes each pair, and takes at most %s points", text_count(SHEPARD_POINTS));
    if (!code) code = allocate_points(&layout->points, s, n);
    if (code) return code;
    if (!s->warm) return solve_allocate(&layout->Y, s, n, dimensions_of(s));
    if (!model_tensor_shape(s->warm, "layout", &type, &rows, &cols) || rows != n || cols != dimensions_of(s))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "as many points in as many dimensions are needed",
                         "%s has a layout of %lld points in %lld dimensions", s->run->settings->warm_start,
                         (long long)rows, (long long)cols);
    return solve_take(&layout->Y, s, "layout");
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct layout *layout = s->state;
    kiln_mds_options options = *(const kiln_mds_options *)s->options;
    options.seed = (uint64_t)s->run->settings->seed;
    options.point_stress = layout->points;
    options.control = *control;
    if (s->warm) options.init = KILN_MDS_GIVEN;
    return kiln_mds(layout->Y, solving_X(s), &options, &s->report);
}

static int finish(struct solving *s) {
    struct layout *layout = s->state;
    int code = 0;
    if ((layout->at = values_of(layout->Y, &code))) layout->stress = values_of(layout->points, &code);
    return code;
}

static void free_layout(struct solving *s) {
    struct layout *layout = s->state;
    free(layout->at);
    free(layout->stress);
    free(layout->colour);
    free(layout->names);
    kiln_matrix_free(layout->Y);
    kiln_matrix_free(layout->points);
}

/* ---------------------------------------------------------------------------------------- results */

/* The points, too, so that new ones can be placed; but of data that stay in their file and may not fit into
 * memory. */
static kiln_status keep_points(kiln_model *model, const struct solving *s) {
    enum { A_NUMBER = 8, SHARE = 4 }; /* bytes; of the budget */
    const kiln_matrix *X = solving_X(s);
    if (!s->run->settings->map || kiln_matrix_nnz(X) <= s->run->device_info.memory / SHARE / A_NUMBER)
        return kiln_model_set_tensor(model, "points", X);
    say("the points are too much for the model and are left out: kiln predict cannot place new ones");
    return kiln_model_set_text(model, "points", "left out");
}

static kiln_status keep(kiln_model *model, const struct solving *s) {
    static const char *const metrics[] = {"ratio", "ratio", "interval", "ordinal"};
    const kiln_mds_options *options = s->options;
    kiln_status status = kiln_model_set_tensor(model, "layout", ((const struct layout *)s->state)->Y);
    if (status == KILN_OK) status = kiln_model_set_text(model, "metric", metrics[options->metric]);
    if (status != KILN_OK || options->dissimilarities) return status;
    return keep_points(model, s);
}

/* A header, then a line a point: its coordinates, its stress, its colour. */
static int write_coordinates(const struct solving *s, const char *path) {
    const struct layout *layout = s->state;
    const int64_t n = kiln_matrix_rows(layout->Y), p = kiln_matrix_cols(layout->Y);
    const int single = kiln_matrix_type(layout->Y) == KILN_F32;
    char text[SHORTEST_ROOM];
    struct output output;
    const int code = output_open(&output, path);
    if (code) return code;
    for (int64_t c = 0; c < p; c++) fprintf(output.file, "dimension_%lld,", (long long)c + 1);
    fprintf(output.file, "stress%s%s\n", layout->colour ? "," : "", layout->colour ? "color" : "");
    for (int64_t i = 0; i < n && !ferror(output.file); i++) {
        for (int64_t c = 0; c < p; c++) {
            text_shortest(text, layout->at[i * p + c], single);
            fprintf(output.file, "%s,", text);
        }
        text_shortest(text, layout->stress[i], single);
        fputs(text, output.file);
        if (layout->colour) {
            text_shortest(text, layout->colour[i], 0);
            fputc(',', output.file);
            output_text(&output, layout->names ? layout->names[(int64_t)layout->colour[i]] : text, ",\"\r\n");
        }
        fputc('\n', output.file);
    }
    return output_commit(&output);
}

static int write_files(const struct solving *s) {
    const struct wanted *wanted = s->own;
    const struct layout *layout = s->state;
    char title[160];
    int code = wanted->coordinates ? write_coordinates(s, wanted->coordinates) : 0;
    if (!code && wanted->shepard)
        code = shepard_write(wanted->shepard, layout->Y, solving_X(s),
                             ((const kiln_mds_options *)s->options)->dissimilarities);
    if (code || !wanted->plot) return code;
    snprintf(title, sizeof title, "%s points, stress-1 %.4g%s%.60s", text_count(kiln_matrix_rows(layout->Y)),
             kiln_report_figure(&s->report, "stress_1"), wanted->color ? ", colour: " : "",
             wanted->color ? wanted->color : "");
    return plot_points(wanted->plot, &(struct points){.title = title,
                                                      .axes = {"coordinate 1", "coordinate 2"},
                                                      .at = layout->at,
                                                      .count = kiln_matrix_rows(layout->Y),
                                                      .columns = kiln_matrix_cols(layout->Y),
                                                      .colour = layout->colour,
                                                      .names = layout->names,
                                                      .classes = layout->classes});
}

static void put_coordinate(struct result *row, const void *of, int64_t i) {
    PUT(row, "", NUMBER(((const struct layout *)of)->at[i]));
}

static void put_point(struct result *row, const void *of, int64_t i) {
    const int64_t p = kiln_matrix_cols(((const struct layout *)of)->Y);
    PUT(row, "", TABLE(p, put_coordinate, of), .first = i * p);
}

static void put_rest(struct result *result, const struct solving *s) {
    const struct wanted *wanted = s->own;
    const struct layout *layout = s->state;
    const bool few = kiln_matrix_rows(layout->Y) * kiln_matrix_cols(layout->Y) <= NUMBERS_MOST;
    PUT(result, "dimensions", COUNT(dimensions_of(s)));
    PUT(result, "stress_1", NUMBER(kiln_report_figure(&s->report, "stress_1")), .label = "stress-1");
    PUT(result, "coordinates", TEXT(wanted->coordinates));
    PUT(result, "layout", TABLE(kiln_matrix_rows(layout->Y), few ? put_point : NULL, layout), .hidden = true);
    PUT(result, "plot", TEXT(wanted->plot));
    PUT(result, "shepard", TEXT(wanted->shepard));
}

static void put_head(struct result *result, const struct solving *s) {
    PUT_LINE(result, "multi-dimensional scaling: %s in %s",
             text_plural(kiln_matrix_rows(solving_X(s)), "point"),
             text_plural(dimensions_of(s), "dimension"));
}

/* ----------------------------------------------------------------------------------------- verify */

/* The model keeps the points that it was made from, for new ones to be placed by. */
static int check_points(struct run *run, struct verifying *v, bool dissimilarities) {
    const kiln_matrix *X = kiln_data_X(v->data);
    kiln_matrix *points = NULL;
    kiln_type type;
    int64_t rows, cols;
    int code = 0;
    bool same = false;
    if (kiln_model_text(v->model, "points")) return 0; /* they were left out */
    if (model_tensor_shape(v->model, "points", &type, &rows, &cols) == dissimilarities) {
        verify_entry(v, false, "", "points");
        return 0;
    }
    if (dissimilarities) return 0;
    if (kiln_model_tensor(&points, run->device, kiln_matrix_type(X), v->model, "points") != KILN_OK)
        return fail_library(USING_MODEL);
    double *kept = values_of(points, &code), *given = code ? NULL : values_of(X, &code);
    if (!code)
        same = rows == kiln_matrix_rows(X) && cols == kiln_matrix_cols(X) &&
               memcmp(kept, given, (size_t)(rows * cols) * sizeof *kept) == 0;
    verify_entry(v, same || code, "", "points");
    kiln_matrix_free(points);
    free(kept);
    free(given);
    return code;
}

static int verify_mds(struct run *run, struct verifying *v) {
    kiln_matrix *Y = NULL;
    kiln_mds_verification found = {.size = sizeof found};
    const kiln_mds_options options = {.metric = (kiln_mds_metric)verify_choice(v->options, "mds", "metric"),
                                      .ties = (kiln_mds_ties)verify_choice(v->options, "mds", "ties"),
                                      .dissimilarities =
                                          json_is_true(json_object_get(v->options, "dissimilarities"))};
    int code = verify_read(run, v, "layout", "stress");
    const int64_t rows = code ? 0 : kiln_matrix_rows(kiln_data_X(v->data));
    if (!code) code = verify_tensor(&Y, run, v, "layout", rows, "layout of the rows");
    const double start = clock_seconds();
    if (!code && kiln_verify_mds(&found, Y, kiln_data_X(v->data), &options) != KILN_OK)
        code = fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    kiln_matrix_free(Y);
    if (!code) code = check_points(run, v, options.dissimilarities != 0);
    if (code) return code;
    const double fall =
        2 * fmax(verify_number(v->report, "residual"), verify_number(v->options, "tolerance"));
    claim_equal(v, "stress", "stress", verify_number(v->report, "stress"), found.stress, 0,
                found.stress_rounding);
    claim_equal(v, "stress_1", "stress-1", verify_number(v->report, "stress_1"), found.stress_1, 0,
                found.stress_1_rounding);
    const double least = isnan(found.fall) ? NAN : fmin(found.fall, found.stress_1);
    claim_bound(v, "fall", "fall in one more iteration", fall / 2, least, 2, fall + found.fall_rounding);
    return 0;
}

/* ---------------------------------------------------------------------------------------- the verb */

static int take_options(struct run *run, struct settings *settings) {
    settings->target = ((const struct wanted *)(const void *)settings->own.bytes)->color;
    run->text_targets = true;
    return 0;
}

static const struct solver solver = {.schema = "kiln.layout/1",
                                     .words.objective = "stress",
                                     .bytes = sizeof(struct layout),
                                     .take = take_options,
                                     .prepare = prepare,
                                     .solve = solve,
                                     .finish = finish,
                                     .keep = keep,
                                     .write = write_files,
                                     .head = put_head,
                                     .put = put_rest,
                                     .free = free_layout};

/* Passes go over the pairs, half a matrix of them; so that their distances do not count as kept where they
 * are computed anew, many pairs are taken for more passes over fewer. */
static void work_on_pairs(kiln_work *work) {
    enum { PAIRS_AT_ONCE = 1 << 27 };
    const double n = (double)work->rows, pairs = n * n / 2;
    const double turns = ceil(pairs / PAIRS_AT_ONCE);
    if (work->rows < 2) return;
    work->format = KILN_DENSE;
    work->cols = work->rows;
    work->rows = (int64_t)ceil(pairs / turns / n);
    work->nnz = work->rows * work->cols;
    work->passes = (int64_t)((double)work->passes * turns);
}

/* clang-format off */
static const struct option own[] = {
    {.name = "dimensions", .letter = 'd', .kind = OPTION_INTEGER, .group = GROUP_MODEL, .value = "P",
     .standard = standard_components, .least = 1, .most = 64, .offset = offsetof(struct wanted, dimensions),
     .help = "Coordinates of each point in the layout."},
    {.name = "coordinates", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, coordinates),
     .help = "Write a line for each point as CSV: its coordinates and its stress. - is standard output."},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, plot),
     .help = "Draw the first two dimensions to FILE, as SVG or PNG."},
    {.name = "shepard", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, shepard),
     .help = "Write each pair's dissimilarity and its distance in the layout as CSV, or draw them (.svg, "
             ".png). Up to 10,000 points."},
    {.name = "color", .kind = OPTION_TEXT, .group = GROUP_OUTPUT, .value = "COLUMN",
     .offset = offsetof(struct wanted, color),
     .help = "Colour the points by this column of a CSV file, which then takes no part in the distances."},
};
/* clang-format on */

const struct verb verb_of_mds = {
    "mds",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Lay points out so that distances come near their dissimilarities",
    "Multi-dimensional scaling by SMACOF: coordinates in a few dimensions whose distances come near the "
    "distances of DATA's rows, or, with --dissimilarities, near the numbers of a square symmetric matrix, in "
    "which a missing number (nan, with --allow-nonfinite) does not count. The stress, the sum of the squared "
    "differences, never rises from iteration to iteration.\n\n"
    "--metric interval fits a line through the dissimilarities first, --metric ordinal any values that rise "
    "with them. The minimum that is found may be a local one: --restarts tries more.\n\n"
    "kiln predict places new points in the layout, of --metric ratio: the others' distances are near fitted "
    "values.",
    "kiln mds points.csv --plot layout.svg --color species -o layout.kiln\n"
    "kiln mds distances.csv --dissimilarities --metric ordinal --restarts 10 --coordinates layout.csv",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(RANDOM) | VERB_BIT(ROWS) | VERB_BIT(PASSES),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .width = width,
    .verify = verify_mds,
    .work = work_on_pairs,
    .sharing = SHARES_PAIRS,
};
