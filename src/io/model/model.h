/* A model as its file has it, before anybody has asked whether its algorithm can use it. */
#ifndef KI_MODEL_H
#define KI_MODEL_H

#include "kiln/models.h"
#include "io/model/container.h"

struct kiln_model {
    struct ki_container content;
};

kiln_status ki_model_new(kiln_model **model,
                         const char *algorithm); /* empty, but for algorithm and version */
/* The whole file is checked but for what the algorithm wants: format, checksum, limits, finite numbers. */
kiln_status ki_model_read(kiln_model **model, const char *path);
kiln_status ki_model_write(const kiln_model *model, const char *path); /* as a whole or not at all */

/* A file of that format, whatever it means and whatever its numbers. write: as a whole or not at all;
 * *bytes, which may be NULL: how long it is. read fills a zeroed container, which stays empty on failure. */
kiln_status ki_container_write(int64_t *bytes, const struct ki_container *container, const char *path);
kiln_status ki_container_read(struct ki_container *container, const char *path);

/* ERR_MODEL unless the text `key` is absent or a JSON array of `count` strings. */
kiln_status ki_model_check_names(const kiln_model *model, const char *key, int64_t count);

#endif
