/* A model in memory and its file: texts and tensors under names. What they mean is the algorithm's business:
 * algorithms/model.c creates, saves and loads models, and asks the algorithm's row in the registry whether
 * they fit together.
 *
 * Whatever the algorithm, there are no numbers in a model but finite ones: so neither is such a model
 * written, nor does a file that holds others get any further. */
#include "io/model/model.h"

#include <math.h>
#include <string.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "io/json.h"
#include "io/model/model_bytes.h"
#include "io/model/safetensors.h"
#include "io/output.h"

static const char algorithm_key[] = "algorithm", version_key[] = "kiln_version";

/* ---- in memory */

kiln_status ki_model_new(kiln_model **model, const char *algorithm) {
    kiln_status status = KILN_OK;
    kiln_model *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "a model");
    TRY(ki_container_set_text(&made->content, algorithm_key, algorithm));
    TRY(ki_container_set_text(&made->content, version_key, kiln_version()));
    *model = made;
    made = NULL;
done:
    kiln_model_free(made);
    return status;
}

void kiln_model_free(kiln_model *model) {
    if (!model) return;
    ki_container_clear(&model->content);
    ki_free(model);
}

kiln_status kiln_model_set_text(kiln_model *model, const char *key, const char *value) {
    if (!model || !key || !value)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_set_text: an argument is NULL");
    if (ki_safetensors_reserved(key) || strcmp(key, algorithm_key) == 0 || strcmp(key, version_key) == 0)
        return ki_fail(KILN_ERR_ARGUMENT, "a model's '%s' cannot be set: Kiln keeps it itself", key);
    return ki_container_set_text(&model->content, key, value);
}

const char *kiln_model_text(const kiln_model *model, const char *key) {
    return model && key ? ki_container_text(&model->content, key) : NULL;
}

const char *kiln_model_key(const kiln_model *model, int64_t i) {
    return model && i >= 0 && i < model->content.text_count ? model->content.texts[i].key : NULL;
}

kiln_status kiln_model_set_tensor(kiln_model *model, const char *name, const kiln_matrix *A) {
    if (!model || !name || !A)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_set_tensor: an argument is NULL");
    if (A->format != KILN_DENSE)
        return ki_fail(KILN_ERR_UNSUPPORTED, "a model's tensors are dense; '%s' is sparse", name);
    if (strcmp(name, "__metadata__") == 0)
        return ki_fail(KILN_ERR_ARGUMENT, "'__metadata__' is not a tensor's name: the file format uses it");
    kiln_status status = KILN_OK;
    size_t bytes = (size_t)(A->rows * A->cols * ki_type_bytes(A->type)); /* fits: A holds them */
    struct ki_tensor tensor = {(char *)name, A->type, A->rows, A->cols, ki_alloc(bytes)};
    if (!tensor.values) return ki_fail_nomem(bytes, "a model's tensor");
    TRY(kiln_matrix_get(tensor.values, A));
    TRY(ki_container_set_tensor(&model->content, &tensor));
    tensor.values = NULL;
done:
    ki_free(tensor.values);
    return status;
}

kiln_status kiln_model_tensor(kiln_matrix **A, kiln_device *device, kiln_type type, const kiln_model *model,
                              const char *name) {
    if (!A || !device || !model || !name)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_tensor: an argument is NULL");
    const struct ki_tensor *tensor = ki_container_tensor(&model->content, name);
    if (!tensor) return ki_fail(KILN_ERR_MODEL, "the model has no tensor '%s'", name);
    kiln_matrix *stored = NULL;
    bool unset; /* not with values */
    kiln_status status =
        ki_matrix_dense(&stored, &unset, device, tensor->type, tensor->rows, tensor->cols, tensor->values);
    if (status == KILN_OK && type != KILN_TYPE_DEFAULT && type != tensor->type) {
        kiln_matrix *converted = NULL;
        status = kiln_matrix_copy(&converted, device, type, stored);
        kiln_matrix_free(stored);
        stored = converted;
    }
    if (status == KILN_OK) *A = stored;
    return status;
}

