/* Each system does this in its own way with the process that calls: process_linux.c and
 * process_macos.c define the same functions. */
#ifndef KILN_CLI_PROCESS_H
#define KILN_CLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_memory {
    int64_t now, most; /* bytes; 0 where the system does not tell */
};

struct process_memory process_memory(void);
/* Sets the most back to what is held now, where the system lets it. */
void process_memory_set_back(void);
/* The file of the program that runs, by a name with which it can be started. */
bool process_program(char *file, size_t bytes);
/* A child: it is killed when its parent ends, where the system sees to that. */
void process_ends_with_parent(void);

#endif
