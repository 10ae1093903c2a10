/* The slices of a matrix that lies on a group: consecutive rows with about as many entries for each member,
 * or, where vectors are long, some more for the first.
 *
 * On the CPU a slice is a view with row starts of its own. On GPUs the whole stays in host memory, from where
 * each member's memory manager takes its rows, keeps them, or streams them if they are too many: they are
 * matrices like any other to it. Of an X in a file a slice is the file once more, whose arrays begin at its
 * rows. */
#include <math.h>
#include <string.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "pass/group.h"
#include "core/home.h"

static const int64_t *row_starts(const kiln_matrix *X) {
    return ki_on_cpu(X->device) && !X->file ? ki_host(&X->row_start) : ki_matrix_host(X, KI_ROW_START);
}

/* The first row at or behind which `entries` lie before. */
static int64_t row_of(const kiln_matrix *X, int64_t entries) {
    return ki_row_at(row_starts(X), X->rows, entries, 0);
}

/* The entries that the first member takes beyond what each other one has: what it reads while they wait for a
 * vector, and while theirs is on its way back. */
static int64_t ahead(const kiln_matrix *X) {
    const double sparse = 0.17, dense = 0.9; /* of the memory's bandwidth that a pass gets, on an H200 */
    const double read = X->device->properties.bandwidth * (X->format == KILN_CSR ? sparse : dense);
    const int64_t vector = X->cols * ki_type_bytes(X->type);
    if (read == 0 || X->nnz == 0 || ki_group_collects(X->device, vector)) return 0;
    const double waits = 2 * ki_group_copy_seconds(X->device, vector),
                 pass = (double)ki_matrix_bytes(X) / read;
    return (int64_t)((double)(X->format == KILN_CSR ? X->nnz : X->rows) *
                     (waits < pass / 2 ? waits / pass : 0.5));
}

/* Before row r of n there are r (2 n - 1 - r) / 2 pairs. */
int64_t ki_row_of_pairs(int64_t n, double share) {
    enum { TILE = 64, MANY = 16 * TILE };
    const int64_t row = (int64_t)((double)n * (1 - sqrt(1 - share)));
    return n < MANY ? row : row / TILE * TILE;
}

/* By the shape, the row starts, the devices and their shares alone. As long as there are rows each member has
 * one. */
static void cut(struct ki_split *split, const kiln_matrix *X, const struct ki_shares *shares,
                enum ki_split_by how) {
    const int64_t parts = split->count, more = how == KI_BY_PAIRS ? 0 : ahead(X);
    for (int i = 1; i <= parts; i++) {
        const int64_t left = ki_max(X->rows - (parts - i), 0),
                      least = ki_min(split->first[i - 1] + 1, X->rows);
        const int64_t end =
            more + ki_shares_begin(shares, (X->format == KILN_CSR ? X->nnz : X->rows) - more, i);
        const int64_t row = how == KI_BY_PAIRS      ? ki_row_of_pairs(X->rows, shares->until[i])
                            : X->format == KILN_CSR ? row_of(X, end)
                                                    : end;
        split->first[i] = i == parts ? X->rows : ki_max(ki_min(row, left), least);
    }
}

/* Row starts that count from the slice's first entry. */
static kiln_status own_starts(int64_t **own, const kiln_matrix *X, int64_t first, int64_t rows) {
    const int64_t *start = row_starts(X) + first;
    *own = ki_alloc((size_t)(rows + 1) * 8);
    if (!*own) return ki_fail_nomem((size_t)(rows + 1) * 8, "a slice of a matrix");
    for (int64_t r = 0; r <= rows; r++) (*own)[r] = start[r] - start[0];
    return KILN_OK;
}

/* Values and columns are the whole's, row starts its own; in host memory, where a CPU computes with them. */
static void place(kiln_matrix *slice, const kiln_matrix *X, int64_t begin, int64_t *starts) {
    const bool here = ki_on_cpu(slice->device);
    for (int part = ki_matrix_first(slice); part < ki_matrix_end(slice); part++) {
        kiln_matrix *whole = (kiln_matrix *)(uintptr_t)X;
        const int64_t bytes = ki_matrix_part_bytes(slice, part);
        const int64_t at = begin * (part == KI_COL ? 4 : ki_value_bytes(X));
        const bool own = part == KI_ROW_START;
        char *memory = own ? (char *)starts
                           : (char *)(ki_on_cpu(X->device) ? ki_host(ki_matrix_part(whole, part))
                                                           : ki_matrix_host(X, part)) +
                                 at;
        if (here)
            *ki_matrix_part(slice, part) = (struct ki_buffer){(uintptr_t)memory, bytes, 0};
        else
            slice->host[part] = memory;
        if (here && own) ki_memory_count(slice->device, bytes);
        if (!own) *(here ? &slice->lent_buffers : &slice->lent_host) |= 1u << part;
    }
}

/* Its arrays begin where its first entry lies in the file, from which its member streams them. */
static kiln_status place_in_file(kiln_matrix *slice, const kiln_matrix *X, int64_t begin, int64_t *starts) {
    const kiln_status status = ki_file_again(&slice->file, X->file);
    if (status != KILN_OK) return status;
    slice->file->at[KI_VALUES] += begin * ki_file_value_bytes(X->file, X->type);
    slice->file->at[KI_COL] += begin * 4;
    slice->host[KI_ROW_START] = starts;
    slice->streams = ki_on_cpu(slice->device);
    return KILN_OK;
}

