/* This file says whether an optimum is at infinity: a plane separates the classes, or some of their rows
 * while the others lie on it, or a group of rows has counts of nothing but 0. What a fit without a penalty
 * says of it: nothing, where it is finite; a warning, where it is not; or that this was not found out. */
#include "algorithms/separation/separation.h"

#include "ops/linear/families.h"

/* CERTAIN: the mean loss of rows that are certain of their class. */
#define CERTAIN 1e-6

/* Returns whether y may be 0, and large, and the mean goes to 0 only where eta goes to minus infinity. */
static bool counts(const kiln_loss *loss) {
    if (loss->kind != KILN_LOSS_GLM) return false;
    const kiln_range range = kiln_family_range(loss->family, loss->parameter);
    return range.least == 0 && isinf(range.most) && !range.open && ki_link_of(loss) == KILN_LINK_LOG;
}

bool ki_separation_classes(const kiln_loss *loss) {
    if (loss->kind != KILN_LOSS_GLM)
        return loss->kind == KILN_LOSS_LOGISTIC || loss->kind == KILN_LOSS_SOFTMAX;
    return ki_family_find(loss->family)->shown.outcomes && ki_link_find(ki_link_of(loss))->most == 1;
}

bool ki_separation_open(const kiln_loss *loss, double y) {
    if (loss->kind != KILN_LOSS_GLM) return true;
    const kiln_range range = ki_family_find(loss->family)->range;
    return y == range.least || y == range.most;
}

kiln_status ki_separation_predict(double *values, const struct ki_newton *newton, const kiln_matrix *W,
                                  const double *b, const double *offset) {
    kiln_status status;
    const int64_t m = kiln_matrix_rows(newton->X), k = newton->k;
    struct ki_arena arena = {0};
    kiln_matrix *const Eta = ki_arena_rows(&arena, newton->X, k);
    TRY(arena.status);
    TRY(kiln_multiply(Eta, 1, KILN_PLAIN, newton->X, W, 0, NULL));
    TRY(ki_vector_get(values, Eta));
    for (int64_t i = 0; i < m * k; i++) values[i] += (b ? b[i % k] : 0) + (offset ? offset[i] : 0);
done:
    return ki_arena_free(&arena, status);
}

#define GROWS(which) ": without a penalty " which " grow without bound, and these are where the run ended"

static void tell(struct ki_newton *newton, const kiln_loss *loss, const struct ki_separation *found) {
    static const char hint[] = "a penalty (kiln_glm_options.l2) makes them finite";
    kiln_report *report = &newton->run.report;
    if (found->apart && ki_separation_classes(loss))
        ki_report_warn(report, "separated", hint, "the classes can be separated" GROWS("the coefficients"));
    else if (found->falling && ki_separation_classes(loss) && newton->k > 1)
        ki_report_warn(report, "quasi-separated", hint,
                       "some classes can be separated from others, but for ties: of %lld of %lld rows some "
                       "class is excluded "
                       "for certain" GROWS("some coefficients"),
                       (long long)found->falling, (long long)found->rows);
    else if (found->falling && ki_separation_classes(loss))
        ki_report_warn(report, "quasi-separated", hint,
                       "the classes can be separated but for ties, and %lld of %lld rows are told apart for "
                       "certain" GROWS("some coefficients"),
                       (long long)found->falling, (long long)found->rows);
    else if (found->falling)
        ki_report_warn(
            report, "zeros", hint,
            "%lld of %lld rows have the target 0 and nothing that speaks against a mean of 0" GROWS(
                "some coefficients"),
            (long long)found->falling, (long long)found->rows);
    else if (found->undecided)
        ki_report_warn(
            report, "undecided", hint,
            "whether the best coefficients are finite was not found out: without a penalty some may "
            "grow without bound");
}

kiln_status ki_newton_separation(struct ki_newton_work *work, struct ki_newton_model *model, kiln_stop stop) {
    kiln_status status;
    struct ki_newton *newton = work->newton;
    const kiln_loss *loss = &work->problem;
    struct ki_separation found = {.undecided = true};
    if (newton->one_sided || stop == KILN_STOP_CANCELLED || stop == KILN_STOP_DIVERGED) return KILN_OK;
    if (newton->l2 > 0 || newton->l1 > 0) {
        if (ki_separation_classes(loss) && work->here.loss <= CERTAIN * newton->columns.weight)
            ki_report_warn(&newton->run.report, "saturated", "a stronger penalty (kiln_glm_options.l2)",
                           "every row is certain of its class: the classes can be separated, and the penalty "
                           "alone, which is weak, says how large the coefficients are");
        return KILN_OK;
    }
    if (!counts(loss) && !ki_separation_classes(loss)) return KILN_OK;
    status = ki_separation_few(newton) ? ki_separation_prove(&found, work) : KILN_ERR_UNSUPPORTED;
    if (status == KILN_ERR_UNSUPPORTED) status = ki_separation_step(&found, work, model);
    /* a device without memory for the question is no error of the fit: it has no answer then */
    if (status == KILN_ERR_DEVICE_NOMEM) {
        found = (struct ki_separation){.undecided = true};
        status = KILN_OK;
    }
    if (status == KILN_OK && !newton->run.cancelled) tell(newton, loss, &found);
    return status;
}
