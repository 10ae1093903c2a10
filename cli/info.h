/* kiln info MODEL. */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "common.h"

int info_model(struct run *run, const char *path);

#endif
