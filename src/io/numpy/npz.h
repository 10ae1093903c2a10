/* This header has what reading a matrix from an .npz archive and leaving it there have in common. */
#ifndef KI_NPZ_H
#define KI_NPZ_H

#include "io/chunks.h"
#include "io/data.h"
#include "io/numpy/npy.h"
#include "io/numpy/zip.h"

/* A member of the archive that is an array: its header, and where it lies. */
struct ki_npz_array {
    struct ki_npy npy;
    const struct ki_zip_member *member;
    struct ki_zip_bytes bytes;
    int64_t header, count; /* bytes; elements */
    uint32_t crc;          /* of the header, where the member is not checked yet */
    struct ki_bytes room;
    bool unpacked;                /* bytes are known before it is opened */
    struct ki_zip_stream *stream; /* of a deflated member that is read in parts */
};

struct ki_npz {
    const kiln_read_options *options;
    const char *file;
    const struct ki_watch *watch;
    struct ki_bytes bytes; /* the archive, or its end */
    struct ki_zip_archive zip;
    int64_t left; /* bytes that members may still unpack to */
    struct ki_npz_array format, shape, indptr, indices, data;
    bool by_column; /* csc */
    int64_t rows, cols;
    int64_t lines, across; /* rows and cols, or cols and rows of csc */
};

/* Finds an array of the archive and reads its header. */
kiln_status ki_npz_open(struct ki_npz_array *array, struct ki_npz *s, const char *name);
/* All elements once, as struct ki_chunks does it, and then the member's checksum. */
kiln_status ki_npz_elements(struct ki_npz_array *array, struct ki_npz *s, void *straight,
                            void (*use)(void *of, const unsigned char *raw, int64_t first, int64_t count),
                            void *of);
/* An archive without a sparse matrix, into a zeroed table: X, and y where there is one; the arrays are
 * s->data and s->indices. */
kiln_status ki_npz_dense(struct ki_table *table, struct ki_npz *s);
/* Everything but indices and data, checked: they are (*start)[lines] at least. */
kiln_status ki_npz_outline(int64_t **start, struct ki_npz *s);
/* Sorts rows and sums what stands in one place. finite: all values are, or need not be; their sums may be
 * otherwise. */
kiln_status ki_npz_canonical(struct ki_table *table, bool finite, const struct ki_npz *s);
kiln_status ki_npz_fail(const struct ki_npz *s, kiln_status status, const char *reason);
void ki_npz_clear(struct ki_npz *s);

#endif
