/* The state behind kiln_assignment.bounds: whether it is worth its memory, its arrays, and the groups of
 * centres. */
#include "ops/points/bounds.h"

#include <stdlib.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "pass/group.h"
#include "pass/roles.h"

/* On a CPU bounds take no more than 1/SHARE of the row that they are of: OF_ROW bytes, and OF_GROUP for each
 * group of centres. Rows shorter than LEAST_COLUMNS are measured sooner than bounds are kept. On a GPU a row
 * of LEAST_BYTES or more has its centre kept. A CPU's bounds, of an X in its file, too, take a third of the
 * room that there is beside X. On a GPU an X that goes by in panels has no bounds: nor has one beside which
 * passes, which take up to WORK_OF_ROW bytes a row, find no room. */
enum { SHARE = 5, OF_ROW = 16, OF_GROUP = 4, LEAST_COLUMNS = 16, LEAST_BYTES = 16, WORK_OF_ROW = 32 };

/* A CPU's bytes for the groups of a row. */
static int64_t room_of(const kiln_matrix *X) {
    enum { THIRD = 3 };
    const kiln_device *device = X->device;
    const int64_t room = device->options.deterministic ? device->budget - (X->file ? 0 : ki_matrix_bytes(X))
                                                       : ki_memory_room(device);
    return ki_min(X->cols * ki_type_bytes(X->type) / SHARE, room / THIRD / X->rows) - OF_ROW;
}

/* Returns whether X is such that bounds are worth their memory. */
static bool there_are(const kiln_matrix *X, int64_t k) {
    if (X->format != KILN_DENSE || ki_is_split(X) || X->rows == 0 || k < 2) return false;
    if (!ki_on_cpu(X->device))
        return !ki_streams_beside(X, X->rows * WORK_OF_ROW) &&
               X->cols * ki_type_bytes(X->type) >= LEAST_BYTES && ki_wide_type(X->device) == KILN_F64;
    return X->cols >= LEAST_COLUMNS && room_of(X) >= OF_GROUP;
}

kiln_status kiln_bounds_new(kiln_bounds **bounds, const kiln_matrix *X, int64_t k) {
    static const char call[] = "kiln_bounds_new";
    if (!bounds || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: bounds or X is NULL", call);
    if (k < 1 || k > INT32_MAX / 2) return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld centres", call, (long long)k);
    *bounds = NULL;
    if (!there_are(X, k)) return KILN_OK;
    kiln_bounds *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "bounds");
    *made = (kiln_bounds){
        .device = X->device, .type = X->type, .m = X->rows, .n = X->cols, .k = k, .fresh = true};
    *bounds = made;
    if (!ki_on_cpu(X->device)) return KILN_OK;
    const int64_t bundles = ki_ceil_div(k, KI_BUNDLE);
    made->each = ki_ceil_div(bundles, ki_min(room_of(X) / OF_GROUP, KI_BOUNDS_GROUPS));
    made->groups = ki_ceil_div(bundles, made->each);
    made->padded = made->groups * made->each * KI_BUNDLE;
    return KILN_OK;
}

static void release(kiln_bounds *b) {
    void *const arrays[] = {b->group, b->moved, b->rows, b->centres};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) ki_free(arrays[i]);
    kiln_matrix_free(b->running);
    ki_device_release(b->device, &b->kept);
    ki_device_release(b->device, &b->last);
}

void kiln_bounds_free(kiln_bounds *bounds) {
    if (!bounds) return;
    release(bounds);
    ki_free(bounds);
}

kiln_status kiln_bounds_sums(kiln_matrix **sums, kiln_bounds *bounds) {
    if (!sums || !bounds) return ki_fail(KILN_ERR_ARGUMENT, "kiln_bounds_sums: sums or bounds is NULL");
    if (!bounds->known) return ki_fail(KILN_ERR_ARGUMENT, "kiln_bounds_sums: no pass has been made");
    *sums = bounds->running;
    return KILN_OK;
}

void kiln_bounds_refresh(kiln_bounds *bounds) {
    if (bounds) bounds->fresh = true;
}

double kiln_bounds_skipped(const kiln_bounds *bounds) {
    return bounds && bounds->all > 0 ? bounds->skipped / bounds->all : 0;
}

