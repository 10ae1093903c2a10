/* A picture of clusters. */
#ifndef CLI_PLOT_CLUSTERS_H
#define CLI_PLOT_CLUSTERS_H

#include <kiln.h>

/* centres k x n and the clusters' weights on the host; labels m x 1; names: of the columns where there are
 * one or two. Written as a whole or not at all; 0 or the exit code of an error that it has reported. */
int plot_clusters(const char *path, const char *title, const kiln_matrix *X, const kiln_matrix *labels,
                  const double *centres, const double *weights, int64_t k, const char *const names[2]);

#endif
