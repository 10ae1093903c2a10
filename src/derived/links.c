/* Layouts of a graph's links: their slots, what each is expected to cost, and the choice. */
#include "derived/links.h"

#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"
#include "derived/derived.h"

/* ---- what a layout's cost depends on ---- */

struct shape_slot {
    struct ki_links_shape shape;
    bool short_of_memory; /* for windows or shares: a layout that was not asked for gives way to csr */
};

static const struct ki_slot_kind slot_shape = {.name = "the lengths of a graph's rows",
                                               .size = sizeof(struct shape_slot)};

static void count_row(struct ki_links_shape *shape, int64_t length) {
    shape->longest = ki_max(shape->longest, length);
    shape->long_rows += length > KI_LONG;
}

static kiln_status look(struct ki_links_shape *shape, const kiln_matrix *A, const struct ki_columns *in) {
    *shape = (struct ki_links_shape){.rows = A->cols, .sources = A->rows, .links = A->nnz};
    if (ki_on_cpu(A->device)) {
        const int64_t *start = ki_host(in->start);
        for (int64_t v = 0; v < A->cols; v++) count_row(shape, start[v + 1] - start[v]);
        return KILN_OK;
    }
    const int64_t bytes = (A->cols + 1) * 4;
    int32_t *start = ki_alloc((size_t)bytes);
    if (!start) return ki_fail_nomem((size_t)bytes, slot_shape.name);
    const kiln_status status = ki_device_download(A->device, start, in->start, 0, bytes);
    for (int64_t v = 0; status == KILN_OK && v < A->cols; v++) count_row(shape, start[v + 1] - start[v]);
    ki_free(start);
    return status;
}

static kiln_status shape_of(struct shape_slot **found, const kiln_matrix *A) {
    struct ki_columns in;
    kiln_status status = KILN_OK;
    if ((*found = ki_slot_get(A, &slot_shape))) return KILN_OK;
    TRY(ki_columns_get(&in, A, KI_COLUMNS_PATTERN));
    struct shape_slot *slot = ki_slot_new(&slot_shape);
    if (!slot) return KILN_ERR_NOMEM;
    TRY(ki_slot_keep(A, &slot_shape, slot, look(&slot->shape, A, &in)));
    *found = slot;
done:
    return status;
}

kiln_status ki_links_shape_get(struct ki_links_shape *shape, const kiln_matrix *A) {
    struct shape_slot *slot = NULL;
    const kiln_status status = shape_of(&slot, A);
    if (status == KILN_OK) *shape = slot->shape;
    return status;
}

/* ---- windows and shares ---- */

#define AT(buffer) offsetof(struct ki_link_shares, buffer)
#define SHARES KI_SLOT(struct ki_link_shares, AT(item), AT(weight), AT(start))
/* Without weights and with. */
static const struct ki_slot_kind slot_shares[2] = {{.name = "equal shares of a graph's pattern", SHARES},
                                                   {.name = "equal shares of a graph's links", SHARES}};
#undef SHARES
#undef AT

#define AT(buffer) offsetof(struct ki_windows, buffer)
#define WINDOWS                                                                                              \
    KI_SLOT(struct ki_windows, AT(place), AT(start), AT(source), AT(weight), AT(runs), AT(long_row),         \
            AT(shares.item), AT(shares.weight), AT(shares.start))
static const struct ki_slot_kind slot_windows[2] = {{.name = "the pattern of a graph by windows", WINDOWS},
                                                    {.name = "a graph by windows", WINDOWS}};
#undef WINDOWS
#undef AT

static kiln_status make_windows(const kiln_matrix *A, const struct ki_slot_kind *kind,
                                const struct ki_columns *in) {
    struct ki_windows *windows = ki_slot_new(kind);
    if (!windows) return KILN_ERR_NOMEM;
    return ki_slot_keep(A, kind, windows,
                        (ki_on_cpu(A->device) ? ki_windows_fill_cpu : ki_windows_fill_gpu)(windows, A, in));
}

/* Blocks of sources; one where the second cache level holds the ranks anyway, and no more than a row has
 * links in the mean: a row without links in a block costs as much as a link. */
