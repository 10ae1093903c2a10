/* Models of algorithms: what the row of a model's algorithm says decides whether it can be used.
 *
 * The same check runs before a save and after a load, so nothing is written that cannot be read back, and
 * nothing that was read reaches an operation, or a tool, unchecked: every tensor of a model is one that the
 * algorithm knows, in a shape that fits the others. */
#include <string.h>

#include "algorithms/algorithm.h"
#include "algorithms/registry.h"

/* ------------------------------------------------------------------------------------------- the check */

const struct ki_tensor *ki_model_tensor(const kiln_model *model, const char *name) {
    return ki_container_tensor(&model->content, name);
}

double ki_tensor_value(const struct ki_tensor *tensor, int64_t i) {
    return tensor->type == KILN_F32 ? ((const float *)tensor->values)[i]
                                    : ((const double *)tensor->values)[i];
}

/* Holds what a letter stands for, once a tensor has been seen. */
struct sizes {
    int64_t of[256];
    const char *first[256]; /* the tensor that said so; NULL: none has */
};

static bool fits(struct sizes *sizes, char letter, int64_t size, const char *name) {
    const unsigned char at = (unsigned char)letter;
    if (at >= '0' && at <= '9') return size == at - '0';
    if (!sizes->first[at]) {
        sizes->first[at] = name;
        sizes->of[at] = size;
    }
    return sizes->of[at] == size;
}

static kiln_status check_tensor(struct sizes *sizes, const struct ki_tensor_rule *rule,
                                const kiln_model *model) {
    const struct ki_tensor *tensor = ki_model_tensor(model, rule->name);
    if (!tensor && rule->optional) return KILN_OK;
    if (!tensor) return ki_fail(KILN_ERR_MODEL, "the model lacks the tensor '%s'", rule->name);
    if (rule->f64 && tensor->type != KILN_F64)
        return ki_fail(KILN_ERR_MODEL, "tensor '%s' must be f64", rule->name);
    const char letters[] = {rule->rows, rule->cols};
    const int64_t shape[] = {tensor->rows, tensor->cols};
    for (int i = 0; i < 2; i++) {
        if (shape[i] == 0 && !rule->may_be_empty)
            return ki_fail(KILN_ERR_MODEL, "tensor '%s' is empty: %lld x %lld", rule->name,
                           (long long)shape[0], (long long)shape[1]);
        if (fits(sizes, letters[i], shape[i], rule->name)) continue;
        const bool fixed = letters[i] >= '0' && letters[i] <= '9';
        const char *of = fixed ? NULL : sizes->first[(unsigned char)letters[i]];
        return ki_fail(KILN_ERR_MODEL, "tensor '%s' is %lld x %lld, but needs %lld %s%s%s%s", rule->name,
                       (long long)shape[0], (long long)shape[1],
                       (long long)(fixed ? letters[i] - '0' : sizes->of[(unsigned char)letters[i]]),
                       i == 0 ? "rows" : "columns", of ? " as '" : "", of ? of : "", of ? "' has" : "");
    }
    return KILN_OK;
}

/* A tensor that the algorithm has no use for would be one that nobody has checked. */
static kiln_status check_surplus(const struct ki_algorithm *algorithm, const kiln_model *model) {
    const char *name;
    for (int64_t t = 0; (name = kiln_model_tensor_info(model, t, NULL, NULL, NULL)); t++) {
        int r = 0;
        while (r < KI_RULES && algorithm->tensors[r].name && strcmp(algorithm->tensors[r].name, name) != 0)
            r++;
        if (r == KI_RULES || !algorithm->tensors[r].name)
            return ki_fail(KILN_ERR_MODEL, "a model of %s has no tensor '%s'", algorithm->shown.name, name);
    }
    return KILN_OK;
}

