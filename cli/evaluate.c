/* kiln evaluate: how good a model is on data whose targets are known: metrics, each class by itself, the
 * table of true and predicted classes, how scores rank rows and whether predictions can be taken at their
 * word. Predictions are those of kiln predict. */
#include "evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "files.h"
#include "progress.h"
#include "verbs.h"

/* --------------------------------------------------------------------------------------- the rows */

static bool has_probabilities(const struct prediction *p) {
    return p->loss.kind == KILN_LOSS_LOGISTIC || p->loss.kind == KILN_LOSS_SOFTMAX;
}

/* A binomial glm is a classifier of 0 and 1 where its targets are nothing else. */
static bool has_outcomes(const struct prediction *p) {
    return !p->classes.count && !isnan(metrics_get(&p->metrics, "auc"));
}

/* The number of the class or target that the j-th judgement is of: of two classes the second has the only
 * one. */
static int64_t subject(const struct evaluation *e, int64_t j) {
    return e->p.classes.count == 2 ? 1 : j;
}

/* --------------------------------------------------------------------------------------- judgement */

static void name_it(struct judgement *judged, const struct evaluation *e, int64_t class) {
    char number[SHORTEST_ROOM];
    const char *name = e->p.classes.count ? classes_name(&e->p.classes, class, number)
                                          : kiln_data_target_name(e->p.data, class);
    if (name)
        snprintf(judged->name, sizeof judged->name, "%s", name);
    else
        snprintf(judged->name, sizeof judged->name, "target %lld", (long long)class + 1);
}