static int64_t blocks_of(const struct ki_links_shape *shape, kiln_type type) {
    const int64_t bytes = shape->sources * ki_type_bytes(type);
    if (bytes <= 2 * ki_limits.ranked_bytes) return 1;
    return ki_max(1, ki_min(ki_ceil_div(bytes, ki_limits.ranked_bytes), shape->links / shape->rows));
}

static kiln_status make_shares(const kiln_matrix *A, const struct ki_slot_kind *kind,
                               const struct ki_columns *in) {
    struct ki_links_shape shape;
    const kiln_status status = ki_links_shape_get(&shape, A);
    if (status != KILN_OK) return status;
    struct ki_link_shares *shares = ki_slot_new(kind);
    if (!shares) return KILN_ERR_NOMEM;
    shares->blocks = blocks_of(&shape, A->type);
    return ki_slot_keep(A, kind, shares, ki_link_shares_fill(shares, A, in));
}

/* ---- what a step takes ---- */

/* Seconds of the CPU for a row, most of which is a branch guessed wrong, and for a link, whose gather
 * hides the rest; of a GPU for a launch and for a turn of a vector in a row. Measured (CPU; on an H200
 * links in windows, whose neighbours have sources far apart, took twice as long as links in shares) and
 * reckoned: they only have to rank. */
static const double ROW_CPU = 4.5e-9, ROW_IN_RUN = 1.5e-9, ROW_IN_SHARE = 1e-8, LINK_CPU = 8e-10,
                    BANDWIDTH_UNKNOWN = 2e10;
static const double LAUNCH = 3e-6, TURN = 2e-7, GATHER_BYTES = 32, CACHE_FASTER = 3, FAR = 2;

/* Bytes beside the links: row starts or places, and five vectors that are read or written. */
static double vectors(const struct ki_links_shape *shape, kiln_type type, int64_t k, double each) {
    return (double)shape->rows * (each + 5 * (double)(ki_type_bytes(type) * k));
}

static double links_bytes(const struct ki_links_shape *shape, kiln_type type, bool weights) {
    return (double)shape->links * (4 + (weights ? (double)ki_type_bytes(type) : 0));
}

static void bounded(struct ki_links_cost *cost, double seconds, const char *limit) {
    if (seconds <= cost->seconds) return;
    cost->seconds = seconds;
    cost->limit = limit;
}

static struct ki_links_cost cost_cpu(kiln_layout layout, const kiln_device *device,
                                     const struct ki_links_shape *shape, kiln_type type, int64_t k,
                                     bool weights) {
    const bool windows = layout == KILN_LAYOUT_HYBRID;
    const double link = LINK_CPU * (double)k, row = windows                          ? ROW_IN_RUN
                                                    : layout == KILN_LAYOUT_BALANCED ? ROW_IN_SHARE
                                                                                     : ROW_CPU;
    struct ki_links_cost cost = {.layout = layout};
    cost.bytes = links_bytes(shape, type, weights) + vectors(shape, type, k, windows ? 12 : 8);
    bounded(&cost, ((double)shape->rows * row + (double)shape->links * link) / device->threads,
            "gathers and rows");
    if (layout != KILN_LAYOUT_BALANCED) bounded(&cost, (double)shape->longest * link, "the longest row");
    return cost;
}

/* Gathers come in sectors, from the second cache level if that holds what is gathered from. */
static double gather_gpu(const kiln_device *device, const struct ki_links_shape *shape, kiln_type type,
                         int64_t k, double read) {
    const double sector = (double)ki_max((int64_t)GATHER_BYTES, ki_type_bytes(type) * k);
    const bool cached = shape->sources * k * ki_type_bytes(type) < device->properties.cache;
    return (double)shape->links * sector / (cached ? CACHE_FASTER * read : read);
}

