/* kiln pagerank: read a graph, rank its vertices, show the highest. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "graph.h"
#include "metrics.h"
#include "plot.h"
#include "verify.h"

#include <kiln/tune.h>

enum { SETS_MOST = 64, POINTS = 200 };

struct wanted {
    const char *personalize, *dangling_to, *scores, *plot;
    int64_t top;
};

struct ranking {
    struct graph_seeds personalize, dangling; /* sets = 0: not given */
    kiln_matrix *ranks, *teleport, *sink;     /* on the run's device */
    double *rank;                             /* on the host, vertices x sets */
    double *column;                           /* one set's */
    int64_t sets, top_count;
    int64_t *top; /* of each set, top_count of them */
};

/* ------------------------------------------------------------------------------------------ the run */

static int64_t vertices(const struct solving *s) {
    return kiln_matrix_rows(solving_X(s));
}

static int check(struct solving *s) {
    const struct wanted *wanted = s->own;
    struct ranking *ranking = s->state;
    const kiln_matrix *A = solving_X(s);
    int code = graph_check_format(s);
    ranking->sets = 1;
    if (!code && kiln_matrix_rows(A) != kiln_matrix_cols(A))
        code =
            fail_with(KILN_ERR_DATA, READING, "--format edges for lines of two vertices",
                      "%s is %s x %s, but rows and columns must be the same vertices", s->run->arguments[0],
                      text_count(kiln_matrix_rows(A)), text_count(kiln_matrix_cols(A)));
    if (!code && wanted->personalize) {
        code = graph_read_seeds(&ranking->personalize, wanted->personalize, s->data, SETS_MOST);
        if (!code) ranking->sets = ranking->personalize.sets;
    }
    if (!code && wanted->dangling_to)
        code = graph_read_seeds(&ranking->dangling, wanted->dangling_to, s->data, 1);
    return code;
}

static kiln_work work(const struct solving *s) {
    const struct run *run = s->run;
    return choose_work(run->verb, s->data, ((const struct ranking *)s->state)->sets,
                       choose_passes(run->verb, run->settings, vertices(s)));
}

static int to_device(kiln_matrix **to, const struct solving *s, const struct graph_seeds *seeds) {
    if (!seeds->sets) return 0;
    return kiln_matrix_copy(to, s->run->device, kiln_matrix_type(solving_X(s)), seeds->weights) == KILN_OK
               ? 0
               : fail_library(WORKING);
}

static int prepare(struct solving *s) {
    struct ranking *ranking = s->state;
    kiln_type type;
    int64_t rows = 0, cols = 0;
    int code = to_device(&ranking->teleport, s, &ranking->personalize);
    if (!code) code = to_device(&ranking->sink, s, &ranking->dangling);
    if (code) return code;
    if (!s->warm) return solve_allocate(&ranking->ranks, s, vertices(s), ranking->sets);
    if (!model_tensor_shape(s->warm, "ranks", &type, &rows, &cols) || rows != vertices(s) ||
        !graph_same_vertices(s->warm, s->data))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "the same vertices in the same order are needed",
                         "%s is no ranking of this graph's vertices", s->run->settings->warm_start);
    if (cols != ranking->sets)
        return fail_with(KILN_ERR_MODEL, USING_MODEL,
                         "as many sets of seeds as the model was made with are needed",
                         "%s holds ranks for %s, but %s wanted", s->run->settings->warm_start,
                         text_plural(cols, "set"), text_plural(ranking->sets, "set"));
    return solve_take(&ranking->ranks, s, "ranks");
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct ranking *ranking = s->state;
    kiln_pagerank_options options = *(const kiln_pagerank_options *)s->options;
    options.personalize = ranking->teleport;
    options.dangling_to = ranking->sink;
    options.warm_start = s->warm != NULL;
    options.control = *control;
    return kiln_pagerank(ranking->ranks, solving_X(s), &options, &s->report);
}

static const double *column_of(const struct ranking *ranking, int64_t set, int64_t count) {
    for (int64_t v = 0; v < count; v++) ranking->column[v] = ranking->rank[v * ranking->sets + set];
    return ranking->column;
}

static int finish(struct solving *s) {
    struct ranking *ranking = s->state;
    const struct wanted *wanted = s->own;
    const int64_t n = vertices(s), most = wanted->top;
    int code = 0;
    if (!(ranking->rank = values_of(ranking->ranks, &code))) return code;
    ranking->top = malloc((size_t)(most * ranking->sets) * sizeof *ranking->top);
    ranking->column = malloc((size_t)n * sizeof *ranking->column);
    if (!ranking->top || !ranking->column)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld vertices", (long long)most);
    for (int64_t set = 0; set < ranking->sets; set++)
        ranking->top_count =
            solve_find_top(ranking->top + set * (n < most ? n : most), column_of(ranking, set, n), n, most);
    return 0;
}

