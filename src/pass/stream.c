/* An operation on the rows of an X that is too large for its device, such as a pass:  for each panel X_i of
 * rows w += alpha X_i^T (v_i .* (X_i y)).
 *
 * Two panels' room on the device: while one is computed with, the next is on its way (double buffering). The
 * first panels stay, if there is room for them (pass/kept.h), and only the others move. A panel is a matrix
 * of its own to the bodies and kernels; pass/roles.h takes the operands at its rows and adds up. */
#include <string.h>

#include "core/feeder.h"
#include "core/file.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/size.h"
#include "pass/kept.h"
#include "pass/roles.h"

struct stream {
    const struct ki_single *single;
    const kiln_matrix *X;
    kiln_device *device;
    struct ki_panel *panels;
    int64_t count, rows_max, entries_max;
    int ahead;                      /* places in host memory */
    void *host[KI_AHEAD][KI_PARTS]; /* what is on its way, panel base + i at i % ahead */
    struct ki_buffer slots[KI_SLOTS][KI_PARTS];
    struct ki_kept *kept;     /* NULL: all panels move */
    int64_t base;             /* panels that are there already, or done: the first ones */
    int64_t done;             /* panels whose rows have their results */
    struct ki_feeder *feeder; /* NULL where X lies in host memory */
    struct ki_sums sums;
};

/* ---------------------------------------------------------------------------------------- panels */

static int64_t row_start(const kiln_matrix *X, int64_t row) {
    return X->format == KILN_DENSE ? row * X->cols : ((const int64_t *)ki_matrix_host(X, KI_ROW_START))[row];
}

/* `value`: of one. */
static int64_t panel_bytes(const kiln_matrix *X, int64_t first, int64_t rows, int64_t value) {
    const int64_t entries = row_start(X, first + rows) - row_start(X, first);
    return entries * (value + (X->format == KILN_CSR ? 4 : 0)) + (X->format == KILN_CSR ? (rows + 1) * 8 : 0);
}

/* Panels begin where a buffer of one column may: at multiples of so many rows. */
static int64_t quantum(const kiln_matrix *X) {
    return ki_max(X->device->properties.align / ki_type_bytes(X->type), 1);
}

/* Returns how many rows from `first` on take at most `target` bytes in X's type, a quantum at least: narrow
 * values are cut, and added up, as wide ones. */
static int64_t rows_within(const kiln_matrix *X, int64_t first, int64_t target) {
    const int64_t step = quantum(X), left = X->rows - first;
    int64_t low = 1, high = ki_ceil_div(left, step);
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (panel_bytes(X, first, ki_min(middle * step, left), ki_type_bytes(X->type)) <= target)
            low = middle;
        else
            high = middle - 1;
    }
    return ki_min(low * step, left);
}

/* The panels behind those that are done. */
static kiln_status cut(struct stream *s, int64_t target) {
    const kiln_matrix *X = s->X;
    const struct ki_panel *last = s->done ? &s->panels[s->done - 1] : NULL;
    int64_t first = last ? last->first + last->rows : 0;
    s->count = s->done;
    s->rows_max = s->entries_max = 0;
    for (; first < X->rows || s->count == 0; s->count++) { /* one of no rows, if need be */
        struct ki_panel *grown = ki_resize(s->panels, (size_t)(s->count + 1) * sizeof *grown);
        if (!grown) return ki_fail_nomem((size_t)(s->count + 1) * sizeof *grown, "a list of panels");
        s->panels = grown;
        struct ki_panel *panel = &grown[s->count];
        panel->first = first;
        panel->rows = rows_within(X, first, target);
        panel->begin = row_start(X, first);
        panel->entries = row_start(X, first + panel->rows) - panel->begin;
        s->rows_max = ki_max(s->rows_max, panel->rows);
        s->entries_max = ki_max(s->entries_max, panel->entries);
        first += panel->rows;
    }
    return KILN_OK;
}

static int64_t slot_bytes(const struct stream *s, int part) {
    const int64_t value = ki_value_bytes(s->X);
    return part == KI_ROW_START ? (s->rows_max + 1) * 8 : s->entries_max * (part == KI_COL ? 4 : value);
}

/* ------------------------------------------------------------------------------------------ moving */

