/* A matrix changes devices. From the CPU its arrays are handed over as a reader's are (ki_device_adopt): no second
 * copy in host memory, which data that nearly fill it have no room for. */
#include "core/matrix.h"
#include "core/seams.h"

/* The parts of A in use. */
static int parts_of(struct ki_buffer **parts, kiln_matrix *A) {
    parts[0] = &A->values;
    parts[1] = &A->row_start;
    parts[2] = &A->col;
    return A->format == KILN_CSR ? 3 : 1;
}

static kiln_status fetch(void **memory, kiln_device *device, struct ki_buffer *const *parts, int count) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < count && status == KILN_OK; i++) {
        memory[i] = ki_alloc((size_t)parts[i]->bytes);
        status = memory[i] ? ki_device_download(device, memory[i], parts[i], 0, parts[i]->bytes)
                           : ki_fail_nomem((size_t)parts[i]->bytes, "a matrix on its way to another device");
    }
    return status;
}

kiln_status ki_matrix_move(kiln_matrix *A, kiln_device *device) {
    if (A->device == device) return KILN_OK;
    struct ki_buffer *parts[3], arrived[3];
    void *memory[3] = {NULL, NULL, NULL};
    int64_t bytes[3];
    kiln_status status = KILN_OK;
    const int count = parts_of(parts, A);
    const bool from_host = ki_on_cpu(A->device);
    for (int i = 0; i < count; i++) {
        bytes[i] = parts[i]->bytes;
        if (from_host) memory[i] = ki_host(parts[i]);
    }
    if (!from_host) TRY(fetch(memory, A->device, parts, count));
    TRY(ki_device_adopt(device, arrived, memory, bytes, count));
    for (int i = 0; i < count; i++) {
        /* What adopt took over is freed already and only counted out. */
        if (from_host)
            A->device->statistics.memory_used -= bytes[i];
        else
            ki_device_release(A->device, parts[i]);
        *parts[i] = arrived[i];
    }
    A->device = device;
    return KILN_OK;
done:
    for (int i = 0; i < count && !from_host; i++) ki_free(memory[i]);
    return status;
}