static void free_ranking(struct solving *s) {
    struct ranking *ranking = s->state;
    free(ranking->rank);
    free(ranking->column);
    free(ranking->top);
    kiln_matrix_free(ranking->ranks);
    kiln_matrix_free(ranking->teleport);
    kiln_matrix_free(ranking->sink);
    kiln_matrix_free(ranking->personalize.weights);
    kiln_matrix_free(ranking->dangling.weights);
}

/* ---------------------------------------------------------------------------------------- results */

/* With what the ranks are the answer to, so that they can be verified. */
static kiln_status keep(kiln_model *model, const struct solving *s) {
    const struct ranking *ranking = s->state;
    kiln_status status = kiln_model_set_tensor(model, "ranks", ranking->ranks);
    if (status == KILN_OK && ranking->teleport)
        status = kiln_model_set_tensor(model, "personalize", ranking->teleport);
    if (status == KILN_OK && ranking->sink) status = kiln_model_set_tensor(model, "dangling", ranking->sink);
    if (status != KILN_OK) return status;
    return solve_keep_names(model, "vertices", s, kiln_matrix_cols(solving_X(s)), kiln_data_feature_name);
}

static int write_scores(const struct solving *s) {
    const struct ranking *ranking = s->state;
    char numbered[SETS_MOST][SHORTEST_ROOM];
    struct graph_scores columns[SETS_MOST];
    for (int64_t set = 0; set < ranking->sets; set++) {
        snprintf(numbered[set], sizeof numbered[set], "rank%lld", (long long)set + 1);
        columns[set] = (struct graph_scores){ranking->sets > 1 ? numbered[set] : "rank", ranking->rank + set,
                                             vertices(s), ranking->sets};
    }
    return graph_write_scores(s, ((const struct wanted *)s->own)->scores, columns, ranking->sets);
}

static int descending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The ranks of the first set from the highest down, at places that are equal factors apart: on two
 * logarithmic axes the ranks of graphs that grew are near a line. */
static int draw(const struct solving *s) {
    const struct ranking *ranking = s->state;
    const char *path = ((const struct wanted *)s->own)->plot;
    const int64_t n = vertices(s);
    double place[POINTS], height[POINTS];
    int64_t count = 0, former = 0;
    if (!path) return 0;
    column_of(ranking, 0, n);
    qsort(ranking->column, (size_t)n, sizeof *ranking->column, descending);
    for (int i = 0; i < POINTS; i++) {
        const int64_t at = (int64_t)(pow((double)n, i / (POINTS - 1.0)) + 0.5);
        if (at <= former || at > n || !(ranking->column[at - 1] > 0)) continue;
        former = at;
        place[count] = (double)at;
        height[count++] = ranking->column[at - 1];
    }
    const struct series series = {.x = place, .y = height, .count = count, .look = LOOK_LINE | LOOK_POINTS};
    const struct panel panel = {.x_title = "place",
                                .y_title = "rank",
                                .logarithmic = true,
                                .logarithmic_y = true,
                                .series = &series,
                                .count = 1};
    return plot_panels(path, "PageRank, highest first", &panel, 1);
}

static int write_files(const struct solving *s) {
    const int code = write_scores(s);
    return code ? code : draw(s);
}

static void put_vertex(struct result *row, const void *of, int64_t i) {
    const struct solving *s = of;
    const struct ranking *ranking = s->state;
    const int64_t set = i / ranking->top_count, vertex = ranking->top[i];
    char name[SHORTEST_ROOM];
    if (ranking->sets > 1 && i % ranking->top_count == 0) PUT_LINE(row, "set %lld", (long long)set + 1);
    PUT(row, "value", NUMBER(ranking->rank[vertex * ranking->sets + set]), .label = "", .before = "  ",
        .width = 13);
    PUT(row, "vertex", TEXT(result_hold(row, graph_vertex_name(s->data, vertex, name), name)), .label = "",
        .before = "  ");
    PUT(row, "set", COUNT(set + 1));
}