/* Panel i's arrays in host memory. Row starts count from the panel's first entry. */
static kiln_status prepare(struct stream *s, int64_t i) {
    const kiln_matrix *X = s->X;
    const struct ki_panel *panel = &s->panels[i];
    void **host = s->host[(i - s->base) % s->ahead];
    const double begun = ki_clock();
    kiln_status status = KILN_OK;
    if (!s->feeder) host[KI_VALUES] = (char *)X->host[KI_VALUES] + panel->begin * ki_value_bytes(X);
    if (!s->feeder && X->format == KILN_CSR)
        host[KI_COL] = (int32_t *)ki_matrix_host(X, KI_COL) + panel->begin;
    int64_t *start = host[KI_ROW_START];
    for (int64_t r = 0; X->format == KILN_CSR && r <= panel->rows; r++)
        start[r] = row_start(X, panel->first + r) - panel->begin;
    if (s->feeder) status = ki_feeder_wait(s->feeder, i - s->base);
    s->device->statistics.panel_wait_seconds += ki_clock() - begun;
    return status;
}

/* Returns where panel i is computed with. What stays comes to its place at once. */
static const struct ki_buffer *place_of(const struct stream *s, int64_t i) {
    return s->kept && i < s->kept->most ? s->kept->part + i * KI_PARTS : s->slots[(i - s->base) % KI_SLOTS];
}

static void view_panel(kiln_matrix *view, const struct stream *s, int64_t i) {
    const kiln_matrix *X = s->X;
    *view = (kiln_matrix){.device = s->device,
                          .type = X->type,
                          .format = X->format,
                          .element = X->element,
                          .same = X->same,
                          .rows = s->panels[i].rows,
                          .cols = X->cols,
                          .nnz = s->panels[i].entries,
                          .view = true};
    for (int part = 0; part < ki_matrix_parts(X); part++) *ki_matrix_part(view, part) = place_of(s, i)[part];
}

static kiln_status queue_upload(struct stream *s, int64_t i) {
    kiln_matrix view;
    kiln_status status = KILN_OK;
    view_panel(&view, s, i);
    for (int part = 0; part < ki_matrix_parts(&view); part++) {
        const int64_t bytes = ki_matrix_part_bytes(&view, part);
        if (bytes == 0) continue;
        TRY(s->device->backend->upload_queue(s->device, ki_matrix_part(&view, part), 0,
                                             s->host[(i - s->base) % s->ahead][part], bytes));
        s->device->statistics.bytes_up += bytes;
    }
done:
    return status;
}

static kiln_status wait_uploads(struct stream *s) {
    const double start = ki_clock();
    kiln_status status = s->device->backend->upload_wait(s->device);
    const double waited = ki_clock() - start;
    s->device->statistics.panel_wait_seconds += waited;
    s->device->statistics.transfer_seconds += waited;
    return status;
}

/* ---------------------------------------------------------------------------------------- computing */

static kiln_status compute(struct stream *s, int64_t i) {
    kiln_matrix X;
    view_panel(&X, s, i);
    const kiln_status status = ki_sums_add(&s->sums, &X, s->panels[i].first);
    ki_slots_drop(&X); /* the next panel at its place has others */
    if (status == KILN_OK) s->done = i + 1;
    return status;
}

/* -------------------------------------------------------------------------------------------- pass */

/* Panels on their way lie in X itself where that is host memory, but for row starts; else in the staging
 * memory. On the CPU nothing is on its way. */
static kiln_status make_places(struct stream *s) {
    const kiln_matrix *X = s->X;
    char *staging = NULL;
    void *memory;
    int64_t total = 0;
    kiln_status status;
    s->ahead = X->file && !ki_on_cpu(s->device) ? KI_AHEAD : KI_SLOTS;
    if (ki_on_cpu(s->device)) {
        for (int slot = 0; slot < KI_SLOTS; slot++)
            for (int part = 0; part < KI_PARTS; part++) s->host[slot][part] = ki_host(&s->slots[slot][part]);
        return KILN_OK;
    }
    for (int part = 0; part < ki_matrix_parts(X); part++)
        if (X->file || part == KI_ROW_START) total += ki_ceil_div(slot_bytes(s, part), 64) * 64;
    TRY(ki_device_staging(s->device, KI_STAGING_PANELS, &memory, s->ahead * total));
    staging = memory;
    for (int slot = 0; slot < s->ahead; slot++)
        for (int part = 0; part < ki_matrix_parts(X); part++)
            if (X->file || part == KI_ROW_START) {
                s->host[slot][part] = staging;
                staging += ki_ceil_div(slot_bytes(s, part), 64) * 64;
            }
done:
    return status;
}

