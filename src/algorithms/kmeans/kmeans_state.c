/* What a run of K-Means goes on from: the centres, what they become, and the best of former starts. The first start that ends at the
 * limit of iterations stays in the checkpoint: with a higher limit the run goes on there, and makes the starts after it again. Where a pass corrects the sums of
 * the one before, these go along, as the roundings in them are those of all passes so far. */
#include "algorithms/kmeans/kmeans.h"

enum { STATE = 18, LOOKED_AT = 2 };
/* adding: whether s->running are part of it. */
static void state_of(struct ki_state state[STATE], struct kmeans *s, int64_t *adding) {
    const int64_t all = s->k * s->n, two = 2 * s->k;
    const bool batches = s->options.batch > 0, former = s->turn > 0;
    *adding = s->running != NULL;
    const struct ki_state parts[STATE] = {
        {"turn", .integers = &s->turn, .least = 0, .most = KI_STATE_MOST},
        {"adding", .integers = adding, .least = 0, .most = 1},
        {"sums", .matrix = &s->running},
        {"begun", .integers = &s->begun},
        {"draws", .integers = &s->draws},
        {"relocated", .integers = &s->relocated},
        {"centres", .matrix = &s->C},
        {"objective", .reals = &s->objective},
        {"residual", .reals = &s->residual},
        {"filled", .integers = &s->filled},
        {"means", .matrix = batches ? NULL : &s->means},
        {"found", .reals = batches ? NULL : s->found, .count = two},
        {"round", .integers = batches ? &s->round : NULL},
        {"seen", .reals = batches ? s->seen : NULL, .count = s->k},
        {"mean", .reals = batches ? &s->mean : NULL},
        {"best", .reals = former ? s->best : NULL, .count = all},
        {"best found", .reals = former ? s->best_totals : NULL, .count = two},
        {"best report", .report = former ? &s->best_so_far : NULL}};
    memcpy(state, parts, sizeof parts);
}

/* Of a start that is under way: k-means++ after so many draws. */
enum { START = 10, TURN = 1 };
static void start_of(struct ki_state state[START], struct kmeans *s, const struct kmeans_drawn *drawn) {
    const bool former = s->turn > 0;
    const struct ki_state parts[START] = {
        {"turn", .integers = &s->turn, .least = 0, .most = KI_STATE_MOST},
        {"begun", .integers = &s->begun},
        {"draws", .integers = &s->draws},
        {"relocated", .integers = &s->relocated},
        {"drawn", .integers = drawn->count, .least = 1, .most = s->k},
        {"chosen", .integers = drawn->rows, .count = s->k, .least = 0, .most = s->m - 1},
        {"distances", .matrix = &drawn->distances},
        {"best", .reals = former ? s->best : NULL, .count = s->k * s->n},
        {"best found", .reals = former ? s->best_totals : NULL, .count = 2 * s->k},
        {"best report", .report = former ? &s->best_so_far : NULL}};
    memcpy(state, parts, sizeof parts);
}

static bool waits_in_start(const struct kmeans *s) {
    return ki_checkpoint_waits(&s->options.control) && ki_checkpoint_has(&s->options.control, "chosen");
}

kiln_status ki_kmeans_keep_start(struct kmeans *s, const struct kmeans_drawn *drawn) {
    struct ki_state state[START];
    if (s->limited) return KILN_OK;
    start_of(state, s, drawn);
    return ki_checkpoint_step(&s->options.control, state, START,
                              s->cancelled ? KILN_STOP_CANCELLED : KILN_STOP_NONE);
}

kiln_status ki_kmeans_resume_start(struct kmeans *s, const struct kmeans_drawn *drawn) {
    struct ki_state state[START];
    bool resumed;
    if (!waits_in_start(s)) return KILN_OK;
    start_of(state, s, drawn);
    return ki_checkpoint_resume(&resumed, &s->options.control, state, START);
}

kiln_status ki_kmeans_keep(struct kmeans *s) {
    struct ki_state state[STATE];
    int64_t adding;
    const bool another = s->report.stopped_by == KILN_STOP_TOLERANCE && s->turn + 1 < s->options.restarts;
    const kiln_stop next = s->cancelled ? KILN_STOP_CANCELLED : KILN_STOP_NONE;
    if (s->cut || s->limited) return KILN_OK;
    s->limited = s->report.stopped_by == KILN_STOP_ITERATIONS;
    state_of(state, s, &adding);
    return ki_checkpoint_step(&s->options.control, state, STATE, another ? next : s->report.stopped_by);
}

/* A pass over the centres of before says which rows are theirs; the sums are those of the run that was stopped. */
static kiln_status resume_bounds(struct kmeans *s, const kiln_matrix *sums) {
    kiln_status status;
    const size_t bytes = (size_t)kiln_matrix_rows(sums) * sizeof(double);
    double *values = ki_alloc(bytes);
    const kiln_assignment pass = {
        .size = sizeof pass, .sums = s->sums, .totals = s->totals, .bounds = s->bounds};
    if (!values) return ki_fail_nomem(bytes, "sums");
    TRY(kiln_assign(&pass, s->X, s->C, s->options.weights));
    TRY(kiln_bounds_sums(&s->running, s->bounds));
    TRY(ki_vector_get(values, sums));
    TRY(ki_vector_set(s->running, values));
done:
    ki_free(values);
    return status;
}

kiln_status ki_kmeans_resume(bool *resumed, struct kmeans *s) {
    kiln_status status;
    struct ki_state state[STATE];
    kiln_matrix *sums = NULL;
    int64_t adding;
    state_of(state, s, &adding);
    if (waits_in_start(s)) return ki_checkpoint_look(&s->options.control, state, TURN);
    TRY(ki_checkpoint_look(&s->options.control, state, LOOKED_AT)); /* which decide what else there is */
    if (adding && s->bounds) TRY(kiln_matrix_dense(&sums, s->device, KILN_F64, s->k * (s->n + 2), 1, NULL));
    s->running = sums;
    state_of(state, s, &adding);
    TRY(ki_checkpoint_resume(resumed, &s->options.control, state, STATE));
    s->running = NULL;
    if (*resumed) ki_kmeans_judge(s);
    s->limited = *resumed && s->report.stopped_by == KILN_STOP_ITERATIONS;
    if (*resumed && sums) TRY(resume_bounds(s, sums));
done:
    kiln_matrix_free(sums);
    return status;
}
