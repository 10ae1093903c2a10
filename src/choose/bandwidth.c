/* Read bandwidth of a device: the roof under which every operation works.
 *
 * A buffer far larger than the caches is read by the plainest loop there is, several times; the fastest time
 * counts, since whatever else the machine does can only slow it down. */
#include <math.h>
#include <stdio.h>

#include "core/arguments.h"
#include "core/kernels/cache.h"
#include "core/seams.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "choose/bandwidth.cl"
#include "choose/stopwatch.h"

enum { GROUP = 256, REPEATS = 8 };

KI_ARGUMENTS(read);

/* One read of all of A; the sum is written out so that no compiler drops the reading. */
static kiln_status read_once(const kiln_matrix *A, kiln_matrix *sums) {
    kiln_device *device = A->device;
    kiln_status status;
    if (ki_on_cpu(device)) {
        ki_bodies(A)->read(A, sums);
        return KILN_OK;
    }
    TRY(ki_kernel_run(device, "bandwidth", "read", A->type, "", sums->nnz / GROUP, GROUP,
                      KI_PACK(read, A, .sums = sums, .A = A, .count = A->nnz / 4)));
    TRY(kiln_device_sync(device));
done:
    return status;
}

static kiln_status measure(double *bytes_per_second, kiln_device *device) {
    const struct ki_properties *properties = &device->properties;
    kiln_matrix *A = NULL, *sums = NULL;
    kiln_status status;
    /* f32, which every device has. Twice a processor's caches, through which one walk after the other finds
     * nothing of the one before; 4 GiB make launches negligible on a GPU. */
    int64_t bytes = properties->is_gpu ? (int64_t)4 << 30 : ki_max(2 * properties->cache, (int64_t)256 << 20);
    bytes = ki_min(ki_min(bytes, properties->alloc_max / 2),
                   (device->budget - device->statistics.memory_used) / 2);
    double best = INFINITY;
    if (bytes < 1 << 20)
        return ki_fail(KILN_ERR_DEVICE_NOMEM, "too little memory left to measure the bandwidth");
    TRY(ki_matrix_new(&A, device, KILN_F32, bytes / 4, 1));
    TRY(ki_matrix_new(&sums, device, KILN_F32, (int64_t)properties->compute_units * 8 * GROUP, 1));
    TRY(kiln_fill(A, 1.0));
    TRY(read_once(A, sums)); /* builds the kernel */
    for (int i = 0; i < REPEATS; i++) {
        const struct ki_stopwatch start = ki_stopwatch_begin();
        TRY(read_once(A, sums));
        best = fmin(best, ki_stopwatch_seconds(start, device));
    }
    *bytes_per_second = (double)bytes / best;
done:
    kiln_matrix_free(A);
    kiln_matrix_free(sums);
    return status;
}

kiln_status kiln_device_bandwidth(double *bytes_per_second, kiln_device *device, int remeasure) {
    if (!bytes_per_second || !device)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_bandwidth: an argument is NULL");
    char name[240];
    snprintf(name, sizeof name, "bandwidth %s %s", device->info.name, device->info.description);
    bool found = false;
    double value = 0;
    kiln_status status = KILN_OK;
    if (!remeasure) TRY(ki_cache_profile_get(&found, &value, device, name));
    if (!found) {
        if (!remeasure)
            ki_device_message(device, "measuring how fast device %s reads, once", device->info.name);
        TRY(measure(&value, device));
        TRY(ki_cache_profile_put(device, name, value));
    }
    *bytes_per_second = value;
done:
    return status;
}
