/* The options of kiln recommend alone. */
#ifndef CLI_RECOMMEND_H
#define CLI_RECOMMEND_H

#include "options.h"

enum { RECOMMEND_OPTIONS = 4 };
extern const struct option recommend_options[RECOMMEND_OPTIONS];

#endif
