/* The largest distance by label: zeros, and then whatever is larger. */
#include "ops/points/furthest.h"
#include "core/home.h"

#include "bodies/bodies.h"
#include "core/arguments.h"
#include "ops/points/furthest.cl"
#include "pass/combine.h"

KI_ARGUMENTS(furthest);

kiln_status ki_furthest(kiln_matrix *R, const kiln_matrix *distances, const kiln_matrix *labels) {
    kiln_status status;
    TRY(ki_matrix_home(distances));
    TRY(ki_matrix_home(labels));
    TRY(kiln_fill(R, 0));
    if (ki_on_cpu(R->device))
        ki_bodies(R)->furthest(R, distances, labels);
    else if (distances->rows > 0)
        TRY(ki_launch_elements(
            distances, distances->rows, "furthest", "furthest", "",
            KI_PACK(furthest, R, .R = R, .distances = distances, .labels = labels, .rows = distances->rows)));
done:
    return status;
}
