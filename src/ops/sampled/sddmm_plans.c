/* Ways to take the entries of a sampled product, and what each is expected to take.
 *
 * seconds = the most of: bytes that come from memory; bytes gathered from the second cache level; lines that
 * loads touch; instructions; what a vector of threads waits, one step after the other, for its next rows; and
 * a share of the others. They only have to rank.
 *
 * Taken whole, a row is read once for each of its entries. In slices, all entries are gone through for some
 * numbers of each row, then for the next ones: the rows' parts then fit into the second cache level, but the
 * entries and what is added up so far pass by once more for each slice. */
#include <string.h>

#include "bodies/bodies.h"
#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "ops/sampled/sddmm.h"
#include "pass/predict.h"
#include "pass/unit.h"

enum { GROUP = 128, LINE = 128, VECTOR_MOST = 256, WARP = 32, NUMBERS = 32, SHARE = 32 };
static const double BANDWIDTH_UNKNOWN = 1e11;

/* The constants are an H200's, fitted by bench/studies/fit_sddmm.py: bytes a second that units get from the
 * second cache level, and how many of those it keeps; of repeated gathers beyond, the share that goes to
 * memory, for columns are not equally popular; instructions that a unit issues and lines of 128 bytes that it
 * loads in a second; seconds until a gathered row and until a row's start and then the row are there;
 * instructions of a step, of an entry and of an exchange between threads, and those that finish an entry;
 * what of a bound the largest one does not hide; a launch. */
static const struct {
    double cache, cached, far, issued, lines, row, next_row, step, entry, exchange, finish, not_hidden,
        launch;
} fitted = {.cache = 20.1e12,
            .cached = 14.4e6,
            .far = 0.604,
            .issued = 7.87e9,
            .lines = 1.69e9,
            .row = 0.426e-6,
            .next_row = 0.279e-6,
            .step = 104,
            .entry = 14.5,
            .exchange = 0.0443,
            .finish = 22.9,
            .not_hidden = 0.205,
            .launch = 4.32e-6};

enum { BOUNDS = 5 };
static const char *const limits[BOUNDS] = {"memory", "second cache level", "memory pipe", "instructions",
                                           "latency"};

/* Loads of a thread for a step of R entries, of which one in `entries_a_row` begins a row. */
static double loads_of(const struct ki_sampled_plan *p, double entries_a_row) {
    return p->R * (p->ahead ? 2 : 1 + 1 / entries_a_row) * p->Q;
}

static double instructions_of(const struct ki_sampled_plan *p, double loads) {
    const double numbers = (double)p->Q * p->W, own = p->R > p->VS ? (double)p->R / p->VS : 1;
    const double exchanges = p->R - own + ki_halvings(p->VS) - ki_halvings(p->R < p->VS ? p->R : p->VS);
    return fitted.step + p->R * (fitted.entry + numbers) + loads * 2 + exchanges * fitted.exchange +
           own * fitted.finish;
}

/* Groups, as registers leave room for them, and the entries of a vector. */
static void share_out(struct ki_sampled_plan *p, double nnz, const kiln_device *device, double words) {
    const struct ki_unit unit = ki_unit_of(device);
    const double registers = 28 + words * (p->R * (p->ahead ? 1.5 : 1) + 1);
    const int64_t fit = ki_min((int64_t)((double)unit.registers / registers), unit.threads),
                  resident = ki_max(1, ki_min(fit / p->BS, unit.groups));
    const double most = (double)(device->properties.compute_units * resident),
                 a_group = (double)p->BS / p->VS;
    const double wanted = nnz / (SHARE * a_group), groups = wanted < most ? wanted > 1 ? wanted : 1 : most;
    p->groups = (int64_t)groups;
    p->each = (int64_t)(nnz / (groups * a_group));
}

