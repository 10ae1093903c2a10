/* A method of one's own, by operations of the library: the power iteration for the largest singular value of
 * A.
 *
 *   v <- A^T A v / ||A^T A v||,   sigma^2 = ||A^T A v||, which rises
 *
 *   03_power_iteration [DEVICE]
 *
 * A is made here: which of 20 places in a row are neighbours. Its largest singular value is 2 cos(pi / 21) =
 * 1.9777. Vectors stay on the device, and one pass over A is all that an iteration takes; it is the same
 * source on a CPU and on a GPU, for a dense A and for a sparse one, in f32 and in f64. */
#include <kiln.h>
#include <math.h>
#include <stdio.h>

enum { PLACES = 20, MOST = 1000 };

/* Holds what a run holds, freed together in whatever state it is. */
struct run {
    kiln_device *device;
    kiln_matrix *A, *v, *next;
};

static void run_free(struct run *run) {
    kiln_matrix_free(run->A);
    kiln_matrix_free(run->v);
    kiln_matrix_free(run->next);
    kiln_device_close(run->device);
}

/* A by rows: place i is next to i - 1 and i + 1. */
static kiln_status make_neighbours(struct run *run) {
    int64_t row_start[PLACES + 1] = {0}, count = 0;
    int32_t col[2 * PLACES];
    double ones[2 * PLACES];
    for (int i = 0; i < PLACES; i++) {
        for (int j = i - 1; j <= i + 1; j += 2)
            if (j >= 0 && j < PLACES) col[count] = j, ones[count++] = 1;
        row_start[i + 1] = count;
    }
    return kiln_matrix_csr(&run->A, run->device, KILN_F64, PLACES, PLACES, row_start, col, ones);
}

/* v = 1 / sqrt(n) throughout: no negative number, so that it has a part in the direction that is sought. */
static kiln_status begin(struct run *run, const char *device) {
    kiln_status status = kiln_device_open(&run->device, device, NULL);
    if (!status) status = make_neighbours(run);
    if (!status) status = kiln_matrix_dense(&run->v, run->device, KILN_F64, PLACES, 1, NULL);
    if (!status) status = kiln_matrix_dense(&run->next, run->device, KILN_F64, PLACES, 1, NULL);
    if (!status) status = kiln_fill(run->v, 1 / sqrt(PLACES));
    return status;
}

/* *square = ||A^T A v||, and v becomes that direction. */
static kiln_status step(double *square, struct run *run) {
    kiln_status status = kiln_mmchain(run->next, 1, run->A, NULL, run->v, 0, NULL); /* next = A^T A v */
    if (!status) status = kiln_norm(square, run->next, KILN_NORM_2);
    const double scale = 1 / *square;
    if (!status) status = kiln_combine(run->v, &scale, run->next, NULL, NULL); /* v = next / ||next|| */
    return status;
}

int main(int count, char **arguments) {
    struct run run = {0};
    double square = 0, before = -1;
    int steps = 0;
    kiln_status status = begin(&run, count > 1 ? arguments[1] : "cpu");
    for (; !status && steps < MOST && square - before > 1e-12 * square; steps++) {
        before = square;
        status = step(&square, &run);
    }
    if (status)
        fprintf(stderr, "%s\n", kiln_last_error()->message);
    else
        printf("largest singular value %.4f after %d steps\n", sqrt(square), steps);
    run_free(&run);
    return status != KILN_OK;
}
