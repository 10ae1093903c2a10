#include "core/each.h"

#include <string.h>

#include "core/file.h"
#include "core/group/group.h"
#include "core/home.h"
#include "core/narrow/narrow.h"
#include "core/matrix.h"
#include "core/processes.h"

bool ki_in_processes(const kiln_matrix *X) {
    return X->here != NULL;
}

bool ki_lies_in_file(const kiln_matrix *X) {
    return X->file != NULL;
}

/* They share rows and columns. */
bool ki_pair_too_large(const kiln_matrix *X) {
    enum { SMALL = 8 }; /* and the factors that it is made of */
    const int64_t room = ki_memory_room(X->device);
    return !X->here && !ki_on_cpu(X->device) &&
           ki_matrix_bytes(X) + X->nnz * ki_type_bytes(X->type) > room - room / SMALL;
}

bool ki_lies_apart(const kiln_matrix *X) {
    return X->here || X->file;
}

kiln_status ki_transposed_apart(kiln_matrix **T, const kiln_matrix *X) {
    return X->here ? X->device->processes->transpose(T, X) : ki_transposed_in_file(T, X);
}

kiln_status ki_whole_of(const kiln_matrix **whole, kiln_matrix **own, const kiln_matrix *X) {
    const kiln_status status = X->here ? kiln_matrix_copy(own, X->device, X->type, X) : KILN_OK;
    *whole = X->here ? *own : X;
    return status;
}

void ki_matrix_not_shared(kiln_matrix *A) {
    A->given = false;
}

static const struct ki_slot_kind away_kind = {
    .name = "where a vector's rows are", .size = sizeof(struct ki_away), .compared = true};

static kiln_status bring_away(const kiln_matrix *A, void *to, int64_t first, int64_t count) {
    const struct ki_away *away = ki_slot_get(A, &away_kind);
    return away->bring((kiln_matrix *)(uintptr_t)A, to, first, count);
}

kiln_status ki_elements_get(void *to, const kiln_matrix *A, int64_t first, int64_t count) {
    const int64_t element = ki_type_bytes(A->type);
    if (A->here) return ki_matrix_fail_away(A);
    if (ki_is_away(A)) return bring_away(A, to, first, count);
    if (A->element) return ki_narrow_get(to, A, first, count);
    const kiln_status expanded = ki_matrix_expand(A);
    if (expanded != KILN_OK) return expanded;
    if (ki_matrix_resident(A))
        return ki_device_download(A->device, to, &A->values, first * element, count * element);
    if (!A->host[KI_VALUES]) return ki_matrix_read(to, A, KI_VALUES, first, count);
    memcpy(to, (const char *)A->host[KI_VALUES] + first * element, (size_t)(count * element));
    return KILN_OK;
}

kiln_status ki_file_entries_get(int32_t *col, void *values, const kiln_matrix *A, int64_t first,
                                int64_t count) {
    const kiln_status status = ki_matrix_read(col, A, KI_COL, first, count);
    return status == KILN_OK ? ki_matrix_read(values, A, KI_VALUES, first, count) : status;
}

kiln_status ki_rows_unchanged(const kiln_matrix *A) {
    return A->file ? ki_file_check(A->file) : KILN_OK;
}

kiln_status ki_each_run(kiln_matrix **made, double *sums, const struct ki_each *each, const kiln_matrix *X) {
    if (X->here) return X->device->processes->each(made, sums, each, X);
    if (X->file) return ki_each_in_file(made, sums, each, X);
    kiln_matrix *all[KI_EACH_MADE] = {NULL};
    double added[KI_EACH_SUMS] = {0};
    const kiln_status status = each->run(each, X, 0, 0, all, added);
    for (int i = 0; i < each->made; i++) {
        if (status == KILN_OK)
            made[i] = all[i];
        else
            kiln_matrix_free(all[i]);
    }
    if (status == KILN_OK && each->sums > 0) memcpy(sums, added, (size_t)each->sums * sizeof *sums);
    return status;
}

/* ---------------------------------------------------------------------------------- vectors that are away */

kiln_status ki_away_record(struct ki_away **away, const kiln_matrix *A) {
    *away = ki_slot_record(A, &away_kind);
    return *away ? KILN_OK : KILN_ERR_NOMEM;
}

bool ki_is_away(const kiln_matrix *A) {
    const struct ki_away *away = ki_slot_get(A, &away_kind);
    return away && away->bring;
}

kiln_status ki_matrix_home(const kiln_matrix *A) {
    return ki_is_away(A) ? bring_away(A, NULL, 0, A->nnz) : KILN_OK;
}

void ki_away_end(const kiln_matrix *A) {
    struct ki_away *away = ki_slot_get(A, &away_kind);
    if (away) away->bring = NULL;
}

kiln_status kiln_device_sharing(kiln_sharing *sharing, const kiln_device *device) {
    static const kiln_sharing none;
    if (!sharing || !device) return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_sharing: an argument is NULL");
    *sharing = device->group ? device->group->sharing : device->processes ? device->processes->sharing : none;
    return KILN_OK;
}
