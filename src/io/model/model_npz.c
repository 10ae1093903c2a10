/* A model's tensors as numpy.savez would write them, and its texts that are lists, such as the names of rows,
 * as JSON in arrays of bytes: json.loads(file["columns"].item()). */
#include <stdio.h>
#include <string.h>

#include "io/model/model.h"
#include "io/numpy/npy_write.h"
#include "io/numpy/zip_write.h"
#include "io/output.h"

enum { NAME_BYTES = 64 };

struct members {
    struct ki_zip zip;
    char names[KI_ZIP_WRITTEN][NAME_BYTES]; /* which the archive's directory needs once more */
};

static kiln_status add(struct members *members, const char *name, const char *dtype, const char *shape,
                       const void *values, size_t bytes) {
    char header[KI_NPY_HEADER_BYTES];
    if (members->zip.count == KI_ZIP_WRITTEN || strlen(name) + 5 > NAME_BYTES)
        return ki_fail(KILN_ERR_LIMIT, "the model has more to write than %d arrays, or names too long",
                       KI_ZIP_WRITTEN);
    char *own = members->names[members->zip.count];
    snprintf(own, NAME_BYTES, "%s.npy", name);
    return ki_zip_add(&members->zip, own, header, ki_npy_print_header(header, dtype, shape), values, bytes);
}

static kiln_status add_tensor(struct members *members, const struct ki_tensor *tensor) {
    char shape[64];
    const size_t item = tensor->type == KILN_F32 ? sizeof(float) : sizeof(double);
    snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)tensor->rows, (long long)tensor->cols);
    return add(members, tensor->name, ki_npy_dtype(tensor->type), shape, tensor->values,
               (size_t)(tensor->rows * tensor->cols) * item);
}

static kiln_status add_text(struct members *members, const char *key, const char *text) {
    char dtype[32];
    snprintf(dtype, sizeof dtype, "|S%zu", strlen(text));
    return add(members, key, dtype, "()", text, strlen(text));
}

/* Tensors that a model keeps of its training data are not its result. */
static bool is_result(const char *name) {
    return strncmp(name, "seen_", 5) != 0;
}

kiln_status kiln_model_write_npz(const kiln_model *model, const char *path) {
    struct ki_output *output = NULL;
    struct members *members = NULL;
    const char *name;
    kiln_status status;
    if (!model || !path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_model_write_npz: an argument is NULL");
    TRY(ki_output_open(&output, path, false, NULL));
    if (!(members = ki_calloc(sizeof *members))) TRY(ki_fail_nomem(sizeof *members, "an archive"));
    members->zip.output = output;
    for (int64_t i = 0; (name = kiln_model_tensor_info(model, i, NULL, NULL, NULL)); i++)
        if (is_result(name)) TRY(add_tensor(members, ki_container_tensor(&model->content, name)));
    for (int64_t i = 0; (name = kiln_model_key(model, i)); i++)
        if (*kiln_model_text(model, name) == '[') TRY(add_text(members, name, kiln_model_text(model, name)));
    TRY(ki_zip_finish(&members->zip));
    status = ki_output_commit(output);
    output = NULL;
done:
    ki_output_abandon(output);
    ki_free(members);
    return status;
}
