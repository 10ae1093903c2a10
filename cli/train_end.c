/* How a run ended, where it did not end well, and what could help of what was not done already. */
#include <math.h>
#include <string.h>

#include "checkpoint.h"
#include "train.h"

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

int train_fail_diverged(const struct run *run, const kiln_report *report, kiln_type type) {
    struct advice advice = {.count = 0};
    add_precision(&advice, run, type);
    add(&advice, "data of smaller magnitude");
    return fail_with(KILN_ERR_DATA, READING, join(&advice),
                     "the solver met NaN or infinity after %s; no model was written",
                     text_plural(report->iterations, "iteration"));
}

/* A link whose means do not come near the target: the gradient vanishes where nothing is fitted. */
static bool warn_out_of_reach(const struct run *run, const kiln_report *report) {
    if (!(run->verb->kinds & VERB_BIT(GLM)) || report->residual < 1) return false;
    const int link = (int)algorithm_value("glm", run->settings, "link");
    say_error("kiln: warning: not converged: the means that --link %s can give do not come near the target, "
              "so that no "
              "coefficients are better than others",
              link ? kiln_link_name((kiln_link)link) : "of the family");
    say_error("hint: --link identity takes any number, or another --family");
    return true;
}

static void warn_stalled(const struct run *run, const kiln_report *report, kiln_type type) {
    struct advice advice = {.count = 0};
    char reached[40];
    snprintf(reached, sizeof reached, "--tolerance %.0e",
             2 * report->residual); /* one digit, above what was reached */
    if (report->residual < 1e-3) add(&advice, reached);
    add_precision(&advice, run, type);
    add_penalty(&advice, run);
    say_error(
        "kiln: warning: not converged: rounding of %s stops progress at relative residual %.1e, above the "
        "tolerance %.1e",
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
    say_error("kiln: warning: not converged after %s: relative residual %.1e, tolerance %.1e",
              text_plural(report->iterations, "iteration"), report->residual, report->tolerance);
    say_error("hint: %s", join(&advice));
}

/* Every row is certain of its class; of a glm's proportions between 0 and 1 none can be. */
static bool separated(const struct training *job) {
    switch (job->loss.kind) {
    case KILN_LOSS_LOGISTIC:
    case KILN_LOSS_SOFTMAX: return metrics_get(&job->metrics, "accuracy") >= 1;
    case KILN_LOSS_GLM:
        return job->loss.family == KILN_BINOMIAL &&
               job->report.objective < 1e-6 * (double)kiln_matrix_rows(kiln_data_y(job->data));
    case KILN_LOSS_SQUARED_HINGE:
        return job->report.objective < 1e-6 * (double)kiln_matrix_rows(kiln_data_y(job->data));
    default: return false;
    }
}

static bool of_counts(const struct training *job) {
    const kiln_family family = job->loss.family;
    return job->loss.kind == KILN_LOSS_GLM &&
           (family == KILN_POISSON || family == KILN_NEGATIVE_BINOMIAL || family == KILN_TWEEDIE);
}

/* Counts whose best mean is 0, which a logarithm does not reach. */
static bool all_zero(const struct training *job) {
    double largest = 1;
    if (!of_counts(job)) return false;
    if (job->loss.link != KILN_LINK_LOG && job->loss.link != KILN_LINK_DEFAULT) return false;
    return kiln_norm(&largest, kiln_data_y(job->data), KILN_NORM_MAX) == KILN_OK && largest == 0;
}

/* Counts that are met as they are, though a mean has no logarithm where they are 0. */
static bool met(const struct training *job) {
    return of_counts(job) &&
           metrics_get(&job->metrics, "deviance") < 1e-6 * kiln_report_figure(&job->report, "null_deviance");
}

/* Classes that a plane separates have no best coefficients without a penalty: the larger the better. Nor have counts that are met. */
void train_warn_separated(const struct training *job) {
    if (all_zero(job)) {
        say_error(
            "kiln: warning: all targets are 0: the best mean is 0, which no coefficients give, and these are "
            "where the tolerance ended the way there");
        return;
    }
    if (job->penalty.l2 > 0 || job->penalty.l1 > 0) return;
    if (met(job)) {
        say_error(
            "kiln: warning: the targets can be met exactly: where some are 0, coefficients grow without "
            "bound without a penalty, and these are where the tolerance ended that");
        say_error("hint: --l2");
        return;
    }
    if (!separated(job)) return;
    if (job->loss.kind == KILN_LOSS_SQUARED_HINGE) {
        say_error(
            "kiln: warning: the classes can be separated with every margin kept: without a penalty many "
            "coefficients do that, and these are some of them");
        say_error("hint: --l2");
        return;
    }
    say_error("kiln: warning: the classes can be separated: without a penalty the coefficients grow without "
              "bound, and these are where the tolerance ended that");
    say_error("hint: --l2 or --l1");
}

int train_end(const struct run *run, const kiln_report *report, kiln_type type) {
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
    else if (!warn_out_of_reach(run, report))
        warn_stalled(run, report, type);
    return run->settings->strict ? EXIT_NOT_CONVERGED : EXIT_DONE;
}
