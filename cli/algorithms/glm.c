/* kiln glm: generalised linear models, and the table of their coefficients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "linear.h"
#include "verbs.h"
#include "verify.h"

enum { FAMILIES_MOST = 32 };

struct wanted {
    bool standard_errors;
    double parameter[FAMILIES_MOST]; /* of each family by its number: 0: not given */
};

static const struct wanted *wanted_of(const struct settings *settings) {
    return (const void *)settings->own.bytes;
}

/* Returns whether the family has a parameter that is not given: it is found by maximum likelihood. */
static bool is_estimated(const kiln_loss *loss) {
    return loss->parameter == 0 && kiln_family_describe(loss->family)->parameter.option;
}

/* Each family has its parameter, and no other has it. */
static int check_parameter(kiln_loss *loss, const struct wanted *wanted) {
    const kiln_family_info *family;
    char hint[120];
    for (int i = 1; (family = kiln_family_describe((kiln_family)i)); i++) {
        const kiln_family_parameter *parameter = &family->parameter;
        const double value = wanted->parameter[i];
        if (!parameter->option) continue;
        if (value != 0 && (int)loss->family != i) {
            snprintf(hint, sizeof hint, "it belongs to --family %s", family->name);
            return fail_with(KILN_ERR_ARGUMENT, WORKING, hint, "--%s has no meaning here", parameter->option);
        }
        if ((int)loss->family != i || value == 0) continue;
        snprintf(hint, sizeof hint, "--%s %s, %s", parameter->option, parameter->letter, parameter->wanted);
        if (!(value > parameter->above) || value == parameter->other_than)
            return fail_with(KILN_ERR_ARGUMENT, WORKING, hint, "--%s is %g", parameter->option, value);
        loss->parameter = value;
    }
    return 0;
}

static int check_glm(struct training *job) {
    const struct settings *settings = job->settings;
    const struct wanted *wanted = wanted_of(settings);
    const kiln_glm_options *given = GIVEN(kiln_glm_options, settings);
    kiln_loss *loss = &job->loss;
    loss->kind = KILN_LOSS_GLM;
    loss->family = given->family ? given->family : KILN_GAUSSIAN;
    loss->link = given->link;
    loss->link_power = given->link_power;
    const int code = check_parameter(loss, wanted);
    if (code) return code;
    job->range = kiln_family_range(loss->family, loss->parameter);
    if (loss->link == KILN_LINK_POWER && given->link_power == 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--link-power P", "--link power needs its power");
    if (given->link_power && loss->link != KILN_LINK_POWER)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "it belongs to --link power",
                         "--link-power has no meaning here");
    if (wanted->standard_errors && (settings->l2.to > 0 || settings->l1.to > 0))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave out the penalty or --standard-errors",
                         "--standard-errors are those of estimates without a penalty");
    return 0;
}

static void set_glm(void *own, const struct training *job, const struct problem *problem) {
    kiln_glm_options *options = own;
    *options = *GIVEN(kiln_glm_options, job->settings);
    options->family = job->loss.family;
    options->parameter = job->loss.parameter;
    options->l2 = problem->penalty.l2;
    options->l1 = problem->penalty.l1;
    options->offset = job->offset;
    options->standard_errors = job->errors;
    TAKE_PROBLEM(*options, problem);
}

/* On all rows; folds of a cross-validation take it as known. */
static int estimate_parameter(struct training *job) {
    const kiln_control control = talk_control("estimate", 0);
    const struct problem problem = {.penalty = job->penalty, .weights = job->weights, .control = control};
    kiln_glm_options options;
    if (!is_estimated(&job->loss)) return 0;
    set_glm(&options, job, &problem);
    talk_doing("estimate the family's parameter");
    if (kiln_glm_estimate(&job->loss.parameter, kiln_data_X(job->data), kiln_data_y(job->data), &options) !=
        KILN_OK)
        return linear_fail(job);
    job->estimated = true;
    return 0;
}

