/* kiln hits: read a graph, rank its vertices, show the strongest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "metrics.h"
#include "solve.h"
#include "verify.h"

struct wanted {
    const char *scores;
    int64_t top;
};

struct top {
    const kiln_data *data;
    const double *values; /* of all vertices */
    int64_t *vertices, count;
};

struct ranking {
    kiln_matrix *hubs, *authorities;
    double *hub, *authority; /* on the host */
    struct top hubs_top, authorities_top;
};

/* ------------------------------------------------------------------------------------------ the run */

static int prepare(struct solving *s) {
    struct ranking *ranking = s->state;
    const kiln_matrix *A = solving_X(s);
    kiln_type type;
    int64_t rows = 0, cols = 0;
    int code = solve_allocate(&ranking->hubs, s, kiln_matrix_rows(A), 1);
    if (code) return code;
    if (!s->warm) return solve_allocate(&ranking->authorities, s, kiln_matrix_cols(A), 1);
    if (!model_tensor_shape(s->warm, "authorities", &type, &rows, &cols) || rows != kiln_matrix_cols(A) ||
        !graph_same_vertices(s->warm, s->data))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "the same vertices in the same order are needed",
                         "%s is no ranking of this graph's vertices", s->run->settings->warm_start);
    return solve_take(&ranking->authorities, s, "authorities");
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct ranking *ranking = s->state;
    kiln_hits_options options = *(const kiln_hits_options *)s->options;
    options.warm_start = s->warm != NULL;
    options.control = *control;
    return kiln_hits(ranking->hubs, ranking->authorities, solving_X(s), &options, &s->report);
}

static int find_top(struct top *top, const kiln_data *data, const double *values, int64_t count,
                    int64_t most) {
    top->data = data;
    top->values = values;
    if (!(top->vertices = malloc((size_t)most * sizeof *top->vertices)))
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld vertices", (long long)most);
    top->count = solve_find_top(top->vertices, values, count, most);
    return 0;
}

static int finish(struct solving *s) {
    struct ranking *ranking = s->state;
    const struct wanted *wanted = s->own;
    const int64_t most = wanted->top;
    int code = 0;
    if ((ranking->hub = values_of(ranking->hubs, &code)))
        ranking->authority = values_of(ranking->authorities, &code);
    if (!code)
        code = find_top(&ranking->hubs_top, s->data, ranking->hub, kiln_matrix_rows(solving_X(s)), most);
    if (!code)
        code = find_top(&ranking->authorities_top, s->data, ranking->authority,
                        kiln_matrix_cols(solving_X(s)), most);
    return code;
}

static void free_ranking(struct solving *s) {
    struct ranking *ranking = s->state;
    free(ranking->hub);
    free(ranking->authority);
    free(ranking->hubs_top.vertices);
    free(ranking->authorities_top.vertices);
    kiln_matrix_free(ranking->hubs);
    kiln_matrix_free(ranking->authorities);
}

/* ---------------------------------------------------------------------------------------- results */

static kiln_status keep(kiln_model *model, const struct solving *s) {
    const struct ranking *ranking = s->state;
    kiln_status status = kiln_model_set_tensor(model, "hubs", ranking->hubs);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "authorities", ranking->authorities);
    if (status != KILN_OK) return status;
    return solve_keep_names(model, "vertices", s, kiln_matrix_cols(solving_X(s)), kiln_data_feature_name);
}

static int write_scores(const struct solving *s) {
    const struct ranking *ranking = s->state;
    const kiln_matrix *A = solving_X(s);
    const struct graph_scores columns[] = {{"hub", ranking->hub, kiln_matrix_rows(A), 1},
                                           {"authority", ranking->authority, kiln_matrix_cols(A), 1}};
    return graph_write_scores(s, ((const struct wanted *)s->own)->scores, columns, 2);
}

static void put_vertex(struct result *row, const void *of, int64_t i) {
    const struct top *top = of;
    char name[SHORTEST_ROOM];
    PUT(row, "value", NUMBER(top->values[top->vertices[i]]), .label = "", .before = "  ", .width = 13);
    const char *vertex = graph_vertex_name(top->data, top->vertices[i], name);
    PUT(row, "vertex", TEXT(result_hold(row, vertex, name)), .label = "", .before = "  ");
}

static void put_rest(struct result *result, const struct solving *s) {
    const struct ranking *ranking = s->state;
    PUT(result, "scores", TEXT(((const struct wanted *)s->own)->scores));
    PUT(result, "weighted", FLAG(kiln_report_figure(&s->report, "weighted") > 0));
    PUT(result, "eigenvalue_error", NUMBER(kiln_report_figure(&s->report, "eigenvalue_error")));
    PUT(result, "authorities", TABLE(ranking->authorities_top.count, put_vertex, &ranking->authorities_top),
        .head = "authorities");
    PUT(result, "hubs", TABLE(ranking->hubs_top.count, put_vertex, &ranking->hubs_top), .head = "hubs");
}