kiln_status ki_model_check(const kiln_model *model) {
    const char *name = kiln_model_text(model, "algorithm");
    const struct ki_algorithm *algorithm = ki_algorithm_named(name);
    struct sizes sizes = {{0}, {NULL}};
    kiln_status status = KILN_OK;
    if (!name) return ki_fail(KILN_ERR_MODEL, "the model does not name its algorithm");
    if (!algorithm) {
        ki_fail(KILN_ERR_MODEL, "Kiln %s knows no algorithm '%s'", kiln_version(),
                ki_is_name(name) ? name : "?");
        return ki_hint("the model may come from a newer version");
    }
    for (int r = 0; r < KI_RULES && algorithm->tensors[r].name; r++)
        TRY(check_tensor(&sizes, &algorithm->tensors[r], model));
    TRY(check_surplus(algorithm, model));
    for (int t = 0; t < KI_TEXTS && algorithm->texts[t]; t++)
        if (!kiln_model_text(model, algorithm->texts[t]))
            TRY(ki_fail(KILN_ERR_MODEL, "the model does not name its %s", algorithm->texts[t]));
    if (algorithm->check) TRY(algorithm->check(model));
done:
    return status;
}

/* ---------------------------------------------------------------------------------- models and files */

const struct ki_algorithm *ki_algorithm_of(const kiln_model *model) {
    return ki_algorithm_named(kiln_model_text(model, "algorithm"));
}

kiln_status kiln_model_create(kiln_model **model, const char *algorithm) {
    if (!model || !algorithm) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_create: an argument is NULL");
    if (!ki_algorithm_named(algorithm))
        return ki_fail(KILN_ERR_ARGUMENT, "there is no algorithm '%s'", algorithm);
    return ki_model_new(model, algorithm);
}

kiln_status kiln_model_save(const kiln_model *model, const char *path) {
    if (!model || !path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_save: an argument is NULL");
    const kiln_status status = ki_model_check(model);
    return status == KILN_OK ? ki_model_write(model, path) : status;
}

kiln_status kiln_model_load(kiln_model **model, const char *path) {
    if (!model || !path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_load: an argument is NULL");
    kiln_model *made = NULL;
    kiln_status status;
    TRY(ki_model_read(&made, path));
    TRY(ki_model_check(made));
    *model = made;
    made = NULL;
done:
    kiln_model_free(made);
    return status;
}

/* ------------------------------------------------------------------------------- what a model is used for */

/* A model in memory is the caller's to put together, so it is checked when it is used, too. */
kiln_status kiln_model_loss(kiln_loss *loss, const kiln_model *model) {
    if (!loss || !model) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_loss: an argument is NULL");
    kiln_status status = KI_CHECK_RESULT(kiln_loss, loss);
    if (status == KILN_OK) status = ki_model_check(model);
    if (status != KILN_OK) return status;
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (!algorithm->loss) return ki_fail(KILN_ERR_MODEL, "a model of %s has no loss", algorithm->shown.name);
    kiln_loss made = {.kind = KILN_LOSS_SQUARED};
    status = algorithm->loss(&made, model);
    if (status == KILN_OK) KI_GIVE(kiln_loss, loss, &made);
    return status;
}

kiln_status kiln_predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    if (!P || !model || !X) return ki_fail(KILN_ERR_ARGUMENT, "kiln_predict: an argument is NULL");
    const kiln_status status = ki_model_check(model);
    if (status != KILN_OK) return status;
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (algorithm->predict) return algorithm->predict(P, model, X);
    ki_fail(KILN_ERR_MODEL, "a model of %s predicts nothing", algorithm->shown.name);
    return algorithm->instead ? ki_hint("%s", algorithm->instead) : KILN_ERR_MODEL;
}

kiln_status kiln_transform(kiln_matrix **A, const kiln_model *model, const kiln_matrix *X) {
    if (!A || !model || !X) return ki_fail(KILN_ERR_ARGUMENT, "kiln_transform: an argument is NULL");
    const kiln_status status = ki_model_check(model);
    if (status != KILN_OK) return status;
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (algorithm->transform) return algorithm->transform(A, model, X);
    ki_fail(KILN_ERR_MODEL, "a model of %s has no factors", algorithm->shown.name);
    return ki_hint("models of als have");
}
