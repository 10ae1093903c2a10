/* kiln lda: read counts of words, find topics by variational Bayes, show them. */
#include "topics.h"

#include <math.h>
#include <string.h>

struct state {
    struct topics topics; /* first: what topics.h's functions take */
    kiln_matrix *alphas;
    kiln_lda_options held; /* as given, with the batches of --online */
};

static const kiln_lda_options *given(const struct solving *s) {
    return s->options;
}

/* --online chooses the batches' size where --batch does not. */
struct wanted {
    struct topics_wanted topics;
    bool online;
};
enum { BATCH = 128 };

static int check(struct solving *s) {
    struct state *state = s->state;
    const int code = topics_check(s);
    state->held = *given(s);
    if (((const struct wanted *)s->own)->online && state->held.batch == 0) state->held.batch = BATCH;
    s->options = &state->held;
    if (code || !given(s)->learn_alpha || !given(s)->batch) return code;
    return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave out one of them",
                     "--learn-alpha and --online: alpha is learned from all documents");
}

static int prepare(struct solving *s) {
    struct state *state = s->state;
    const int code = topics_prepare(s);
    if (code) return code;
    if (!s->warm) return solve_allocate(&state->alphas, s, 1, state->topics.k);
    return solve_take(&state->alphas, s, "alpha");
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct state *state = s->state;
    kiln_lda_options options = *given(s);
    options.warm_start = s->warm != NULL;
    options.seed = s->run->settings->seed;
    options.test = state->topics.test;
    options.alphas = state->alphas;
    options.control = *control;
    kiln_status status = kiln_lda(state->topics.A, state->topics.B, topics_training(s), &options, &s->report);
    if (status == KILN_OK)
        status =
            kiln_lda_model(&state->topics.model, state->topics.A, state->topics.B, state->alphas, &options);
    return status;
}

static void put_rest(struct result *result, const struct solving *s) {
    PUT(result, "perplexity_bound", NUMBER(kiln_report_figure(&s->report, "perplexity_bound")));
    topics_put(result, s);
}

static void put_head(struct result *result, const struct solving *s) {
    PUT_LINE(result, "latent Dirichlet allocation: ");
    topics_size(result, s);
    if (given(s)->learn_alpha) PUT(result, NULL, .kind = ROW_NONE, .before = ", alpha learned");
}

static void free_state(struct solving *s) {
    kiln_matrix_free(((struct state *)s->state)->alphas);
    topics_free(s);
}

static kiln_status recompute(struct recomputed *found, const struct claimed_factors *claimed) {
    double eta[CLAIMED_SETTINGS] = {0};
    kiln_topics_verification result = {.size = sizeof result};
    kiln_matrix *alphas = NULL;
    kiln_status status = claimed_settings(eta, claimed, "eta");
    if (status == KILN_OK)
        status =
            kiln_model_tensor(&alphas, kiln_matrix_device(claimed->X), KILN_F64, claimed->model, "alpha");
    if (status == KILN_OK)
        status = kiln_verify_lda(&result, claimed->X, claimed->A, claimed->B, alphas,
                                 &(kiln_lda_options){.eta = eta[0]});
    kiln_matrix_free(alphas);
    *found = (struct recomputed){result.objective, result.rounding, "perplexity_bound", result.figure,
                                 result.figure_rounding};
    return status;
}

static kiln_status again(kiln_report *report, const struct claimed_factors *claimed, const json_t *given) {
    report->residual = NAN;
    double eta[CLAIMED_SETTINGS] = {0};
    kiln_matrix *alphas = NULL;
    kiln_status status = claimed_settings(eta, claimed, "eta");
    if (status == KILN_OK)
        status = kiln_model_tensor(&alphas, kiln_matrix_device(claimed->X), kiln_matrix_type(claimed->X),
                                   claimed->model, "alpha");
    kiln_lda_options options = {.eta = eta[0],
                                .steps = json_integer_value(json_object_get(given, "steps")),
                                .learn_alpha = json_is_true(json_object_get(given, "learn_alpha")),
                                .alphas = alphas,
                                .warm_start = 1,
                                .max_iterations = 1};
    if (status == KILN_OK) status = kiln_lda(claimed->A, claimed->B, claimed->X, &options, report);
    kiln_matrix_free(alphas);
    return status;
}

static int verify_lda(struct run *run, struct verifying *v) {
    return verify_factors(run, v, "bound", &(struct refactored){recompute, again});
}

static const struct solver solver = {TOPICS_HOOKS,
                                     .words.objective = "bound",
                                     .bytes = sizeof(struct state),
                                     .check = check,
                                     .prepare = prepare,
                                     .solve = solve,
                                     .head = put_head,
                                     .put = put_rest,
                                     .free = free_state};

/* clang-format off */
static const struct option own[] = {
    TOPICS_OPTIONS,
    {.name = "online", .kind = OPTION_FLAG, .group = GROUP_MODEL, .offset = offsetof(struct wanted, online),
     .help = "Update the topics after every 128 documents, or as many as --batch says: fewer passes where "
             "there are many documents."},
};
/* clang-format on */

const struct verb verb_of_lda = {
    "lda",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Find topics in documents by latent Dirichlet allocation",
    "Each document is a mixture of topics, each topic a distribution over words; both have Dirichlet priors. "
    "Variational Bayes finds distributions near those of mixtures and topics given the documents: documents "
    "and topics take turns, and from the fifth iteration on the lower bound of the documents' probability "
    "never falls. With --learn-alpha the documents' prior gets a number for each topic. With --online the "
    "topics are updated after each of many batches of documents (Hoffman, Blei and Bach)." TOPICS_HELP,
    "kiln lda docword.kos.txt.gz --topics 20 --learn-alpha --test-fraction 0.1 -o kos.kiln\n"
    "kiln lda docword.nytimes.txt.gz -k 100 --online --batch 4096 --max-iterations 2 --type f32\n"
    "kiln predict kos.kiln docword.new.txt",
    .run = solve_run,
    .solver = &solver,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(STARTS) | VERB_BIT(RANDOM) | VERB_BIT(PASSES),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .width = topics_width,
    .verify = verify_lda,
    .sharing = SHARES_FACTORS,
};