static void put_head(struct result *result, const struct solving *s) {
    const kiln_matrix *A = solving_X(s);
    PUT_LINE(result, "hubs and authorities: %s x %s, %s, %s", text_count(kiln_matrix_rows(A)),
             text_count(kiln_matrix_cols(A)), text_plural(kiln_matrix_nnz(A), "link"),
             graph_counting(&s->report));
}

/* ----------------------------------------------------------------------------------------- verify */

/* Holds what a ranking claims: that one more iteration over the same graph would hardly change it. */
struct ranks {
    kiln_matrix *hubs, *authorities;
    kiln_hits_verification found;
};

static int read_ranks(struct run *run, struct verifying *v, struct ranks *ranks) {
    int code = verify_read(run, v, "hubs", "eigenvalue");
    if (!code) code = graph_verify_vertices(run, v);
    if (code) return code;
    const kiln_matrix *A = kiln_data_X(v->data);
    code = verify_tensor(&ranks->hubs, run, v, "hubs", kiln_matrix_rows(A), GRAPH_RANKING);
    return code ? code
                : verify_tensor(&ranks->authorities, run, v, "authorities", kiln_matrix_cols(A),
                                GRAPH_RANKING);
}

static int judge_ranks(struct run *run, struct verifying *v, struct ranks *ranks) {
    const kiln_hits_options options = {.norm = (int)json_integer_value(json_object_get(v->options, "norm")),
                                       .unweighted = json_is_true(json_object_get(v->options, "unweighted"))};
    const bool single = kiln_matrix_type(ranks->hubs) == KILN_F32;
    const double digits = single ? 1e-4 : 1e-9, factor = single ? 10 : 2;
    const double claimed = fmax(verify_number(v->report, "residual"), verify_number(v->options, "tolerance"));
    double start = clock_seconds();
    if (kiln_verify_hits(&ranks->found, kiln_data_X(v->data), ranks->hubs, ranks->authorities, &options) !=
        KILN_OK)
        return fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    claim_equal(v, "eigenvalue", "eigenvalue", verify_number(v->report, "eigenvalue"),
                ranks->found.eigenvalue, digits, 0);
    claim_bound(v, "authorities", "authorities", claimed, ranks->found.authorities, factor, 0);
    claim_bound(v, "hubs", "hubs", claimed, ranks->found.hubs, factor, 0);
    return 0;
}

static int verify_hits(struct run *run, struct verifying *v) {
    struct ranks ranks = {0};
    int code = read_ranks(run, v, &ranks);
    if (!code) code = judge_ranks(run, v, &ranks);
    kiln_matrix_free(ranks.hubs);
    kiln_matrix_free(ranks.authorities);
    return code;
}
/* ---------------------------------------------------------------------------------------- the verb */

static const struct solver solver = {.schema = "kiln.ranking/1",
                                     .words.objective = "eigenvalue",
                                     .words.ranks = true,
                                     .bytes = sizeof(struct ranking),
                                     .check = graph_check_format,
                                     .prepare = prepare,
                                     .solve = solve,
                                     .finish = finish,
                                     .keep = keep,
                                     .write = write_scores,
                                     .head = put_head,
                                     .put = put_rest,
                                     .free = free_ranking};

/* clang-format off */
static const struct option own[] = {
    {.name = "scores", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, scores),
     .help = "Write a line for each vertex: its name, hub and authority, separated by tabs, or in .csv by "
             "commas behind a header. - is standard output."},
    {.name = "top", .kind = OPTION_INTEGER, .group = GROUP_OUTPUT, .value = "K", .standard = "10", .least = 1,
     .most = 1000000, .offset = offsetof(struct wanted, top),
     .help = "Show the K strongest hubs and authorities."},
};
/* clang-format on */

const struct verb verb_of_hits = {
    "hits",
    "GRAPH...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Rank the vertices of a graph as hubs and authorities",
    "Kleinberg's HITS: a good authority is what good hubs link to, a good hub links to good authorities. "
    "Computes the fixed point of authorities = A^T hubs, hubs = A authorities by power iteration, each "
    "iteration one pass over the matrix A of the links.\n\n"
    "GRAPH is an edge list (.edges, or .txt as SNAP has it: lines of two vertices and perhaps a weight; "
    "names are numbers or any text; or a table, .csv or .tsv, whose header may name source, target and "
    "weight; a link that stands several times adds up), or any sparse or dense matrix, Matrix Market for "
    "instance, plain or through gzip or zstd; - is standard input.\n\n"
    "The strongest hubs and authorities go to standard output. Where parts of a graph that are not connected "
    "are equally strong the result depends on the start and is not unique.",
    "kiln hits wiki-Vote.txt.gz --top 5\n"
    "kiln hits graph.mtx --norm 2 --scores scores.tsv -o ranks.kiln",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(PASSES) | VERB_BIT(LINKS) | VERB_BIT(LEADS),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .verify = verify_hits,
    .tables = KILN_FILE_EDGES,
    .predict_instead = "kiln hits --scores FILE writes every vertex's scores",
};
