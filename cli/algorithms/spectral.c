/* kiln spectral: read a graph, lay its vertices out by the eigenvectors of its normalised Laplacian. */
#include <math.h>
#include <stdlib.h>

#include "decompose.h"
#include "graph.h"
#include "metrics.h"
#include "plot_points.h"

enum { SHOWN = 20, TITLE_ROOM = 32 };

struct wanted {
    const char *coordinates, *plot;
    int64_t components;
};

/* One triple more than components is found: the first one is dropped. */
struct embedding {
    kiln_matrix *s, *V, *deviation;
    double *values, *at; /* on the host: s; vertices x k, the coordinates */
    char (*titles)[TITLE_ROOM];
    struct graph_scores *columns;
    int64_t n, k;
};

static const struct wanted *wanted_of(const struct solving *s) {
    return s->own;
}

static int64_t width(const struct settings *settings) {
    return ((const struct wanted *)(const void *)settings->own.bytes)->components + 1;
}

static int check(struct solving *s) {
    const int64_t n = kiln_matrix_cols(solving_X(s)), k = wanted_of(s)->components;
    const int code = graph_check_format(s);
    if (code || k < n) return code;
    return fail_with(KILN_ERR_DATA, READING, n > 1 ? "a smaller -k" : "", "-k %lld, but a graph of %s has %s",
                     (long long)k, n == 1 ? "1 vertex" : text_plural(n, "vertice"),
                     text_plural(n > 0 ? n - 1 : 0, "coordinate"));
}

static int prepare(struct solving *s) {
    struct embedding *e = s->state;
    e->n = kiln_matrix_cols(solving_X(s)), e->k = wanted_of(s)->components;
    int code = solve_allocate(&e->s, s, e->k + 1, 1);
    if (!code) code = solve_allocate(&e->V, s, e->n, e->k + 1);
    return code ? code : solve_allocate(&e->deviation, s, e->n, 1);
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    const struct embedding *e = s->state;
    kiln_svd_options options = *(const kiln_svd_options *)s->options;
    options.size = sizeof options;
    options.deviation = e->deviation;
    options.graph = 1;
    options.control = *control;
    return kiln_spectral(NULL, e->s, e->V, solving_X(s), &options, &s->report);
}

/* v_ij / sqrt(D_i) but for the first vector; of each the entry of the largest size is positive, as in
 * scikit-learn. */
static void embed(struct embedding *e, const double *V, const double *deviation) {
    for (int64_t c = 0; c < e->k; c++) {
        double most = 0, sign = 1;
        for (int64_t i = 0; i < e->n; i++) {
            const double value = e->at[i * e->k + c] = V[i * (e->k + 1) + c + 1] / deviation[i];
            if (!(fabs(value) > most)) continue;
            most = fabs(value);
            sign = value < 0 ? -1 : 1;
        }
        for (int64_t i = 0; i < e->n; i++) e->at[i * e->k + c] *= sign;
        snprintf(e->titles[c], sizeof e->titles[c], "component_%lld", (long long)c + 1);
        e->columns[c] = (struct graph_scores){e->titles[c], e->at + c, e->n, e->k};
    }
}

static int finish(struct solving *s) {
    struct embedding *e = s->state;
    int code = 0;
    double *V = NULL, *deviation = NULL;
    e->at = calloc((size_t)(e->n * e->k), sizeof *e->at);
    e->titles = calloc((size_t)e->k, sizeof *e->titles);
    e->columns = calloc((size_t)e->k, sizeof *e->columns);
    if (!e->at || !e->titles || !e->columns)
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld coordinates",
                         (long long)(e->n * e->k));
    if (!code) e->values = values_of(e->s, &code);
    if (!code) V = values_of(e->V, &code);
    if (!code) deviation = values_of(e->deviation, &code);
    if (!code) embed(e, V, deviation);
    free(V);
    free(deviation);
    return code;
}

static void free_embedding(struct solving *s) {
    struct embedding *e = s->state;
    kiln_matrix_free(e->s);
    kiln_matrix_free(e->V);
    kiln_matrix_free(e->deviation);
    free(e->values);
    free(e->at);
    free(e->titles);
    free(e->columns);
}

/* ---------------------------------------------------------------------------------------- results */

static kiln_status keep(kiln_model *model, const struct solving *s) {
    const struct embedding *e = s->state;
    kiln_status status = kiln_model_set_tensor(model, "V", e->V);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "s", e->s);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "deviation", e->deviation);
    if (status != KILN_OK) return status;
    return solve_keep_names(model, "vertices", s, e->n, kiln_data_feature_name);
}