static kiln_status make_slice(struct ki_split *split, const kiln_matrix *X, int i) {
    const int64_t first = split->first[i], rows = split->first[i + 1] - first;
    kiln_device *member = X->device->group->member[i];
    kiln_matrix *slice = NULL;
    int64_t *starts = NULL, begin = first * X->cols, end = begin + rows * X->cols;
    kiln_status status;
    if (X->format == KILN_CSR) {
        TRY(own_starts(&starts, X, first, rows));
        begin = row_starts(X)[first];
        end = row_starts(X)[first + rows];
    }
    TRY(ki_matrix_shell(&slice, member, X->type, X->format, rows, X->cols));
    slice->nnz = end - begin;
    slice->element = X->element;
    slice->same = X->same;
    split->entry[i] = begin;
    split->entry[i + 1] = end;
    if (X->file)
        TRY(place_in_file(slice, X, begin, starts));
    else
        place(slice, X, begin, starts);
    split->X[i] = slice;
    return KILN_OK;
done:
    kiln_matrix_free(slice);
    ki_free(starts);
    return status;
}

void ki_split_free(kiln_device *device, void *data) {
    struct ki_split *split = data;
    (void)device;
    for (int i = 0; i < split->count; i++) kiln_matrix_free(split->X[i]);
    ki_free(split);
}

static const struct ki_slot_kind split_kinds[] = {
    {.name = "a group's slices", .size = sizeof(struct ki_split), .drop = ki_split_free},
    {.name = "a group's slices by pairs", .size = sizeof(struct ki_split), .drop = ki_split_free}};

/* Members take their rows from host memory, or from the file. */
static kiln_status bring_down(const kiln_matrix *X) {
    return ki_on_cpu(X->device) ? KILN_OK : ki_matrix_to_stream((kiln_matrix *)(uintptr_t)X);
}

kiln_status ki_split_in_memory(const kiln_matrix *X) {
    if (!X->file) return bring_down(X);
    ki_fail(KILN_ERR_UNSUPPORTED,
            "the matrix lies in a file, but group %s splits by columns what is in memory",
            X->device->info.name);
    return ki_hint("read the file without mapping it (--map)");
}

kiln_status ki_split_of(const struct ki_split **split, const kiln_matrix *X, enum ki_split_by how) {
    if (how == KI_BY_COLUMNS) return ki_split_columns_of(split, X);
    struct ki_split *made = ki_slot_get(X, &split_kinds[how]);
    struct ki_shares shares;
    kiln_status status = KILN_OK;
    *split = made;
    if (made) return KILN_OK;
    TRY(bring_down(X));
    ki_shares_of(&shares, X);
    if (!(made = ki_slot_new(&split_kinds[how]))) return KILN_ERR_NOMEM;
    made->count = X->device->group->count;
    cut(made, X, &shares, how);
    for (int i = 0; i < made->count && status == KILN_OK; i++) status = make_slice(made, X, i);
    TRY(ki_slot_keep(X, &split_kinds[how], made, status));
    *split = made;
done:
    return status;
}

/* -------------------------------------------------------------------------------- rows of operands */

static void free_rows(kiln_device *device, void *data) {
    struct ki_rows *rows = data;
    (void)device;
    for (int i = 0; i < rows->count; i++) kiln_matrix_free(rows->rows[i]);
    ki_free(rows);
}

/* compared: the group knows whether they are what the whole has. */
static const struct ki_slot_kind rows_kind = {.name = "rows of an operand on a group's members",
                                              .size = sizeof(struct ki_rows),
                                              .drop = free_rows,
                                              .compared = true};
static const struct ki_slot_kind copies_kind = {
    .name = "copies of an operand on a group's members", .size = sizeof(struct ki_rows), .drop = free_rows};

static kiln_status parts_of(struct ki_rows **rows, const kiln_matrix *A, const struct ki_slot_kind *kind,
                            int count, const int64_t first[KI_MEMBERS + 1]) {
    struct ki_rows *made = ki_slot_get(A, kind);
    /* Another X may be cut elsewhere. */
    if (made && memcmp(made->first, first, sizeof made->first) != 0) {
        ki_slot_drop(A, kind);
        made = NULL;
    }
    *rows = made;
    if (made) return KILN_OK;
    if (!(made = ki_slot_new(kind))) return KILN_ERR_NOMEM;
    made->count = count;
    memcpy(made->first, first, sizeof made->first);
    const kiln_status status = ki_slot_keep(A, kind, made, KILN_OK);
    if (status == KILN_OK) *rows = made;
    return status;
}

kiln_status ki_rows_of(struct ki_rows **rows, const kiln_matrix *A, int count,
                       const int64_t first[KI_MEMBERS + 1]) {
    return parts_of(rows, A, &rows_kind, count, first);
}

kiln_status ki_copies_of(struct ki_rows **copies, const kiln_matrix *A, int count) {
    static const int64_t all[KI_MEMBERS + 1];
    return parts_of(copies, A, &copies_kind, count, all);
}

bool ki_copies_there(const kiln_matrix *A) {
    return ki_slot_get(A, &copies_kind) != NULL;
}

const struct ki_rows *ki_rows_there(const kiln_matrix *A) {
    return ki_slot_get(A, &rows_kind);
}

void ki_copies_drop(const kiln_matrix *A, bool written) {
    ki_slot_drop(A, &copies_kind);
    if (ki_is_away(A) && !written) return;
    ki_slot_drop(A, &rows_kind);
    ki_away_end(A);
}
