/* This file says what is derived from a sparse matrix on a GPU: when which part of it is due. */
#include "core/arguments.h"
#include "core/limits.h"
#include "core/seams.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(values_differ);

enum { GROUP = 256 };

int ki_rows_vector(const kiln_device *device, int64_t nnz, int64_t rows) {
    const double mean = (double)nnz / (double)ki_max(rows, 1);
    int VS = 1;
    while (VS * (mean > 32 ? 6 : VS > 1 ? 5.5 : 5) < mean && VS < (device->properties.is_gpu ? 32 : 4))
        VS *= 2;
    return VS;
}

/* ---- launches ---- */

kiln_status ki_derive_for_all(kiln_device *device, const char *function, const char *defines, kiln_type type,
                              int64_t n, const struct ki_arg *args, int count) {
    return ki_kernel_run(device, "derived", function, type, defines, ki_min(ki_ceil_div(n, GROUP), 1 << 15),
                         GROUP, args, count);
}

kiln_status ki_derive_in_ranges(kiln_device *device, const char *function, const char *defines,
                                kiln_type type, int64_t n, const struct ki_arg *args, int count) {
    int64_t chunk;
    return ki_kernel_run(device, "derived", function, type, defines, ki_ranges(&chunk, n) / KI_RANGE_GROUP,
                         KI_RANGE_GROUP, args, count);
}

kiln_status ki_number_at(int32_t *value, kiln_device *device, const struct ki_buffer *from, int64_t i) {
    return ki_device_download(device, value, from, i * 4, 4);
}

/* ---- what is known of X ---- */

struct history {
    int64_t passes;
    bool looked, alike; /* at the values, which are all `value` */
    bool short_of_memory;
    double value;
};

static const struct ki_slot_kind slot_history = {.name = "what is known of a matrix",
                                                 .size = sizeof(struct history)};

static kiln_status look_at_values(struct history *history, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer found = {0};
    int32_t differs = 0;
    float first32;
    kiln_status status;
    TRY(ki_device_alloc(device, &found, 4));
    TRY(ki_device_upload(device, &found, 0, &differs, 4));
    TRY(ki_derive_for_all(device, "values_differ", "-DALIKE", X->type, X->nnz,
                          KI_PACK(values_differ, X, .found = &found, .X = &X->values, .nnz = X->nnz)));
    TRY(ki_number_at(&differs, device, &found, 0));
    history->looked = true;
    if (differs) goto done;
    if (X->type == KILN_F32) {
        TRY(ki_device_download(device, &first32, &X->values, 0, 4));
        history->value = first32;
    } else {
        TRY(ki_device_download(device, &history->value, &X->values, 0, 8));
    }
    history->alike = true;
done:
    ki_device_release(device, &found);
    return status;
}

/* ---- what is due ---- */

/* Offsets into panels are of 32 bits, and a group's last turn reaches beyond its piece. A device may have
 * less memory on chip than OpenCL promises of all but small ones. */
static bool panels_due(const kiln_matrix *X, const struct ki_popular *popular) {
    const bool cached = popular->count ? X->cols <= popular->count
                                       : X->cols * ki_type_bytes(X->type) <= ki_limits.cached_bytes;
    return !X->device->options.deterministic && !cached && X->nnz <= INT32_MAX - ki_limits.piece &&
           X->rows <= INT32_MAX && ki_panels_fit(X->device) && !ki_slot_get(X, &ki_slot_panels);
}

static bool worth_ranking(const kiln_matrix *X, int64_t chip_columns) {
    return X->nnz >= ki_limits.columns_entries && X->cols > chip_columns;
}

static kiln_status make(bool *made, struct history *history, const kiln_matrix *X, bool again, int64_t chip) {
    const bool columns = again && worth_ranking(X, chip);
    kiln_status status = KILN_OK;
    if (!history->looked && !X->element && X->nnz >= ki_limits.rows_entries && !X->view) {
        *made = true;
        TRY(look_at_values(history, X));
    }
    if (X->device->options.deterministic && !ki_slot_get(X, &ki_slot_transpose)) {
        *made = true;
        TRY(ki_transpose_make(X, !history->alike));
    }
    if (columns && !history->short_of_memory && !ki_slot_get(X, &ki_slot_popular)) {
        *made = true;
        TRY(ki_popular_make(X, chip));
    }
    const struct ki_popular *popular = ki_slot_get(X, &ki_slot_popular);
    if (columns && !history->short_of_memory && panels_due(X, popular)) {
        *made = true;
        TRY(ki_panels_make(X, popular, !history->alike));
    }
done:
    return status;
}

