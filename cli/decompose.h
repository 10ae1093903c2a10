/* kiln svd and kiln pca share triples, coordinates, pictures; kiln spectral their verifying of a model. */
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

extern const struct solver decompose_solver;
/* solver.take: the seed is one of the options. */
int decompose_take(struct run *run, struct settings *settings);
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

enum { DECOMPOSE_OPTIONS = 4 };
extern const struct option decompose_options[DECOMPOSE_OPTIONS];

#define DECOMPOSE_VERB                                                                                       \
    .run = solve_run, .solver = &decompose_solver,                                                           \
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(RANDOM) | VERB_BIT(ROWS) | VERB_BIT(PASSES),                     \
    .own = decompose_options, .own_count = DECOMPOSE_OPTIONS, .otherwise = "seed",                           \
    .verify = decompose_verify, .width = decompose_width

#endif
