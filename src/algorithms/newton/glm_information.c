/* Standard errors of a generalised linear model at dispersion 1: the diagonal of (X^T diag(h) X)^-1, h the
 * expected curvature; and how many parameters it has. */
#include "algorithms/inference/information.h"

#include "algorithms/cholesky.h"
#include "algorithms/newton/glm.h"
#include "ops/linear/families.h"
#include "ops/linear/gram.h"

/* C, the expected curvature at the result, in place of the loss's own. */
static kiln_status expect_curvature(struct ki_glm *glm) {
    kiln_status status;
    double value;
    struct ki_arena arena = {0};
    kiln_matrix *g = ki_arena_model(&arena, glm->X, kiln_matrix_cols(glm->X), 1);
    TRY(arena.status);
    TRY(ki_loss_expected(&value, g, glm->newton.C, &glm->loss, glm->X, glm->newton.W, glm->newton.b));
    glm->newton.run.report.passes++;
done:
    return ki_arena_free(&arena, status);
}

/* g^T H^-1 g = gb^2 / sum h + v^T A^-1 v, v = g - gb mean with the full gradient's g and the means weighted
 * with h. The engine's g is of the columns about other means. */
static kiln_status information_measure_form(struct ki_information *of, struct ki_glm *glm) {
    kiln_status status;
    const struct ki_newton *newton = &glm->newton;
    const int64_t n = of->n;
    const bool intercept = !newton->no_intercept;
    const bool sparse = kiln_matrix_format(glm->X) == KILN_CSR; /* whose sums are about zero first */
    double slope = 0, ratio = 1, *v = of->column;
    struct ki_glm_form form = {.weight = intercept ? of->weight : 0};
    for (int64_t j = 0; j < n; j++)
        if (!(of->scale[j] > 0)) return KILN_OK;
    for (int64_t j = 0; j < n; j++) {
        const double square = of->scale[j] * of->scale[j];
        if (sparse) ratio = fmax(ratio, 1 + form.weight * of->mean[j] * of->mean[j] / square);
        form.spread += newton->columns.square[j] / square;
    }
    double part = 4 * ratio * ki_units(kiln_matrix_rows(glm->X), kiln_matrix_type(glm->X));
    form.inverse = ki_inverse_square(of->A, n, &part, v);
    if (!isfinite(form.inverse)) return KILN_OK;
    TRY(ki_vector_get(v, newton->gradient));
    if (intercept) TRY(ki_vector_get(&slope, newton->slopes));
    for (int64_t j = 0; j < n; j++) {
        if (intercept) v[j] += slope * (newton->columns.mean[j] - of->mean[j]);
        v[j] /= of->scale[j];
    }
    form.square =
        (intercept ? slope * slope / of->weight : 0) + ki_information_substitute(of, v, 0) / (1 - part);
    form.known = true;
    glm->form = form;
done:
    return status;
}

kiln_status ki_glm_information(struct ki_parameters *parameters, double *errors, struct ki_glm *glm) {
    kiln_status status;
    struct ki_arena arena = {0};
    struct ki_newton *newton = &glm->newton;
    struct ki_information of = {.X = glm->X,
                                .C = newton->C,
                                .no_intercept = glm->options->no_intercept,
                                .data = kiln_matrix_type(glm->X),
                                .run = &newton->run,
                                .wanted = errors};
    if (ki_family_find(glm->loss.family)->canonical != ki_link_of(&glm->loss)) TRY(expect_curvature(glm));
    if (errors) TRY(ki_information_widen(&of.X, &arena, glm->X, NULL));
    if (errors) TRY(ki_information_widen(&of.C, &arena, newton->C, of.X));
    TRY(ki_information_measure(&of, &arena));
    of.X = glm->X;
    *parameters = (struct ki_parameters){ki_information_count(&of), of.cancelled ? KI_UNCOUNTED : KI_COUNTED};
    if (!of.cancelled) TRY(information_measure_form(&of, glm));
    if (!errors) goto done;
    bool refused;
    TRY(ki_information_drop(&of, newton->W, newton->b, &refused));
    ki_information_invert(&of);
    ki_information_errors(errors, &of);
    for (int64_t j = 0; refused && j < of.n + !of.no_intercept; j++) errors[j] = (double)NAN;
done:
    return ki_arena_free(&arena, status);
}
