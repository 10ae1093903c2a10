/* A packed file's schema says which columns of a table X was made of. It is as little trusted as a model's:
 * it has to be valid, and what it makes are the columns, targets and classes that the file has. */
#include "core/seams.h"
#include "io/panels/panels.h"
#include "io/table/append.h"
#include "io/table/table.h"

/* The names that a table with the schema has. */
static kiln_status read_names(struct ki_table *said, struct ki_table_schema *schema, const char *text) {
    struct ki_table_levels levels, classes;
    int32_t *feature = NULL, *rank = NULL;
    kiln_status status;
    ki_table_levels_init(&levels);
    ki_table_levels_init(&classes);
    TRY(ki_table_schema_from_model(schema, &levels, &classes, text));
    TRY(ki_table_classes_finish(&rank, said, schema, &classes));
    TRY(ki_table_schema_finish(&feature, said, schema, &levels));
done:
    ki_free(feature);
    ki_free(rank);
    ki_table_levels_free(&levels);
    ki_table_levels_free(&classes);
    return status;
}

kiln_status ki_panels_check_schema(const struct ki_table *table, const struct ki_panels_reader *r) {
    struct ki_table_schema schema = {.count = 0};
    struct ki_table said = {.rows = 0};
    kiln_status status;
    if (!table->schema) return KILN_OK;
    status = read_names(&said, &schema, table->schema);
    if (status == KILN_ERR_MODEL) status = ki_panels_fail(r, KI_PANELS_SCHEMA, "the schema is damaged");
    TRY(status);
    if (!ki_table_agrees(&said, table))
        TRY(ki_panels_fail(r, KI_PANELS_SCHEMA, "the schema is that of other columns, targets or classes"));
done:
    ki_table_clear(&said);
    ki_table_schema_free(&schema);
    return status;
}
