/* The library's messages in the words of the tool. */
#ifndef CLI_WORDING_H
#define CLI_WORDING_H

#include <stddef.h>

/* Copies `text`, cut to `room`, so that it names what the user typed: an option's field
 * (kiln_logreg_options.max_iterations) as the option (--max-iterations), and the functions that were called
 * not at all. */
const char *wording(char *words, size_t room, const char *text);

#endif
