/* The predictions of linear models: P = X W + 1 b^T, and what the model makes of it: itself, probabilities,
 * means.
 *
 * The outer product goes into P first, so that X W is added in the one pass over X that it takes anyway. */
#include "algorithms/linear_model.h"
#include "kiln/rows.h"

/* P = 1 b^T, or nothing if the model has no intercept; *beta is then 0 and P need not be read. */
static kiln_status start_with_intercept(kiln_matrix *P, double *beta, const kiln_model *model) {
    kiln_device *device = kiln_matrix_device(P);
    kiln_type type = kiln_matrix_type(P);
    kiln_matrix *b = NULL, *ones = NULL;
    kiln_status status = KILN_OK;
    *beta = ki_model_tensor(model, "b") ? 1 : 0;
    if (*beta == 0) return KILN_OK;
    TRY(kiln_model_tensor(&b, device, type, model, "b"));
    TRY(kiln_matrix_dense(&ones, device, type, kiln_matrix_rows(P), 1, NULL));
    TRY(kiln_fill(ones, 1));
    TRY(kiln_multiply(P, 1, KILN_PLAIN, ones, b, 0, NULL));
done:
    kiln_matrix_free(ones);
    kiln_matrix_free(b);
    return status;
}

kiln_status ki_predict_linear(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    kiln_matrix *W = NULL, *made = NULL;
    double beta;
    kiln_status status;
    TRY(kiln_model_tensor(&W, kiln_matrix_device(X), kiln_matrix_type(X), model, "W"));
    if (kiln_matrix_rows(W) != kiln_matrix_cols(X)) {
        status = ki_fail(KILN_ERR_MODEL, "the model was trained on %lld columns, the data have %lld",
                         (long long)kiln_matrix_rows(W), (long long)kiln_matrix_cols(X));
        ki_hint("read the data as the model's training data were read (kiln_read_options.model)");
        goto done;
    }
    TRY(kiln_matrix_dense(&made, kiln_matrix_device(X), kiln_matrix_type(X), kiln_matrix_rows(X),
                          kiln_matrix_cols(W), NULL));
    TRY(start_with_intercept(made, &beta, model));
    TRY(kiln_multiply(made, 1, KILN_PLAIN, X, W, beta, beta == 0 ? NULL : made));
    *P = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    kiln_matrix_free(W);
    return status;
}

/* For two classes the softmax of (0, eta), which is both probabilities; Eta (0 1) makes the two columns of
 * one. */
static kiln_status pair_of(kiln_matrix **pair, const kiln_matrix *Eta) {
    const double choice[] = {0, 1};
    const float choice_f32[] = {0, 1};
    kiln_device *device = kiln_matrix_device(Eta);
    const kiln_type type = kiln_matrix_type(Eta);
    kiln_matrix *S = NULL, *made = NULL;
    kiln_status status;
    TRY(kiln_matrix_dense(&S, device, type, 1, 2,
                          type == KILN_F32 ? (const void *)choice_f32 : (const void *)choice));
    TRY(kiln_matrix_dense(&made, device, type, kiln_matrix_rows(Eta), 2, NULL));
    TRY(kiln_multiply(made, 1, KILN_PLAIN, Eta, S, 0, NULL));
    *pair = made;
    made = NULL;
done:
    kiln_matrix_free(S);
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_predict_logreg(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    const kiln_loss softmax = {.kind = KILN_LOSS_SOFTMAX};
    kiln_matrix *Eta = NULL, *pair = NULL;
    kiln_status status;
    TRY(ki_predict_linear(&Eta, model, X));
    if (kiln_matrix_cols(Eta) == 1) TRY(pair_of(&pair, Eta));
    kiln_matrix **probabilities = pair ? &pair : &Eta;
    TRY(kiln_loss_mean(*probabilities, &softmax, *probabilities));
    *P = *probabilities;
    *probabilities = NULL;
done:
    kiln_matrix_free(Eta);
    kiln_matrix_free(pair);
    return status;
}

kiln_status ki_predict_glm(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    kiln_loss loss = {0};
    kiln_matrix *Eta = NULL;
    kiln_status status = kiln_model_loss(&loss, model);
    if (status != KILN_OK) return status;
    TRY(ki_predict_linear(&Eta, model, X));
    TRY(kiln_loss_mean(Eta, &loss, Eta));
    *P = Eta;
    Eta = NULL;
done:
    kiln_matrix_free(Eta);
    return status;
}

kiln_status kiln_row_model_of(kiln_row_model *rows, const kiln_model *model) {
    static const char call[] = "kiln_row_model_of";
    kiln_loss loss = {0};
    kiln_status status;
    if (!rows || !model) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_CHECK_RESULT(kiln_row_model, rows));
    TRY(ki_model_check(model));
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (!algorithm->loss)
        TRY(ki_fail(KILN_ERR_MODEL, "%s: a model of %s is not linear", call, algorithm->shown.name));
    const struct ki_tensor *W = ki_model_tensor(model, "W"), *b = ki_model_tensor(model, "b");
    if (b && b->type != W->type)
        TRY(ki_fail(KILN_ERR_UNSUPPORTED, "%s: the model's tensors W and b are of two types", call));
    TRY(algorithm->loss(&loss, model));
    kiln_row_model made = {.type = W->type,
                           .inputs = W->rows,
                           .outputs = W->cols,
                           .W = W->values,
                           .input_step = W->cols,
                           .output_step = 1,
                           .b = b ? b->values : NULL,
                           .has_mean = algorithm->predict != ki_predict_linear,
                           .kind = loss.kind,
                           .family = loss.family,
                           .link = loss.link,
                           .parameter = loss.parameter,
                           .link_power = loss.link_power};
    KI_GIVE(kiln_row_model, rows, &made);
done:
    return status;
}
