/* kiln devices: what there is, and why what is not usable is not; and what starting one takes. */
#include <stdlib.h>

#include "common.h"
#include "device_list.h"
#include "verbs.h"

static void put_device(struct result *row, const void *of, int64_t i) {
    const kiln_device_info *info = &((const struct listing *)of)->rows[i].info;
    const bool reasoned = !info->usable && *info->reason, hinted = !info->usable && *info->hint;
    PUT(row, "name", TEXT(info->name), .label = "DEVICE", .width = -12);
    PUT(row, "usable", FLAG(info->usable), .label = "USABLE", .before = "  ", .width = -6);
    PUT(row, "memory", COUNT(info->memory), .label = "MEMORY", .before = "  ", .width = 9,
        .shown = info->usable ? result_words(row, "%s", text_bytes((double)info->memory)) : "");
    PUT(row, "description", TEXT(info->description));
    PUT(row, NULL, TEXT(reasoned ? info->reason : info->description), .label = "DESCRIPTION", .before = "  ",
        .after = hinted ? result_words(row, "\n%33shint: %s", "", info->hint) : NULL);
    PUT(row, "gpu", FLAG(info->is_gpu));
    PUT(row, "threads", COUNT(info->threads));
    PUT(row, "reason", TEXT(*info->reason ? info->reason : NULL));
    PUT(row, "hint", TEXT(*info->hint ? info->hint : NULL));
}

/* A pass over a small matrix, which loads kernels as any work does. */
static kiln_status use(kiln_device *device) {
    enum { ROWS = 2048, COLUMNS = 16 };
    kiln_matrix *X = NULL, *y = NULL, *w = NULL;
    kiln_status status = kiln_matrix_dense(&X, device, KILN_F32, ROWS, COLUMNS, NULL);
    if (status == KILN_OK) status = kiln_matrix_dense(&y, device, KILN_F32, COLUMNS, 1, NULL);
    if (status == KILN_OK) status = kiln_matrix_dense(&w, device, KILN_F32, COLUMNS, 1, NULL);
    if (status == KILN_OK) status = kiln_mmchain(w, 1, X, NULL, y, 0, NULL);
    if (status == KILN_OK) status = kiln_device_sync(device);
    kiln_matrix_free(X);
    kiln_matrix_free(y);
    kiln_matrix_free(w);
    return status;
}

/* Starts a device as run_open_device does, where it is timed. */
static int start_device(struct run *run) {
    const int code = run_open_device(run, "auto");
    if (code) return code;
    if (use(run->device) != KILN_OK) return fail_library(WORKING);
    const double seconds = clock_seconds() - run->started;
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.devices/1");
    run_put_device(&result, run);
    PUT(&result, "start_seconds", SECONDS(seconds), .before = ": started in ", .head = run->device_info.name);
    const int told = run_tell(run, &result);
    fflush(stdout); /* what fails is noticed when the stream is closed */
    return told;
}

int verb_devices(struct run *run) {
    if (run->settings->start) return start_device(run);
    struct listing *listing = malloc(sizeof *listing);
    if (!listing) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the list of devices");
    int code = listing_make(run, listing);
    if (!code) {
        struct result result;
        result_begin(&result);
        run_put(&result, run, "kiln.devices/1");
        PUT(&result, "devices", TABLE(listing->count, put_device, listing));
        code = run_tell(run, &result);
    }
    free(listing);
    return code;
}
