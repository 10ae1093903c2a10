/* kiln recommend: what its parts share, and its options. */
#ifndef CLI_RECOMMEND_H
#define CLI_RECOMMEND_H

#include "common.h"
#include "json.h"
#include "options.h"
#include "output.h"

struct recommend_wanted {
    const char *user, *item, *exclude, *only;
    int64_t top;
    bool include_seen, pairs, test;
};

struct recommending {
    struct run *run;
    const struct recommend_wanted *wanted;
    kiln_model *model;
    kiln_data *data;                         /* NULL: of users that the model knows */
    json_t *rows, *columns;                  /* the model's names; NULL: numbers from 1 */
    int64_t users, items, first, count, top; /* first: of the users told */
    kiln_type type;
    unsigned char *allowed; /* --exclude, --only: 0 where an item is left out; NULL: none is */
    int64_t *best;          /* top of each user, or of the item */
    double *scores;
    bool cosine; /* what the scores are */
};

/* The i-th name, or its number from 1. */
const char *recommend_name(const json_t *names, int64_t i, char *buffer);
/* Writes a line of a table: who, the item's name and a number of the factors' type, with tabs between. */
void recommend_line(struct output *output, const struct recommending *r, const char *who, int64_t item,
                    double value);

/* Each returns 0, or the exit code of an error that it has reported. */
int recommend_take_items(struct recommending *r); /* allowed, of --exclude or --only */
int recommend_pairs(struct recommending *r);      /* --pairs: predicts the file's, and tells them */
int recommend_test(struct recommending *r);       /* --test: how well the file's entries are ranked */

enum { RECOMMEND_OPTIONS = 8 };
extern const struct option recommend_options[RECOMMEND_OPTIONS];

#endif
