/* What reading a sparse matrix from an .npz archive and leaving it there have in common. */
#ifndef KI_NPZ_H
#define KI_NPZ_H

#include "io/data.h"
#include "io/npy.h"
#include "io/zip.h"

/* A member of the archive: its header, and its elements wherever they lie. */
struct ki_npz_array {
    struct ki_npy npy;
    const unsigned char *elements;
    int64_t count;
    struct ki_bytes room;
};

struct ki_npz {
    const kiln_read_options *options;
    const char *file;
    struct ki_bytes bytes; /* the archive, or its end */
    struct ki_zip_archive zip;
    int64_t left; /* bytes that members may still unpack to */
    struct ki_npz_array format, shape, indptr, indices, data;
    bool by_column; /* csc */
    int64_t rows, cols;
    int64_t lines, across; /* rows and cols, or cols and rows of csc */
};

/* Everything but indices and data, checked: they are (*start)[lines] at least. */
kiln_status ki_npz_outline(int64_t **start, struct ki_npz *s);
kiln_status ki_npz_fail(const struct ki_npz *s, kiln_status status, const char *reason);
void ki_npz_clear(struct ki_npz *s);

#endif