static int judge(struct evaluation *e) {
    const struct prediction *p = &e->p;
    e->classes = p->classes.count || has_outcomes(p);
    e->probable = !p->classes.count || has_probabilities(p);
    e->count = p->classes.count == 2 ? 1 : p->classes.count ? p->classes.count : p->columns;
    if (e->count > JUDGED_MOST) e->count = 0;
    e->judged = calloc((size_t)e->count + 1, sizeof *e->judged);
    if (!e->judged) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the curves");
    for (int64_t j = 0; j < e->count; j++) {
        struct judgement *judged = &e->judged[j];
        const int64_t class = subject(e, j);
        name_it(judged, e, class);
        judged->e = e;
        judged->roc = kiln_metrics_roc(p->metrics.made, class);
        judged->bins = kiln_metrics_calibration(p->metrics.made, class, &judged->bin_count);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------- telling */

/* "-" where there is nothing to say. */
static const char *none(double number) {
    return isnan(number) ? "-" : NULL;
}

static void put_class(struct result *row, const void *of, int64_t c) {
    static const char *const keys[] = {"precision", "recall", "f1", "auc"};
    static const char *const titles[] = {"precision", "recall", "F1", "AUC"};
    const struct evaluation *e = of;
    char buffer[SHORTEST_ROOM];
    const char *name = classes_name(&e->p.classes, c, buffer);
    PUT(row, "class", TEXT(result_hold(row, name, buffer)), .label = "class           ", .width = 16);
    PUT(row, "weight", NUMBER(kiln_metrics_part(e->p.metrics.made, c, "weight")),
        .label = e->p.weights ? "weight" : "rows", .width = 10);
    for (int i = 0; i < 3 + (e->count > 1); i++) {
        const double part = kiln_metrics_part(e->p.metrics.made, c, keys[i]);
        PUT(row, i < 3 ? keys[i] : NULL, NUMBER(part), .label = titles[i], .shown = none(part), .width = 10);
    }
}

static void put_number(struct result *row, const void *of, int64_t i) {
    PUT(row, "", NUMBER(((const double *)of)[i]));
}

static void put_roc(struct result *row, const void *of, int64_t j) {
    const struct judgement *judged = &((const struct evaluation *)of)->judged[j];
    PUT(row, "name", TEXT(judged->name));
    PUT(row, "auc", NUMBER(judged->roc->area));
    PUT(row, "false_positive_rate", TABLE(judged->roc->count, put_number, judged->roc->false_share));
    PUT(row, "true_positive_rate", TABLE(judged->roc->count, put_number, judged->roc->true_share));
}

static void put_bin(struct result *row, const void *of, int64_t b) {
    static const char *const names[] = {"residual_10", "residual_50", "residual_90"};
    const struct judgement *judged = of;
    const struct evaluation *e = judged->e;
    const kiln_bin *bin = &judged->bins[b];
    PUT(row, "least", NUMBER(bin->least));
    PUT(row, "most", NUMBER(bin->most));
    PUT(row, "predicted", NUMBER(bin->predicted), .label = "predicted", .before = "  ", .width = 13);
    PUT(row, "observed", NUMBER(bin->observed), .label = "observed", .width = 13);
    PUT(row, "standard_error", NUMBER(bin->error), .label = "std. error", .shown = none(bin->error),
        .width = 13);
    PUT(row, "weight", NUMBER(bin->weight), .label = e->p.weights ? "weight" : "rows", .width = 10);
    for (int q = 0; q < 3 && !e->classes; q++)
        PUT(row, names[q], NUMBER(bin->residuals[q]), .format = "%.4g",
            .label = q == 0 ? "residuals: 10 %, 50 %, 90 % below" : "", .before = q == 0 ? "  " : ", ");
}

static void put_calibration(struct result *row, const void *of, int64_t j) {
    const struct judgement *judged = &((const struct evaluation *)of)->judged[j];
    PUT(row, "name", TEXT(judged->name));
    PUT(row, "bins", TABLE(judged->bin_count, put_bin, judged));
}

/* People see the tables that are not large: all are in JSON. */
static int tell(struct run *run, const struct evaluation *e) {
    const struct prediction *p = &e->p;
    const int64_t classes = p->metrics.classes;
    const char *algorithm = kiln_model_text(p->model, "algorithm");
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.evaluation/1");
    PUT(&result, "algorithm", TEXT(algorithm));
    run_put_device(&result, run);
    choose_put(&result, run);
    run_put_shape(&result, kiln_data_X(p->data));
    PUT(&result, "targets", COUNT(p->classes.count ? 1 : p->columns));
    PUT(&result, "plot", TEXT(run->settings->plot));
    PUT_LINE(&result, "evaluation of %s: %s", algorithm, text_plural(p->rows, "row"));
    metrics_put(&result, &p->metrics);
    run_put_seconds(&result, run, true);
    PUT(&result, "classes", TABLE(classes, classes ? put_class : NULL, e),
        .hidden = classes > CONFUSION_MOST);
    metrics_put_confusion(&result, &p->metrics);
    PUT(&result, "roc", TABLE(e->count, e->classes ? put_roc : NULL, e), .hidden = true);
    PUT(&result, "calibration", TABLE(e->count, e->probable ? put_calibration : NULL, e), .hidden = true);
    if (e->probable && e->count == 1)
        PUT(&result, NULL, TABLE(e->judged->bin_count, put_bin, e->judged),
            .head = result_words(&result, "calibration of %s", e->judged->name));
    const int code = run_tell(run, &result);
    result_free(&result);
    return code;
}

/* ------------------------------------------------------------------------------------------- verb */

static int check(const struct run *run, const struct prediction *p) {
    if (p->metrics.made) return 0;
    const bool csv = kiln_data_format(p->data) == KILN_FILE_CSV;
    return fail_with(KILN_ERR_DATA, READING,
                     csv ? "--target COLUMN names the column to compare with" : "--target-file FILE has them",
                     "%s has no targets to compare predictions with%s", run->arguments[1],
                     p->rows ? "" : ", and no rows");
}

static int draw(const struct run *run, const struct evaluation *e) {
    char title[160];
    if (!run->settings->plot) return 0;
    if (!e->count)
        return fail_with(KILN_ERR_UNSUPPORTED, WORKING, "--json has the metrics and the table of all classes",
                         "--plot: a picture has %d curves at most, the model has %s", JUDGED_MOST,
                         text_plural(e->p.classes.count ? e->p.classes.count : e->p.columns,
                                     e->p.classes.count ? "class" : "target"));
    snprintf(title, sizeof title, "%s: %s", kiln_model_text(e->p.model, "algorithm"),
             text_plural(e->p.rows, "row"));
    return evaluate_plot(run->settings->plot, e, title);
}

static bool has_topics(const kiln_model *model) {
    const char *algorithm = kiln_model_text(model, "algorithm");
    return strcmp(algorithm, "lda") == 0 || strcmp(algorithm, "gap") == 0;
}

int verb_evaluate(struct run *run) {
    struct evaluation e = {.p.evaluated = true};
    int code = run_check_outputs(run);
    if (!code) code = run_load_model(&e.p.model, run->arguments[0]);
    if (!code && has_topics(e.p.model)) {
        code = evaluate_topics(run, e.p.model);
        prediction_free(&e.p);
        return code;
    }
    if (!code) code = prediction_make(run, &e.p);
    progress_end();
    if (!code) code = check(run, &e.p);
    if (!code) code = judge(&e);
    if (!code) prediction_warn(&e.p);
    if (!code) code = draw(run, &e);
    if (!code) code = tell(run, &e);
    free(e.judged);
    prediction_free(&e.p);
    return code;
}
