/* kiln gap: read counts of words, factor them, show the topics. */
#include "topics.h"

static const kiln_gap_options *given(const struct solving *s) {
    return s->options;
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct topics *state = s->state;
    kiln_gap_options options = *given(s);
    options.warm_start = s->warm != NULL;
    options.seed = s->run->settings->seed;
    options.test = state->test;
    options.control = *control;
    kiln_status status = kiln_gap(state->A, state->B, topics_training(s), &options, &s->report);
    if (status == KILN_OK) status = kiln_gap_model(&state->model, state->A, state->B, &options);
    return status;
}

static void put_rest(struct result *result, const struct solving *s) {
    PUT(result, "log_likelihood", NUMBER(kiln_report_figure(&s->report, "log_likelihood")));
    PUT(result, "side_gain", NUMBER(kiln_report_figure(&s->report, "side_gain")));
    topics_put(result, s);
}

static void put_head(struct result *result, const struct solving *s) {
    PUT_LINE(result, "%s: ", given(s)->prior == KILN_GAP_NO_PRIOR ? "KL-NMF" : "Gamma-Poisson factors");
    topics_size(result, s);
}

static kiln_status recompute(struct recomputed *found, const struct claimed_factors *claimed) {
    double settings[CLAIMED_SETTINGS] = {0};
    kiln_topics_verification result = {.size = sizeof result};
    kiln_status status = claimed_settings(settings, claimed, "settings");
    kiln_gap_options options = {
        .size = sizeof options, .prior = (int)settings[0], .shape = settings[1], .rate = settings[2]};
    kiln_option_give("gap", &options, "rate");
    if (status == KILN_OK) status = kiln_verify_gap(&result, claimed->X, claimed->A, claimed->B, &options);
    *found = (struct recomputed){result.objective, result.rounding, "log_likelihood", result.figure,
                                 result.figure_rounding};
    return status;
}

static kiln_status again(kiln_report *report, const struct claimed_factors *claimed, const json_t *given) {
    kiln_gap_options options = {.prior = (kiln_gap_prior)verify_choice(given, "gap", "prior"),
                                .shape = json_number_value(json_object_get(given, "shape")),
                                .rate = json_number_value(json_object_get(given, "rate")),
                                .warm_start = 1,
                                .max_iterations = 1};
    return kiln_gap(claimed->A, claimed->B, claimed->X, &options, report);
}

static int verify_gap(struct run *run, struct verifying *v) {
    return verify_factors(run, v, "objective", &(struct refactored){recompute, again});
}

static const struct solver solver = {TOPICS_HOOKS,
                                     .words.objective = "objective",
                                     .bytes = sizeof(struct topics),
                                     .check = topics_check,
                                     .prepare = topics_prepare,
                                     .solve = solve,
                                     .head = put_head,
                                     .put = put_rest,
                                     .free = topics_free};

static const struct option own[] = {TOPICS_OPTIONS};

const struct verb verb_of_gap = {
    "gap",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Find topics in counts by a Gamma-Poisson model, or by KL-NMF",
    "The count x of word w in document d is taken for a Poisson variable whose mean is a_d . b_w, the "
    "product of two short vectors that are not negative: a_d says how much of each topic the document has, "
    "b_w how common the word is in each. With the Gamma prior the a of a document are few and small, and a "
    "topic's b add up to 1; with --prior none this is non-negative matrix factorisation by the "
    "Kullback-Leibler divergence. Multiplicative updates take turns, and the objective never "
    "rises. A run has converged where entries near 0 need not grow, either: the best factors of either side, "
    "given the other's, would take little off the objective." TOPICS_HELP,
    "kiln gap docword.kos.txt.gz --topics 20 --test-fraction 0.1 -o kos.kiln\n"
    "kiln gap counts.npz --prior none -k 50 --vocabulary words.txt --words topics.tsv --top 20\n"
    "kiln predict kos.kiln docword.new.txt",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(RANDOM) | VERB_BIT(PASSES),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .width = topics_width,
    .verify = verify_gap,
    .sharing = SHARES_FACTORS,
};
