/* This file finds the names of a graph's vertices: in its own file, in models, and in files of seeds. */
#define _GNU_SOURCE
#include "graph.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

/* The vertex's name, or its number from 1 as in Matrix Market. */
const char *graph_vertex_name(const kiln_data *data, int64_t vertex, char *buffer) {
    const char *name = kiln_data_feature_name(data, vertex);
    if (name && kiln_matrix_rows(kiln_data_X(data)) == kiln_matrix_cols(kiln_data_X(data))) return name;
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)vertex + 1);
    return buffer;
}

const char *graph_counting(const kiln_report *report) {
    return kiln_report_figure(report, "weighted") > 0 ? "by weight" : "each counts 1";
}

bool graph_same_vertices(const kiln_model *model, const kiln_data *data) {
    const char *text = kiln_model_text(model, "vertices");
    json_t *names = text ? json_loads(text, 0, NULL) : NULL;
    bool same = true;
    for (size_t i = 0; same && kiln_data_feature_name(data, 0) && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const char *read = kiln_data_feature_name(data, (int64_t)i);
        same = name && read && strcmp(name, read) == 0;
    }
    json_decref(names);
    return same;
}

int graph_verify_vertices(const struct run *run, const struct verifying *v) {
    return graph_same_vertices(v->model, v->data) ? 0 : verify_other_data(run, GRAPH_RANKING);
}

/* A list of links with words such as 7:1 is told for rows of a matrix, and ranking those would be
 * nonsense. */
int graph_check_format(struct solving *s) {
    const struct run *run = s->run;
    const kiln_data *data = s->data;
    const kiln_file_format format = kiln_data_format(data);
    const char *given = run->settings->format;
    if (run->settings->weight && kiln_option_value(run->verb->name, s->options, "unweighted", KILN_F64) > 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give one of them",
                         "--weight and --unweighted together");
    if (!kiln_data_feature_name(data, 0)) say("the vertices have no names: they are numbered from 1");
    if (format != KILN_FILE_LIBSVM || (given && strcmp(given, "auto") != 0)) return 0;
    return fail_with(KILN_ERR_DATA, READING,
                     "--format edges for lines of two vertices and perhaps a weight; --format libsvm if each "
                     "line is the row of a matrix",
                     "%s does not look like a list of links, but like rows of numbers",
                     strcmp(run->arguments[0], "-") == 0 ? "standard input" : run->arguments[0]);
}

int graph_write_scores(const struct solving *s, const char *path, const struct graph_scores *columns,
                       int64_t count) {
    const bool single = kiln_matrix_type(solving_X(s)) == KILN_F32;
    struct output output;
    char name[SHORTEST_ROOM], text[SHORTEST_ROOM];
    int64_t vertices = 0;
    if (!path) return 0;
    const size_t size = strlen(path);
    const bool csv = size > 4 && strcmp(path + size - 4, ".csv") == 0;
    const int code = output_open(&output, path);
    if (code) return code;
    if (csv) fputs("vertex", output.file);
    for (int64_t c = 0; c < count; c++) {
        if (csv) fprintf(output.file, ",%s", columns[c].title);
        if (columns[c].count > vertices) vertices = columns[c].count;
    }
    if (csv) fputc('\n', output.file);
    for (int64_t v = 0; v < vertices && !ferror(output.file) && !talk_interrupted(); v++) {
        output_text(&output, graph_vertex_name(s->data, v, name), csv ? ",\"\r\n" : "");
        for (int64_t c = 0; c < count; c++) {
            text_shortest(text, v < columns[c].count ? columns[c].values[v * columns[c].stride] : NAN,
                          single);
            fprintf(output.file, "%c%s", csv ? ',' : '\t', text);
        }
        fputc('\n', output.file);
    }
    if (!talk_interrupted() || s->report.stopped_by == KILN_STOP_CANCELLED) return output_commit(&output);
    output_abandon(&output);
    return fail_with(KILN_ERR_CANCELLED, WRITING, "", "interrupted; no scores were written");
}

/* ------------------------------------------------------------------------------------------ seeds */

struct seed {
    char *name;
    double weight;
    int64_t set, line, vertex; /* vertex: -1 = not found yet */
};

struct seeds {
    const char *path;
    FILE *file;
    struct seed *list;
    int64_t count, sets;
};

static int fail_line(const struct seeds *seeds, int64_t line, const char *what, const char *word) {
    return fail_with(KILN_ERR_PARSE, READING,
                     "a line is a vertex and perhaps a weight; an empty line begins the next set",
                     "%s:%lld: %s%.100s", seeds->path, (long long)line, what, word);
}

