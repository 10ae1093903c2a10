/* A server's inner loop: one row at a time from a linear model, without allocation, and how long that takes:
 *
 *   04_serve flights.kiln [calls]
 *
 * The model is prepared once; each call then reads a row from the caller's memory and writes the result
 * there. Any number of threads may do that with one model. The rows here are random numbers, as a stranger's
 * model has no data. */
#define _POSIX_C_SOURCE 199309L
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Another row for each call, of the model's type. */
static void draw(void *row, kiln_type type, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        const double value = (double)rand() / RAND_MAX;
        if (type == KILN_F32)
            ((float *)row)[j] = (float)value;
        else
            ((double *)row)[j] = value;
    }
}

static kiln_status serve(const kiln_device *device, const kiln_model *loaded, int64_t calls) {
    kiln_row_model model = {.size = sizeof model};
    kiln_status status = kiln_row_model_of(&model, loaded);
    if (status) return status;
    void *row = malloc((size_t)model.inputs * sizeof(double));
    void *out = malloc((size_t)kiln_row_model_columns(&model) * sizeof(double));
    double *taken = malloc((size_t)calls * sizeof *taken);
    if (!row || !out || !taken) status = KILN_ERR_NOMEM;
    const kiln_memory X = {.type = model.type, .rows = 1, .cols = model.inputs, .values = row};
    for (int64_t call = 0; call < calls && !status; call++) {
        draw(row, model.type, model.inputs);
        const double begin = seconds();
        status = kiln_predict_rows(out, device, &model, &X);
        taken[call] = seconds() - begin;
    }
    if (!status) {
        qsort(taken, (size_t)calls, sizeof *taken, ascending);
        const double shares[] = {0.5, 0.9, 0.99, 0.999, 1};
        printf("%lld columns, %lld calls\n", (long long)model.inputs, (long long)calls);
        for (int i = 0; i < 5; i++)
            printf("%5.1f %% within %.2f us\n", 100 * shares[i],
                   1e6 * taken[(int64_t)(shares[i] * (double)(calls - 1))]);
    }
    free(row);
    free(out);
    free(taken);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: %s model.kiln [calls]\n", argv[0]), 2;
    const long calls = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
    kiln_device *device = NULL;
    kiln_model *model = NULL;
    kiln_status status = calls > 0 ? KILN_OK : KILN_ERR_ARGUMENT;
    if (!status) status = kiln_device_open(&device, "cpu", NULL);
    if (!status) status = kiln_model_load(&model, argv[1]);
    if (!status) status = serve(device, model, calls);
    if (status) fprintf(stderr, "%s\n", kiln_last_error()->message);
    kiln_model_free(model);
    kiln_device_close(device);
    return status != KILN_OK;
}