static void predict(struct ki_sampled_plan *p, const kiln_device *device, const struct ki_sampled_shape *s) {
    const double element = (double)ki_type_bytes(s->type), number = s->halves ? 2 : element;
    const double units = device->properties.compute_units;
    const double nnz = (double)s->nnz, rows = (double)ki_min(s->rows, s->nnz), entries_a_row = nnz / rows;
    const double cols = (double)ki_min(s->cols, s->nnz), row_bytes = (double)s->k * number;
    const double slices = (double)ki_ceil_div(s->k, p->width);
    const double panel = (double)s->cols * (double)p->width * number;
    const double missed = panel > fitted.cached ? fitted.far * (1 - fitted.cached / panel) : 0;
    const double entries = nnz * (slices * (element + 4) + element + (slices - 1) * 2 * element);
    const double loads = loads_of(p, entries_a_row), steps = slices * nnz / p->R;
    const double line = p->VS * p->W * number / LINE; /* lines of a vector's load */
    double seconds[BOUNDS];
    int worst;
    share_out(p, nnz, device, p->Q * p->W * number / element);
    p->bytes = (rows + cols + missed * (nnz - cols)) * row_bytes + entries + (double)s->rows * 8;
    seconds[0] = p->bytes / ki_promised_bandwidth(device, BANDWIDTH_UNKNOWN);
    seconds[1] = (nnz * row_bytes * (p->ahead ? 1.2 : 1) + entries) / fitted.cache;
    seconds[2] = steps * loads * (line > 1 ? line : 1) / (units * fitted.lines);
    seconds[3] = steps * p->VS / WARP * instructions_of(p, loads) / (units * fitted.issued);
    seconds[4] =
        slices * (double)p->each * (fitted.row / p->R + (p->ahead ? 0 : fitted.next_row / entries_a_row));
    p->seconds = ki_bounded(seconds, BOUNDS, fitted.not_hidden, &worst) + slices * fitted.launch;
    p->limit = limits[worst];
}

struct offering {
    struct ki_sampled_plan *plans;
    int count;
    const kiln_device *device;
    const struct ki_sampled_shape *shape;
};

static int widest_piece(int64_t k, int64_t bytes) {
    int widest = (int)(16 / bytes);
    while (k % widest != 0) widest /= 2;
    return widest;
}

/* A factor's number takes so many bytes. */
static int64_t number_bytes(const struct ki_sampled_shape *shape) {
    return shape->halves ? 2 : ki_type_bytes(shape->type);
}

/* R entries at a time whose numbers stay in registers, two of half precision in one, and twice as many where
 * that is little. Eight rows of both factors on their way took up to half as long again as four (an H200, few
 * entries a row). */
static void offer(struct offering *of, int64_t width, int W, int VS) {
    const int Q = (int)ki_ceil_div(ki_ceil_div(width, W), VS);
    const int numbers = of->shape->halves ? 2 * NUMBERS : NUMBERS;
    for (int R = 2; R <= 8 && (R == 2 || R * Q * W <= numbers); R *= 2)
        for (int ahead = 0; ahead < (R < 8 ? 2 : 1) && of->count < KI_SAMPLED_PLANS; ahead++) {
            struct ki_sampled_plan *plan = &of->plans[of->count];
            if (R < 8 && 2 * R * Q * W <= numbers / 2) continue;
            *plan = (struct ki_sampled_plan){.VS = VS,
                                             .BS = (int)ki_max(VS, GROUP),
                                             .Q = Q,
                                             .W = W,
                                             .R = R,
                                             .ahead = ahead,
                                             .width = width};
            predict(plan, of->device, of->shape);
            of->count++;
        }
}

/* From vectors whose threads have four pieces of a row each to those where each has one. */
static void offer_width(struct offering *of, int64_t width) {
    const int W = widest_piece(of->shape->k, number_bytes(of->shape));
    const int64_t pieces = ki_ceil_div(width, W);
    int VS = 1;
    while (VS < VECTOR_MOST && VS * 4 < pieces) VS *= 2;
    for (; VS <= VECTOR_MOST; VS *= 2) {
        offer(of, width, W, VS);
        if (VS >= pieces) return;
    }
}

