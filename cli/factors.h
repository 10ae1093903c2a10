/* This header has what the verbs of factor models share (cli/factors.c); a verb adds how it is solved. */
#ifndef CLI_FACTORS_H
#define CLI_FACTORS_H

#include "solve.h"
#include "verify.h"

/* Options of the verb's own. */
struct factors_wanted {
    int64_t factors, top;
    double test_fraction;
    const char *recommendations, *factors_out, *plot;
};

struct factors_state {
    const char *title;
    bool biases, implicit;
    kiln_matrix *A, *B, *train, *test; /* train, test: NULL without --test-fraction */
    kiln_model *model;
    kiln_ranking ranking; /* of an implicit model with a test */
    union { /* the options as given, but for biases and the penalty, whose defaults depend on the data */
        kiln_als_options als;
        kiln_sfa_options sfa;
    } held;
    int64_t *columns; /* --recommendations: top for each row */
    double *scores;
};

const kiln_matrix *factors_training(const struct solving *s); /* without the entries held out */

/* For struct solver. A verb's check sets title, biases and implicit before it calls factors_check; its solve
 * fills A, B and model. */
int64_t factors_width(const struct settings *settings); /* a verb's */
int factors_check(struct solving *s);
int factors_prepare(struct solving *s);
double factors_penalty(const struct solving *s);      /* that held */
int factors_take_start(struct solving *s, int64_t r); /* A and B of r columns from --warm-start */
int factors_finish(struct solving *s);
kiln_status factors_keep(kiln_model *model, const struct solving *s);
int factors_write(const struct solving *s);
void factors_head(struct result *result, const struct solving *s);
void factors_put(struct result *result, const struct solving *s);
void factors_free(struct solving *s);
#define FACTORS_SOLVER(of_check, of_solve)                                                                   \
    {                                                                                                        \
        .schema = "kiln.factors/1", .words.objective = "objective", .bytes = sizeof(struct factors_state),   \
        .check = (of_check), .prepare = factors_prepare, .solve = (of_solve), .finish = factors_finish,      \
        .keep = factors_keep, .write = factors_write, .head = factors_head, .put = factors_put,              \
        .free = factors_free                                                                                 \
    }

/* clang-format off */
/* clang-format off */
#define FACTORS_OPTIONS                                                                                      \
    {.name = "factors", .kind = OPTION_INTEGER, .group = GROUP_MODEL, .value = "K",                          \
         .standard = standard_components, .least = 1, .most = 1024,                                          \
         .offset = offsetof(struct factors_wanted, factors),                                                 \
         .help = "Numbers for each row and column."},                                                        \
    {.name = "test-fraction", .kind = OPTION_REAL, .group = GROUP_MODEL, .value = "SHARE",                   \
         .standard = "0", .least = 0, .most = 0.9, .offset = offsetof(struct factors_wanted, test_fraction), \
         .help = "Hold this share of the entries out, chosen by --seed, and report the error there "         \
                 "(for an implicit model, how well they are ranked)."},                                      \
    {.name = "recommendations", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",               \
         .offset = offsetof(struct factors_wanted, recommendations),                                         \
         .help = "Write the best new columns of each row: row, column and score, separated by tabs. "        \
                 "- is standard output."},                                                                   \
    {.name = "factors-out", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE.npz",               \
         .offset = offsetof(struct factors_wanted, factors_out),                                             \
         .help = "Write the factors for numpy.load: A of the rows, B of the columns (the last column "       \
                 "of each its biases, if there are any), settings, and rows and columns, the names "         \
                 "as JSON."},                                                                                \
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",                          \
         .offset = offsetof(struct factors_wanted, plot),                                                    \
         .help = "Draw the objective, and with --test-fraction the error on what is held out, by "           \
                 "iteration to FILE, as SVG or PNG. - is standard output."},                                 \
    {.name = "top", .kind = OPTION_INTEGER, .group = GROUP_OUTPUT, .value = "N", .standard = "10",           \
         .least = 1, .most = 100000, .offset = offsetof(struct factors_wanted, top),                         \
         .help = "With --recommendations: so many for each row."}
/* clang-format on */
/* clang-format on */

#define FACTORS_DATA                                                                                         \
    "DATA is a list of ratings (a user, an item and a rating a line, separated by ::, tabs, commas, "        \
    "semicolons, bars or blanks, with or without a header, any names), or a sparse matrix, rows users and "  \
    "columns items: Matrix Market, .npz, LIBSVM; plain or through gzip or zstd. Ratings of 0 are ratings."

#endif
