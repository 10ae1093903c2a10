/* A matrix: shape, element type, format, and where its arrays lie. */
#ifndef KI_MATRIX_H
#define KI_MATRIX_H

#include "core/device.h"
#include "core/slots.h"
#include "kiln/codes.h"

/* The arrays of a matrix, in the order in which what follows counts them. */
enum { KI_VALUES, KI_ROW_START, KI_COL, KI_PARTS };

struct ki_file;
struct ki_codes;

/* Whoever lent memory to a matrix and to those that share it: told once, when the last of them is gone. */
struct ki_lender {
    int users;
    void (*release)(void *user);
    void *user;
};

struct kiln_matrix {
    kiln_device *device;
    kiln_type type;
    kiln_format format;
    int64_t rows, cols, nnz;
    /* On the device; empty while the matrix is not there (core/memory.h). */
    struct ki_buffer values;    /* dense: rows*cols, row-major; CSR: nnz */
    struct ki_buffer row_start; /* CSR: rows+1 of int64_t */
    struct ki_buffer col;       /* CSR: nnz of int32_t */
    /* CSR matrices that share their row starts and columns (core/share.c): the hidden matrix that owns these,
     * and no values; row_start and col above are its buffers then, as long as this matrix is on the device.
     * NULL: they are its own. */
    kiln_matrix *structure;
    int users;              /* of a hidden matrix; 0 = this is a matrix like any other */
    struct ki_slot *slots;  /* what was derived from it on this device */
    void *host[KI_PARTS];   /* the same in host memory, from ki_alloc; NULL where there is no valid copy */
    struct ki_file *file;   /* where values and columns may be read instead (core/file.h); NULL = nowhere */
    struct ki_codes *codes; /* in place of all arrays (core/codes/codes.h); NULL: none */
    kiln_element element;   /* of the values, wherever they lie (core/narrow/narrow.h); 0: of the type */
    double same;            /* KILN_ELEMENT_SAME: what all entries are, in place of values */
    kiln_matrix *here;      /* of rows that processes have, this one's (src/processes); NULL: X is whole */
    bool pinned;            /* the device reads the host copy at full speed */
    bool streams;   /* too large for the device: passes over it take it panel by panel (pass/stream.c) */
    int driven_out; /* how often others took its place on the device */
    bool lent_out;  /* others have its address (core/lend.c): it stays where it is */
    bool view;      /* rows of another matrix, which owns the buffers and is held */
    bool given;     /* its values came from outside: on a group, passes over it are split (pass/group.c) */
    int held;       /* by operations under way; a hidden matrix by those on the device that share it */
    int leaving;    /* of a hidden matrix: those of the holds that could be let go (ki_memory_room) */
    struct ki_lender
        *lender; /* of the arrays in lent_host and lent_buffers, a bit a part; NULL: all is its own */
    unsigned lent_host, lent_buffers;
    int64_t *filled; /* entries, ascending, where a number was missing (derived/fills.h); NULL: none */
    int64_t filled_count;
    kiln_matrix *newer, *older; /* of the device's, by last use */
};

static inline int64_t ki_type_bytes(kiln_type type) {
    return type == KILN_F32 ? 4 : 8;
}

/* Returns the bytes of a number of an element; 0 for KILN_ELEMENT_TYPE and KILN_ELEMENT_SAME. */
static inline int64_t ki_element_bytes(kiln_element element) {
    static const int8_t bytes[] = {[KILN_ELEMENT_TYPE] = 0, [KILN_ELEMENT_U8] = 1,  [KILN_ELEMENT_I8] = 1,
                                   [KILN_ELEMENT_U16] = 2,  [KILN_ELEMENT_I16] = 2, [KILN_ELEMENT_F16] = 2,
                                   [KILN_ELEMENT_BF16] = 2, [KILN_ELEMENT_F32] = 4, [KILN_ELEMENT_SAME] = 0};
    return bytes[element];
}

/* ... of a value as A keeps it. */
static inline int64_t ki_value_bytes(const kiln_matrix *A) {
    return A->element ? ki_element_bytes(A->element) : ki_type_bytes(A->type);
}

/* `wide` of the kernels: what the device adds up in. */
static inline kiln_type ki_wide_type(const kiln_device *device) {
    return device->properties.has_f64 ? KILN_F64 : KILN_F32;
}

static inline const char *ki_type_name(kiln_type type) {
    return type == KILN_F32 ? "f32" : "f64";
}

static inline struct ki_buffer *ki_matrix_part(kiln_matrix *A, int part) {
    return part == KI_VALUES ? &A->values : part == KI_ROW_START ? &A->row_start : &A->col;
}

static inline int ki_matrix_parts(const kiln_matrix *A) {
    return A->format == KILN_CSR ? KI_PARTS : 1;
}

/* The parts that A itself owns: [first, end). */
static inline int ki_matrix_first(const kiln_matrix *A) {
    return A->users ? KI_ROW_START : KI_VALUES;
}

