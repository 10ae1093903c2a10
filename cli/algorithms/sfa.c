/* kiln sfa: ratings, factored about their means by conjugate gradient. */
#include "factors.h"

static const kiln_sfa_options *given(const struct solving *s) {
    return s->options;
}

static int check(struct solving *s) {
    struct factors_state *state = s->state;
    state->title = "sparse factor analysis";
    state->biases = true;
    return factors_check(s);
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct factors_state *state = s->state;
    kiln_sfa_options options = *given(s);
    options.warm_start = s->warm != NULL;
    options.seed = s->run->settings->seed;
    options.test = state->test;
    options.control = *control;
    kiln_status status = kiln_sfa(state->A, state->B, factors_training(s), &options, &s->report);
    if (status != KILN_OK) return status;
    options.l2 = factors_penalty(s);
    kiln_option_give("sfa", &options, "l2");
    state->held.sfa = *given(s);
    state->held.sfa.l2 = options.l2;
    s->options = &state->held.sfa;
    return kiln_sfa_model(&state->model, state->A, state->B, kiln_report_figure(&s->report, "mean"),
                          &options);
}

static kiln_status recompute(struct recomputed *found, const struct claimed_factors *claimed) {
    double settings[CLAIMED_SETTINGS] = {0};
    kiln_als_verification result = {.size = sizeof result};
    kiln_status status = claimed_settings(settings, claimed, "settings");
    kiln_sfa_options options = {.size = sizeof options, .l2 = settings[1]};
    kiln_option_give("sfa", &options, "l2");
    if (status == KILN_OK)
        status = kiln_verify_sfa(&result, claimed->X, claimed->A, claimed->B, settings[0], &options);
    *found = (struct recomputed){.value = result.objective, .rounding = result.objective_rounding};
    return status;
}

static kiln_status again(kiln_report *report, const struct claimed_factors *claimed, const json_t *given) {
    double settings[CLAIMED_SETTINGS] = {0};
    const kiln_status status = claimed_settings(settings, claimed, "settings");
    kiln_sfa_options options = {.l2 = settings[1],
                                .damping = json_number_value(json_object_get(given, "damping")),
                                .warm_start = 1,
                                .max_iterations = 1};
    kiln_option_give("sfa", &options, "l2");
    kiln_option_give("sfa", &options, "damping");
    return status == KILN_OK ? kiln_sfa(claimed->A, claimed->B, claimed->X, &options, report) : status;
}

static int verify_sfa(struct run *run, struct verifying *v) {
    return verify_factors(run, v, "objective", &(struct refactored){recompute, again});
}

static const struct solver solver = FACTORS_SOLVER(check, solve);

static const struct option own[] = {FACTORS_OPTIONS};

const struct verb verb_of_sfa = {
    "sfa",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Factor a matrix of ratings about its means by conjugate gradient",
    "Sparse factor analysis: a rating r of row u for column i is about mean + mean_u + mean_i + a_u . b_i. "
    "The means are taken off first, those of few ratings for less (--damping); then all a and b change at "
    "once, by conjugate gradient with an exact step, so that the squared error at the ratings plus the "
    "penalty never rises.\n\n" FACTORS_DATA,
    "kiln sfa ratings.csv --factors 32 --test-fraction 0.1 -o ratings.kiln\n"
    "kiln recommend ratings.kiln --user 196",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(RANDOM) | VERB_BIT(LINKS) | VERB_BIT(PASSES),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .width = factors_width,
    .verify = verify_sfa,
    .tables = KILN_FILE_RATINGS,
    .predict_instead = "kiln recommend MODEL --user ID shows what it recommends",
    .sharing = SHARES_FACTORS,
};
