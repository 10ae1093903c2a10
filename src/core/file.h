/* A matrix's arrays in a file, where they lie as they would in memory: data need not fit into it. They are
 * read with pread, not mapped: a file that is cut off, or whose disk fails, then is an error and no
 * signal. */
#ifndef KI_FILE_H
#define KI_FILE_H

#include "core/matrix.h"

/* Tells one state of a file from another, without its bytes. */
struct ki_file_state {
    int64_t bytes, device, number, modified[2], changed[2]; /* times in seconds and nanoseconds */
};

struct ki_file {
    int fd;
    char *name;
    struct ki_file_state state; /* when it was opened; all 0: none was noted */
    int64_t at[KI_PARTS];       /* where each array begins; row starts are in memory */
    kiln_element element;       /* of the values as they lie there; 0: of the matrix's type */
    bool ones;                  /* no values lie there, as each is 1 */
};

/* Opens a regular file for reading; *bytes is its size. */
kiln_status ki_file_open(struct ki_file **file, int64_t *bytes, const char *path);
void ki_file_close(struct ki_file *file);
/* Notes the state of the open file. */
kiln_status ki_file_note(struct ki_file *file);
/* ERR_IO where the state is no longer the one that was noted: what was read so far is of two files. The
 * times tell of every write that comes a tick of the system's clock after the opening (some milliseconds),
 * of a new name for the file, and of its end. */
kiln_status ki_file_check(const struct ki_file *file);
/* The same open file once more, of whose arrays one may begin elsewhere; both are closed. */
kiln_status ki_file_again(struct ki_file **again, const struct ki_file *file);
/* Bytes from `offset` on, all of them or an error that names the file. */
kiln_status ki_file_read(const struct ki_file *file, void *to, int64_t offset, int64_t bytes);
/* Returns the bytes that a value of a matrix of the type takes in the file. */
int64_t ki_file_value_bytes(const struct ki_file *file, kiln_type type);
/* Elements [first, first + count) of the array `part`; values become numbers of the type. */
kiln_status ki_file_elements(void *to, const struct ki_file *file, int part, kiln_type type, int64_t first,
                             int64_t count);
/* The first `count` of them a piece after the other: take(of, piece, bytes), until one fails. */
kiln_status ki_file_each(const struct ki_file *file, int part, kiln_type type, int64_t count,
                         kiln_status (*take)(void *of, const void *piece, size_t size), void *of);
/* The same, but as many as there are, or -1 with errno set and no error recorded: for threads that do not
 * report. */
int64_t ki_file_try(const struct ki_file *file, void *to, int64_t offset, int64_t bytes);
/* The error for bytes that could not be read: errno's value, or 0 where the file ends at `offset`. */
kiln_status ki_file_fail(const struct ki_file *file, int64_t offset, int code);
/* Elements [first, first + count) of an array of A, which lies in a file. Columns are checked each time: the
 * file may have changed since it was opened, and operations trust them. */
kiln_status ki_matrix_read(void *to, const kiln_matrix *A, int part, int64_t first, int64_t count);

#endif
