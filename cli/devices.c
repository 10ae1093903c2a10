/* kiln devices: what there is, and why what is not usable is not; and what starting one takes. */
#include <stdlib.h>

#include "common.h"
#include "listing.h"
#include "verbs.h"

static json_t *device_json(const kiln_device_info *info) {
    json_t *object = json_object();
    json_put_text(object, "name", info->name);
    json_put_text(object, "description", info->description);
    json_put_flag(object, "usable", info->usable);
    json_put_flag(object, "gpu", info->is_gpu);
    json_put_count(object, "memory", info->memory);
    json_put_count(object, "threads", info->threads);
    json_put_text(object, "reason", *info->reason ? info->reason : NULL);
    json_put_text(object, "hint", *info->hint ? info->hint : NULL);
    return object;
}

static void print_device(const kiln_device_info *info) {
    if (info->usable) {
        printf("%-12s  %-6s  %9s  %s\n", info->name, "yes", text_bytes((double)info->memory),
               info->description);
        return;
    }
    printf("%-12s  %-6s  %9s  %s\n", info->name, "no", "", *info->reason ? info->reason : info->description);
    if (*info->hint) printf("%33shint: %s\n", "", info->hint);
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

/* What cli/process.c times, too. */
static int start_device(struct run *run) {
    const int code = run_open_device(run, "auto");
    if (code) return code;
    if (use(run->device) != KILN_OK) return fail_library(WORKING);
    const double seconds = clock_seconds() - run->started;
    if (talk_json()) {
        json_t *object = run_json(run, "kiln.devices/1");
        run_json_device(run, object);
        json_put_number(object, "start_seconds", seconds);
        return json_print(object);
    }
    printf("%s: started in %s\n", run->device_info.name, text_seconds(seconds));
    fflush(stdout); /* what fails is noticed when the stream is closed */
    return EXIT_DONE;
}

int verb_devices(struct run *run) {
    if (run->settings->start) return start_device(run);
    struct listing *listing = malloc(sizeof *listing);
    if (!listing) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the list of devices");
    int code = listing_make(run, listing);
    if (!code && talk_json()) {
        json_t *object = run_json(run, "kiln.devices/1"), *array = json_array();
        for (int64_t i = 0; i < listing->count; i++) json_add(array, device_json(&listing->rows[i].info));
        json_put(object, "devices", array);
        code = json_print(object);
    } else if (!code) {
        printf("%-12s  %-6s  %9s  %s\n", "DEVICE", "USABLE", "MEMORY", "DESCRIPTION");
        for (int64_t i = 0; i < listing->count; i++) print_device(&listing->rows[i].info);
    }
    free(listing);
    return code;
}