static void put_rest(struct result *result, const struct solving *s) {
    const struct ranking *ranking = s->state;
    const struct wanted *wanted = s->own;
    PUT(result, "scores", TEXT(wanted->scores));
    PUT(result, "personalize", TEXT(wanted->personalize));
    PUT(result, "dangling_to", TEXT(wanted->dangling_to));
    PUT(result, "weighted", FLAG(kiln_report_figure(&s->report, "weighted") > 0));
    PUT(result, "dangling_mass", NUMBER(kiln_report_figure(&s->report, "dangling_mass")));
    PUT(result, "sets", COUNT(ranking->sets));
    PUT(result, "ranks", TABLE(ranking->sets * ranking->top_count, put_vertex, s));
}

static void put_head(struct result *result, const struct solving *s) {
    const kiln_matrix *A = solving_X(s);
    PUT_LINE(result, "PageRank: vertices %s, %s, %s; %.3g of the rank at vertices without links",
             text_count(kiln_matrix_rows(A)), text_plural(kiln_matrix_nnz(A), "link"),
             graph_counting(&s->report), kiln_report_figure(&s->report, "dangling_mass"));
}

/* ----------------------------------------------------------------------------------------- verify */

/* Holds what a ranking claims: that one more iteration over the same graph would hardly change it. */
struct claimed {
    kiln_matrix *ranks, *teleport, *sink;
};

static int take_sets(kiln_matrix **A, struct run *run, const struct verifying *v, const char *name) {
    kiln_type type;
    int64_t rows, cols;
    if (!model_tensor_shape(v->model, name, &type, &rows, &cols)) return 0; /* not given */
    return verify_tensor(A, run, v, name, kiln_matrix_rows(kiln_data_X(v->data)), GRAPH_RANKING);
}

static int judge(struct run *run, struct verifying *v, const struct claimed *claimed) {
    const kiln_pagerank_options options = {
        .damping = verify_number(v->options, "damping"),
        .unweighted = json_is_true(json_object_get(v->options, "unweighted")),
        .dangling = (kiln_dangling)verify_choice(v->options, "pagerank", "dangling"),
        .personalize = claimed->teleport,
        .dangling_to = claimed->sink};
    const bool single = kiln_matrix_type(claimed->ranks) == KILN_F32;
    const int64_t vertices = kiln_matrix_rows(claimed->ranks);
    kiln_pagerank_verification found = {.size = sizeof found};
    const double start = clock_seconds();
    if (kiln_verify_pagerank(&found, kiln_data_X(v->data), claimed->ranks, &options) != KILN_OK)
        return fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    /* An iteration changes p less than the one that made it, but for what rounding did in that one and in the
     * scaling to a sum of 1, whose error the next takes back by 1 - damping: twice a step's rounding in all,
     * which ranks.c has, and a unit each of the scaled ranks and of their images. */
    const double residual = verify_number(v->report, "residual"),
                 rounding = single ? 2e-6 : 1e-13 + found.dangling * (double)vertices * DBL_EPSILON / 64;
    claim_bound(v, "residual", "residual", residual, found.residual, 1, residual + rounding);
    claim_equal(v, "sum", "sum", 1, found.sum, single ? 1e-5 : 1e-12, 0);
    claim_equal(v, "dangling_mass", "dangling", verify_number(v->report, "dangling_mass"), found.dangling, 0,
                (single ? 1e-5 : 1e-9) + found.residual);
    return 0;
}

static int verify_pagerank(struct run *run, struct verifying *v) {
    struct claimed claimed = {NULL, NULL, NULL};
    if (isnan(verify_number(v->options, "damping"))) return verify_no_claims();
    int code = verify_read(run, v, "ranks", "residual");
    if (!code) code = graph_verify_vertices(run, v);
    if (!code) code = take_sets(&claimed.ranks, run, v, "ranks");
    if (!code) code = take_sets(&claimed.teleport, run, v, "personalize");
    if (!code) code = take_sets(&claimed.sink, run, v, "dangling");
    if (!code) code = judge(run, v, &claimed);
    kiln_matrix_free(claimed.ranks);
    kiln_matrix_free(claimed.teleport);
    kiln_matrix_free(claimed.sink);
    return code;
}

/* ---------------------------------------------------------------------------------------- explain */

static void put_layout(struct result *row, const void *of, int64_t i) {
    const kiln_plan *plan = &((const kiln_plan *)of)[i];
    PUT(row, "chosen", FLAG(plan->chosen), .label = "", .shown = plan->chosen ? "*" : " ", .width = 1);
    PUT(row, "layout", TEXT(plan->variant), .label = "", .width = -30);
    PUT(row, "predicted_seconds", NUMBER(plan->seconds));
    PUT(row, NULL, NUMBER(1e3 * plan->seconds), .format = "%.4f ms", .label = "", .before = "  ",
        .width = 13);
    PUT(row, "bytes", BYTES(plan->bytes), .label = "", .before = "  ", .width = 16);
    PUT(row, "limit", TEXT(plan->limit), .label = "", .before = "  ");
}

