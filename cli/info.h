/* The two halves of kiln info. */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "common.h"

int info_model(struct run *run, const char *path);
int info_data(struct run *run, const char *path);

/* Of a CSV file: what its columns are. */
json_t *info_column_json(const void *data, int64_t i); /* NULL: there is none */
void info_print_columns(const kiln_data *data);

#endif
