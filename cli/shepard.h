/* The Shepard diagram of a layout: each pair's dissimilarity beside its distance. */
#ifndef CLI_SHEPARD_H
#define CLI_SHEPARD_H

#include <kiln.h>
#include <stdbool.h>

enum { SHEPARD_POINTS = 10000 }; /* at most: pairs are written one by one */

/* A .svg or .png is drawn, another file is CSV, one line a pair that counts, by dissimilarity. X: points, or
 * dissimilarities. Written as a whole or not at all; 0 or the exit code of an error that it has reported. */
int shepard_write(const char *path, const kiln_matrix *Y, const kiln_matrix *X, bool dissimilarities);

#endif