static int explain_pagerank(struct result *result, const struct run *run, const kiln_matrix *A) {
    const kiln_pagerank_options *options = (const kiln_pagerank_options *)run->settings->algorithm.bytes;
    kiln_plan *plans = NULL;
    int64_t count = 0;
    if (kiln_ranks_plans(&plans, &count, A, 1, !options->unweighted) != KILN_OK) return fail_library(WORKING);
    PUT_LINE(result, "%s", "");
    PUT_LINE(result, "layout of the links, one ranking   an iteration  read and written  limited by");
    for (int64_t i = 0; i < count && options->layout; i++)
        plans[i].chosen = (int64_t)options->layout == plans[i].number;
    PUT(result, "layouts", TABLE(count, put_layout, plans), .owned = plans);
    return 0;
}

/* ---------------------------------------------------------------------------------------- the verb */

static const struct solver solver = {.schema = "kiln.pagerank/1",
                                     .words.objective = "error_bound",
                                     .words.ranks = true,
                                     .bytes = sizeof(struct ranking),
                                     .check = check,
                                     .prepare = prepare,
                                     .solve = solve,
                                     .finish = finish,
                                     .keep = keep,
                                     .write = write_files,
                                     .head = put_head,
                                     .put = put_rest,
                                     .free = free_ranking,
                                     .work = work};

/* clang-format off */
static const struct option own[] = {
    {.name = "personalize", .kind = OPTION_PATH, .group = GROUP_MODEL, .value = "FILE",
     .offset = offsetof(struct wanted, personalize),
     .help = "Begin anew at these vertices only: a line is a vertex and perhaps a weight. An empty line "
             "begins the next set of vertices: each set is ranked for itself, all of them in the same "
             "passes over the graph; 64 at most."},
    {.name = "dangling-to", .kind = OPTION_PATH, .group = GROUP_MODEL, .value = "FILE",
     .offset = offsetof(struct wanted, dangling_to),
     .help = "Where vertices without links lead: a file like that of --personalize, of one set. Instead of "
             "--dangling."},
    {.name = "scores", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, scores),
     .help = "Write a line for each vertex: its name and its rank, or ranks, separated by tabs, or in .csv "
             "by commas behind a header. - is standard output."},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, plot),
     .help = "Draw the ranks from the highest down to FILE, as SVG or PNG. - is standard output."},
    {.name = "top", .kind = OPTION_INTEGER, .group = GROUP_OUTPUT, .value = "K", .standard = "10", .least = 1,
     .most = 1000000, .offset = offsetof(struct wanted, top),
     .help = "Show the K highest vertices."},
};
/* clang-format on */

const struct verb verb_of_pagerank = {
    "pagerank",
    "GRAPH...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Rank the vertices of a graph by PageRank",
    "The share of its time that a surfer spends at each vertex who follows a random link with probability "
    "--damping, and else begins anew at a random vertex, or at one that --personalize names. By power "
    "iteration; ranks add up to 1.\n\n"
    "GRAPH is an edge list (.edges, or .txt as SNAP has it: lines of two vertices and perhaps a weight; "
    "names are numbers or any text; or a table, .csv or .tsv, whose header may name source, target and "
    "weight), or a sparse square matrix, Matrix Market for instance, plain or through gzip or zstd; - is "
    "standard input. A third column is the links' weights, by which they are followed; those of a link that "
    "stands several times add up, 1 for each line without weights. A link of a vertex to itself is a link "
    "like any other.\n\n"
    "The tolerance applies to the sum of all changes in one iteration, not multiplied by the number of "
    "vertices. error_bound says how far the ranks are from the exact ones at most, all distances added up: "
    "damping / (1 - damping) times that change, and what rounding may add.",
    "kiln pagerank wiki-Vote.txt.gz --top 5\n"
    "kiln pagerank web.txt -o web.kiln --scores ranks.tsv --plot ranks.svg\n"
    "kiln pagerank web.txt --personalize seeds.txt --damping 0.9\n"
    "kiln pagerank data/flights.csv.gz --source origin --target dest --top 5\n"
    "kiln pagerank more.mtx --unweighted --warm-start web.kiln -o more.kiln",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(LINKS) | VERB_BIT(LEADS) | VERB_BIT(PASSES),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .verify = verify_pagerank,
    .tables = KILN_FILE_EDGES,
    .explain = explain_pagerank,
    .predict_instead = "kiln pagerank --scores FILE writes every vertex's rank",
    .sharing = SHARES_RANKS,
};
