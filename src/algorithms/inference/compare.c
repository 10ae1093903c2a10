/* Tests between nested models: analysis of deviance, and the likelihood ratio. */
#include "algorithms/inference/inference.h"

kiln_status kiln_inference_compare(kiln_comparison *comparison, const kiln_inference *small,
                                   const kiln_inference *large) {
    static const char call[] = "kiln_inference_compare";
    kiln_status status;
    if (!comparison || !small || !large)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: comparison, small or large is NULL", call);
    TRY(KI_CHECK_RESULT(kiln_comparison, comparison));
    const double rows[] = {kiln_inference_value(small, "rows"), kiln_inference_value(large, "rows")};
    const double degrees = large->parameters - small->parameters;
    if (rows[0] != rows[1])
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a model of %.0f rows, and one of %.0f", call, rows[0],
                       rows[1]);
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
