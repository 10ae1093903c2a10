/* Between kiln verify (verify.c: the claims, and telling them) and what a kind of model claims. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include "common.h"

enum { CLAIMS_MOST = 96 };

/* Holds what the model says about itself, and what was found. */
struct claim {
    const char *key, *title;
    double claimed, found;
    bool bound;        /* claimed is a bound on found */
    bool holds, known; /* known: it can be judged */
};

struct verifying {
    kiln_model *model;
    kiln_data *data;
    json_t *options, *report; /* what the model file says */
    kiln_device *device;      /* of the data */
    int code;                 /* of what verify_record could not read, and has reported; 0 */
    struct claim claims[CLAIMS_MOST];
    char names[CLAIMS_MOST][48]; /* of verify_entry's */
    int count;
};

/* The verbs' parts: read the data, recompute, claim. */
int verify_linear(struct run *run, struct verifying *v);

/* A factor or topic model: what it was trained on, without what was held out, its factors, and itself. */
struct claimed_factors {
    const kiln_matrix *X;
    kiln_matrix *A, *B;
    const kiln_model *model;
};
/* A figure as slow code finds it, and what rounding may have made of it in training. */
struct recomputed {
    double value, rounding;
    const char *key; /* of another figure; NULL: there is none */
    double figure, figure_rounding;
};
/* Reads the data, holds out what was held out, and claims what the report calls `claim` of what `recompute`
 * finds; of a run that has converged, also that one more iteration gains little. */
struct refactored {
    kiln_status (*recompute)(struct recomputed *found, const struct claimed_factors *claimed);
    /* One more iteration from the model's factors, which it changes: the report's residual is what is left
     * to gain. */
    kiln_status (*again)(kiln_report *report, const struct claimed_factors *claimed, const json_t *options);
};
int verify_factors(struct run *run, struct verifying *v, const char *claim, const struct refactored *code);
enum { CLAIMED_SETTINGS = 8 };
/* The numbers of the model's tensor `name`, of at most CLAIMED_SETTINGS. */
kiln_status claimed_settings(double *settings, const struct claimed_factors *claimed, const char *name);
/* Keeps in the model what verify_factors needs to hold the same entries out. */
kiln_status verify_keep_split(kiln_model *model, double fraction, int64_t seed);

/* found is claimed but for so many digits, relative, or for `slack`; found is at most `factor` times
 * claimed, or `least`. NaN: cannot be judged. */
void claim_equal(struct verifying *v, const char *key, const char *title, double claimed, double found,
                 double digits, double slack);
void claim_bound(struct verifying *v, const char *key, const char *title, double claimed, double found,
                 double factor, double least);

/* Reads the data that the command line names, on the CPU, in the type of the model's tensor. A model without
 * that tensor, or whose report has no number `claim`, claims nothing. These return 0, or the exit code of
 * what they have reported. */
int verify_read(struct run *run, struct verifying *v, const char *tensor, const char *claim);
/* The model's tensor, if it has `rows` rows: else the model is no `what` of these data. */
int verify_tensor(kiln_matrix **A, struct run *run, const struct verifying *v, const char *name, int64_t rows,
                  const char *what);
int verify_other_data(const struct run *run, const char *what); /* reports that */

/* verify_record.c: what the file says of the run, against itself and the data's names. 0 or an exit code. */
int verify_record(const struct run *run, struct verifying *v);
/* Claims an entry of the file that does not hold; one that does is not told. */
void verify_entry(struct verifying *v, bool holds, const char *section, const char *key);

double verify_number(const json_t *object, const char *key); /* NaN if there is none */
/* The number of the choice that a model's options name, 0 where they leave it open, -1 where it is none of
 * the option's. Files of earlier builds have the number itself. */
int64_t verify_choice(const json_t *options, const char *algorithm, const char *name);
int verify_no_claims(void); /* reports it */

#endif