/* Too little memory is no error where passes can do without. A deterministic pass needs the transpose: the
 * rest changes no order of sums. */
static kiln_status make_or_do_without(bool *made, struct history *history, const kiln_matrix *X, bool again,
                                      int64_t chip) {
    const kiln_status status = make(made, history, X, again, chip);
    if (status != KILN_ERR_DEVICE_NOMEM) return status;
    if (X->device->options.deterministic && !ki_slot_get(X, &ki_slot_transpose)) return status;
    history->short_of_memory = true;
    ki_device_message(X->device, "no memory left for what passes over a sparse matrix derive from it: %s",
                      kiln_last_error()->message);
    return KILN_OK;
}

static void find(struct ki_derived *derived, const struct history *history, const kiln_matrix *X) {
    static const struct ki_rows none = {.longest = INT32_MAX};
    const struct ki_rows *rows = ki_slot_get(X, &ki_slot_rows);
    const struct ki_popular *popular = ki_slot_get(X, &ki_slot_popular);
    *derived = (struct ki_derived){.passes = history->passes,
                                   .rows = rows ? rows : &none,
                                   .popular = popular && popular->count ? popular : NULL,
                                   .panels = ki_slot_get(X, &ki_slot_panels),
                                   .transpose = ki_slot_get(X, &ki_slot_transpose),
                                   .alike = history->alike,
                                   .value = history->value};
}

static void tell(const struct ki_derived *derived, const kiln_matrix *X, double seconds) {
    const double memory = (double)(X->row_start.bytes + X->col.bytes + X->values.bytes);
    const int64_t bytes = ki_slots_bytes(X);
    if (X->view || (bytes == 0 && !derived->alike)) return; /* a view's is made in every pass */
    ki_device_message(
        X->device,
        "derived from a sparse matrix, %lld x %lld: %lld popular columns, %lld entries %s, %lld "
        "long rows or pieces of them%s; %.3f s, %.3f of its memory",
        (long long)X->rows, (long long)X->cols, (long long)(derived->popular ? derived->popular->count : 0),
        (long long)(derived->transpose ? X->nnz
                    : derived->panels  ? derived->panels->entries
                                       : 0),
        derived->transpose ? "transposed" : "in panels",
        (long long)derived->rows->ends[KI_ROW_LISTS - 1] + (long long)derived->rows->segments,
        derived->alike ? ", all values alike" : "", seconds, (double)bytes / memory);
}

bool ki_derived_programs(struct ki_programs *programs, const kiln_matrix *X, int64_t chip_columns) {
    if (X->nnz < ki_limits.rows_entries || X->rows > INT32_MAX) return false;
    ki_programs_add(programs, "derived", "rows_count", KILN_F32,
                    KI_DEFINES("-DROWS -DCLASSES=%d", KI_ROW_CLASSES));
    ki_programs_add(programs, "derived", "scan_sum", KILN_F32, "-DSCAN");
    ki_programs_add(programs, "derived", "values_differ", X->type, "-DALIKE");
    if (!worth_ranking(X, chip_columns)) return false;
    ki_popular_programs(programs, X->device);
    ki_programs_add(programs, "derived", "sort_count", KILN_F32, "-DSORT");
    ki_programs_add(programs, "derived", "pack_hot", X->type, "-DPACK");
    return true;
}

kiln_status ki_derived_get(struct ki_derived *derived, const kiln_matrix *X, bool scatters,
                           int64_t chip_columns) {
    kiln_device *device = X->device;
    const double began = ki_clock();
    struct history *history = ki_slot_record(X, &slot_history);
    bool made = false;
    kiln_status status = KILN_OK;
    if (!history) return KILN_ERR_NOMEM;
    if (X->element) {
        history->alike = true;
        history->value = X->same;
    }
    const bool again = scatters && history->passes + 1 >= ki_limits.due;
    history->passes += scatters || history->passes == 0;
    if (X->nnz >= ki_limits.rows_entries && X->rows <= INT32_MAX && !X->view &&
        !ki_slot_get(X, &ki_slot_rows)) {
        made = true;
        TRY(ki_rows_make(X));
    }
    if (X->nnz > 0 && (again || (scatters && device->options.deterministic)))
        TRY(make_or_do_without(&made, history, X, again, chip_columns));
    find(derived, history, X);
    if (made) {
        TRY(device->backend->sync(device));
        device->statistics.layout_seconds += ki_clock() - began;
        tell(derived, X, ki_clock() - began);
    }
done:
    return status;
}