static struct ki_links_cost cost_gpu(kiln_layout layout, const kiln_device *device,
                                     const struct ki_links_shape *shape, kiln_type type, int64_t k,
                                     bool weights) {
    const double read = device->properties.bandwidth > 0 ? device->properties.bandwidth : BANDWIDTH_UNKNOWN;
    const double gathers = gather_gpu(device, shape, type, k, read), launches = (double)ki_ceil_div(k, 8);
    const double bytes = links_bytes(shape, type, weights), n = (double)ki_max(shape->links, 1);
    const int vector = ki_rows_vector(device, shape->links, shape->rows);
    struct ki_links_cost cost = {.layout = layout, .bytes = bytes + vectors(shape, type, k, 8)};
    const double streamed = cost.bytes / read;
    cost.limit = gathers > streamed ? "gathers" : "memory";
    if (layout == KILN_LAYOUT_CSR) { /* lanes idle in the last turn of a row, half of them in the mean */
        const double idle = (double)shape->rows * (vector - 1) / 2 / n;
        cost.seconds = streamed + gathers * (1 + idle);
        bounded(&cost, (double)shape->longest / vector * TURN, "the longest row");
        cost.seconds += LAUNCH * (launches + 1);
    } else if (layout == KILN_LAYOUT_HYBRID) {
        cost.seconds =
            streamed + FAR * gathers + LAUNCH * (launches + 1 + (shape->long_rows ? 2 * (double)k : 0));
    } else {
        cost.seconds = streamed + bytes / read * (double)(k - 1) + gathers + LAUNCH * (2 * (double)k + 1);
    }
    return cost;
}

void ki_links_costs(struct ki_links_cost costs[KI_LAYOUTS], const kiln_device *device,
                    const struct ki_links_shape *shape, kiln_type type, int64_t k, bool weights) {
    for (int i = 0; i < KI_LAYOUTS; i++) {
        const struct ki_links_cost cost = (ki_on_cpu(device) ? cost_cpu : cost_gpu)(
            (kiln_layout)(KILN_LAYOUT_CSR + i), device, shape, type, k, weights);
        int at = i;
        for (; at > 0 && cost.seconds < costs[at - 1].seconds; at--) costs[at] = costs[at - 1];
        costs[at] = cost;
    }
}

/* ---- the choice ---- */

/* The copy by columns goes once another layout has been made from it: it is needed for nothing else. */
static kiln_status made_of(struct ki_links *links, const kiln_matrix *A, bool weights) {
    const bool windows = links->layout == KILN_LAYOUT_HYBRID;
    const enum ki_columns_kind wanted = weights ? KI_COLUMNS_VALUES : KI_COLUMNS_PATTERN;
    const struct ki_slot_kind *kind = windows ? &slot_windows[weights] : &slot_shares[weights];
    struct ki_columns in;
    kiln_status status = KILN_OK;
    if (!windows && (links->layout == KILN_LAYOUT_CSR || ki_on_cpu(A->device)))
        return ki_columns_get(&links->in, A, wanted);
    if (!ki_slot_get(A, kind)) {
        TRY(ki_columns_get(&in, A, wanted));
        TRY((windows ? make_windows : make_shares)(A, kind, &in));
        ki_columns_drop(A);
    }
    if (windows)
        links->windows = ki_slot_get(A, kind);
    else
        links->shares = ki_slot_get(A, kind);
done:
    return status;
}

kiln_status ki_links_get(struct ki_links *links, const kiln_matrix *A, kiln_layout layout, int64_t k,
                         bool weights) {
    const double began = ki_clock(), before = A->device->statistics.layout_seconds;
    const int64_t bytes = ki_slots_bytes(A);
    struct ki_links made = {.layout = layout};
    struct ki_links_cost costs[KI_LAYOUTS];
    struct shape_slot *slot = NULL;
    kiln_status status = KILN_OK;
    if (!layout) {
        TRY(shape_of(&slot, A));
        ki_links_costs(costs, A->device, &slot->shape, A->type, k, weights);
        made.layout = slot->short_of_memory ? KILN_LAYOUT_CSR : costs[0].layout;
    }
    status = made_of(&made, A, weights);
    if (status == KILN_ERR_NOMEM && slot && made.layout != KILN_LAYOUT_CSR) {
        slot->short_of_memory = true;
        made.layout = KILN_LAYOUT_CSR;
        status = made_of(&made, A, weights);
    }
    if (status == KILN_OK) *links = made;
    if (ki_slots_bytes(A) != bytes) A->device->statistics.layout_seconds = before + ki_clock() - began;
done:
    return status;
}
