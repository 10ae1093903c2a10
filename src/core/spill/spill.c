/* Columns lie first in the file, values behind the room for all columns: where there are fewer entries, a
 * hole stays, which takes no space. */
#define _GNU_SOURCE
#include "core/spill/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/seams.h"
#include "core/size.h"

enum { WRITE_BYTES = 1 << 30, ATTEMPTS = 16, GROWS = 8 };

static const char *folder(void) {
    const char *named = secure_getenv("TMPDIR");
    return named && *named ? named : "/var/tmp";
}

static kiln_status fail(int code, const char *what) {
    ki_fail_errno(KILN_ERR_IO, code, "cannot %s a temporary file in %s: %s", what, folder(), strerror(code));
    return ki_hint("TMPDIR names a folder with room for another copy of the data");
}

static kiln_status create(struct ki_file *file) {
    char path[PATH_MAX];
    /* Without a name nothing is left of it whatever happens; some systems and file systems know of no such
     * files. */
    file->fd = -1;
#ifdef O_TMPFILE
    file->fd = ki_seams.open(folder(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (file->fd >= 0) return KILN_OK;
#endif
    for (int attempt = 0; attempt < ATTEMPTS && file->fd < 0; attempt++) {
        uint64_t word;
        if (getentropy(&word, sizeof word) != 0) return fail(errno, "name");
        if (snprintf(path, sizeof path, "%s/.kiln.%016llx.tmp", folder(), (unsigned long long)word) >=
            PATH_MAX)
            return fail(ENAMETOOLONG, "name");
        file->fd = ki_seams.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file->fd < 0 && errno != EEXIST && errno != EINTR) return fail(errno, "create");
    }
    if (file->fd < 0) return fail(EEXIST, "create");
    if (ki_seams.unlink(path) != 0) return fail(errno, "unlink");
    return KILN_OK;
}

static kiln_status make_room(struct ki_spill *spill, int64_t rows) {
    int64_t *grown = ki_resize(spill->row_start, (size_t)(rows + 1) * sizeof *grown);
    if (!grown) return ki_fail_nomem((size_t)(rows + 1) * sizeof *grown, "the row starts of a matrix");
    grown[0] = 0;
    spill->row_start = grown;
    spill->rows = rows;
    return KILN_OK;
}

kiln_status ki_spill_begin(struct ki_spill *spill, kiln_type type, int64_t rows, int64_t cols,
                           int64_t entries, kiln_format format) {
    kiln_status status;
    struct ki_file *file = ki_calloc(sizeof *file);
    *spill = (struct ki_spill){.file = file, .type = type, .rows = rows, .cols = cols};
    if (!file) return ki_fail_nomem(sizeof *file, "an open file");
    TRY(create(file));
    if (!(file->name = ki_strdup("a temporary file"))) TRY(ki_fail_nomem(17, "the name of a file"));
    if (format == KILN_DENSE) goto done;
    TRY(make_room(spill, rows));
    file->at[KI_VALUES] = ki_ceil_div(entries * (int64_t)sizeof(int32_t), 64) * 64;
done:
    if (status != KILN_OK) ki_spill_free(spill);
    return status;
}

static kiln_status put(const struct ki_file *file, const void *from, int64_t offset, int64_t bytes) {
    if (lseek(file->fd, (off_t)offset, SEEK_SET) < 0) return fail(errno, "write");
    for (int64_t done = 0; done < bytes;) {
        const ssize_t put =
            ki_seams.write(file->fd, (const char *)from + done, (size_t)ki_min(bytes - done, WRITE_BYTES));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail(errno, "write");
        done += put;
    }
    return KILN_OK;
}

kiln_status ki_spill_rows(struct ki_spill *spill, int64_t rows, const int64_t *start, const int32_t *col,
                          const void *values) {
    const bool sparse = spill->row_start;
    const int64_t begin = sparse ? spill->row_start[spill->row] : spill->row * spill->cols,
                  element = ki_type_bytes(spill->type),
                  entries = sparse ? start[rows] - start[0] : rows * spill->cols, needed = spill->row + rows;
    const struct ki_file *file = spill->file;
    kiln_status status = KILN_OK;
    if (sparse && (begin + entries) * (int64_t)sizeof *col > file->at[KI_VALUES])
        return ki_fail(KILN_ERR_LIMIT, "more entries than a temporary file was given room for");
    if (sparse && needed > spill->rows) TRY(make_room(spill, needed + needed / GROWS));
    if (sparse)
        TRY(put(file, col, file->at[KI_COL] + begin * (int64_t)sizeof *col, entries * (int64_t)sizeof *col));
    TRY(put(file, values, file->at[KI_VALUES] + begin * element, entries * element));
    for (int64_t i = 1; sparse && i <= rows; i++)
        spill->row_start[spill->row + i] = begin + start[i] - start[0];
    spill->row += rows;
done:
    return status;
}

static int64_t entries_of(const struct ki_spill *spill) {
    return spill->row_start ? spill->row_start[spill->row] : spill->row * spill->cols;
}

kiln_status ki_spill_close(struct ki_spill *spill, kiln_device *device) {
    const int64_t each = ki_type_bytes(spill->type) + (spill->row_start ? (int64_t)sizeof(int32_t) : 0);
    kiln_status status = KILN_OK;
    if (spill->row_start && spill->rows > spill->row) TRY(make_room(spill, spill->row));
    spill->rows = spill->row;
    TRY(ki_file_note(spill->file));
    ki_device_message(device, "%.1f MB of entries lie in a temporary file in %s",
                      1e-6 * (double)entries_of(spill) * (double)each, folder());
done:
    return status;
}

kiln_status ki_spill_end(kiln_matrix **A, struct ki_spill *spill, kiln_device *device) {
    kiln_status status;
    TRY(ki_spill_close(spill, device));
    TRY(ki_matrix_adopt_file(A, device, spill->type, spill->rows, spill->cols, entries_of(spill),
                             spill->row_start, spill->file));
    spill->file = NULL;
    spill->row_start = NULL;
done:
    return status;
}

void ki_spill_free(struct ki_spill *spill) {
    ki_file_close(spill->file);
    ki_free(spill->row_start);
    *spill = (struct ki_spill){0};
}