/* A CPU's arrays; `sums` lie in `running`. */
static kiln_status allocate(kiln_bounds *b) {
    int64_t rows, elements, bytes;
    if (!ki_mul3(b->m, b->groups + 3, sizeof(float), &rows) || !ki_mul(b->k, b->n, &elements) ||
        !ki_mul(elements, sizeof(double), &bytes))
        return ki_fail_nomem(SIZE_MAX, "bounds");
    const kiln_status status = ki_device_alloc(b->device, &b->kept, rows);
    if (status != KILN_OK) return status;
    b->labels = ki_host(&b->kept);
    memset(b->labels, 0, (size_t)rows);
    b->upper = (float *)(void *)(b->labels + 2 * b->m);
    b->group = ki_calloc((size_t)(b->k + b->padded + b->groups) * sizeof *b->group);
    b->moved = ki_calloc((size_t)(b->k + 2 * b->groups) * sizeof *b->moved);
    b->rows = ki_calloc((size_t)b->k * sizeof *b->rows);
    b->centres = ki_calloc((size_t)bytes);
    if (!b->group || !b->moved || !b->rows || !b->centres) return ki_fail_nomem((size_t)bytes, "bounds");
    b->before = b->labels + b->m;
    b->lower = b->upper + b->m;
    b->order = b->group + b->k;
    b->mover = b->order + b->padded;
    b->most = b->moved + b->k;
    b->second = b->most + b->groups;
    b->sums = ki_host(&b->running->values);
    return KILN_OK;
}

kiln_status ki_bounds_begin(kiln_bounds *b) {
    const kiln_bounds none = *b;
    kiln_status status;
    if (b->running) return KILN_OK;
    TRY(kiln_matrix_dense(&b->running, b->device, KILN_F64, b->k * (b->n + 2), 1, NULL));
    if (ki_on_cpu(b->device)) {
        TRY(allocate(b));
    } else {
        TRY(ki_device_alloc(b->device, &b->kept, b->m * 4));
        TRY(ki_device_alloc(b->device, &b->last, b->k * b->n * ki_type_bytes(b->type)));
    }
done:
    if (status != KILN_OK) {
        release(b);
        *b = none;
    }
    return status;
}

void ki_bounds_rows(kiln_bounds *copy, int64_t first, int64_t rows) {
    copy->m = rows;
    copy->labels += first;
    copy->before += first;
    copy->upper += first;
    copy->lower += first * copy->groups;
}

struct apart {
    double square;
    int32_t number;
};

static int nearer(const void *a, const void *b) {
    const struct apart *x = a, *y = b;
    return x->square < y->square ? -1 : x->square > y->square ? 1 : x->number < y->number ? -1 : 1;
}

static int smaller(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* One bundle costs no more than a pass without bounds. Several do, where bounds save little: in the first
 * passes, as long as more than 1/CHANGING of the rows change their centre, and for data in which all centres
 * are about as far. A pass that measured more than WORTH_IT of the distances leaves no bounds to the next
 * FIRST_WAIT passes, and each further one to twice as many, up to LONGEST_WAIT. */
enum { CHANGING = 10, FIRST_WAIT = 4, LONGEST_WAIT = 64 };
static const double WORTH_IT = 0.5;

bool ki_bounds_pause(kiln_bounds *b) {
    if (b->valid || b->padded == KI_BUNDLE) return false;
    if (b->wait > 0) b->wait--;
    const bool pause = !b->known || b->wait > 0 || b->changed > b->m / CHANGING;
    if (pause) b->all += (double)b->m * (double)b->k;
    return pause;
}

void ki_bounds_count(kiln_bounds *b, double measured, bool all) {
    const double wanted = (double)b->m * (double)b->k;
    b->all += wanted;
    b->skipped += wanted - measured;
    b->valid = all || b->padded == KI_BUNDLE || measured <= WORTH_IT * wanted;
    if (b->valid) return;
    b->next_wait = ki_min(ki_max(2 * b->next_wait, FIRST_WAIT), LONGEST_WAIT);
    b->wait = b->next_wait;
}

/* The first centre that has no group, and those nearest to it, fill the next one. */
kiln_status ki_bounds_group(kiln_bounds *b) {
    const int64_t size = b->each * KI_BUNDLE;
    if (b->grouped) return KILN_OK;
    struct apart *left = ki_alloc((size_t)b->k * sizeof *left);
    if (!left) return ki_fail_nomem((size_t)b->k * sizeof *left, "groups of centres");
    for (int64_t c = 0; c < b->k; c++) left[c].number = (int32_t)c;
    for (int64_t g = 0, done = 0; g < b->groups; g++, done += size) {
        const int64_t rest = b->k - done, taken = ki_min(size, rest);
        for (int64_t i = 0; i < rest && g + 1 < b->groups; i++) {
            const double *x = b->centres + left[done].number * b->n,
                         *y = b->centres + left[done + i].number * b->n;
            left[done + i].square = 0;
            for (int64_t j = 0; j < b->n; j++) left[done + i].square += (x[j] - y[j]) * (x[j] - y[j]);
        }
        if (g + 1 < b->groups) qsort(left + done, (size_t)rest, sizeof *left, nearer);
        for (int64_t i = 0; i < size; i++) b->order[done + i] = i < taken ? left[done + i].number : -1;
        qsort(b->order + done, (size_t)ki_max(taken, 0), sizeof *b->order, smaller);
        for (int64_t i = 0; i < taken; i++) b->group[b->order[done + i]] = (int32_t)g;
    }
    ki_free(left);
    b->grouped = true;
    return KILN_OK;
}