const char *kiln_model_tensor_info(const kiln_model *model, int64_t i, kiln_type *type, int64_t *rows,
                                   int64_t *cols) {
    if (!model || i < 0 || i >= model->content.tensor_count) return NULL;
    const struct ki_tensor *tensor = &model->content.tensors[i];
    if (type) *type = tensor->type;
    if (rows) *rows = tensor->rows;
    if (cols) *cols = tensor->cols;
    return tensor->name;
}

/* ---- on files */

static kiln_status check_finite(const struct ki_tensor *tensor) {
    int64_t count = tensor->rows * tensor->cols;
    for (int64_t i = 0; i < count; i++) {
        double value = tensor->type == KILN_F32 ? ((const float *)tensor->values)[i]
                                                : ((const double *)tensor->values)[i];
        if (isfinite(value)) continue;
        long long row = i / tensor->cols, col = i % tensor->cols;
        return ki_fail(KILN_ERR_MODEL, "tensor '%s' holds %f in row %lld, column %lld", tensor->name, value,
                       row + 1, col + 1);
    }
    return KILN_OK;
}

static kiln_status check_numbers(const kiln_model *model) {
    kiln_status status = KILN_OK;
    for (int64_t t = 0; t < model->content.tensor_count; t++) TRY(check_finite(&model->content.tensors[t]));
done:
    return status;
}

kiln_status ki_container_write(int64_t *bytes, const struct ki_container *container, const char *path) {
    struct ki_output *output = NULL;
    kiln_status status;
    TRY(ki_output_open(&output, path, false, NULL));
    TRY(ki_safetensors_write(output, container));
    if (bytes) *bytes = ki_output_bytes(output);
    status = ki_output_commit(output);
    output = NULL;
done:
    ki_output_abandon(output);
    return status;
}

kiln_status ki_container_read(struct ki_container *container, const char *path) {
    unsigned char *bytes = NULL;
    int64_t size = 0;
    kiln_status status;
    TRY(ki_model_bytes(&bytes, &size, path));
    TRY(ki_safetensors_parse(container, path, bytes, size));
done:
    ki_free(bytes);
    return status;
}

kiln_status ki_model_write(const kiln_model *model, const char *path) {
    const kiln_status status = check_numbers(model);
    return status == KILN_OK ? ki_container_write(NULL, &model->content, path) : status;
}

/* A run's state is in the same kind of file, and holds any numbers. */
static kiln_status check_kind(const kiln_model *model, const char *path) {
    if (ki_container_text(&model->content, algorithm_key) ||
        !ki_container_text(&model->content, "checkpoint"))
        return KILN_OK;
    ki_fail(KILN_ERR_MODEL, "%s is a checkpoint of a run, not a model", path);
    return ki_hint("the run that goes on from it (--resume) ends with a model");
}

kiln_status ki_model_read(kiln_model **model, const char *path) {
    kiln_status status = KILN_OK;
    kiln_model *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "a model");
    TRY(ki_container_read(&made->content, path));
    TRY(check_kind(made, path));
    TRY(check_numbers(made));
    *model = made;
    made = NULL;
done:
    kiln_model_free(made);
    return status;
}

kiln_status ki_model_check_names(const kiln_model *model, const char *key, int64_t count) {
    const char *text = kiln_model_text(model, key);
    if (!text) return KILN_OK;
    struct ki_json *names = NULL;
    struct ki_json_fault fault;
    const kiln_status status = ki_json_parse(&names, &fault, text, (int64_t)strlen(text));
    if (status == KILN_ERR_NOMEM) return status;
    bool good = ki_json_is(names, KI_JSON_LIST) && names->count == count;
    for (const struct ki_json *name = good ? names->first : NULL; name; name = name->next)
        good &= name->kind == KI_JSON_TEXT;
    ki_free(names);
    if (good) return KILN_OK;
    return ki_fail(KILN_ERR_MODEL, "the model's '%s' are not the %lld names that they must be", key,
                   (long long)count);
}
