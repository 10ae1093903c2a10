/* What a ranking and its judge share. */
#ifndef CLI_HITS_H
#define CLI_HITS_H

#include <kiln.h>
#include <stdbool.h>

/* Vertices are numbered as the file has them: whether the model's, where it names them, are those of the data. */
bool hits_same_vertices(const kiln_model *model, const kiln_data *data);

#endif
