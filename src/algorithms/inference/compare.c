/* Tests between nested models: analysis of deviance, and the likelihood ratio. */
#include "algorithms/inference/inference.h"

static const char call[] = "kiln_inference_compare";

/* Likelihoods compare at one distribution and link alone: an estimated parameter is another one for each of
 * the models. */
static kiln_status check_alike(const kiln_inference *small, const kiln_inference *large) {
    const kiln_family_info *family = kiln_family_describe(large->family);
    if (small->family != large->family)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a model of the family %s, and one of %s", call,
                       kiln_family_name(small->family), family->name);
    if (small->link != large->link)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a model of the link %s, and one of %s", call,
                       kiln_link_name(small->link), kiln_link_name(large->link));
    if (large->link == KILN_LINK_POWER && small->link_power != large->link_power)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a model of the link's power %g, and one of %g", call,
                       small->link_power, large->link_power);
    if (family->parameter.option && small->parameter != large->parameter) {
        ki_fail(KILN_ERR_ARGUMENT, "%s: a model of the family's parameter %g, and one of %g", call,
                small->parameter, large->parameter);
        return ki_hint("train both with the parameter of the larger one");
    }
    return KILN_OK;
}

kiln_status kiln_inference_compare(kiln_comparison *comparison, const kiln_inference *small,
                                   const kiln_inference *large) {
    kiln_status status;
    if (!comparison || !small || !large)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: comparison, small or large is NULL", call);
    TRY(KI_CHECK_RESULT(kiln_comparison, comparison));
    TRY(check_alike(small, large));
    const double rows[] = {kiln_inference_value(small, "rows"), kiln_inference_value(large, "rows")};
    const double degrees = large->parameters - small->parameters;
    if (rows[0] != rows[1])
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a model of %.0f rows, and one of %.0f", call, rows[0],
                       rows[1]);
    if (small->digest != large->digest) {
        ki_fail(KILN_ERR_ARGUMENT, "%s: a model of other targets or weights", call);
        return ki_hint("both models' statistics on the same rows, with the same target and weights");
    }
    if (!(degrees > 0))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a model of %.0f parameters is not within one of %.0f", call,
                       small->parameters, large->parameters);
    const double left = rows[1] - large->parameters;
    const double under = large->estimated ? left > 0 ? left : (double)NAN : INFINITY;
    const bool known = !large->estimated;
    kiln_comparison made = {.degrees = degrees,
                            .under = under,
                            .deviance = kiln_inference_value(small, "deviance") -
                                        kiln_inference_value(large, "deviance"),
                            .ratio = 2 * (kiln_inference_value(large, "log_likelihood") -
                                          kiln_inference_value(small, "log_likelihood"))};
    made.statistic = known ? made.deviance : made.deviance / degrees / large->dispersion;
    made.p = known ? kiln_chi_square_tail(made.deviance, degrees)
                   : kiln_f_tail(made.statistic, degrees, made.under);
    made.ratio_p = kiln_chi_square_tail(made.ratio, degrees);
    KI_GIVE(kiln_comparison, comparison, &made);
done:
    return status;
}
