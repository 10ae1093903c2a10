/* Kiln's own file of data: all that reading has found, so that nothing is parsed, numbered or measured again.
 *
 *   8 bytes   little-endian length of the header
 *   header    JSON: {"__metadata__":{"format":"kiln data 1","rows":"...","columns":"..."},
 *             NAME:{"dtype":"U8","shape":[...],"data_offsets":[begin,end]},...}
 *   arrays    in the header's order, without gaps, little-endian, by rows
 *
 * It is a safetensors file, which other programs read, too. X is one of
 *   dense       "X.values" rows x columns
 *   sparse      "X.row_start", "X.columns" and "X.values" of the entries; without values each of them is 1
 *   categories  "X.categories" (first column, levels) of each, "X.codes" rows x their bytes, "X.values": a
 *               row's numbers in the other columns (core/codes/codes.h)
 * Values have the fewest bytes that hold them exactly. The last array, "checksums", has the CRC-32 of length
 * and header, that of each panel (KI_PANEL_BYTES) of each array before it, and that of these sums. */
#ifndef KI_PANELS_LAYOUT_H
#define KI_PANELS_LAYOUT_H

#include "io/chunks.h"
#include "io/data.h"
#include "io/numpy/npy.h"

enum { KI_PANEL_BYTES = KI_CHUNK_BYTES, KI_PANELS_HEADER_LIMIT = 1 << 16 };

enum ki_panels_name {
    KI_PANELS_VALUES,
    KI_PANELS_ROW_START,
    KI_PANELS_COLUMNS,
    KI_PANELS_CODES,
    KI_PANELS_CATEGORIES,
    KI_PANELS_Y,
    KI_PANELS_WEIGHTS,
    KI_PANELS_OFFSET,
    KI_PANELS_GROUPS,
    KI_PANELS_FILLED,
    KI_PANELS_LEFT_OUT,
    KI_PANELS_FEATURE_NAMES,
    KI_PANELS_ROW_NAMES,
    KI_PANELS_TARGET_NAMES,
    KI_PANELS_CLASS_COUNTS,
    KI_PANELS_CLASS_NAMES,
    KI_PANELS_ROLE_NAMES, /* in the order of enum ki_table_role, "" where there is none */
    KI_PANELS_SCHEMA,
    KI_PANELS_CHECKSUMS,
    KI_PANELS_ARRAYS
};

struct ki_panels_type {
    const char *name;
    char kind; /* as NumPy's (io/numpy/npy.h) */
    int bytes;
    kiln_element element; /* that such values are; TYPE: of none */
};

struct ki_panels_array {
    const struct ki_panels_type *type; /* NULL: the file has none of that name */
    int dimensions;
    int64_t shape[2]; /* the second is 1 of a vector */
    int64_t begin, bytes;
};

struct ki_panels {
    int64_t rows, cols;
    struct ki_panels_array array[KI_PANELS_ARRAYS];
    int64_t data, end; /* where the arrays begin, and end */
};

/* Returns the type of values of an element, or of a type, in the file. */
const struct ki_panels_type *ki_panels_values(kiln_element element, kiln_type type);
const char *ki_panels_name(enum ki_panels_name name);

/* The array follows those before it: p->end moves on. */
void ki_panels_add(struct ki_panels *p, enum ki_panels_name name, const struct ki_panels_type *type,
                   int64_t rows, int64_t cols, int dimensions);
/* Numbers in "checksums", of the arrays that there are. */
int64_t ki_panels_checksums(const struct ki_panels *p);
/* Length and header, appended; offsets of arrays count from their end. */
kiln_status ki_panels_put_header(struct ki_bytes *to, const struct ki_panels *p);
/* The same from the first bytes of a file of `size` bytes, all of which are the header's and the arrays'.
 * Every number is held against the others before it is used. ERR_PARSE, ERR_UNSUPPORTED: of another
 * version. */
kiln_status ki_panels_parse(struct ki_panels *p, const char *name, const void *bytes, int64_t available,
                            int64_t size);

#endif