int ki_sampled_plans(struct ki_sampled_plan plans[KI_SAMPLED_PLANS], const kiln_device *device,
                     const struct ki_sampled_shape *shape) {
    struct offering of = {.plans = plans, .device = device, .shape = shape};
    const int64_t slice = ki_limits.gathered_slice / number_bytes(shape);
    int best = 0;
    offer_width(&of, shape->k);
    if (shape->has_place && shape->nnz >= ki_limits.gathered_entries * shape->cols)
        for (int64_t width = slice; width >= ki_max(slice / 2, 1); width /= 2)
            if (width < shape->k) offer_width(&of, width);
    for (int i = 1; i < of.count; i++)
        if (plans[i].seconds < plans[best].seconds) best = i;
    const struct ki_sampled_plan chosen = plans[best];
    memmove(plans + 1, plans, (size_t)best * sizeof *plans);
    plans[0] = chosen;
    return of.count;
}

struct ki_sampled_plan ki_sampled_layout(int64_t k, int64_t width, kiln_type type, bool halves) {
    const int numbers = halves ? 2 * NUMBERS : NUMBERS, least = halves ? 4 : 8;
    struct ki_sampled_plan plan = {.VS = 1, .W = widest_piece(k, ki_type_bytes(type)), .width = width};
    const int64_t pieces = ki_ceil_div(width, plan.W);
    while (plan.VS < VECTOR_MOST && plan.VS < pieces && (plan.VS < least || plan.VS * 4 < pieces))
        plan.VS *= 2;
    plan.Q = (int)ki_ceil_div(pieces, plan.VS);
    plan.BS = (int)ki_max(plan.VS, GROUP);
    plan.R = 8;
    while (plan.R > 2 && plan.R * plan.Q * plan.W > numbers) plan.R /= 2;
    return plan;
}

/* ------------------------------------------------------------------------------------------ kiln/tune.h */

static kiln_plan as_plan(const struct ki_sampled_plan *plan, int number, const kiln_device *device) {
    const double most = (double)(device->properties.compute_units * ki_unit_of(device).threads);
    kiln_plan out = {.number = number,
                     .chosen = number == 0,
                     .vector = plan->VS,
                     .group = plan->BS,
                     .load = plan->Q * plan->W,
                     .rows = plan->R,
                     .columns = (int)plan->width,
                     .groups = plan->groups,
                     .coarsening = plan->each,
                     .occupancy = (double)(plan->groups * plan->BS) / most,
                     .bytes = plan->bytes,
                     .seconds = plan->seconds};
    snprintf(out.variant, sizeof out.variant, "%s", plan->ahead ? "rows ahead" : "rows kept");
    snprintf(out.limit, sizeof out.limit, "%s", plan->limit);
    return out;
}

kiln_status kiln_sddmm_plans(kiln_plan **plans, int64_t *count, kiln_device *device, const kiln_work *work) {
    static const char call[] = "kiln_sddmm_plans";
    struct ki_sampled_plan found[KI_SAMPLED_PLANS];
    kiln_work own;
    kiln_status status;
    if (!plans || !count || !device || !work)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_work, &own, work));
    if (own.format != KILN_CSR || own.rows < 1 || own.cols < 1 || own.nnz < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: S must be a sparse matrix with entries", call);
    if (own.k < 0 || own.k > KI_SAMPLE_COLUMNS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: k is %lld, but must be in [1, %d]", call, (long long)own.k,
                       KI_SAMPLE_COLUMNS);
    const struct ki_sampled_shape shape = {.rows = own.rows,
                                           .cols = own.cols,
                                           .nnz = own.nnz,
                                           .k = ki_max(own.k, 1),
                                           .type = own.type ? own.type : KILN_F64,
                                           .has_place = true};
    const bool cpu = ki_on_cpu(device);
    const int n = cpu ? 1 : ki_sampled_plans(found, device, &shape);
    kiln_plan *out = ki_calloc((size_t)n * sizeof *out);
    if (!out) return ki_fail_nomem((size_t)n * sizeof *out, "plans");
    const double bytes = (double)shape.nnz * (double)(shape.k * ki_type_bytes(shape.type));
    for (int i = 0; i < n; i++) out[i] = cpu ? ki_cpu_plan(device, bytes) : as_plan(&found[i], i, device);
    *plans = out;
    *count = n;
done:
    return status;
}
