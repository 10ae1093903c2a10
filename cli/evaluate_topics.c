/* kiln evaluate with a topic model: how well it foretells the words of documents, whose mixtures are found
 * first, and how well each topic's best words go together in them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evaluate.h"
#include "files.h"
#include "result.h"
#include "verbs.h"

enum { BEST = 10 }; /* words of a topic */

struct topic_evaluation {
    struct run *run;
    const kiln_model *model;
    kiln_data *data;
    json_t *names; /* of the words; NULL: numbers from 1 */
    int64_t topics, words;
    double perplexity, *mass, *npmi; /* of each topic */
    int64_t *best;                   /* BEST of each topic, -1 behind the last */
};

static int measure_perplexity(struct topic_evaluation *e) {
    kiln_matrix *A = NULL;
    const kiln_matrix *X = kiln_data_X(e->data);
    kiln_status status = kiln_transform(&A, e->model, X);
    if (status == KILN_OK) status = kiln_perplexity(&e->perplexity, e->model, A, X);
    kiln_matrix_free(A);
    return status == KILN_OK ? 0 : fail_library(USING_MODEL);
}

/* The best words by insertion, ties by number. */
static void find_best(struct topic_evaluation *e, const double *B, int64_t topic) {
    int64_t *best = e->best + topic * BEST, kept = 0;
    for (int64_t w = 0; w < e->words; w++) {
        const double weight = B[w * e->topics + topic];
        if (kept == BEST && !(weight > B[best[BEST - 1] * e->topics + topic])) continue;
        int64_t at = kept < BEST ? kept++ : BEST - 1;
        for (; at > 0 && B[best[at - 1] * e->topics + topic] < weight; at--) best[at] = best[at - 1];
        best[at] = w;
    }
    for (; kept < BEST; kept++) best[kept] = -1;
}

static int measure_coherence(struct topic_evaluation *e) {
    kiln_matrix *B = NULL;
    const kiln_matrix *X = kiln_data_X(e->data);
    double *values = malloc((size_t)(e->words * e->topics) * sizeof *values + 1);
    e->best = malloc((size_t)(e->topics * BEST) * sizeof *e->best);
    e->mass = malloc((size_t)e->topics * sizeof *e->mass);
    e->npmi = malloc((size_t)e->topics * sizeof *e->npmi);
    int code = values && e->best && e->mass && e->npmi
                   ? 0
                   : fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the topics");
    if (!code && (kiln_model_tensor(&B, e->run->device, KILN_F64, e->model, "B") != KILN_OK ||
                  kiln_matrix_get(values, B) != KILN_OK))
        code = fail_library(USING_MODEL);
    for (int64_t topic = 0; !code && topic < e->topics; topic++) find_best(e, values, topic);
    if (!code && (kiln_coherence(e->mass, KILN_COHERENCE_UMASS, e->topics, BEST, e->best, X) != KILN_OK ||
                  kiln_coherence(e->npmi, KILN_COHERENCE_NPMI, e->topics, BEST, e->best, X) != KILN_OK))
        code = fail_library(WORKING);
    kiln_matrix_free(B);
    free(values);
    return code;
}

/* ---------------------------------------------------------------------------------------------- telling */

static const char *word_name(const struct topic_evaluation *e, int64_t word, char *buffer) {
    const char *name = json_string_value(json_array_get(e->names, (size_t)word));
    if (name) return name;
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)word + 1);
    return buffer;
}

static void put_word(struct result *row, const void *of, int64_t at) {
    const struct topic_evaluation *e = of;
    char buffer[SHORTEST_ROOM];
    PUT(row, "", TEXT(result_hold(row, word_name(e, e->best[at], buffer), buffer)));
}

static void put_topic(struct result *row, const void *of, int64_t topic) {
    const struct topic_evaluation *e = of;
    char buffer[SHORTEST_ROOM], line[200] = "";
    int64_t count = 0;
    for (; count < BEST && e->best[topic * BEST + count] >= 0; count++) {
        const size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s", used ? " " : "",
                 word_name(e, e->best[topic * BEST + count], buffer));
    }
    PUT(row, "column", COUNT(topic), .label = "column", .width = 8);
    PUT(row, "u_mass", NUMBER(e->mass[topic]), .label = "UMass", .width = 11);
    PUT(row, "npmi", NUMBER(e->npmi[topic]), .label = "NPMI", .width = 11);
    PUT(row, NULL, TEXT(result_hold(row, line, line)), .label = "words", .before = "  ");
    PUT(row, "words", TABLE(count, put_word, e), .first = topic * BEST);
}

static double mean_of(const double *values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i];
    return sum / (double)count;
}

static int tell(const struct topic_evaluation *e) {
    struct result result;
    const kiln_matrix *X = kiln_data_X(e->data);
    result_begin(&result);
    run_put(&result, e->run, "kiln.topic_evaluation/1");
    PUT(&result, "algorithm", TEXT(kiln_model_text(e->model, "algorithm")));
    run_put_device(&result, e->run);
    run_put_shape(&result, X);
    PUT_LINE(&result, "evaluation of %s: %s", kiln_model_text(e->model, "algorithm"),
             text_plural(kiln_matrix_rows(X), "document"));
    result_open(&result, "metrics", false);
    PUT(&result, "perplexity", NUMBER(e->perplexity), .label = "perplexity");
    PUT(&result, "u_mass", NUMBER(mean_of(e->mass, e->topics)), .label = "UMass",
        .after = ", mean of the topics");
    PUT(&result, "npmi", NUMBER(mean_of(e->npmi, e->topics)), .label = "NPMI",
        .after = ", mean of the topics");
    result_close(&result);
    run_put_seconds(&result, e->run, true);
    PUT(&result, "topics", TABLE(e->topics, put_topic, e));
    const int code = run_tell(e->run, &result);
    result_free(&result);
    return code;
}

static int check_settings(const struct settings *given) {
    if (given->plot)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "kiln lda and gap draw topics",
                         "--plot draws nothing of a topic model's evaluation");
    if (given->weights || given->weights_file || given->offset || given->offset_file)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "", "--%s: every document of a topic model counts alike",
                         given->weights || given->weights_file ? "weights" : "offset");
    return 0;
}

int evaluate_topics(struct run *run, const kiln_model *model) {
    struct topic_evaluation e = {.run = run, .model = model};
    const char *names = kiln_model_text(model, "columns");
    kiln_type type;
    model_tensor_shape(model, "B", &type, &e.words, &e.topics);
    int code = check_settings(run->settings);
    if (!code) code = run_open_device(run, "cpu");
    if (!code) code = run_read(run, &e.data, run->arguments[1], type, model);
    if (!code) code = run_read_columns(run, e.data, model, NULL, NULL);
    if (!code && kiln_matrix_format(kiln_data_X(e.data)) != KILN_CSR)
        code = fail_with(KILN_ERR_DATA, READING, "Matrix Market, .npz, LIBSVM and bags of words are sparse",
                         "%s is a dense matrix, and no counts of words", run->arguments[1]);
    if (!code) e.names = names ? json_loads(names, 0, NULL) : NULL;
    const double start = clock_seconds();
    if (!code) code = measure_perplexity(&e);
    if (!code) code = measure_coherence(&e);
    run->seconds.measure = clock_seconds() - start;
    if (!code) code = tell(&e);
    json_decref(e.names);
    free(e.best);
    free(e.mass);
    free(e.npmi);
    kiln_data_free(e.data);
    return code;
}
