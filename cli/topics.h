/* What the verbs of topic models share: entries held out, the table of topics and their best words. */
#ifndef CLI_TOPICS_H
#define CLI_TOPICS_H

#include "solve.h"

struct topics_wanted {
    int64_t topics, top;
    double test_fraction;
    const char *words;
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
    {"topics",                                                                                               \
     'k',                                                                                                    \
     OPTION_INTEGER,                                                                                         \
     GROUP_MODEL,                                                                                            \
     0,                                                                                                      \
     "K",                                                                                                    \
     NULL,                                                                                                   \
     "20",                                                                                                   \
     1,                                                                                                      \
     4096,                                                                                                   \
     "The number of topics.",                                                                                \
     .offset = offsetof(struct topics_wanted, topics)},                                                      \
        {"factors",                                                                                          \
         0,                                                                                                  \
         OPTION_INTEGER,                                                                                     \
         GROUP_MODEL,                                                                                        \
         0,                                                                                                  \
         "K",                                                                                                \
         NULL,                                                                                               \
         NULL,                                                                                               \
         1,                                                                                                  \
         4096,                                                                                               \
         "The same as --topics.",                                                                            \
         .offset = offsetof(struct topics_wanted, topics)},                                                  \
        {"test-fraction",                                                                                    \
         0,                                                                                                  \
         OPTION_REAL,                                                                                        \
         GROUP_MODEL,                                                                                        \
         0,                                                                                                  \
         "SHARE",                                                                                            \
         NULL,                                                                                               \
         "0",                                                                                                \
         0,                                                                                                  \
         0.9,                                                                                                \
         "Hold this share of the entries out, chosen by --seed, and tell the perplexity there.",             \
         .offset = offsetof(struct topics_wanted, test_fraction)},                                           \
        {"top",                                                                                              \
         0,                                                                                                  \
         OPTION_INTEGER,                                                                                     \
         GROUP_OUTPUT,                                                                                       \
         0,                                                                                                  \
         "N",                                                                                                \
         NULL,                                                                                               \
         "10",                                                                                               \
         1,                                                                                                  \
         100000,                                                                                             \
         "So many words of each topic.",                                                                     \
         .offset = offsetof(struct topics_wanted, top)},                                                     \
    {                                                                                                        \
        "words", 0, OPTION_OUTPUT, GROUP_OUTPUT, 0, "FILE", NULL, NULL, 0, 0,                                \
            "Write each topic's best words: topic, word and probability, separated by tabs. - is standard "  \
            "output.",                                                                                       \
            .offset = offsetof(struct topics_wanted, words)                                                  \
    }

int topics_check(struct solving *s);                         /* that the data are sparse */
int topics_prepare(struct solving *s);                       /* A and B, from --warm-start if there is one */
const kiln_matrix *topics_training(const struct solving *s); /* what is not held out */
int topics_finish(struct solving *s);                        /* the table; model must be there */
kiln_status topics_keep(kiln_model *model,
                        const struct solving *s); /* all tensors of the model, and the words */
int topics_write(const struct solving *s);
void topics_json(json_t *object, const struct solving *s);
void topics_print(FILE *file, const struct solving *s);
void topics_free(struct solving *s);

#endif
