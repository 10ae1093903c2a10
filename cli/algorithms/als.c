/* kiln als: ratings or counts, factored by alternating least squares. */
#include "commands.h"
#include "factors.h"

static const kiln_als_options *given(const struct solving *s) {
    return s->options;
}

struct wanted {
    struct factors_wanted factors; /* first: what factors.h's functions take */
    bool no_biases;
};

/* Ratings have biases unless they are not wanted. */
static int choose_biases(struct solving *s) {
    struct factors_state *state = s->state;
    const bool unwanted = ((const struct wanted *)s->own)->no_biases;
    const bool usual = algorithm_standard("als", "biases", KILN_F64) != 0;
    if (unwanted && given(s)->biases)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave out one of them", "--biases and --no-biases");
    state->held.als = *given(s);
    state->held.als.biases |= usual && !unwanted && !given(s)->implicit;
    s->options = &state->held.als;
    return 0;
}

/* Options that would change nothing. */
static int check_idle(const kiln_als_options *o) {
    static const char idle[] = "%s has no meaning here";
    if (!o->implicit && (o->alpha > 0 || o->confidence > KILN_CONFIDENCE_LINEAR))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "it belongs to --implicit", idle,
                         o->alpha > 0 ? "--alpha" : "--confidence");
    if (o->epsilon > 0 && o->confidence != KILN_CONFIDENCE_LOG)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "it belongs to --confidence log", idle, "--epsilon");
    return 0;
}

static int check(struct solving *s) {
    struct factors_state *state = s->state;
    int code = check_idle(given(s));
    if (code == 0) code = choose_biases(s);
    state->title = "alternating least squares";
    state->biases = state->held.als.biases != 0;
    state->implicit = state->held.als.implicit != 0;
    return code ? code : factors_check(s);
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct factors_state *state = s->state;
    kiln_als_options options = *given(s);
    options.warm_start = s->warm != NULL;
    options.seed = s->run->settings->seed;
    options.test = state->test;
    options.control = *control;
    kiln_status status = kiln_als(state->A, state->B, factors_training(s), &options, &s->report);
    if (status != KILN_OK) return status;
    state->held.als.l2 = factors_penalty(s);
    options.l2 = state->held.als.l2;
    kiln_option_give("als", &options, "l2");
    return kiln_als_model(&state->model, state->A, state->B, kiln_report_figure(&s->report, "mean"),
                          &options);
}

/* The options that the model's tensor keeps. */
static kiln_status take_settings(kiln_als_options *options, double *mean,
                                 const struct claimed_factors *claimed) {
    double settings[CLAIMED_SETTINGS] = {0};
    kiln_status status = claimed_settings(settings, claimed, "settings");
    *mean = settings[0];
    *options = (kiln_als_options){.size = sizeof *options,
                                  .l2 = settings[1],
                                  .alpha = settings[2],
                                  .biases = settings[3] != 0,
                                  .counted = settings[4] != 0,
                                  .implicit = settings[5] != 0};
    kiln_option_give("als", options, "l2");
    kiln_option_give("als", options, "alpha");
    double confidence[CLAIMED_SETTINGS] = {0};
    kiln_type type;
    int64_t rows, cols;
    if (status == KILN_OK && model_tensor_shape(claimed->model, "confidence", &type, &rows, &cols)) {
        status = claimed_settings(confidence, claimed, "confidence");
        options->confidence = (int)confidence[0];
        options->epsilon = confidence[1];
    }
    return status;
}

static kiln_status recompute(struct recomputed *found, const struct claimed_factors *claimed) {
    double mean;
    kiln_als_verification result = {.size = sizeof result};
    kiln_als_options options;
    kiln_status status = take_settings(&options, &mean, claimed);
    if (status == KILN_OK)
        status = kiln_verify_als(&result, claimed->X, claimed->A, claimed->B, mean, &options);
    *found = (struct recomputed){.value = result.objective, .rounding = result.objective_rounding};
    return status;
}

/* An exact sweep, whatever the solver was: what few steps gain says little of what there is to gain. */
static kiln_status again(kiln_report *report, const struct claimed_factors *claimed, const json_t *given) {
    double mean;
    kiln_als_options options;
    const kiln_status status = take_settings(&options, &mean, claimed);
    (void)given;
    options.solver = KILN_FACTOR_CHOLESKY;
    options.warm_start = 1;
    options.max_iterations = 1;
    return status == KILN_OK ? kiln_als(claimed->A, claimed->B, claimed->X, &options, report) : status;
}

static int verify_als(struct run *run, struct verifying *v) {
    return verify_factors(run, v, "objective", &(struct refactored){recompute, again});
}

static const struct solver solver = FACTORS_SOLVER(check, solve);

/* clang-format off */
static const struct option own[] = {
    FACTORS_OPTIONS,
    {.name = "no-biases", .kind = OPTION_FLAG, .group = GROUP_MODEL,
     .offset = offsetof(struct wanted, no_biases),
     .help = "For ratings: fit factors alone, without the mean and biases."},
};
/* clang-format on */

const struct verb verb_of_als = {
    "als",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Factor a matrix of ratings or counts by alternating least squares",
    "A rating r of row u for column i becomes mean + bias_u + bias_i + a_u . b_i, or with --no-biases a_u . "
    "b_i alone, a and b short vectors. All a are least squares given all b, and all b given all a; the two "
    "take turns, and the objective never rises.\n\n"
    "With --implicit entries are counts of what was seen: every absent entry is a weak no, every entry a yes "
    "with confidence 1 + alpha |r| (Hu, Koren and Volinsky).\n\n" FACTORS_DATA,
    "kiln als ratings.csv --test-fraction 0.1 -o ratings.kiln\n"
    "kiln als plays.npz --implicit --factors 64 --recommendations best.tsv --top 5",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(RANDOM) | VERB_BIT(LINKS) | VERB_BIT(PASSES),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .width = factors_width,
    .verify = verify_als,
    .tables = KILN_FILE_RATINGS,
    .predict_instead = "kiln recommend MODEL --user ID shows what it recommends",
    .sharing = SHARES_FACTORS,
};
