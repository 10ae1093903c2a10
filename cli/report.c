/* A run's report: in rows, and, of a run that did not end well, as warnings with what may help and was not
 * tried already. */
#include "report.h"

#include <math.h>
#include <string.h>

#include "checkpoint.h"
#include "commands.h"
#include "json.h"
#include "text.h"
#include "wording.h"

void report_put_end(struct result *result, const kiln_report *report, const struct report_words *words) {
    const bool asked = report->converged && isinf(report->tolerance); /* so many iterations, no tolerance */
    if (!asked)
        PUT(result, "converged", FLAG(report->converged), .label = "converged", .kept = true,
            .shown = report->converged && report->stopped_by == KILN_STOP_ROUNDING ? "to rounding" : NULL);
    PUT(result, "iterations", COUNT(report->iterations), .label = asked ? "done" : NULL,
        .before = asked ? NULL : ", ", .unit = "iteration", .kept = true);
    if (asked) PUT(result, "converged", FLAG(true), .before = ", ", .shown = "as asked", .kept = true);
    PUT(result, "stopped_by", TEXT(kiln_stop_name(report->stopped_by)), .kept = true);
    if (report->solver)
        PUT(result, "solver", TEXT(report->solver), .before = asked ? NULL : " of ",
            .kept = words->solver_kept);
    PUT(result, "residual", NUMBER(report->residual), .kept = true, .format = "%.1e",
        .before = result_words(result, "; %s ", words->change ? words->change : "change"));
    PUT(result, "tolerance", NUMBER(report->tolerance), .format = "%.1e",
        .before = asked ? NULL : ", tolerance ");
}

static void put_optimum(struct result *result, const kiln_report *report, const struct report_words *words) {
    const double setbacks = kiln_report_figure(report, "setbacks"),
                 eigenvalue = kiln_report_figure(report, "eigenvalue_error");
    const bool bound =
        !isnan(kiln_report_figure(report, "error_bound")); /* which stands in the objective's place */
    if (words->ranks && isfinite(eigenvalue))
        PUT(result, NULL, NUMBER(eigenvalue), .label = "optimum", .before = "the eigenvalue is at most ",
            .after = " off; the scores have no bound");
    else if (words->ranks && !bound)
        PUT(result, NULL, .kind = ROW_NONE, .label = "optimum", .shown = "no bound");
    if (words->ranks) return;
    PUT(result, "optimality_gap", NUMBER(report->optimality_gap), .kept = true, .label = "optimum",
        .before = report->certificate ? "at most " : NULL, .shown = report->certificate ? NULL : "no bound");
    PUT(result, "certificate", TEXT(report->certificate), .kept = true,
        .before = report->certificate ? " below that (" : NULL, .after = ")");
    if (isnan(setbacks)) return;
    PUT(result, "setbacks", COUNT((int64_t)setbacks), .kept = true,
        .before = report->certificate ? NULL : "; ", .unit = "iteration",
        .shown = setbacks > 0 ? NULL : "no iteration", .after = " went the wrong way");
}

void report_put_objective(struct result *result, const kiln_report *report,
                          const struct report_words *words) {
    PUT(result, words->objective, NUMBER(report->objective), .label = words->objective, .kept = true,
        .shown = isinf(report->objective) ? "no bound" : NULL);
    put_optimum(result, report, words);
}

static void fill_trace(struct result *line, const void *of, int64_t i) {
    const kiln_trace_row *row = &((const kiln_report *)of)->trace[i];
    PUT(line, "iteration", COUNT(row->iteration));
    PUT(line, "residual", NUMBER(row->residual));
    PUT(line, "objective", NUMBER(row->objective));
    PUT(line, "seconds", NUMBER(row->seconds));
    PUT(line, "inner", COUNT(row->inner));
    PUT(line, "radius", NUMBER(row->radius));
    if (row->test > 0) PUT(line, "test", NUMBER(row->test));
}

void report_put_trace(struct result *result, const kiln_report *report) {
    PUT(result, "trace", TABLE(report->trace_count, fill_trace, report), .hidden = true);
}

/* ---------------------------------------------------------------------------------------------- the end */

enum { ITEMS = 5 };

struct advice {
    char text[300];
    const char *items[ITEMS];
    int count;
};

static void add(struct advice *advice, const char *item) {
    if (item && advice->count < ITEMS) advice->items[advice->count++] = item;
}