static kiln_status make_slots(struct stream *s) {
    const kiln_matrix *X = s->X;
    kiln_status status = KILN_OK;
    for (int slot = 0; slot < KI_SLOTS; slot++)
        for (int part = 0; part < ki_matrix_parts(X); part++)
            TRY(ki_device_alloc(s->device, &s->slots[slot][part], slot_bytes(s, part)));
    TRY(make_places(s));
    TRY(ki_sums_begin(&s->sums, s->single));
    if (X->file && s->base < s->count)
        TRY(ki_feeder_start(&s->feeder, X, s->panels + s->base, s->count - s->base, s->host, s->ahead));
done:
    return status;
}

static void free_slots(struct stream *s) {
    ki_feeder_stop(s->feeder);
    s->feeder = NULL;
    for (int slot = 0; slot < KI_SLOTS; slot++)
        for (int part = 0; part < KI_PARTS; part++) ki_device_release(s->device, &s->slots[slot][part]);
    ki_device_spaces_release(s->device); /* which passes over smaller panels would find in their way */
    ki_sums_end(&s->sums);
}

/* Panel i has come, and been computed with. */
static void keep_panel(const struct stream *s, int64_t i) {
    if (s->kept && i < s->kept->most) s->kept->count = i + 1;
}

static void count_panel(struct stream *s, int64_t i) {
    s->device->statistics.panels++;
    s->device->statistics.panel_bytes +=
        panel_bytes(s->X, s->panels[i].first, s->panels[i].rows, ki_value_bytes(s->X));
}

/* On the CPU, a panel is read while the one before is computed with. */
static kiln_status run_cpu(struct stream *s, bool *begun) {
    kiln_status status = KILN_OK;
    for (int64_t i = s->base; i < s->count; i++) {
        TRY(prepare(s, i));
        TRY(compute(s, i));
        *begun = true;
        ki_feeder_done(s->feeder, i - s->base);
        count_panel(s, i);
    }
done:
    return status;
}

/* Elsewhere a panel is read while the one before moves, and that moves while the one before it is computed
 * with. */
static kiln_status run_gpu(struct stream *s, bool *begun) {
    const struct ki_backend *backend = s->device->backend;
    kiln_status status = KILN_OK;
    if (s->base < s->count) TRY(prepare(s, s->base));
    if (s->base < s->count) TRY(queue_upload(s, s->base));
    for (int64_t i = s->done; i < s->base; i++, *begun = true) TRY(compute(s, i));
    for (int64_t i = s->base; i < s->count; i++) {
        if (i + 1 < s->count) TRY(prepare(s, i + 1));
        TRY(wait_uploads(s));
        if (s->feeder) ki_feeder_done(s->feeder, i - s->base);
        if (i + 1 < s->count) TRY(queue_upload(s, i + 1));
        TRY(compute(s, i));
        *begun = true;
        keep_panel(s, i);
        count_panel(s, i);
    }
    TRY(backend->sync(s->device));
done:
    /* Memory on its way must stay until then; the first error counts. */
    if (status != KILN_OK && !s->device->lost && backend->upload_wait(s->device) == KILN_OK)
        (void)backend->sync(s->device);
    return status;
}

/* *begun: something was written. */
static kiln_status run(struct stream *s, bool *begun) {
    kiln_status status = make_slots(s);
    if (status == KILN_OK) status = ki_on_cpu(s->device) ? run_cpu(s, begun) : run_gpu(s, begun);
    if (status == KILN_OK && s->X->file) status = ki_file_check(s->X->file);
    if (status == KILN_OK) ki_sums_give(&s->sums);
    free_slots(s);
    return status;
}

