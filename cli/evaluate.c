/* kiln evaluate: how good a model is on data whose targets are known: metrics, each class by itself, the table of true and predicted
 * classes, how scores rank rows and whether predictions can be taken at their word. Predictions are those of kiln predict. */
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

/* The number of the class or target that the j-th judgement is of: of two classes the second has the only one. */
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
        judged->roc = kiln_metrics_roc(p->metrics.made, class);
        judged->bins = kiln_metrics_calibration(p->metrics.made, class, &judged->bin_count);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------- telling */

static json_t *classes_json(const struct evaluation *e) {
    const struct prediction *p = &e->p;
    char number[SHORTEST_ROOM];
    if (!p->metrics.classes) return json_null();
    json_t *array = json_array();
    for (int64_t c = 0; c < p->metrics.classes; c++) {
        static const char *const keys[] = {"weight", "precision", "recall", "f1"};
        json_t *object = json_object();
        json_put_text(object, "class", classes_name(&p->classes, c, number));
        for (int i = 0; i < 4; i++)
            json_put_number(object, keys[i], kiln_metrics_part(p->metrics.made, c, keys[i]));
        json_add(array, object);
    }
    return array;
}

static json_t *roc_json(const struct evaluation *e) {
    if (!e->classes) return json_null();
    json_t *array = json_array();
    for (int64_t j = 0; j < e->count; j++) {
        const kiln_roc *roc = e->judged[j].roc;
        json_t *object = json_object(), *x = json_array(), *y = json_array();
        for (int64_t i = 0; i < roc->count; i++) {
            json_add(x, json_real(roc->false_share[i]));
            json_add(y, json_real(roc->true_share[i]));
        }
        json_put_text(object, "name", e->judged[j].name);
        json_put_number(object, "auc", roc->area);
        json_put(object, "false_positive_rate", x);
        json_put(object, "true_positive_rate", y);
        json_add(array, object);
    }
    return array;
}

static json_t *bin_json(const struct evaluation *e, const kiln_bin *bin) {
    static const char *const names[] = {"residual_10", "residual_50", "residual_90"};
    json_t *object = json_object();
    json_put_number(object, "least", bin->least);
    json_put_number(object, "most", bin->most);
    json_put_number(object, "weight", bin->weight);
    json_put_number(object, "predicted", bin->predicted);
    json_put_number(object, "observed", bin->observed);
    json_put_number(object, "standard_error", bin->error);
    for (int q = 0; q < 3 && !e->classes; q++) json_put_number(object, names[q], bin->residuals[q]);
    return object;
}

static json_t *calibration_json(const struct evaluation *e) {
    if (!e->probable) return json_null();
    json_t *array = json_array();
    for (int64_t j = 0; j < e->count; j++) {
        json_t *object = json_object(), *bins = json_array();
        for (int b = 0; b < e->judged[j].bin_count; b++) json_add(bins, bin_json(e, &e->judged[j].bins[b]));
        json_put_text(object, "name", e->judged[j].name);
        json_put(object, "bins", bins);
        json_add(array, object);
    }
    return array;
}

static int tell_json(struct run *run, const struct evaluation *e) {
    const struct prediction *p = &e->p;
    json_t *object = run_json(run, "kiln.evaluation/1");
    json_put_text(object, "algorithm", kiln_model_text(p->model, "algorithm"));
    run_json_device(run, object);
    choose_json(run, object);
    run_json_shape(object, kiln_data_X(p->data));
    json_put_count(object, "targets", p->classes.count ? 1 : p->columns);
    json_put(object, "metrics", metrics_json(&p->metrics, &p->classes));
    json_put(object, "classes", classes_json(e));
    json_put(object, "roc", roc_json(e));
    json_put(object, "calibration", calibration_json(e));
    json_put_text(object, "plot", run->settings->plot);
    run_json_seconds(run, object);
    return json_print(object);
}

/* "-" where there is nothing to say. */
static const char *number_or_none(double number) {
    return isnan(number) ? "-" : text_number(number);
}

static void print_classes(FILE *file, const struct evaluation *e) {
    const struct metrics *metrics = &e->p.metrics;
    char number[SHORTEST_ROOM];
    if (!metrics->classes || metrics->classes > CONFUSION_MOST) return;
    fprintf(file, "class            %10s %10s %10s %10s%s\n", e->p.weights ? "weight" : "rows", "precision",
            "recall", "F1", e->count > 1 ? "        AUC" : "");
    for (int64_t c = 0; c < metrics->classes; c++) {
        fprintf(file, "%s %10s", text_cell(classes_name(&e->p.classes, c, number), 16),
                text_number(kiln_metrics_part(metrics->made, c, "weight")));
        static const char *const keys[] = {"precision", "recall", "f1", "auc"};
        for (int i = 0; i < 3 + (e->count > 1); i++)
            fprintf(file, " %10s", number_or_none(kiln_metrics_part(metrics->made, c, keys[i])));
        fputc('\n', file);
    }
}

/* Of a single class or target: several are in the picture and in --json. */
static void print_bins(FILE *file, const struct evaluation *e) {
    if (e->count != 1 || !e->probable) return;
    const struct judgement *judged = &e->judged[0];
    fputs("calibration of ", file);
    text_put(file, judged->name, 0);
    fprintf(file, "\n  %13s %13s %13s %10s%s\n", "predicted", "observed", "std. error",
            e->p.weights ? "weight" : "rows", e->classes ? "" : "  residuals: 10 %, 50 %, 90 % below");
    for (int b = 0; b < judged->bin_count; b++) {
        const kiln_bin *bin = &judged->bins[b];
        fprintf(file, "  %13.6g %13.6g %13s %10s", bin->predicted, bin->observed, number_or_none(bin->error),
                text_number(bin->weight));
        if (!e->classes)
            fprintf(file, "  %.4g, %.4g, %.4g", bin->residuals[0], bin->residuals[1], bin->residuals[2]);
        fputc('\n', file);
    }
}

static void tell_people(struct run *run, const struct evaluation *e) {
    FILE *file = run_tables(run);
    const struct prediction *p = &e->p;
    fprintf(file, "evaluation of %s: %s\n", kiln_model_text(p->model, "algorithm"),
            text_plural(p->rows, "row"));
    metrics_print(file, &p->metrics, 2);
    run_print_seconds(file, run);
    print_classes(file, e);
    metrics_print_confusion(file, &p->metrics, &p->classes);
    print_bins(file, e);
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

int verb_evaluate(struct run *run) {
    struct evaluation e = {.p.evaluated = true};
    int code = run_check_outputs(run);
    if (!code) code = prediction_make(run, &e.p);
    progress_end();
    if (!code) code = check(run, &e.p);
    if (!code) code = judge(&e);
    if (!code) prediction_warn(&e.p);
    if (!code) code = draw(run, &e);
    if (!code && talk_json())
        code = tell_json(run, &e);
    else if (!code)
        tell_people(run, &e);
    free(e.judged);
    prediction_free(&e.p);
    return code;
}
