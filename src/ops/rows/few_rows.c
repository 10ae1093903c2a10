/* A few rows of the caller's memory: what is asked of them, and their predictions. Nothing here allocates. */
#include "ops/rows/few_rows.h"

#include "bodies/bodies.h"
#include "core/sized.h"
#include "pass/chain.h"

kiln_status ki_rows_check_cpu(const char *call, const kiln_device *device) {
    if (!device) return ki_fail(KILN_ERR_ARGUMENT, "%s: the device is NULL", call);
    if (ki_on_cpu(device)) return KILN_OK;
    ki_fail(KILN_ERR_UNSUPPORTED, "%s: the device is no CPU", call);
    return ki_hint("open the device \"cpu\": few rows are sooner done there than sent away");
}

kiln_status ki_rows_check_sparse(const char *call, const kiln_memory *X, bool ascending) {
    const int bits = X->row_start_bits;
    if (bits != 0 && bits != 32 && bits != 64)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: row_start_bits is %d, but must be 32 or 64", call, bits);
    if (ki_memory_start(X, 0) != 0) return ki_fail(KILN_ERR_DATA, "row_start does not begin with 0");
    for (int64_t i = 0; i < X->rows; i++)
        if (ki_memory_start(X, i + 1) < ki_memory_start(X, i))
            return ki_fail(KILN_ERR_DATA, "row_start decreases at row %lld", (long long)i);
    if (!X->col && ki_memory_start(X, X->rows) > 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: col is NULL", call);
    for (int64_t i = 0; i < X->rows; i++)
        for (int64_t e = ki_memory_start(X, i); e < ki_memory_start(X, i + 1); e++) {
            if (X->col[e] < 0 || X->col[e] >= X->cols)
                return ki_fail(KILN_ERR_DATA, "row %lld has a column %d, but there are %lld", (long long)i,
                               (int)X->col[e], (long long)X->cols);
            if (ascending && e > ki_memory_start(X, i) && X->col[e] <= X->col[e - 1])
                return ki_fail(KILN_ERR_DATA, "the columns of row %lld do not ascend", (long long)i);
        }
    return KILN_OK;
}

static kiln_status check_model(const char *call, const kiln_row_model *model) {
    if (model->type != KILN_F32 && model->type != KILN_F64)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the model's type has the number %d", call, (int)model->type);
    if (model->inputs < 1 || model->outputs < 1 || model->outputs > KI_COLUMNS_MAX || !model->W)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: W is NULL, or %lld x %lld", call, (long long)model->inputs,
                       (long long)model->outputs);
    const bool by_inputs = model->output_step == 1 && model->input_step >= model->outputs;
    const bool by_outputs = model->input_step == 1 && model->output_step >= model->inputs;
    if (!by_inputs && !by_outputs)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s: W's numbers lie %lld and %lld apart, but must lie by rows or by columns", call,
                       (long long)model->input_step, (long long)model->output_step);
    return KILN_OK;
}

static kiln_status check_rows(const char *call, const kiln_row_model *model, const kiln_memory *X) {
    if (X->type != model->type || X->on_device || X->rows < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: X must be of the model's type and in host memory", call);
    if (X->cols != model->inputs) {
        ki_fail(KILN_ERR_MODEL, "the model was trained on %lld columns, the data have %lld",
                (long long)model->inputs, (long long)X->cols);
        return ki_hint("make the rows as the model's training data were made");
    }
    if (X->row_start) return ki_rows_check_sparse(call, X, false);
    return X->values || X->rows == 0 ? KILN_OK : ki_fail(KILN_ERR_ARGUMENT, "%s: X's values are NULL", call);
}

/* The links by number, and which of them a glm has. */
static kiln_status resolve(const char *call, kiln_row_model *model) {
    kiln_loss resolved;
    const kiln_loss given = {.kind = model->kind,
                             .family = model->family,
                             .link = model->link,
                             .parameter = model->parameter,
                             .link_power = model->link_power};
    const kiln_status status = ki_loss_resolve(call, &resolved, &given);
    if (status != KILN_OK) return status;
    if ((model->kind == KILN_LOSS_SOFTMAX) != (model->outputs > 1))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: softmax is of two outputs or more, other means of one", call);
    model->link = resolved.link;
    return KILN_OK;
}

int64_t kiln_row_model_columns(const kiln_row_model *model) {
    if (!model) return 0;
    return model->has_mean && model->kind == KILN_LOSS_LOGISTIC ? 2 : model->outputs;
}

kiln_status kiln_predict_rows(void *out, const kiln_device *device, const kiln_row_model *model,
                              const kiln_memory *X) {
    static const char call[] = "kiln_predict_rows";
    kiln_row_model own;
    kiln_memory rows;
    kiln_status status;
    if (!out || !model || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_rows_check_cpu(call, device));
    TRY(KI_TAKE(kiln_row_model, &own, model));
    TRY(KI_TAKE(kiln_memory, &rows, X));
    TRY(check_model(call, &own));
    if (own.has_mean) TRY(resolve(call, &own));
    TRY(check_rows(call, &own, &rows));
    ki_bodies_for(device, own.type)
        ->few_rows(&(struct ki_few_rows){.model = &own,
                                         .X = &rows,
                                         .out = out,
                                         .columns = kiln_row_model_columns(&own),
                                         .threads = device->threads});
done:
    return status;
}
