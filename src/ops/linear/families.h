/* Losses (loss.c, loss_rows.c), and the families of generalised linear models and their links, of which each
 * has a row in families.c. Their formulas for a row of data are in dialect/losses.h, those that verify them
 * in algorithms/verify/verify_family.c. */
#ifndef KI_FAMILIES_H
#define KI_FAMILIES_H

#include <stdbool.h>

#include "kiln/ops.h"

/* Sums over the rows of a fit. */
struct ki_likelihood {
    double deviance, least; /* of the first and the third column of kiln_loss_deviance */
    double weight, rows;    /* of the weights; how many of them are not 0 */
    double parameters;      /* of the model, without a dispersion */
};

struct ki_family {
    kiln_family_info shown;
    kiln_range range;   /* of y, but for open_beyond */
    double open_beyond; /* a parameter above that opens the range at its least end, too; 0: none does */
    /* The links, as a sum of 1 << link, under which the loss is not convex in eta, and may go level far
     * beyond a row's best mean. */
    uint32_t bends_down;
    kiln_link canonical; /* under which the expected curvature is the loss's own; 0: there is none */
    /* Akaike's criterion as R counts it: -2 log-likelihood + 2 parameters, the dispersion, where there is
     * one, counted as a parameter and put at deviance / weight. NULL: the density has no closed form. */
    double (*akaike)(const struct ki_likelihood *at);
    /* The log-density of y less -k deviance / 2 at k = weight / dispersion, of a family with a dispersion.
     * NULL: as for akaike. */
    double (*peak)(double y, double k);
};

enum { KI_FAMILY_LAST = KILN_BETA, KI_LINK_LAST = KILN_LINK_POWER };

/* NULL: no family has that number. */
const struct ki_family *ki_family_find(kiln_family family);

struct ki_link {
    const char *name;
    double least, most;                     /* its means lie between, whatever eta */
    bool any;                               /* every eta has a mean */
    double (*eta)(double mu, double power); /* NULL: no closed form */
};

/* NULL: no link has that number. */
const struct ki_link *ki_link_find(kiln_link link);
/* A glm's link, the family's where it is left to that. */
kiln_link ki_link_of(const kiln_loss *loss);
/* ERR_ARGUMENT for a family or a link that there is not, or a parameter that it does not take. */
kiln_status ki_family_check(const char *call, const kiln_loss *loss);

/* *resolved = the loss with its default link filled in, so that no body sees KILN_LINK_DEFAULT. ERR_ARGUMENT
 * for a kind, family, link or parameter that there is not. */
kiln_status ki_loss_resolve(const char *call, kiln_loss *resolved, const kiln_loss *loss);

/* kiln_loss_gradient, but C = s .* the expected curvature of a glm. */
kiln_status ki_loss_expected(double *value, kiln_matrix *G, kiln_matrix *C, const kiln_loss *loss,
                             const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b);

/* A function of each row of Eta: kiln_loss_mean, or kiln_loss_deviance if `deviance`. The loss is
 * resolved. */
struct ki_loss_rows {
    kiln_matrix *out;
    const kiln_loss *loss;
    const kiln_matrix *Eta;
    bool deviance;
};

/* "gaussian|poisson|...", "identity|log|...", in the order of the numbers from 1 on. */
extern const char ki_family_words[], ki_link_words[];

#endif