/* "a, b, or c" */
static const char *join(struct advice *advice) {
    size_t used = 0;
    advice->text[0] = '\0';
    for (int i = 0; i < advice->count; i++) {
        const bool last = i > 0 && i == advice->count - 1;
        used += (size_t)snprintf(advice->text + used, sizeof advice->text - used, "%s%s%s",
                                 i > 0 && advice->count > 2 ? "," : "",
                                 last    ? " or "
                                 : i > 0 ? " "
                                         : "",
                                 advice->items[i]);
    }
    return advice->text;
}

static bool takes_penalty(const struct run *run) {
    return run->verb->kinds & (VERB_BIT(LINREG) | VERB_BIT(LOGREG) | VERB_BIT(GLM) | VERB_BIT(SVM));
}

/* Whatever makes rounding matter less. */
static void add_precision(struct advice *advice, const struct run *run, kiln_type type) {
    const bool linear = takes_penalty(run);
    add(advice, type == KILN_F32 ? "--type f64" : NULL);
    add(advice,
        linear && !algorithm_value(run->verb->name, run->settings, "standardize") ? "--standardize" : NULL);
}

static void add_penalty(struct advice *advice, const struct run *run) {
    if (!takes_penalty(run)) return;
    add(advice, run->settings->C.count ? "a smaller --C" : "a larger --l2");
}

int report_fail_diverged(const struct run *run, const kiln_report *report, kiln_type type) {
    struct advice advice = {.count = 0};
    add_precision(&advice, run, type);
    add(&advice, "data of smaller magnitude");
    return fail_with(KILN_ERR_DATA, READING, join(&advice),
                     "the solver met NaN or infinity after %s; no model was written",
                     text_plural(report->iterations, "iteration"));
}

static void warn_stalled(const struct run *run, const kiln_report *report, kiln_type type) {
    struct advice advice = {.count = 0};
    char reached[40];
    snprintf(reached, sizeof reached, "--tolerance %.0e",
             2 * report->residual); /* one digit, above what was reached */
    if (report->residual > report->tolerance && report->residual < 1e-3) add(&advice, reached);
    add_precision(&advice, run, type);
    add_penalty(&advice, run);
    if (report->residual <= report->tolerance)
        say_error("kiln: warning: not converged: the relative residual, %.1e, meets the tolerance, but the "
                  "objective is not known to be near its least value, and rounding of %s stops progress",
                  report->residual, type_name(type));
    else
        say_error("kiln: warning: not converged: rounding of %s stops progress at relative residual %.1e, "
                  "above the tolerance %.1e",
                  type_name(type), report->residual, report->tolerance);
    if (advice.count) say_error("hint: %s", join(&advice));
}

/* Iterations until the tolerance at the rate of the second half of the trace; 0 = no telling. */
static int64_t iterations_needed(const kiln_report *report) {
    if (report->trace_count < 8 || report->stopped_by != KILN_STOP_ITERATIONS) return 0;
    const kiln_trace_row *middle = &report->trace[report->trace_count / 2];
    const kiln_trace_row *last = &report->trace[report->trace_count - 1];
    double rate = log(middle->residual / last->residual) / (double)(last->iteration - middle->iteration);
    double more = log(last->residual / report->tolerance) / rate;
    if (!(rate > 0) || !(more > 0) || more > 1e7) return 0;
    return last->iteration + (int64_t)(1.2 * more) + 1;
}

static void warn_unfinished(const struct run *run, const kiln_report *report) {
    const int64_t needed = iterations_needed(report);
    struct advice advice = {.count = 0};
    char iterations[80] = "more --max-iterations";
    if (needed)
        snprintf(iterations, sizeof iterations, "--max-iterations %lld (a guess from the rate so far)",
                 (long long)needed);
    add(&advice, iterations);
    add(&advice, needed ? NULL : "a larger --tolerance");
    add_penalty(&advice, run);
    say_error("kiln: warning: not converged after %s: relative residual %.1e, tolerance %.1e%s",
              text_plural(report->iterations, "iteration"), report->residual, report->tolerance,
              report->residual <= report->tolerance
                  ? ", which is met, but the objective is not known to be near its least value"
                  : "");
    say_error("hint: %s", join(&advice));
}

/* Text columns whose levels are all features: with an intercept each of them makes one column depend on the
 * others. */
static int64_t whole_columns(const kiln_data *data) {
    json_t *schema = json_loads(kiln_data_schema(data), 0, NULL), *column;
    size_t i;
    int64_t count = 0;
    json_array_foreach(json_object_get(schema, "columns"), i, column) {
        const char *kind = json_string_value(json_object_get(column, "kind"));
        count += kind && strcmp(kind, "text") == 0 && !json_object_get(column, "reference");
    }
    json_decref(schema);
    return count;
}

