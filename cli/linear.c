#define _GNU_SOURCE
/* kiln linreg, logreg, glm, svm: what their runs share, as a row for the driver of all runs, cli/solve.c. */
#include "linear.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "cv.h"
#include "files.h"
#include "progress.h"
#include "verbs.h"
#include "wording.h"

static const struct algorithm *const algorithms[] = {&algorithm_linreg, &algorithm_logreg, &algorithm_glm,
                                                     &algorithm_svm};

const struct algorithm *algorithm_named(const char *name) {
    for (size_t i = 0; name && i < sizeof algorithms / sizeof *algorithms; i++)
        if (strcmp(algorithms[i]->name, name) == 0) return algorithms[i];
    return NULL;
}

double linear_value(const struct training *job, const char *option) {
    return algorithm_value(job->algorithm->name, job->settings, option);
}

/* -------------------------------------------------------------------------------------- before it */

/* Combinations that the option table cannot rule out, and options that would do nothing. */
static int check_settings(const struct settings *settings, const struct algorithm *algorithm) {
    const bool ridge_path = settings->l2.count > 1 || settings->C.count > 1;
    const struct {
        bool wrong;
        const char *message, *hint;
    } rules[] = {
        {settings->l2.count && settings->C.count, "--l2 and --C together",
         "C is another way to say l2; give one of them"},
        {settings->C.count && !isfinite(algorithm->l2_of_C(fmin(settings->C.from, settings->C.to))),
         "--C 0, or nearly, is an endless penalty", "--l2 0 is no penalty at all"},
        {ridge_path && settings->l1.count > 1, "two paths, of --l1 and of another penalty",
         "give a path to one of them, a number to the other"},
        {settings->output && !settings->folds && cv_wanted(settings), "-o: a path has no one model to keep",
         "--cv 5 chooses a value, and -o then keeps its model"},
        {settings->plot && !cv_wanted(settings), "--plot: there is no curve to draw",
         "--cv 5, or a path as in --l2 1e-4:1e2:10"},
        {settings->select && !settings->folds, "--select: there is nothing to choose from",
         "--cv 5 compares the values of a path"},
        {settings->held_out && !settings->folds, "--held-out: no row is held out",
         "--cv 5 holds a fifth of them out at a time"},
        {(settings->groups || settings->groups_file) && !settings->folds, "--groups: there are no folds",
         "--cv 5 makes folds, each of whole groups"},
        {settings->warm_start && settings->folds, "--warm-start and --cv together",
         "each fold begins at zero"},
        {(settings->checkpoint || settings->resume) && cv_wanted(settings) && !settings->folds,
         "--checkpoint and --resume with a path", "--cv 5 along it can be kept, or the run of one value"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            return fail_with(KILN_ERR_ARGUMENT, WORKING, rules[i].hint, "%s", rules[i].message);
    return 0;
}

/* Without a path. */
static struct penalty penalty_of(const struct settings *settings, const struct algorithm *algorithm) {
    struct penalty penalty = {settings->l1.from, algorithm_standard(algorithm->name, "l2", KILN_F64)};
    if (settings->C.count)
        penalty.l2 = algorithm->l2_of_C(settings->C.from);
    else if (settings->l2.count)
        penalty.l2 = settings->l2.from;
    else if (penalty.l1 > 0)
        penalty.l2 = 0;
    return penalty;
}

static int begin(struct solving *s) {
    struct training *job = s->state;
    job->algorithm = algorithm_named(s->run->verb->name);
    job->settings = s->run->settings;
    job->report = &s->report;
    job->penalty = penalty_of(job->settings, job->algorithm);
    int code = check_settings(job->settings, job->algorithm);
    if (!code && job->algorithm->check) code = job->algorithm->check(job);
    if (job->loss.kind == KILN_LOSS_GLM) s->run->target_range = &job->range;
    return code;
}

static int check(struct solving *s) {
    struct training *job = s->state;
    const kiln_matrix *X = solving_X(s);
    const char *path = s->run->arguments[0];
    job->data = s->data;
    job->warm = s->warm;
    if (!kiln_data_y(job->data))
        return fail_with(KILN_ERR_DATA, READING,
                         kiln_data_format(job->data) == KILN_FILE_CSV
                             ? "--target COLUMN names the column to predict; kiln info lists the columns"
                         : kiln_matrix_format(X) == KILN_DENSE
                             ? "--target -1 takes the last column, --target-file FILE a file of their own"
                             : "--target-file FILE reads the targets from a file of their own",
                         "%s has no targets to learn from", path);
    if (kiln_matrix_rows(X) == 0)
        return fail_with(KILN_ERR_DATA, READING, "", "%s has no rows to learn from", path);
    return job->algorithm->inspect ? job->algorithm->inspect(job) : 0;
}

/* Softmax takes a column of y for each class in a pass, one against the rest passes of its own. */
static kiln_work work(const struct solving *s) {
    const struct run *run = s->run;
    const struct training *job = s->state;
    const int64_t passes = choose_passes(run->verb, run->settings, kiln_matrix_cols(solving_X(s)));
    const int64_t k = job->classes.count == 2 ? 1 : job->classes.count;
    if (!k) return choose_work(run->verb, s->data, kiln_matrix_cols(kiln_data_y(s->data)), passes);
    return job->algorithm == &algorithm_svm ? choose_work(run->verb, s->data, 1, passes * k)
                                            : choose_work(run->verb, s->data, k, passes);
}

/* Columns of W that mean other classes than the data's would be a start from somewhere else. */
static int check_classes(struct run *run, const struct training *job) {
    struct classes theirs = {0};
    char own[SHORTEST_ROOM], other[SHORTEST_ROOM];
    int code = classes_of_model(run, &theirs, job->warm);
    if (!code && theirs.count != job->classes.count)
        code =
            fail_with(KILN_ERR_MODEL, USING_MODEL, "train it from data with the same classes",
                      "--warm-start %s: it tells %s apart, these data have %lld", run->settings->warm_start,
                      text_plural(theirs.count, "class"), (long long)job->classes.count);
    for (int64_t i = 0; !code && i < theirs.count; i++) {
        const char *a = classes_name(&theirs, i, other), *b = classes_name(&job->classes, i, own);
        if (strcmp(a, b) != 0)
            code = fail_with(KILN_ERR_MODEL, USING_MODEL, "train it from data with the same classes",
                             "--warm-start %s: its class %lld is '%s', that of these data '%s'",
                             run->settings->warm_start, (long long)i + 1, a, b);
    }
    classes_free(&theirs);
    return code;
}

/* Starts the coefficients from those of --warm-start. */
static int warm_start(struct run *run, struct training *job, int64_t n, int64_t k) {
    const char *path = run->settings->warm_start;
    kiln_type type, own = kiln_matrix_type(kiln_data_X(job->data));
    int64_t rows = 0, cols = 0;
    if (!model_tensor_shape(job->warm, "W", &type, &rows, &cols))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "a model of linreg, logreg, glm or svm has some",
                         "--warm-start %s: the model has no coefficients to start from", path);
    if (kiln_model_check_start(job->warm, &job->loss) != KILN_OK)
        return kiln_last_error()->status == KILN_ERR_NOMEM
                   ? fail_library(WORKING)
                   : fail_with(KILN_ERR_MODEL, USING_MODEL, kiln_last_error()->hint, "--warm-start %s: %s",
                               path, kiln_last_error()->message);
    const int code = job->classes.count ? check_classes(run, job) : 0;
    if (code) return code;
    if (rows != n || cols != k)
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "train it from data with the same columns and targets",
                         "--warm-start %s: it has coefficients of %lld x %lld, these data want %lld x %lld",
                         path, (long long)rows, (long long)cols, (long long)n, (long long)k);
    if (kiln_model_tensor(&job->W, run->device, own, job->warm, "W") != KILN_OK)
        return fail_library(USING_MODEL);
    if (linear_value(job, "no_intercept") || !model_tensor_shape(job->warm, "b", &type, &rows, &cols))
        return 0;
    return kiln_model_tensor(&job->b, run->device, own, job->warm, "b") == KILN_OK
               ? 0
               : fail_library(USING_MODEL);
}