/* Bytes of a panel: enough that starting transfers and kernels does not show; a quarter of that from a file,
 * for what its panels pass through should stay in the processor's caches; no more than 1/SHARE of the room,
 * which is for panels that stay; but so many that w, walked through once a panel, is small beside it. Both
 * slots and the pass's own work space must fit; a processor's is larger, copies of w among it.
 * Deterministic: sums are cut as X and the budget say, whatever else lies on the device, such as what a
 * checkpoint is to hold. */
static int64_t first_target(const struct stream *s) {
    enum { SHARE = 16 };
    const kiln_matrix *X = s->X;
    const bool alike = s->device->options.deterministic, cpu = ki_on_cpu(s->device);
    const int64_t usual = (int64_t)(!s->device->properties.is_gpu ? 8 : X->file ? 32 : 128) << 20;
    const int64_t room = alike ? s->device->budget : ki_memory_room(s->device);
    /* Panels that stay on a GPU serve all operations. */
    const int64_t walked = alike && !cpu ? X->cols * ki_type_bytes(X->type) : s->single->walked;
    return ki_min(ki_max(ki_min(usual, room / SHARE), 8 * walked), room * (cpu || alike ? 1 : 3) / 8);
}

/* Whether all that is written is rows of the panel's own: what panels have done stands, and where one finds
 * too little room the pass goes on with smaller ones. */
static bool writes_rows(const struct ki_single *single) {
    for (int i = 0; i < single->rules->count; i++) {
        const struct ki_rule *rule = &single->rules->rule[i];
        const enum ki_role role = rule->role[single->kind];
        if ((rule->use & KI_WRITES) && ki_operand_of(single->whole, rule) && role != KI_ROW &&
            role != KI_ENTRY)
            return false;
    }
    return single->sums == 0;
}

/* The panels, as those that stay are cut, and which of them are there. What works in place cannot begin again
 * where it finds too little room; of sparse rows, whose panels differ, its first panel does not tell. */
static kiln_status begin(struct stream *s, int64_t *target) {
    const bool keeps = s->X->format == KILN_DENSE || !ki_works_in_place(s->single) || writes_rows(s->single);
    kiln_status status;
    if (!keeps) ki_kept_drop(s->X);
    *target = ki_kept_get(s->X) ? ki_kept_get(s->X)->target : first_target(s);
    TRY(cut(s, *target));
    if (keeps) TRY(ki_kept_begin(&s->kept, s->X, s->panels, s->count, *target));
    s->base = s->kept ? s->kept->count : 0;
done:
    return status;
}

/* The pass, and where it needs more room than was left, the same once more with no panels that stay, and then
 * with smaller ones, or what is left of it, where rows are all that it writes. Of sparse rows any panel may
 * be the first that needs more. */
static kiln_status pass(struct stream *s, int64_t target) {
    const bool goes_on = writes_rows(s->single);
    bool begun = false;
    kiln_status status;
    while ((status = run(s, &begun)) == KILN_ERR_DEVICE_NOMEM) {
        if (begun && !goes_on && ki_works_in_place(s->single)) break;
        if (!s->kept && s->rows_max <= quantum(s->X)) break;
        if (!s->kept) target /= 2;
        ki_kept_drop(s->X);
        s->kept = NULL;
        if (!goes_on) s->done = 0;
        s->base = s->done;
        begun = false;
        TRY(cut(s, target));
    }
done:
    return status;
}

kiln_status ki_stream(const struct ki_single *single) {
    kiln_matrix *X; /* its place changes, its values do not */
    memcpy(&X, (const char *)single->whole + single->rules->X, sizeof X);
    struct stream s = {.single = single, .X = X, .device = X->device};
    const double start = ki_clock();
    int64_t target;
    kiln_status status;
    if (!single->narrow) TRY(ki_matrix_widen(X));
    TRY(ki_matrix_to_stream(X));
    if (!X->streams)
        ki_device_message(X->device,
                          "%.1f MB do not fit into the memory of %s: every pass moves them in panels",
                          1e-6 * (double)ki_matrix_bytes(X), X->device->info.name);
    X->streams = true;
    ki_matrix_pin(X);
    X->held++; /* what stays of it stays until the pass has ended */
    status = begin(&s, &target);
    if (status == KILN_OK) status = pass(&s, target);
    X->held--;
    ki_kept_end(X, status == KILN_OK);
    X->device->statistics.panel_seconds += ki_clock() - start;
done:
    ki_free(s.panels);
    return status;
}
