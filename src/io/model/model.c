/* A model is a container with a meaning: the algorithm's name says which tensors there must be and how they
 * fit together.
 *
 * The same check runs before a save and after a load, so nothing is written that cannot be read back, and
 * nothing read reaches an operation unchecked. */
#include "io/model/model_bytes.h"

#include <math.h>
#include <string.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "core/size.h"
#include "io/model/container.h"
#include "io/output.h"
#include "io/model/safetensors.h"

struct kiln_model {
    struct ki_container content;
};

static const char algorithm_key[] = "algorithm", version_key[] = "kiln_version";

/* ---- what makes a model usable */

enum { TARGETS_MOST = 65536 }; /* what kiln_multiply takes */

/* W n x k and, unless the model has no intercept, b 1 x k. */
static kiln_status check_linear(const struct ki_container *content) {
    const struct ki_tensor *W = ki_container_tensor(content, "W"), *b = ki_container_tensor(content, "b");
    if (!W) return ki_fail(KILN_ERR_MODEL, "the model has no weights: tensor 'W' is missing");
    if (W->cols < 1 || W->cols > TARGETS_MOST)
        return ki_fail(KILN_ERR_MODEL,
                       "tensor 'W' has %lld columns, one for each target: 1 to %d are possible",
                       (long long)W->cols, TARGETS_MOST);
    if (b && (b->rows != 1 || b->cols != W->cols))
        return ki_fail(KILN_ERR_MODEL, "tensor 'b' is %lld x %lld, but 'W' with %lld columns needs 1 x %lld",
                       (long long)b->rows, (long long)b->cols, (long long)W->cols, (long long)W->cols);
    return KILN_OK;
}

/* Classes in ascending order, K x 1, with one column of W if there are two, else one for each. */
static kiln_status check_classifier(const struct ki_container *content) {
    kiln_status status = check_linear(content);
    if (status != KILN_OK) return status;
    const struct ki_tensor *W = ki_container_tensor(content, "W"),
                           *classes = ki_container_tensor(content, "classes");
    if (!classes) return ki_fail(KILN_ERR_MODEL, "the model has no classes: tensor 'classes' is missing");
    const double *values = classes->values;
    if (classes->cols != 1 || classes->type != KILN_F64 || classes->rows < 2)
        return ki_fail(KILN_ERR_MODEL, "tensor 'classes' must be f64, with one column and 2 rows or more");
    for (int64_t i = 1; i < classes->rows; i++)
        if (!(values[i - 1] < values[i]))
            return ki_fail(KILN_ERR_MODEL, "tensor 'classes' does not ascend in row %lld", (long long)i + 1);
    if (W->cols != (classes->rows == 2 ? 1 : classes->rows))
        return ki_fail(KILN_ERR_MODEL, "tensor 'W' has %lld columns, which does not suit %lld classes",
                       (long long)W->cols, (long long)classes->rows);
    return KILN_OK;
}

/* One target; the parameters are those of family and link. */
static kiln_status check_glm(const struct ki_container *content) {
    const struct ki_tensor *parameters = ki_container_tensor(content, "parameters");
    kiln_status status = check_linear(content);
    if (status != KILN_OK) return status;
    if (!parameters || parameters->rows != 1 || parameters->cols != 2)
        return ki_fail(KILN_ERR_MODEL, "the model needs a tensor 'parameters' of 1 x 2");
    if (ki_container_tensor(content, "W")->cols != 1)
        return ki_fail(KILN_ERR_MODEL, "a generalised linear model has one target");
    if (!ki_container_text(content, "family") || !ki_container_text(content, "link"))
        return ki_fail(KILN_ERR_MODEL, "the model does not name its family and link");
    return KILN_OK;
}

/* A regression has no classes. */
static kiln_status check_svm(const struct ki_container *content) {
    return ki_container_tensor(content, "classes") ? check_classifier(content) : check_linear(content);
}

/* Hubs, one for each row of the graph's matrix, and authorities, one for each column. */
static kiln_status check_hits(const struct ki_container *content) {
    static const char *const names[] = {"hubs", "authorities"};
    for (int i = 0; i < 2; i++) {
        const struct ki_tensor *tensor = ki_container_tensor(content, names[i]);
        if (!tensor) return ki_fail(KILN_ERR_MODEL, "tensor '%s' is missing", names[i]);
        if (tensor->cols != 1)
            return ki_fail(KILN_ERR_MODEL, "tensor '%s' has %lld columns, but must have one", names[i],
                           (long long)tensor->cols);
    }
    return KILN_OK;
}

static const struct {
    const char *name;
    kiln_status (*check)(const struct ki_container *content);
} algorithms[] = {{"linreg", check_linear},
                  {"logreg", check_classifier},
                  {"glm", check_glm},
                  {"svm", check_svm},
                  {"hits", check_hits}};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

static int find_algorithm(const char *name) {
    int i = 0;
    while (i < ALGORITHMS && strcmp(algorithms[i].name, name) != 0) i++;
    return i;
}

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

static kiln_status check_model(const struct ki_container *content) {
    const char *name = ki_container_text(content, algorithm_key);
    if (!name) return ki_fail(KILN_ERR_MODEL, "the model does not name its algorithm");
    int i = find_algorithm(name);
    if (i == ALGORITHMS) {
        ki_fail(KILN_ERR_MODEL, "Kiln %s knows no algorithm '%s'", kiln_version(),
                ki_is_name(name) ? name : "?");
        return ki_hint("the model may come from a newer version");
    }
    for (int64_t t = 0; t < content->tensor_count; t++) {
        kiln_status status = check_finite(&content->tensors[t]);
        if (status != KILN_OK) return status;
    }
    return algorithms[i].check(content);
}

/* ---- in memory */

kiln_status kiln_model_create(kiln_model **model, const char *algorithm) {
    if (!model || !algorithm) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_create: an argument is NULL");
    if (find_algorithm(algorithm) == ALGORITHMS)
        return ki_fail(KILN_ERR_ARGUMENT, "there is no algorithm '%s'", algorithm);
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
    kiln_status status =
        kiln_matrix_dense(&stored, device, tensor->type, tensor->rows, tensor->cols, tensor->values);
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

kiln_status kiln_model_save(const kiln_model *model, const char *path) {
    if (!model || !path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_save: an argument is NULL");
    struct ki_output *output = NULL;
    kiln_status status;
    TRY(check_model(&model->content));
    TRY(ki_output_open(&output, path, false, NULL));
    TRY(ki_safetensors_write(output, &model->content));
    status = ki_output_commit(output);
    output = NULL;
done:
    ki_output_abandon(output);
    return status;
}

kiln_status kiln_model_load(kiln_model **model, const char *path) {
    if (!model || !path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_load: an argument is NULL");
    unsigned char *bytes = NULL;
    int64_t size = 0;
    kiln_status status = KILN_OK;
    kiln_model *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "a model");
    TRY(ki_model_bytes(&bytes, &size, path));
    TRY(ki_safetensors_parse(&made->content, path, bytes, size));
    TRY(check_model(&made->content));
    *model = made;
    made = NULL;
done:
    ki_free(bytes);
    kiln_model_free(made);
    return status;
}
