/* An .npy array's header and elements, wherever its bytes come from: a file, or a member of an .npz file. */
#ifndef KI_NPY_H
#define KI_NPY_H

#include "kiln/matrix.h"
#include "core/status.h"
#include "core/size.h"
#include "io/data.h"

enum { KI_NPY_HEADER_LIMIT = 64 << 10 };

struct ki_npy {
    char kind;        /* f i u b as NumPy names them; S or U for text; B: the first half of a float */
    bool swapped;     /* bytes are in the order that this machine does not use */
    bool fortran;     /* columns are stored one behind the other */
    int64_t itemsize; /* bytes of an element */
    int dimensions;   /* 0, 1 or 2 */
    int64_t shape[2]; /* {1, 1} for a scalar, {n, 1} for one dimension */
    int64_t bytes;    /* of all elements */
};

/* The header's length from the first `size` bytes of the file: magic, version and length itself take 10 or 12
 * of them. Fails if these are not there. */
kiln_status ki_npy_header_size(int64_t *size, const void *bytes, size_t available,
                               const struct ki_place *place);
/* Reads a whole header of ki_npy_header_size bytes. */
kiln_status ki_npy_header(struct ki_npy *npy, const void *bytes, size_t size, const struct ki_place *place);

/* Returns whether elements lie as values of the type would. */
bool ki_npy_native(const struct ki_npy *npy, kiln_type type);
/* The element that they are numbers of, where such are narrower than the type's; else TYPE. */
kiln_element ki_npy_element(const struct ki_npy *npy, kiln_type type);
/* The hint for a file that was to stay where it is, and has other elements. */
const char *ki_npy_remedy(const struct ki_npy *npy, kiln_type type);
double ki_npy_number(const struct ki_npy *npy, const void *element);
/* Returns whether elements lie by columns, so that their order is not that of values. */
bool ki_npy_by_columns(const struct ki_npy *npy);
/* Returns where the value of the file's element i is, of an array of at least one. */
int64_t ki_npy_value_at(const struct ki_npy *npy, int64_t i);
/* Elements of kind i or u to int64; false if an unsigned number is 2^63 or more. */
bool ki_npy_integers(int64_t *values, const struct ki_npy *npy, const void *bytes, int64_t count);
/* Fills label_text and odd_labels of a table whose one column of whole numbers may be labels (io/labels.h);
 * else does nothing. header: its bytes in the file. */
kiln_status ki_npy_labels(struct ki_table *table, const struct ki_npy *npy, const struct ki_file *file,
                          int64_t header, const kiln_read_options *options);

/* Numbers on their way from a file to values of a type. */
struct ki_numbers {
    const struct ki_npy *npy;
    kiln_type type;
    void *values;        /* NULL: they are only looked at */
    int64_t before;      /* how many came before the chunks' first */
    int64_t wanted;      /* what lies beyond is neither converted nor checked */
    bool any;            /* infinities and NaN are accepted */
    _Atomic int64_t bad; /* the first that is not finite, INT64_MAX: none yet */
    bool turned;         /* the elements lie by columns, the values by rows; the array is a whole one */
};
/* For struct ki_chunks; native values come straight to their place, unless they are turned. */
void ki_numbers_use(void *numbers, const unsigned char *raw, int64_t first, int64_t count);
/* The first element that is not finite, or count. */
int64_t ki_first_nonfinite(const void *values, kiln_type type, int64_t count);
/* Finds whether an array can be a matrix: numbers, one or two dimensions, columns in range. */
kiln_status ki_npy_check_matrix(const struct ki_npy *npy, const char *name);
/* The error for element i of a file whose header has so many bytes. */
kiln_status ki_npy_fail_nonfinite(const struct ki_npy *npy, const char *name, int64_t header, int64_t i,
                                  double value, kiln_type type);

#endif
