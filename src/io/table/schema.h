/* This header has what a schema from a header and one from a model share. */
#ifndef KI_TABLE_SCHEMA_H
#define KI_TABLE_SCHEMA_H

#include "io/table/table.h"

/* `count` zeroed columns without a reference level. */
kiln_status ki_table_new_columns(struct ki_table_column **columns, int64_t count);
kiln_status ki_table_set_name(struct ki_table_column *column, const char *name);
/* Fills schema->targets with the columns that `target` names: the whole text if that is a column, else its
 * parts. */
kiln_status ki_table_find_targets(struct ki_table_schema *schema, char *const *names, int64_t count,
                                  const char *target, const struct ki_place *place);
/* Fills schema->roles. */
kiln_status ki_table_find_roles(struct ki_table_schema *schema, char *const *names, int64_t count,
                                const kiln_read_options *options, const struct ki_place *place);
/* Returns whether a column of the file is neither target nor weights nor offset. */
bool ki_table_is_free(const struct ki_table_schema *schema, int64_t field);

#endif