static inline int ki_matrix_end(const kiln_matrix *A) {
    return A->structure ? KI_ROW_START : ki_matrix_parts(A);
}

/* The matrix that owns a part of A. */
static inline const kiln_matrix *ki_matrix_owner(const kiln_matrix *A, int part) {
    return A->structure && part != KI_VALUES ? A->structure : A;
}

/* A part in host memory; NULL where there is no valid copy. */
static inline void *ki_matrix_host(const kiln_matrix *A, int part) {
    return ki_matrix_owner(A, part)->host[part];
}

static inline int64_t ki_matrix_part_bytes(const kiln_matrix *A, int part) {
    return part == KI_ROW_START ? (A->rows + 1) * 8 : A->nnz * (part == KI_COL ? 4 : ki_value_bytes(A));
}

static inline int64_t ki_matrix_bytes(const kiln_matrix *A) {
    int64_t bytes = 0;
    for (int part = 0; part < ki_matrix_parts(A); part++) bytes += ki_matrix_part_bytes(A, part);
    return bytes;
}

/* ... of what is its own. */
static inline int64_t ki_matrix_own_bytes(const kiln_matrix *A) {
    int64_t bytes = 0;
    for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++)
        bytes += ki_matrix_part_bytes(A, part);
    return bytes;
}

static inline bool ki_matrix_resident(const kiln_matrix *A) {
    return (A->users ? A->row_start : A->values).handle != 0;
}

/* Gives a new matrix its arrays, host memory from ki_alloc: no copy on the CPU, an upload elsewhere, or they
 * stay in host memory where the device has no room. On success they belong to the matrix, on failure to the
 * caller. */
kiln_status ki_matrix_place(kiln_matrix *A, void *const memory[KI_PARTS]);
/* A has a valid copy outside its device. */
static inline bool ki_matrix_clean(const kiln_matrix *A) {
    return A->host[ki_matrix_first(A)] || A->file;
}

/* A matrix whose values, and columns, lie in a file, which belongs to it from then on, as does row_start
 * (NULL if dense). The file has been checked. Passes on the CPU stream it; other devices may also bring
 * it. */
kiln_status ki_matrix_adopt_file(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                 int64_t cols, int64_t nnz, int64_t *row_start, struct ki_file *file);
/* A sharing matrix is on its device, or leaves it: its structure comes along and stays as long. */
kiln_status ki_structure_hold(kiln_matrix *A);
void ki_structure_release(kiln_matrix *A);
/* Frees what a matrix consists of, but for the struct itself. */
void ki_matrix_clear(kiln_matrix *A);
/* Tells what ERR_DATA says of arrays that are no compressed sparse rows: starts from 0 that do not
 * decrease; columns in [0, cols), at most once a row. */
kiln_status ki_csr_check_starts(const int64_t *row_start, int64_t rows);
kiln_status ki_csr_check_columns(const int64_t *row_start, const int32_t *col, int64_t rows, int64_t cols);
/* ERR_UNSUPPORTED for what needs all of an A whose rows lie in several processes. */
kiln_status ki_matrix_fail_away(const kiln_matrix *A);
/* From now on A has all of its arrays, in its type, in place of codes (core/codes/codes.h) or narrow values
 * (core/narrow/narrow.h); nothing is done where it has them. */
kiln_status ki_matrix_expand(const kiln_matrix *A);
/* Checks a matrix's shape and type: ERR_ARGUMENT, or ERR_UNSUPPORTED of a type that the device lacks. */
kiln_status ki_check_shape(const kiln_device *device, kiln_type type, int64_t rows, int64_t cols);
/* A matrix that has no arrays yet. */
kiln_status ki_matrix_shell(kiln_matrix **A, kiln_device *device, kiln_type type, kiln_format format,
                            int64_t rows, int64_t cols);
/* Values in memory of their own, from ki_alloc; NULL: ones. */
kiln_status ki_values_copy(void **copy, kiln_type type, int64_t n, const void *values);
/* A dense matrix whose values are not yet written. */
kiln_status ki_matrix_new(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows, int64_t cols);
/* The same for an operation under way: it stays on the device until it is freed. */
kiln_status ki_matrix_new_held(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                               int64_t cols);
/* kiln_matrix_dense, but that without values what lies on the device is still to be set: *unset. */
kiln_status ki_matrix_dense(kiln_matrix **A, bool *unset, kiln_device *device, kiln_type type, int64_t rows,
                            int64_t cols, const void *values);
/* Take host arrays from ki_alloc over (see ki_matrix_place); on success they belong to the matrix, on failure
 * to the caller. The CSR form trusts its arrays: the caller has checked them. */
kiln_status ki_matrix_adopt_dense(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                  int64_t cols, void *values);
kiln_status ki_matrix_adopt_csr(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                int64_t cols, int64_t nnz, int64_t *row_start, int32_t *col, void *values);

/* A to another device (core/move.c); from the CPU without a second copy in host memory. On failure A
 * stays. */
kiln_status ki_matrix_move(kiln_matrix *A, kiln_device *device);

#endif
