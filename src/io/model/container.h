/* This header says what a model file holds: two ordered lists, named matrices and named texts. */
#ifndef KI_CONTAINER_H
#define KI_CONTAINER_H

#include <stdbool.h>

#include "kiln/matrix.h"
#include "core/status.h"

enum {
    KI_NAME_LIMIT = 255, /* bytes of a name or key */
    KI_TENSOR_LIMIT = 256,
    KI_TEXT_LIMIT = 1024
};

struct ki_tensor {
    char *name;
    kiln_type type;
    int64_t rows, cols;
    void *values; /* row-major */
};

struct ki_text {
    char *key, *value;
};

/* Both lists in ascending byte order of their names, without duplicates. */
struct ki_container {
    struct ki_tensor *tensors;
    struct ki_text *texts;
    int64_t tensor_count, text_count;
};
void ki_container_clear(struct ki_container *container); /* frees all and zeroes the struct */

/* Insert, or replace what has the same name. A name is printable UTF-8 of 1 to 255 bytes, a value UTF-8.
 * `values` comes from ki_alloc and belongs to the container after success. */
kiln_status ki_container_set_text(struct ki_container *container, const char *key, const char *value);
kiln_status ki_container_set_tensor(struct ki_container *container, const struct ki_tensor *tensor);

/* NULL if there is none of that name. */
const struct ki_tensor *ki_container_tensor(const struct ki_container *container, const char *name);
const char *ki_container_text(const struct ki_container *container, const char *key);

bool ki_is_name(const char *text); /* printable UTF-8 of 1 to 255 bytes */

#endif