static int prepare_glm(struct run *run, struct training *job) {
    const kiln_matrix *X = kiln_data_X(job->data);
    int code = 0;
    if (kiln_matrix_cols(kiln_data_y(job->data)) != 1)
        return fail_with(KILN_ERR_DATA, READING, "name one target column", "glm learns one target at a time");
    if ((code = estimate_parameter(job))) return code;
    if ((code = linear_allocate(run, job, 1)) || !wanted_of(run->settings)->standard_errors) return code;
    const int64_t count = kiln_matrix_cols(X) + !linear_value(job, "no_intercept");
    if (kiln_matrix_dense(&job->errors, run->device, kiln_matrix_type(X), count, 1, NULL) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}

static kiln_status solve_glm(const struct training *job, const struct problem *problem, kiln_report *report) {
    kiln_glm_options options;
    set_glm(&options, job, problem);
    return kiln_glm(job->W, job->b, kiln_data_X(job->data), kiln_data_y(job->data), &options, report);
}

static const char *score_deviance(const struct training *job) {
    (void)job;
    return "mean_deviance";
}

/* Classes are numbered 0, 1, ... in the order of their names; a binomial target has two. */
static int inspect_glm(struct training *job) {
    const char *none = kiln_data_class_name(job->data, 0, 0), *one = kiln_data_class_name(job->data, 0, 1);
    if (!none) return 0;
    if (!one || kiln_data_class_name(job->data, 0, 2))
        return fail_with(KILN_ERR_DATA, READING, "kiln logreg tells any number of classes apart",
                         "the target has %s: a binomial one has two",
                         one ? "three classes or more" : "one class");
    say("binomial target: 1 is '%s', 0 is '%s'", one, none);
    return 0;
}

const struct algorithm algorithm_glm = {.name = "glm",
                                        .title = "generalised linear model",
                                        .check = check_glm,
                                        .inspect = inspect_glm,
                                        .prepare = prepare_glm,
                                        .set = set_glm,
                                        .solve = solve_glm,
                                        .score = score_deviance};

/* clang-format off */
static const struct option own[] = {
    {.name = "standard-errors", .kind = OPTION_FLAG, .group = GROUP_MODEL,
     .offset = offsetof(struct wanted, standard_errors),
     .help = "Print every coefficient with its standard error, z (t where the dispersion is estimated), p "
             "and 95 % interval, and keep them in the model; at most 16384 columns, and no penalty. A "
             "column that depends on those before it gets coefficient 0 and no error."},
};
/* clang-format on */

/* The option of a family's parameter. */
static bool option_of_family(struct option *option, int number) {
    static char helps[FAMILIES_MOST][200];
    const kiln_family_info *family = kiln_family_describe((kiln_family)(number + 1));
    *option = (struct option){.name = NULL};
    if (!family || number + 1 >= FAMILIES_MOST) return false;
    const kiln_family_parameter *parameter = &family->parameter;
    if (!parameter->option) return true;
    snprintf(helps[number], sizeof helps[0],
             "With --family %s: %s, %s %s; without it found by maximum likelihood%s.", family->name,
             parameter->meaning, parameter->letter, parameter->wanted,
             number + 1 == KILN_TWEEDIE ? ", between 1 and 2" : "");
    *option =
        (struct option){.name = parameter->option,
                        .kind = OPTION_POSITIVE,
                        .group = GROUP_MODEL,
                        .value = parameter->letter,
                        .most = INFINITY,
                        .help = helps[number],
                        .offset = offsetof(struct wanted, parameter) + (size_t)(number + 1) * sizeof(double)};
    return true;
}

const struct verb verb_of_glm = {
    "glm",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Train a generalised linear model",
    "Minimises minus the log-likelihood of the target, whose distribution is --family and whose mean is "
    "linked to x.w + b + offset by --link, with L2, L1 or both penalties. Reports deviance, null "
    "deviance, dispersion and AIC; on request standard errors. A row of weight 2 is one of half the "
    "variance, not two rows: in the dispersion it counts once.\n\n" DATA_FORMATS "\n\n" TRAINING_SUMMARY,
    "kiln glm claims.csv --target count --family poisson --offset log_exposure\n"
    "kiln glm costs.csv --target cost --family gamma --link log --standard-errors\n"
    "kiln glm data.csv --target y --l1 0.1:100:10 --cv 5\n"
    "kiln glm X.npz --target-file y.npy --family binomial --link probit --json",
    .run = solve_run,
    .solver = &linear_solver,
    .kinds = VERB_BIT(GLM),
    .verify = verify_linear,
    .otherwise = "parameter",
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .own_told = option_of_family};
