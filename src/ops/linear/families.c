/* This file says what is known of each family and of each link, beside the formulas of a row of data. */
#define _DEFAULT_SOURCE
#include "ops/linear/families.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "kiln/models.h"

static const double pi = 3.14159265358979323846;

/* ------------------------------------------------------------------------------------ Akaike's criterion */

/* k log k - k - log Gamma(k): by Stirling's series where k is large, as the three lose their digits to each
 * other there. */
static double gamma_constant(double k) {
    const double r = 1 / (k * k);
    int sign; /* plain lgamma writes it to a global variable */
    if (k < 64) return k * log(k) - k - lgamma_r(k, &sign);
    return (log(k) - log(2 * pi)) / 2 - (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / k;
}

static double gaussian_akaike(const struct ki_likelihood *at) {
    return at->rows * (log(2 * pi * at->deviance / at->rows) + 1) + 2 * at->least + 2 * (at->parameters + 1);
}

static double gamma_akaike(const struct ki_likelihood *at) {
    const double spread = at->deviance / at->weight;
    return at->weight * (1 - 2 * gamma_constant(1 / spread)) + 2 * at->least + 2 * (at->parameters + 1);
}

static double inverse_gaussian_akaike(const struct ki_likelihood *at) {
    const double spread = at->deviance / at->weight;
    return at->weight * (log(2 * pi * spread) + 1) + 2 * at->least + 2 * (at->parameters + 1);
}

/* Without a dispersion. */
static double plain_akaike(const struct ki_likelihood *at) {
    return at->deviance + 2 * (at->least + at->parameters);
}

/* ---------------------------------------------------------------------------- log-densities at their peak */

static double gaussian_peak(double y, double k) {
    (void)y;
    return log(k / (2 * pi)) / 2;
}

static double gamma_peak(double y, double k) {
    return gamma_constant(k) - log(y);
}

static double inverse_gaussian_peak(double y, double k) {
    return log(k / (2 * pi)) / 2 - 1.5 * log(y);
}

/* ------------------------------------------------------------------------------------------ the families */

#define BIT(link) (1u << KILN_LINK_##link)
#define EVERY_LINK                                                                                           \
    (BIT(IDENTITY) | BIT(LOG) | BIT(INVERSE) | BIT(INVERSE_SQUARED) | BIT(SQRT) | BIT(LOGIT) | BIT(PROBIT) | \
     BIT(CLOGLOG) | BIT(CAUCHIT) | BIT(POWER))

/* A row a family, at its number. The default link is the canonical one, or log where that leaves the
 * range. */
static const struct ki_family families[KI_FAMILY_LAST + 1] = {
    [KILN_GAUSSIAN] =
        {.shown = {.name = "gaussian", .link = KILN_LINK_IDENTITY, .links = EVERY_LINK, .linear_score = 1},
         .range = {-INFINITY, INFINITY, 0, NULL},
         .bends_down = EVERY_LINK & ~BIT(IDENTITY),
         .canonical = KILN_LINK_IDENTITY,
         .akaike = gaussian_akaike,
         .peak = gaussian_peak},
    [KILN_POISSON] = {.shown = {.name = "poisson",
                                .link = KILN_LINK_LOG,
                                .links = EVERY_LINK,
                                .fixed_dispersion = 1,
                                .linear_score = 1},
                      .range = {0, INFINITY, 0, NULL},
                      .canonical = KILN_LINK_LOG,
                      .akaike = plain_akaike},
    [KILN_GAMMA] = {.shown = {.name = "gamma", .link = KILN_LINK_LOG, .links = EVERY_LINK, .linear_score = 1},
                    .range = {0, INFINITY, KILN_OPEN_LEAST, NULL},
                    .bends_down = EVERY_LINK & ~(BIT(LOG) | BIT(INVERSE)),
                    .canonical = KILN_LINK_INVERSE,
                    .akaike = gamma_akaike,
                    .peak = gamma_peak},
    [KILN_INVERSE_GAUSSIAN] =
        {.shown = {.name = "inverse-gaussian", .link = KILN_LINK_LOG, .links = EVERY_LINK, .linear_score = 1},
         .range = {0, INFINITY, KILN_OPEN_LEAST, NULL},
         .bends_down = EVERY_LINK & ~BIT(INVERSE_SQUARED),
         .canonical = KILN_LINK_INVERSE_SQUARED,
         .akaike = inverse_gaussian_akaike,
         .peak = inverse_gaussian_peak},
    [KILN_BINOMIAL] = {.shown = {.name = "binomial",
                                 .link = KILN_LINK_LOGIT,
                                 .links = EVERY_LINK,
                                 .fixed_dispersion = 1,
                                 .linear_score = 1,
                                 .outcomes = 1},
                       .range = {0, 1, 0, "give counts of successes as proportions, the trials as weights"},
                       .canonical = KILN_LINK_LOGIT,
                       .akaike = plain_akaike},
    [KILN_TWEEDIE] =
        {.shown = {.name = "tweedie",
                   .link = KILN_LINK_LOG,
                   .links = EVERY_LINK,
                   .linear_score = 1,
                   .parameter = {.option = "variance-power",
                                 .letter = "P",
                                 .meaning = "the variance is mu^P",
                                 .wanted = "between 1 and 2 or above 2; poisson has the power 1, "
                                           "gamma 2",
                                 .above = 1,
                                 .other_than = 2}},
         .range = {0, INFINITY, 0, NULL},
         .open_beyond = 2},
    [KILN_NEGATIVE_BINOMIAL] = {.shown = {.name = "negative-binomial",
                                          .link = KILN_LINK_LOG,
                                          .links = EVERY_LINK,
                                          .fixed_dispersion = 1,
                                          .linear_score = 1,
                                          .parameter = {.option = "alpha",
                                                        .letter = "A",
                                                        .meaning = "the variance is mu + A mu^2",
                                                        .wanted = "above 0"}},
                                .range = {0, INFINITY, 0, NULL},
                                .akaike = plain_akaike},
    [KILN_BETA] = {.shown = {.name = "beta",
                             .link = KILN_LINK_LOGIT,
                             .links = BIT(LOGIT) | BIT(PROBIT) | BIT(CLOGLOG) | BIT(CAUCHIT),
                             .fixed_dispersion = 1,
                             .parameter = {.option = "precision",
                                           .letter = "P",
                                           .meaning = "the variance is mu (1 - mu) / (1 + P)",
                                           .wanted = "above 0"}},
                   .range = {0, 1, KILN_OPEN_LEAST | KILN_OPEN_MOST,
                             "shares of 0 and 1 are those of binomial trials, --family binomial"},
                   .bends_down = BIT(LOGIT) | BIT(PROBIT) | BIT(CLOGLOG) | BIT(CAUCHIT),
                   .akaike = plain_akaike},
};
const char ki_family_words[] =
    "gaussian|poisson|gamma|inverse-gaussian|binomial|tweedie|negative-binomial|beta";

const struct ki_family *ki_family_find(kiln_family family) {
    return (int)family > 0 && (int)family <= KI_FAMILY_LAST ? &families[family] : NULL;
}

const kiln_family_info *kiln_family_describe(kiln_family family) {
    const struct ki_family *found = ki_family_find(family);
    return found ? &found->shown : NULL;
}

const char *kiln_family_name(kiln_family family) {
    const struct ki_family *found = ki_family_find(family);
    return found ? found->shown.name : NULL;
}

kiln_range kiln_family_range(kiln_family family, double parameter) {
    const struct ki_family *found = ki_family_find(family);
    kiln_range range = found ? found->range : (kiln_range){-INFINITY, INFINITY, 0, NULL};
    if (found && found->open_beyond > 0 && parameter > found->open_beyond) range.open |= KILN_OPEN_LEAST;
    return range;
}

/* --------------------------------------------------------------------------------------------- the links */

static double identity(double mu, double power) {
    (void)power;
    return mu;
}

static double logarithm(double mu, double power) {
    (void)power;
    return log(mu);
}

static double inverse(double mu, double power) {
    (void)power;
    return 1 / mu;
}

static double inverse_squared(double mu, double power) {
    (void)power;
    return 1 / (mu * mu);
}

static double square_root(double mu, double power) {
    (void)power;
    return sqrt(mu);
}

static double logit(double mu, double power) {
    (void)power;
    return log(mu) - log1p(-mu);
}

static double cloglog(double mu, double power) {
    (void)power;
    return log(-log1p(-mu));
}

/* Near 0 and 1 by what is left to them, as mu - 1/2 has lost its digits. */
static double cauchit(double mu, double power) {
    (void)power;
    if (mu < 0.25) return -1 / tan(pi * mu);
    return mu > 0.75 ? 1 / tan(pi * (1 - mu)) : tan(pi * (mu - 0.5));
}

/* A row a link, at its number. */
static const struct ki_link links[KI_LINK_LAST + 1] = {
    [KILN_LINK_DEFAULT] = {"default", 0, 0, false, NULL},
    [KILN_LINK_IDENTITY] = {"identity", -INFINITY, INFINITY, true, identity},
    [KILN_LINK_LOG] = {"log", 0, INFINITY, true, logarithm},
    [KILN_LINK_INVERSE] = {"inverse", -INFINITY, INFINITY, false, inverse},
    [KILN_LINK_INVERSE_SQUARED] = {"inverse-squared", 0, INFINITY, false, inverse_squared},
    [KILN_LINK_SQRT] = {"sqrt", 0, INFINITY, false, square_root},
    [KILN_LINK_LOGIT] = {"logit", 0, 1, true, logit},
    [KILN_LINK_PROBIT] = {"probit", 0, 1, true, NULL},
    [KILN_LINK_CLOGLOG] = {"cloglog", 0, 1, true, cloglog},
    [KILN_LINK_CAUCHIT] = {"cauchit", 0, 1, true, cauchit},
    [KILN_LINK_POWER] = {"power", 0, INFINITY, false, pow},
};
const char ki_link_words[] = "identity|log|inverse|inverse-squared|sqrt|logit|probit|cloglog|cauchit|power";

const struct ki_link *ki_link_find(kiln_link link) {
    return (int)link >= 0 && (int)link <= KI_LINK_LAST ? &links[link] : NULL;
}

const char *kiln_link_name(kiln_link link) {
    const struct ki_link *found = ki_link_find(link);
    return found ? found->name : NULL;
}

kiln_link ki_link_of(const kiln_loss *loss) {
    const struct ki_family *family = ki_family_find(loss->family);
    return loss->link == KILN_LINK_DEFAULT && family ? family->shown.link : loss->link;
}

/* --------------------------------------------------------------------------------------------- checks */

static kiln_status fail_link(const char *call, const struct ki_family *family, kiln_link link) {
    char names[160] = "";
    int left = __builtin_popcount(family->shown.links);
    for (int i = 1; i <= KI_LINK_LAST; i++) {
        const size_t used = strlen(names);
        if (!(family->shown.links >> i & 1)) continue;
        left--;
        snprintf(names + used, sizeof names - used, "%s%s",
                 !used  ? ""
                 : left ? ", "
                        : " and ",
                 links[i].name);
    }
    return ki_fail(KILN_ERR_ARGUMENT, "%s: the %s family has no link %s, but %s", call, family->shown.name,
                   kiln_link_name(link), names);
}

kiln_status ki_family_check(const char *call, const kiln_loss *loss) {
    const double p = loss->parameter;
    const struct ki_family *family = ki_family_find(loss->family);
    if (!family)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no family has the number %d", call, (int)loss->family);
    if (!ki_link_find(loss->link))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no link has the number %d", call, (int)loss->link);
    const kiln_family_parameter *parameter = &family->shown.parameter;
    if (parameter->option && !(p > parameter->above && p != parameter->other_than && isfinite(p)))
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s: the %s family's %s (kiln_glm_options.parameter) is %g, but must be %s", call,
                       family->shown.name, parameter->option, p, parameter->wanted);
    if (loss->link != KILN_LINK_DEFAULT && !(family->shown.links >> loss->link & 1))
        return fail_link(call, family, loss->link);
    if (loss->link == KILN_LINK_POWER && !(loss->link_power != 0 && isfinite(loss->link_power)))
        return ki_fail(
            KILN_ERR_ARGUMENT,
            "%s: the power of the link (kiln_glm_options.link_power) is %g, but must be finite and not 0",
            call, loss->link_power);
    return KILN_OK;
}
