#include "core/each.h"

#include <string.h>

#include "core/file.h"
#include "core/matrix.h"
#include "core/processes.h"

bool ki_in_processes(const kiln_matrix *X) {
    return X->here != NULL;
}

kiln_status ki_processes_transposed(kiln_matrix **T, const kiln_matrix *X) {
    return X->device->processes->transpose(T, X);
}

kiln_status ki_whole_of(const kiln_matrix **whole, kiln_matrix **own, const kiln_matrix *X) {
    const kiln_status status = X->here ? kiln_matrix_copy(own, X->device, X->type, X) : KILN_OK;
    *whole = X->here ? *own : X;
    return status;
}

kiln_status ki_elements_get(void *to, const kiln_matrix *A, int64_t first, int64_t count) {
    const int64_t element = ki_type_bytes(A->type);
    if (A->here) return ki_matrix_fail_away(A);
    if (ki_matrix_resident(A))
        return ki_device_download(A->device, to, &A->values, first * element, count * element);
    if (!A->host[KI_VALUES]) return ki_matrix_read(to, A, KI_VALUES, first, count);
    memcpy(to, (const char *)A->host[KI_VALUES] + first * element, (size_t)(count * element));
    return KILN_OK;
}

kiln_status ki_each_run(kiln_matrix **made, double *sums, const struct ki_each *each, const kiln_matrix *X) {
    if (X->here) return X->device->processes->each(made, sums, each, X);
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
