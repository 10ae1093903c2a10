/* The verbs of topic models share entries held out, the table of topics and their best words. */
#ifndef CLI_TOPICS_H
#define CLI_TOPICS_H

#include "solve.h"
#include "verify.h"

struct topics_wanted {
    int64_t topics, top;
    double test_fraction;
    const char *words, *factors_out, *plot;
};

struct topics {
    kiln_matrix *A, *B, *train, *test; /* train, test: NULL without --test-fraction */
    kiln_model *model;                 /* what the library makes of the run */
    int64_t k, top;
    int64_t *order; /* topics by share, largest first */
    double *share;  /* of the words, of each topic */
    int64_t *word;  /* the best `top` of each topic, -1 where there are fewer */
    double *weight; /* their probabilities */
};

/* Rows of a table of options whose struct begins with a struct topics_wanted. */
#define TOPICS_OPTIONS                                                                                       \
    TOPICS_OPTION("topics", 'k', INTEGER, MODEL, "K", standard_components, 1, 4096, "The number of topics.", \
                  topics),                                                                                   \
        TOPICS_OPTION("factors", 0, INTEGER, MODEL, "K", NULL, 1, 4096, "The same as --topics.", topics),    \
        TOPICS_OPTION(                                                                                       \
            "test-fraction", 0, REAL, MODEL, "SHARE", "0", 0, 0.9,                                           \
            "Hold this share of the entries out, chosen by --seed, and report the perplexity there.",        \
            test_fraction),                                                                                  \
        TOPICS_OPTION("top", 0, INTEGER, OUTPUT, "N", "10", 1, 100000,                                       \
                      "The number of words to show of each topic.", top),                                    \
        TOPICS_OPTION("words", 0, OUTPUT, OUTPUT, "FILE", NULL, 0, 0,                                        \
                      "Write each topic's best words: topic, word and probability, separated by tabs. - is " \
                      "standard output.",                                                                    \
                      words),                                                                                \
        TOPICS_OPTION("factors-out", 0, OUTPUT, OUTPUT, "FILE.npz", NULL, 0, 0,                              \
                      "Write the factors for numpy.load: A of the documents, B of the words, the priors, "   \
                      "and columns, the "                                                                    \
                      "words as JSON.",                                                                      \
                      factors_out),                                                                          \
        TOPICS_OPTION("plot", 0, OUTPUT, OUTPUT, "FILE", NULL, 0, 0,                                         \
                      "Draw the topics' best words to FILE, as SVG or PNG.", plot)
#define TOPICS_OPTION(name, letter, kind, group, value, standard, least, most, help, field)                  \
    {                                                                                                        \
        name, letter, OPTION_##kind, GROUP_##group, 0, value, NULL, standard, least, most, help,             \
            .offset = offsetof(struct topics_wanted, field)                                                  \
    }

/* Says what a topic model's help says after its own paragraph. */
#define TOPICS_HELP                                                                                          \
    "\n\nDATA is a sparse matrix, rows documents and columns words: UCI's docword.NAME.txt "                 \
    "(vocab.NAME.txt beside it names the words), Matrix Market, .npz or LIBSVM, plain or through gzip or "   \
    "zstd.\n\nA table of the topics goes to standard output, those with the largest share of all words "     \
    "first. kiln predict gives the mixture of topics of new documents."

int64_t topics_width(const struct settings *settings);       /* a verb's; 0: its standard */
int topics_check(struct solving *s);                         /* that the data are sparse */
int topics_prepare(struct solving *s);                       /* A and B, from --warm-start if there is one */
const kiln_matrix *topics_training(const struct solving *s); /* what is not held out */
int topics_finish(struct solving *s);                        /* the table; model must be there */
kiln_status topics_keep(kiln_model *model,
                        const struct solving *s); /* all tensors of the model, and the words */
int topics_write(const struct solving *s);
void topics_put(struct result *result, const struct solving *s);
void topics_free(struct solving *s);
/* Hooks of a struct solver that topic models have in common. */
#define TOPICS_HOOKS                                                                                         \
    .schema = "kiln.topics/1", .finish = topics_finish, .keep = topics_keep, .write = topics_write
/* "12 documents, 300 words, 4,000 counts, 20 topics", which goes on with a line. */
void topics_size(struct result *result, const struct solving *s);

#endif