int linear_allocate(struct run *run, struct training *job, int64_t columns) {
    const kiln_matrix *X = kiln_data_X(job->data);
    const int64_t n = kiln_matrix_cols(X);
    int code = job->warm ? warm_start(run, job, n, columns) : 0;
    if (code) return code;
    if (!job->W && kiln_matrix_dense(&job->W, run->device, kiln_matrix_type(X), n, columns, NULL) != KILN_OK)
        return fail_library(WORKING);
    if (!linear_value(job, "no_intercept") && !job->b &&
        kiln_matrix_dense(&job->b, run->device, kiln_matrix_type(X), 1, columns, NULL) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}

/* ----------------------------------------------------------------------------------------- solving */

static void set_penalty(char *options, const struct training *job, const char *name, double value) {
    const kiln_option *option = algorithm_option(job->algorithm->name, name);
    if (!option) return;
    memcpy(options + option->offset, &value, sizeof value);
    kiln_option_give(job->algorithm->name, options, name);
}

int linear_choose_solver(kiln_solver *choice, const struct training *job, const kiln_matrix *X) {
    const struct settings *settings = job->settings;
    const int64_t k = job->classes.count ? job->classes.count : kiln_matrix_cols(kiln_data_y(job->data));
    _Alignas(max_align_t) char options[sizeof settings->algorithm.bytes];
    memcpy(options, settings->algorithm.bytes, sizeof options);
    set_penalty(options, job, "l2", job->penalty.l2);
    set_penalty(options, job, "l1", job->penalty.l1);
    *choice = (kiln_solver){0};
    return kiln_solver_choose(choice, job->algorithm->name, options, X, k) == KILN_OK ? 0
                                                                                      : fail_library(WORKING);
}

/* The library counts columns from 0 and knows no names. */
int linear_fail(const struct training *job) {
    const kiln_error *error = kiln_last_error();
    long long j;
    int length = 0;
    if (error->status != KILN_ERR_DATA || sscanf(error->message, "column %lld%n", &j, &length) != 1 ||
        !length)
        return fail_library(WORKING);
    const char *name = kiln_data_feature_name(job->data, j), *what = error->message + length;
    char hint[256], words[256];
    snprintf(hint, sizeof hint, "%s", error->hint);
    char *counted = strstr(hint, " (columns count from 0)");
    if (counted)
        snprintf(counted, sizeof hint - (size_t)(counted - hint), "%s",
                 name ? "" : " (columns count from 1)");
    wording(words, sizeof words, hint);
    return name ? fail_with(KILN_ERR_DATA, WORKING, words, "column '%s'%s", name, what)
                : fail_with(KILN_ERR_DATA, WORKING, words, "column %lld%s", j + 1, what);
}

/* The metrics of such models chose the penalty. */
static void warn_unconverged(struct solving *s, const struct validation *validation) {
    cv_list_unconverged(s->unconverged, sizeof s->unconverged, validation);
    if (!*s->unconverged) return;
    say_error("kiln: warning: %s", s->unconverged);
    say_error("hint: more --max-iterations%s, a larger --tolerance, or stronger penalties",
              validation->cut && s->run->settings->checkpoint
                  ? " (with --resume and the checkpoint's name from the first such fold on)"
                  : "");
}

/* Tries the values of a path or the folds: the best value is then fitted to all rows, whose checkpoints
 * hold what came of the folds. A path ends with that. */
static int validate(struct solving *s) {
    struct run *run = s->run;
    struct training *job = s->state;
    struct validation *validation = job->validation = calloc(1, sizeof *validation);
    if (!validation) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the folds");
    int code = cv_run(run, job, validation);
    s->done = validation->folds == 0;
    if (!code && run->settings->plot) code = cv_plot(run->settings->plot, validation, job);
    if (!code && s->done) code = cv_print_path(run, job, validation);
    if (code) return code;
    if (!s->done) {
        job->scores = cv_json(job, validation);
        s->noted = true;
        progress_end();
        if (!talk_json()) cv_print(run_tables(run), job->scores);
    }
    warn_unconverged(s, validation);
    return s->done && *s->unconverged && run->settings->strict ? EXIT_NOT_CONVERGED : 0;
}

static int prepare(struct solving *s) {
    struct run *run = s->run;
    struct training *job = s->state;
    int code = run_read_columns(run, s->data, NULL, &job->weights, &job->offset);
    if (!code) code = run_read_groups(run, s->data, &job->groups, &job->group_count);
    if (!code) code = job->algorithm->prepare(run, job);
    return !code && cv_wanted(run->settings) ? validate(s) : code;
}

/* The model that is kept, on all rows. */
static kiln_status solve(struct solving *s, const kiln_control *control) {
    const struct training *job = s->state;
    const struct problem problem = {
        .penalty = job->penalty, .weights = job->weights, .warm = job->warm != NULL, .control = *control};
    return job->algorithm->solve(job, &problem, &s->report);
}

static int fail(const struct solving *s) {
    return linear_fail(s->state);
}

static void free_training(struct solving *s) {
    struct training *job = s->state;
    kiln_matrix *const all[] = {job->W, job->b, job->errors, job->kept_errors, job->weights, job->offset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    coefficients_free(&job->table);
    metrics_free(&job->metrics);
    classes_free(&job->classes);
    free(job->class_weights);
    free(job->groups);
    json_decref(job->scores);
    if (job->validation) cv_free(job->validation);
    free(job->validation);
}

const struct solver linear_solver = {
    .schema = "kiln.result/1",
    .words = {.objective = "objective", .change = "relative residual", .solver_kept = true},
    .bytes = sizeof(struct training),
    .begin = begin,
    .check = check,
    .work = work,
    .prepare = prepare,
    .solve = solve,
    .fail = fail,
    .finish = linear_finish,
    .keep = linear_keep,
    .head = linear_head,
    .metrics = linear_metrics,
    .options = linear_options,
    .put = linear_put,
    .free = free_training,
    .any_start = true};
/* ------------------------------------------------------------------------------ the classes of a target */

static int copy_names(struct training *job) {
    struct classes *classes = &job->classes;
    if (!kiln_data_class_name(job->data, 0, 0)) return 0;
    classes->names = calloc((size_t)classes->count, sizeof *classes->names);
    bool failed = !classes->names;
    for (int64_t i = 0; !failed && i < classes->count; i++) {
        const char *name = kiln_data_class_name(job->data, 0, (int64_t)classes->values[i]);
        if (!name)
            return fail_with(KILN_ERR_DATA, WORKING,
                             "leave these rows out, or read the table without a model",
                             "some rows have a class that the model which encoded the file did not know");
        classes->names[i] = name ? strdup(name) : NULL;
        failed = !classes->names[i];
    }
    return failed ? fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the classes' names") : 0;
}

/* Returns whether the labels are numbers, though they may be kept as text: 1.50, 2.00, ... */
static bool are_numbers(const kiln_data *data) {
    const char *name;
    for (int64_t i = 0; (name = kiln_data_class_name(data, 0, i)); i++) {
        char *end;
        strtod(name, &end);
        if (end == name || *end) return false;
    }
    return true;
}

/* A target that is numbers may have no more classes: a coefficient a column and class takes its time. */
static int64_t classes_most(const struct settings *settings) {
    return settings->max_classes ? settings->max_classes : CLASSES_MOST;
}

int linear_find_classes(struct training *job) {
    const kiln_matrix *y = kiln_data_y(job->data);
    double *values = NULL;
    int64_t count;
    if (kiln_matrix_cols(y) != 1)
        return fail_with(KILN_ERR_DATA, READING, "name one target column",
                         "%s tells the classes of one target apart, the data have %lld targets",
                         job->algorithm->name, (long long)kiln_matrix_cols(y));
    if (kiln_classes(&values, &count, y, 0) != KILN_OK) return fail_library(READING);
    job->classes.values = malloc((size_t)count * sizeof *values);
    if (job->classes.values) memcpy(job->classes.values, values, (size_t)count * sizeof *values);
    job->classes.count = job->classes.values ? count : 0;
    kiln_free(values);
    if (!job->classes.values)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld classes", (long long)count);
    if (count > classes_most(job->settings) && are_numbers(job->data))
        return fail_with(KILN_ERR_DATA, READING,
                         "kiln linreg, glm and svm --regression predict numbers; "
                         "--max-classes says that so many classes are meant",
                         "the target has %s different numbers: is it a measurement, not a class?",
                         text_count(count));
    if (count < 2)
        return fail_with(KILN_ERR_DATA, READING, "",
                         "all rows are of one class: there is nothing to tell apart");
    return copy_names(job);
}

int linear_prepare_classifier(struct run *run, struct training *job) {
    int code = 0;
    const char *weights = job->settings->class_weight;
    if (weights) code = classes_weights(&job->class_weights, &job->balanced, &job->classes, weights);
    if (!code) code = linear_allocate(run, job, job->classes.count == 2 ? 1 : job->classes.count);
    return code;
}
