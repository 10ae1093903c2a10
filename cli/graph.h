/* This header has what verbs that rank the vertices of a graph share: how vertices are called. */
#ifndef CLI_GRAPH_H
#define CLI_GRAPH_H

#include "output.h"
#include "solve.h"
#include "verify.h"

/* Returns how a ranking counted links, in words. */
const char *graph_counting(const kiln_report *report);
/* The name of a vertex, or its number from 1 as in Matrix Market, which goes to the buffer of
 * SHORTEST_ROOM. */
const char *graph_vertex_name(const kiln_data *data, int64_t vertex, char *buffer);
/* Whether the model was made of a graph with the same names in the same order, as far as both have names. */
bool graph_same_vertices(const kiln_model *model, const kiln_data *data);
/* The same for the data that a ranking is verified with: 0 or the exit code of an error that it has
 * reported. */
int graph_verify_vertices(const struct run *run, const struct verifying *v);
#define GRAPH_RANKING "ranking of the vertices" /* what the model is */
/* solver.check: 0 or the exit code of an error that it has reported. */
int graph_check_format(struct solving *s);

/* Seeds: vertices with weights, in sets. A file has one a line, its name and perhaps a weight; an empty
 * line begins the next set, and what follows a # is left out. */
struct graph_seeds {
    int64_t sets;
    kiln_matrix *weights; /* vertices x sets, f64 on the CPU */
};
/* 0 or an exit code. sets_most: more are an error. */
int graph_read_seeds(struct graph_seeds *seeds, const char *path, const kiln_data *data, int64_t sets_most);

/* A column of scores: `count` values that lie `stride` apart. */
struct graph_scores {
    const char *title;
    const double *values;
    int64_t count, stride;
};
/* Writes a line for each vertex, its name and the columns (NaN where one ends before), separated by tabs, or
 * in .csv by commas behind a header; path NULL: nothing. 0 or an exit code. */
int graph_write_scores(const struct solving *s, const char *path, const struct graph_scores *columns,
                       int64_t count);

#endif
