/* The two halves of kiln info. */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "common.h"

int info_model(struct run *run, const char *path);
int info_data(struct run *run, const char *path);

void info_put_columns(struct result *result, const kiln_data *data); /* what the columns of a CSV file are */

#endif
