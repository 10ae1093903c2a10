/* kiln svd and kiln pca share triples, coordinates of rows, pictures, and verifying a model. */
#ifndef CLI_DECOMPOSE_H
#define CLI_DECOMPOSE_H

#include "solve.h"
#include "verify.h"

struct decompose_wanted {
    const char *coordinates, *vectors, *plot;
    int64_t components;
};

typedef kiln_status decompose_call(kiln_matrix *U, kiln_matrix *s, kiln_matrix *V, const kiln_matrix *X,
                                   const kiln_svd_options *options, kiln_report *report);

int decompose_run(struct run *run);
int decompose_verify(struct run *run, struct verifying *v);
int64_t decompose_width(const struct settings *settings);

#define DECOMPOSE_DATA                                                                                       \
    "DATA is a LIBSVM, Matrix Market, CSV, npy or npz file, a bag of words, dense or sparse, plain or "      \
    "through gzip or zstd; - is standard input. A sparse matrix stays sparse, whatever is taken off its "    \
    "columns or divides them.\n\n"                                                                           \
    "Each triple's residuals are measured on the data themselves, and are at most --tolerance times the "    \
    "largest singular value. A table of the values goes to standard output; --coordinates writes the rows' " \
    "coordinates, --vectors the right singular vectors with the columns' names. kiln predict gives the "     \
    "coordinates of new rows."

/* clang-format off: one shape for both */
#define DECOMPOSE_OPTIONS                                                                                    \
    {"components",                                                                                           \
     'k',                                                                                                    \
     OPTION_INTEGER,                                                                                         \
     GROUP_MODEL,                                                                                            \
     0,                                                                                                      \
     "K",                                                                                                    \
     NULL,                                                                                                   \
     NULL,                                                                                                   \
     1,                                                                                                      \
     65536,                                                                                                  \
     "So many of the largest singular values; no more than the data have rows or columns. Without it 10, "   \
     "or as many as there are.",                                                                             \
     .offset = offsetof(struct decompose_wanted, components)},                                               \
        {"coordinates",                                                                                      \
         0,                                                                                                  \
         OPTION_OUTPUT,                                                                                      \
         GROUP_OUTPUT,                                                                                       \
         0,                                                                                                  \
         "FILE",                                                                                             \
         NULL,                                                                                               \
         NULL,                                                                                               \
         0,                                                                                                  \
         0,                                                                                                  \
         "Write a line for each row of the data as CSV: its coordinates, a row of U diag(s). - is standard " \
         "output.",                                                                                          \
         .offset = offsetof(struct decompose_wanted, coordinates)},                                          \
        {"vectors",                                                                                          \
         0,                                                                                                  \
         OPTION_OUTPUT,                                                                                      \
         GROUP_OUTPUT,                                                                                       \
         0,                                                                                                  \
         "FILE",                                                                                             \
         NULL,                                                                                               \
         NULL,                                                                                               \
         0,                                                                                                  \
         0,                                                                                                  \
         "Write a line for each column of the data as CSV: its name and its numbers in the right singular "  \
         "vectors, a row of V. - is standard output.",                                                       \
         .offset = offsetof(struct decompose_wanted, vectors)},                                              \
    {                                                                                                        \
        "plot", 0, OPTION_OUTPUT, GROUP_OUTPUT, 0, "FILE", NULL, NULL, 0, 0,                                 \
            "Draw the rows' first two coordinates to FILE, as SVG or PNG.",                                  \
            .offset = offsetof(struct decompose_wanted, plot)                                                \
    }
/* clang-format on */

#define DECOMPOSE_VERB                                                                                       \
    .run = decompose_run, .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(RANDOM) | VERB_BIT(ROWS), .own = own,      \
    .own_count = sizeof own / sizeof *own, .otherwise = "seed", .verify = decompose_verify,                  \
    .width = decompose_width

#endif
