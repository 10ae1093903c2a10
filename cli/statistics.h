/* Options of kiln statistics, for its row in the table of verbs. */
#ifndef CLI_STATISTICS_H
#define CLI_STATISTICS_H

#include "options.h"

enum { STATISTICS_OPTIONS = 4 };
extern const struct option statistics_options[STATISTICS_OPTIONS];

#endif
