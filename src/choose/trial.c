/* Running algorithms on made data, for the cost model (choose/trial.h). */
#include "choose/trial.h"

#include <math.h>

#include "core/seams.h"
#include "core/size.h"
#include "choose/stopwatch.h"

enum { FEW = 2, MANY = 14, REPEATS = 2 };
/* Twice as long as anything measured: what comes first on a processor where nothing has been measured yet. */
static const double BEFORE = 2e-3, WAITING = 100e-6;
/* Iterations that what comes before them takes as long as, at most. */
static const double PREPARING = 10;

/* Seconds of the fastest of a few runs, the first of which builds kernels. X is a new one for each, as what
 * an algorithm derives from X is part of what it takes. */
static kiln_status time_run(double *seconds, int64_t *done, kiln_device *device, kiln_type type, int64_t rows,
                            const struct kiln_trial *trial, int64_t iterations) {
    kiln_matrix *X = NULL;
    kiln_status status = KILN_OK;
    double best = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        TRY(trial->make(&X, device, type, rows));
        TRY(kiln_device_sync(device));
        const struct ki_stopwatch start = ki_stopwatch_begin();
        TRY(trial->run(done, X, iterations));
        TRY(kiln_device_sync(device));
        best = fmin(best, ki_stopwatch_seconds(start, device));
        kiln_matrix_free(X);
        X = NULL;
    }
    *seconds = best;
done:
    kiln_matrix_free(X);
    return status;
}

/* As many rows as half of the free memory has room for. */
static int64_t rows_that_fit(const kiln_device *device, int64_t rows, const struct kiln_trial *trial) {
    const double room = (double)(device->budget - device->statistics.memory_used) / 2;
    for (; rows > trial->rows[0]; rows /= 2) {
        const kiln_work work = trial->work(rows);
        if (trial->units(&work) * trial->bytes <= room) break;
    }
    return rows;
}

kiln_status ki_trial_measure(struct ki_trial_figures *figures, kiln_device *device, kiln_type type,
                             const struct kiln_trial *trial) {
    kiln_status status = KILN_OK;
    struct ki_trial_figures found = {{0}, {0}, {0}};
    for (int i = 0; i < KI_TRIALS; i++) {
        const bool grown = i == KI_TRIALS - 1 && device->properties.is_gpu;
        const int64_t rows = rows_that_fit(device, trial->rows[i] * (grown ? trial->times_gpu : 1), trial);
        const kiln_work work = trial->work(rows);
        double few, many;
        int64_t few_done, many_done;
        TRY(time_run(&few, &few_done, device, type, rows, trial, FEW));
        TRY(time_run(&many, &many_done, device, type, rows, trial, MANY));
        const double one = fmax(many - few, 0) / (double)ki_max(many_done - few_done, 1);
        /* Larger data never take less: what says so is noise. */
        found.units[i] = trial->units(&work);
        found.iteration[i] = fmax(one, i ? found.iteration[i - 1] : 1e-7);
        found.prepare[i] = fmax(few - (double)few_done * one, i ? found.prepare[i - 1] : 1e-7);
    }
    *figures = found;
done:
    return status;
}

void ki_trial_assume(struct ki_trial_figures *figures, const struct kiln_trial *trial, double threads) {
    for (int i = 0; i < KI_TRIALS; i++) {
        const kiln_work work = trial->work(trial->rows[i]);
        const double units = trial->units(&work), one = units * trial->slow / threads;
        figures->units[i] = units;
        figures->iteration[i] = WAITING + one;
        figures->prepare[i] = BEFORE + PREPARING * one;
    }
}