static int add_seed(struct seeds *seeds, char *line, int64_t number, bool *begun) {
    static const char blanks[] = " \t\r\n";
    char *rest = NULL, *end = NULL;
    line[strcspn(line, "#")] = '\0';
    char *name = strtok_r(line, blanks, &rest), *weight = name ? strtok_r(NULL, blanks, &rest) : NULL;
    if (!name) return *begun = false, 0;
    if (weight && strtok_r(NULL, blanks, &rest)) return fail_line(seeds, number, "more than two words", "");
    seeds->sets += !*begun;
    *begun = true;
    if ((seeds->count & (seeds->count - 1)) == 0) {
        struct seed *grown =
            realloc(seeds->list, (size_t)(seeds->count ? 2 * seeds->count : 1) * sizeof *grown);
        if (!grown) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %s", seeds->path);
        seeds->list = grown;
    }
    struct seed *seed = &seeds->list[seeds->count];
    *seed = (struct seed){strdup(name), weight ? strtod(weight, &end) : 1, seeds->sets - 1, number, -1};
    if (!seed->name) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %s", seeds->path);
    seeds->count++;
    if (weight && (*end || !(seed->weight >= 0) || isinf(seed->weight)))
        return fail_line(seeds, number, "the weight must be a number >= 0, not ", weight);
    return 0;
}

static int read_lines(struct seeds *seeds) {
    char *line = NULL;
    size_t room = 0;
    bool begun = false;
    int code = 0;
    for (int64_t number = 1; !code && getline(&line, &room, seeds->file) >= 0; number++) {
        if (line[0] == '#') continue; /* a comment on a line of its own begins no set */
        code = add_seed(seeds, line, number, &begun);
    }
    free(line);
    if (!code && ferror(seeds->file))
        code = fail_with(KILN_ERR_IO, READING, "", "%s cannot be read", seeds->path);
    if (!code && seeds->count == 0)
        code = fail_with(KILN_ERR_DATA, READING, "a line is a vertex and perhaps a weight",
                         "%s names no vertex", seeds->path);
    return code;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct seed *)a)->name, ((const struct seed *)b)->name);
}

/* Seeds are few and vertices many: each vertex is looked up among the seeds, which then stand by name. */
static void find_vertices(struct seeds *seeds, const kiln_data *data) {
    const int64_t n = kiln_matrix_rows(kiln_data_X(data));
    char buffer[SHORTEST_ROOM];
    qsort(seeds->list, (size_t)seeds->count, sizeof *seeds->list, by_name);
    for (int64_t v = 0; v < n; v++) {
        struct seed key = {.name = (char *)(uintptr_t)graph_vertex_name(data, v, buffer)};
        struct seed *found = bsearch(&key, seeds->list, (size_t)seeds->count, sizeof *seeds->list, by_name);
        if (!found) continue;
        while (found > seeds->list && by_name(found - 1, &key) == 0) found--;
        for (; found < seeds->list + seeds->count && by_name(found, &key) == 0; found++) found->vertex = v;
    }
}

static int to_matrix(struct graph_seeds *to, const struct seeds *seeds, const kiln_data *data) {
    const kiln_matrix *A = kiln_data_X(data);
    const int64_t n = kiln_matrix_rows(A);
    double *values = calloc((size_t)(n * seeds->sets) + 1, sizeof *values);
    if (!values) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %s", seeds->path);
    for (int64_t i = 0; i < seeds->count; i++)
        values[seeds->list[i].vertex * seeds->sets + seeds->list[i].set] += seeds->list[i].weight;
    const kiln_status status =
        kiln_matrix_dense(&to->weights, kiln_matrix_device(A), KILN_F64, n, seeds->sets, values);
    free(values);
    to->sets = seeds->sets;
    return status == KILN_OK ? 0 : fail_library(WORKING);
}

static int check_seeds(const struct seeds *seeds, int64_t sets_most) {
    if (seeds->sets > sets_most)
        return fail_with(KILN_ERR_LIMIT, READING, "rank them in several runs",
                         "%s has %lld sets, but %lld are the most", seeds->path, (long long)seeds->sets,
                         (long long)sets_most);
    for (int64_t i = 0; i < seeds->count; i++)
        if (seeds->list[i].vertex < 0)
            return fail_with(KILN_ERR_DATA, READING, "vertices are named as in the graph's file",
                             "%s:%lld: the graph has no vertex %.100s", seeds->path,
                             (long long)seeds->list[i].line, seeds->list[i].name);
    for (int64_t set = 0; set < seeds->sets; set++) {
        double sum = 0;
        for (int64_t i = 0; i < seeds->count; i++)
            sum += seeds->list[i].set == set ? seeds->list[i].weight : 0;
        if (!(sum > 0))
            return fail_with(KILN_ERR_DATA, READING, "", "%s: all weights of set %lld are 0", seeds->path,
                             (long long)set + 1);
    }
    return 0;
}

int graph_read_seeds(struct graph_seeds *to, const char *path, const kiln_data *data, int64_t sets_most) {
    struct seeds seeds = {.path = path, .file = fopen(path, "r")};
    if (!seeds.file)
        return fail_with(KILN_ERR_IO, READING, "", "%s cannot be opened: %s", path, strerror(errno));
    int code = read_lines(&seeds);
    fclose(seeds.file);
    if (!code) find_vertices(&seeds, data);
    if (!code) code = check_seeds(&seeds, sets_most);
    if (!code) code = to_matrix(to, &seeds, data);
    for (int64_t i = 0; i < seeds.count; i++) free(seeds.list[i].name);
    free(seeds.list);
    return code;
}