/* Whether columns depend on each other by nothing but how text is encoded, which users do not hear of. */
static bool by_levels(const struct run *run, const kiln_report *report, const kiln_data *data) {
    const int64_t intercept = algorithm_value(run->verb->name, run->settings, "no_intercept") == 0;
    const double rank = kiln_report_figure(report, "rank"),
                 parameters = kiln_report_figure(report, "parameters");
    const double found = isnan(rank) ? parameters - (double)intercept : rank;
    const int64_t columns = kiln_matrix_cols(kiln_data_X(data));
    return (double)columns - found <= (double)(whole_columns(data) - !intercept);
}

/* The library counts columns from 0 and knows no names. */
static const char *naming(char *words, size_t room, const char *text, const kiln_data *data) {
    char named[512];
    long long j;
    int length = 0;
    if (sscanf(text, "column %lld%n", &j, &length) != 1 || !length) return wording(words, room, text);
    const char *name = data ? kiln_data_feature_name(data, j) : NULL;
    if (name)
        snprintf(named, sizeof named, "column '%s'%s", name, text + length);
    else
        snprintf(named, sizeof named, "column %lld%s", j + 1, text + length);
    char *counted = strstr(named, " (columns count from 0)");
    if (counted) *counted = '\0';
    return wording(words, room, named);
}

json_t *report_add_warning(json_t *array, const char *name, const char *text) {
    if (!*text) return array;
    json_t *object = json_object();
    json_put_text(object, "name", name);
    json_put_text(object, "text", text);
    json_add(array, object);
    return array;
}

json_t *report_warnings_json(const kiln_report *report, const kiln_data *data) {
    json_t *array = json_array();
    const char *text, *name;
    char words[512];
    for (int64_t i = 0; (text = kiln_report_warning(report, i, &name, NULL)); i++)
        report_add_warning(array, name, naming(words, sizeof words, text, data));
    return array;
}

/* Tells what the library says of the result. Returns whether that is why the run has not converged. */
static bool warn_of_result(const struct run *run, const kiln_report *report, const kiln_data *data) {
    const char *text, *name, *hint;
    char words[512];
    bool reason = false;
    for (int64_t i = 0; (text = kiln_report_warning(report, i, &name, &hint)); i++) {
        if (strcmp(name, "rank") == 0 && by_levels(run, report, data)) continue;
        reason |= strcmp(name, "out-of-reach") == 0 || strcmp(name, "batches") == 0 ||
                  strcmp(name, "patience") == 0;
        say_error("kiln: warning: %s", naming(words, sizeof words, text, data));
        if (*hint) say_error("hint: %s", wording(words, sizeof words, hint));
    }
    return reason;
}

/* A budget that was reached; with --map it is reached on purpose. */
static void warn_budget(const struct run *run) {
    kiln_device_statistics s = {0};
    if (run->settings->map || kiln_device_get_statistics(run->device, &s) != KILN_OK) return;
    if (s.panels)
        say_error(
            "kiln: warning: the memory of %s was too little: X does not fit, so that every pass moved it "
            "in panels",
            run->device_info.name);
    else if (s.evictions)
        say_error("kiln: warning: the memory of %s was too little: matrices made room for others %s",
                  run->device_info.name, text_plural(s.evictions, "time"));
    if (s.panels || s.evictions) say_error("hint: a larger --memory, or --type f32");
}

int report_end(const struct run *run, const kiln_report *report, const kiln_data *data) {
    const double parameters = kiln_report_figure(report, "parameters_at_most"); /* of a glm */
    if (!isnan(parameters))
        say("AIC is an upper bound, as if the model had %.0f parameters: how many columns depend on others "
            "is not clear",
            parameters);
    const bool told = warn_of_result(run, report, data);
    warn_budget(run);
    const char *output = run->settings->output;
    checkpoint_warn(run);
    if (report->stopped_by == KILN_STOP_CANCELLED) {
        say_error("kiln: interrupted after %s; %s%s", text_plural(report->iterations, "iteration"),
                  output ? "the model so far is in " : "there is no -o, so nothing was kept",
                  output ? output : "");
        checkpoint_tell(run);
        return EXIT_INTERRUPTED;
    }
    if (report->converged) return EXIT_DONE;
    if (report->stopped_by != KILN_STOP_STALLED)
        warn_unfinished(run, report);
    else if (!told)
        warn_stalled(run, report, kiln_matrix_type(kiln_data_X(data)));
    return run->settings->strict ? EXIT_NOT_CONVERGED : EXIT_DONE;
}
