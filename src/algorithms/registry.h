/* This header says what the library knows of its algorithms: a row each, in the algorithm's own file, and
 * registry.c lists the rows. Loading and saving models, kiln_predict, kiln_model_loss and kiln_algorithm_...
 * read them; nothing else knows an algorithm by name. */
#ifndef KI_REGISTRY_H
#define KI_REGISTRY_H

#include <stdbool.h>

#include "io/model/model.h"
#include "kiln.h"

/* A tensor of a model: rows and cols are digits, which are meant, or letters; all that one letter stands for
 * is equal. */
struct ki_tensor_rule {
    const char *name;
    char rows, cols;
    bool optional, f64; /* f64: only of that type */
    bool may_be_empty;
};

enum { KI_RULES = 7, KI_TEXTS = 4 };

/* Says how a topic model's A and B give a document's mixture of topics: A times the sums of B's columns, or A
 * itself. */
enum ki_topics { KI_TOPICS_NONE, KI_TOPICS_RATES, KI_TOPICS_SHARES };

struct ki_path_rule;

struct ki_algorithm {
    kiln_algorithm shown;
    /* A model of it holds these. A tensor that is not listed is refused: nobody would have checked it. */
    struct ki_tensor_rule tensors[KI_RULES];
    const char *texts[KI_TEXTS];                   /* that a model must have */
    kiln_status (*check)(const kiln_model *model); /* what shapes do not say; NULL: nothing */
    /* kiln_model_loss and kiln_predict; NULL: it has none, and `instead` is the hint. */
    kiln_status (*loss)(kiln_loss *loss, const kiln_model *model);
    kiln_status (*predict)(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X);
    const char *instead;
    /* Factor models, whose tensors A and B are the rows' and the columns' factors: kiln_transform; and
     * whether the last column of both holds biases, beside *mean. NULL: it is none. */
    kiln_status (*transform)(kiln_matrix **A, const kiln_model *model, const kiln_matrix *X);
    bool (*biases)(const kiln_model *model, double *mean);
    enum ki_topics topics; /* topic models, which are factor models: kiln_perplexity */
    /* kiln_solver_choose, of a choice that holds what the table of options says; NULL: nothing to add. */
    kiln_status (*choose)(kiln_solver *choice, const void *options, const kiln_matrix *X, int64_t k);
    const struct ki_path_rule *path; /* kiln_path; NULL: it has none */
    /* Iterations that it takes on most data, each with a pass over X, and passes besides, but for those that
     * its trial measures. per_column: it ends after as many iterations as X has columns. */
    struct {
        int64_t iterations, besides;
        bool per_column;
    } passes;
    size_t given; /* offset of the mask of that name in its options struct: bit i is of row i of the table */
};

/* algorithms/trials.c */
extern const struct kiln_trial ki_trial_pagerank, ki_trial_kmeans, ki_trial_mds, ki_trial_als, ki_trial_sfa,
    ki_trial_lda, ki_trial_gap;

/* The row of a model's algorithm: kiln_model_create and kiln_model_load let no model pass without one. */
const struct ki_algorithm *ki_algorithm_of(const kiln_model *model);
const struct ki_algorithm *ki_algorithm_named(const char *name); /* NULL if there is none */

kiln_status ki_model_check(const kiln_model *model); /* ERR_MODEL unless its algorithm's row holds */
/* For a row's check, when all of its rules hold: NULL if an optional tensor is absent. */
const struct ki_tensor *ki_model_tensor(const kiln_model *model, const char *name);
double ki_tensor_value(const struct ki_tensor *tensor, int64_t i);

/* The algorithms' rows, which registry.c lists. */
#define KI_ALGORITHMS(X)                                                                                     \
    X(linreg)                                                                                                \
    X(logreg)                                                                                                \
    X(glm) X(svm) X(hits) X(pagerank) X(mds) X(als) X(sfa) X(lda) X(gap) X(kmeans) X(svd) X(pca) X(spectral)
#define KI_DECLARE(name) extern const struct ki_algorithm ki_algorithm_##name;
KI_ALGORITHMS(KI_DECLARE)

/* Rows of an option table: OPTION(kiln_hits_options, norm, INT, standard, standard_f32, least, most, NULL,
 * "help"). */
#define KI_OPTION(type, field, kind, standard, standard_f32, least, most, choices, help)                     \
    { #field, KILN_OPTION_##kind, offsetof(type, field), standard, standard_f32, least, most, choices, help }
/* Rows that several methods have. `of`: " of each start", or "". */
#define KI_OPTION_ITERATIONS(type, most, of)                                                                 \
    KI_OPTION(type, max_iterations, INTEGER, most, most, 1, 9e18, NULL,                                      \
              "Stop after this many iterations" of ", converged or not.")
#define KI_OPTION_SEED(type)                                                                                 \
    KI_OPTION(type, seed, INTEGER, 0, 0, 0, 9e15, NULL,                                                      \
              "Start of the random numbers: the same seed gives the same result on one device.")
#define KI_OPTION_SHARE(type, standard)                                                                      \
    KI_OPTION(type, tolerance, REAL, standard, standard, 0, INFINITY, NULL,                                  \
              "Stop when an iteration lowers the objective by at most this share.")
#define KI_OPTIONS(table, type)                                                                              \
    .options = (table), .option_count = sizeof(table) / sizeof *(table), .options_bytes = sizeof(type)
/* ERR_ARGUMENT if an option was given that must not be 0, and is. */
kiln_status ki_options_check(const void *options, const struct ki_algorithm *algorithm);
/* Options that stand at 0, and were not given, become what 0 stands for. Where that depends on another
 * option the algorithm sets it first. */
void ki_options_fill(void *options, const struct ki_algorithm *algorithm, kiln_type type);
/* Returns whether an option is to be taken as it stands: it is not 0, or was given. */
bool ki_option_stands(const void *options, const struct ki_algorithm *algorithm, const char *name);
void ki_option_set(void *options, const struct ki_algorithm *algorithm, const char *name, double value);

#endif
