/* The address of a matrix's values for others: the reverse of derived/wrap.c. What others have the address
 * of is no longer driven out. */
#include "core/matrix.h"
#include "core/processes.h"
#include "core/sized.h"

static kiln_status check(const kiln_matrix *A) {
    if (A->format != KILN_DENSE) {
        ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_lend: the matrix is sparse");
        return ki_hint("kiln_matrix_get_csr, which copies it");
    }
    if (A->file && !ki_matrix_resident(A))
        return ki_fail(KILN_ERR_UNSUPPORTED, "kiln_matrix_lend: the matrix lies in a file");
    if (ki_on_cpu(A->device)) return KILN_OK;
    if (ki_device_shares(A->device)) { /* others would write past the members' copies */
        ki_fail(KILN_ERR_UNSUPPORTED, "kiln_matrix_lend: %s is a group of devices", A->device->info.name);
        return ki_hint("kiln_matrix_get, or one of the devices");
    }
    if (A->device->properties.addresses) return KILN_OK;
    ki_fail(KILN_ERR_UNSUPPORTED, "kiln_matrix_lend: device %s has no pointers into its memory",
            A->device->info.name);
    return ki_hint("kiln_matrix_get, or a cuda device");
}

kiln_status kiln_matrix_lend(kiln_memory *memory, kiln_matrix *A) {
    if (!memory || !A) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_lend: memory or A is NULL");
    kiln_device *device = A->device;
    const struct ki_operand operand = {A, true};
    kiln_status status;
    TRY(KI_CHECK_RESULT(kiln_memory, memory));
    TRY(check(A));
    TRY(ki_operands_hold(device, &operand, 1));
    ki_operands_release(device, &operand, 1);
    TRY(kiln_device_sync(device));
    A->lent_out = true;
    const kiln_memory lent = {.type = A->type,
                              .rows = A->rows,
                              .cols = A->cols,
                              .values = ki_host(&A->values),
                              .on_device = !ki_on_cpu(device)};
    KI_GIVE(kiln_memory, memory, &lent);
done:
    return status;
}
