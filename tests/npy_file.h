/* Writes files of .npy for tests of what stays in its file. */
#ifndef NPY_FILE_H
#define NPY_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/check.h"

/* rows x cols numbers go to a new file at `path`, a template of mkstemp. */
static void npy_file(char *path, int rows, int cols, const double *values) {
    const size_t bytes = (size_t)rows * (size_t)cols * sizeof *values;
    char header[128];
    const int fd = mkstemp(path);
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\1\0\x76\0", 10);
    const int length = snprintf(header + 10, sizeof header - 10,
                                "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols);
    header[10 + length] = ' ';
    header[127] = '\n';
    assert_true(fd >= 0 && write(fd, header, sizeof header) == sizeof header);
    assert_true(write(fd, values, bytes) == (ssize_t)bytes);
    close(fd);
}

#endif
