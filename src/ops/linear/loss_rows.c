/* Functions of the rows of Eta = X W + 1 b + offset: the mean response, and what a fitted model is judged
 * by. */
#include "core/arguments.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "pass/combine.h"
#include "ops/linear/families.h"
#include "ops/linear/loss_rows.cl"

KI_ARGUMENTS(loss_mean);
KI_ARGUMENTS(softmax_mean);
KI_ARGUMENTS(loss_deviance);

static kiln_status run_gpu(const struct ki_loss_rows *rows) {
    const kiln_loss *loss = rows->loss;
    const kiln_matrix *Eta = rows->Eta;
    kiln_matrix *out = rows->out;
    if (rows->deviance)
        return ki_launch_elements(out, Eta->rows, "loss_rows", "loss_deviance", "-DDEVIANCE",
                                  KI_PACK(loss_deviance, Eta, .D = out, .Eta = Eta, .y = loss->y,
                                          .weights = loss->weights, .rows = Eta->rows,
                                          .family = (int)loss->family, .link = (int)loss->link,
                                          .parameter = loss->parameter, .power = loss->link_power));
    if (loss->kind == KILN_LOSS_SOFTMAX)
        return ki_launch_elements(
            out, Eta->rows, "loss_rows", "softmax_mean", "",
            KI_PACK(softmax_mean, Eta, .M = out, .Eta = Eta, .rows = Eta->rows, .k = (int32_t)Eta->cols));
    return ki_launch_elements(out, Eta->nnz, "loss_rows", "loss_mean", "",
                              KI_PACK(loss_mean, Eta, .M = out, .Eta = Eta, .count = Eta->nnz,
                                      .kind = (int)loss->kind, .link = (int)loss->link,
                                      .power = loss->link_power));
}

static kiln_status run(struct ki_loss_rows *rows) {
    if (rows->out->nnz == 0) return KILN_OK;
    if (!ki_on_cpu(rows->out->device)) return run_gpu(rows);
    ki_bodies(rows->out)->loss_rows(rows);
    return KILN_OK;
}

kiln_status kiln_loss_mean(kiln_matrix *M, const kiln_loss *loss, const kiln_matrix *Eta) {
    static const char call[] = "kiln_loss_mean";
    kiln_status status;
    kiln_loss resolved;
    if (!M || !loss || !Eta) return ki_fail(KILN_ERR_ARGUMENT, "%s: M, loss or Eta is NULL", call);
    TRY(ki_loss_resolve(call, &resolved, loss));
    TRY(ki_check_dense(call, "Eta", Eta, Eta, Eta->rows, Eta->cols));
    TRY(ki_check_dense(call, "M", M, Eta, Eta->rows, Eta->cols));
    TRY(run(&(struct ki_loss_rows){M, &resolved, Eta, false}));
done:
    return status;
}

kiln_status kiln_loss_deviance(kiln_matrix *D, const kiln_loss *loss, const kiln_matrix *Eta) {
    static const char call[] = "kiln_loss_deviance";
    kiln_status status;
    kiln_loss resolved;
    if (!D || !loss || !Eta) return ki_fail(KILN_ERR_ARGUMENT, "%s: D, loss or Eta is NULL", call);
    TRY(ki_loss_resolve(call, &resolved, loss));
    if (loss->kind != KILN_LOSS_GLM)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the loss has the number %d, but must be KILN_LOSS_GLM", call,
                       (int)loss->kind);
    TRY(ki_check_dense(call, "Eta", Eta, Eta, Eta->rows, 1));
    TRY(ki_check_dense(call, "D", D, Eta, Eta->rows, 3));
    TRY(ki_check_dense(call, "the loss's y", loss->y, Eta, Eta->rows, 1));
    if (loss->weights) TRY(ki_check_dense(call, "the loss's weights", loss->weights, Eta, Eta->rows, 1));
    TRY(run(&(struct ki_loss_rows){D, &resolved, Eta, true}));
done:
    return status;
}