static int write_files(const struct solving *s) {
    const struct embedding *e = s->state;
    char title[160];
    const int code = graph_write_scores(s, wanted_of(s)->coordinates, e->columns, e->k);
    if (code || !wanted_of(s)->plot) return code;
    snprintf(title, sizeof title, "%s vertices, %s", text_count(e->n), text_plural(e->k, "component"));
    return plot_points(wanted_of(s)->plot, &(struct points){.title = title,
                                                            .axes = {"component 1", "component 2"},
                                                            .at = e->at,
                                                            .count = e->n,
                                                            .columns = e->k});
}

static void put_eigenvalue(struct result *row, const void *of, int64_t i) {
    const struct embedding *e = of;
    PUT(row, NULL, COUNT(i), .label = "component", .before = "  ", .width = 9);
    PUT(row, "eigenvalue", NUMBER(fmax(2 - 2 * e->values[i], 0)), .label = "eigenvalue", .width = 13);
}

static void put_rest(struct result *result, const struct solving *s) {
    const struct embedding *e = s->state;
    PUT(result, "components", COUNT(e->k));
    PUT(result, "connected_components",
        COUNT((int64_t)kiln_report_figure(&s->report, "connected_components")));
    PUT(result, "isolated", COUNT((int64_t)kiln_report_figure(&s->report, "isolated")));
    PUT(result, "orthogonality", NUMBER(kiln_report_figure(&s->report, "orthogonality")));
    PUT(result, "coordinates", TEXT(wanted_of(s)->coordinates));
    PUT(result, "plot", TEXT(wanted_of(s)->plot));
    PUT(result, "eigenvalues", TABLE(e->k + 1, put_eigenvalue, e), .most = SHOWN);
}

static void put_head(struct result *result, const struct solving *s) {
    const kiln_matrix *X = solving_X(s);
    PUT_LINE(result, "spectral embedding: %s vertices, %s, %s", text_count(kiln_matrix_rows(X)),
             text_plural(kiln_matrix_nnz(X), "weight"),
             text_plural(((const struct embedding *)s->state)->k, "component"));
}

static const struct solver solver = {.schema = "kiln.embedding/1",
                                     .words.objective = "squares",
                                     .words.change = "residual",
                                     .words.ranks = true,
                                     .bytes = sizeof(struct embedding),
                                     .take = decompose_take,
                                     .check = check,
                                     .prepare = prepare,
                                     .solve = solve,
                                     .finish = finish,
                                     .keep = keep,
                                     .write = write_files,
                                     .head = put_head,
                                     .put = put_rest,
                                     .free = free_embedding};

/* clang-format off */
static const struct option own[] = {
    {.name = "components", .letter = 'k', .kind = OPTION_INTEGER, .group = GROUP_MODEL, .value = "K",
     .standard = standard_components, .least = 1, .most = 65535,
     .offset = offsetof(struct wanted, components),
     .help = "So many coordinates for each vertex, beside the first eigenvector, which is left out."},
    {.name = "coordinates", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, coordinates),
     .help = "Write a line for each vertex: its name and its coordinates, separated by tabs, or in .csv by "
             "commas behind a header. - is standard output."},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, plot),
     .help = "Draw the vertices' first two coordinates to FILE, as SVG or PNG."},
};
/* clang-format on */

const struct verb verb_of_spectral = {
    "spectral",
    "GRAPH...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Lay out the vertices of a graph by eigenvectors of its Laplacian",
    "Spectral embedding: vertices that many or heavy links join lie near each other. The coordinates are "
    "v_i / sqrt(D_i), with the degrees D and the eigenvectors v of the normalised Laplacian 1 - D^-1/2 S "
    "D^-1/2 whose eigenvalues are the least ones but the first, which is 0 and says nothing. S = (W + W') / "
    "2 "
    "for the weights W: a link leads both ways. Clustering the coordinates with kiln kmeans is spectral "
    "clustering.\n\n"
    "GRAPH is an edge list (.edges, or .txt as SNAP has it: lines of two vertices and perhaps a weight; "
    "names are numbers or any text; or a table, .csv or .tsv, whose header may name source, target and "
    "weight; a link that stands several times adds up), or any square matrix of weights, sparse or dense, "
    "Matrix Market for instance, plain or through gzip or zstd; - is standard input.\n\n"
    "The eigenvalues go to standard output: as many are 0 as the graph has parts that no link joins, "
    "and a warning says so.",
    "kiln spectral friends.edges -k 2 --plot friends.svg\n"
    "kiln spectral neighbours.mtx -k 8 --coordinates vertices.csv -o layout.kiln\n"
    "kiln verify layout.kiln neighbours.mtx",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(RANDOM) | VERB_BIT(PASSES) | VERB_BIT(LINKS),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .otherwise = "seed",
    .verify = decompose_verify,
    .width = width,
    .tables = KILN_FILE_EDGES,
    .predict_instead = "kiln spectral --coordinates FILE writes every vertex's coordinates",
};
