/* The text that a backend's compiler gets: element type, dialect, shared formulas, kernel file. */
#ifndef KI_KERNEL_SOURCE_H
#define KI_KERNEL_SOURCE_H

#include "kiln.h"

/* *source comes from ki_resize. dialect: the backend's name; file: the kernel file's stem. */
kiln_status ki_kernel_source(char **source, const char *dialect, const char *file, kiln_type type);

#endif
