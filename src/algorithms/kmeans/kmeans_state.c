/* This file says what a run of K-Means goes on from: the centres, what they become, and the best of former
 * starts. The first start that ends at the limit of iterations stays in the checkpoint: with a higher limit
 * the run goes on there, and makes the starts after it again. Where a pass corrects the sums of the one
 * before, these go along, as the roundings in them are those of all passes so far. */
#include "algorithms/kmeans/kmeans.h"

enum { LOOKED_AT = 2, FORMER = 4 };

void ki_kmeans_state(struct ki_state state[KI_KMEANS_STATE], struct kmeans *s) {
    const int64_t all = s->k * s->n, two = 2 * s->k;
    const bool batches = s->options.batch > 0, patient = batches && s->options.patience > 0;
    const struct ki_state parts[KI_KMEANS_STATE] = {
        {"turn", .integers = &s->run.turn, .least = 0, .most = KI_STATE_MOST},
        {"adding", .integers = &s->adding, .least = 0, .most = 1},
        {"sums", .matrix = &s->running},
        {"begun", .integers = &s->run.begun},
        {"draws", .integers = &s->draws.count},
        {"relocated", .integers = &s->relocated},
        {"centres", .matrix = &s->C},
        {"filled", .integers = &s->filled},
        {"means", .matrix = batches ? NULL : &s->means},
        {"found", .reals = batches ? NULL : s->found, .count = two},
        {"round", .integers = batches ? &s->round : NULL},
        {"seen", .reals = batches ? s->seen : NULL, .count = s->k},
        {"mean", .reals = batches ? &s->mean : NULL},
        {"smooth", .reals = patient ? s->smooth : NULL, .count = 2},
        {"idle", .integers = patient ? &s->idle : NULL},
        {"best", .reals = s->best, .count = all},
        {"best found", .reals = s->best_totals, .count = two},
        {"best tired", .integers = patient ? &s->best_tired : NULL, .least = 0, .most = 1},
        {"best report", .report = &s->run.best}};
    memcpy(state, parts, sizeof parts);
    s->run.state = state;
    s->run.parts = KI_KMEANS_STATE;
    s->run.former = FORMER;
}

/* The state of a start that is under way is k-means++ after so many draws. */
enum { START = 11, TURN = 1 };
static void start_of(struct ki_state state[START], struct kmeans *s, const struct kmeans_drawn *drawn) {
    const bool former = s->run.turn > 0, patient = s->options.batch > 0 && s->options.patience > 0;
    const struct ki_state parts[START] = {
        {"turn", .integers = &s->run.turn, .least = 0, .most = KI_STATE_MOST},
        {"begun", .integers = &s->run.begun},
        {"draws", .integers = &s->draws.count},
        {"relocated", .integers = &s->relocated},
        {"drawn", .integers = drawn->count, .least = 1, .most = s->k},
        {"chosen", .integers = drawn->rows, .count = s->k, .least = 0, .most = s->m - 1},
        {"distances", .matrix = &drawn->distances},
        {"best", .reals = former ? s->best : NULL, .count = s->k * s->n},
        {"best found", .reals = former ? s->best_totals : NULL, .count = 2 * s->k},
        {"best tired", .integers = former && patient ? &s->best_tired : NULL, .least = 0, .most = 1},
        {"best report", .report = former ? &s->run.best : NULL}};
    memcpy(state, parts, sizeof parts);
}

static bool waits_in_start(const struct kmeans *s) {
    return ki_checkpoint_waits(&s->options.control) && ki_checkpoint_has(&s->options.control, "chosen");
}

kiln_status ki_kmeans_keep_start(struct kmeans *s, const struct kmeans_drawn *drawn) {
    struct ki_state state[START];
    if (s->run.limited) return KILN_OK;
    start_of(state, s, drawn);
    return ki_checkpoint_step(&s->options.control, state, START,
                              s->run.cancelled ? KILN_STOP_CANCELLED : KILN_STOP_NONE);
}

kiln_status ki_kmeans_resume_start(struct kmeans *s, const struct kmeans_drawn *drawn) {
    struct ki_state state[START];
    bool resumed;
    if (!waits_in_start(s)) return KILN_OK;
    start_of(state, s, drawn);
    return ki_checkpoint_resume(&resumed, &s->options.control, state, START);
}

kiln_status ki_kmeans_keep(struct kmeans *s) {
    s->adding = s->running != NULL;
    return s->cut ? KILN_OK : ki_run_keep(&s->run);
}

/* A pass over the centres of before says which rows are theirs; the sums are those of the run that was
 * stopped. */
static kiln_status resume_bounds(struct kmeans *s, const kiln_matrix *sums) {
    kiln_status status;
    struct ki_arena arena = {0};
    double *const values = ki_arena_reals(&arena, kiln_matrix_rows(sums));
    const kiln_assignment pass = {
        .size = sizeof pass, .sums = s->sums, .totals = s->totals, .bounds = s->bounds};
    TRY(arena.status);
    TRY(kiln_assign(&pass, s->X, s->C, s->options.weights));
    TRY(kiln_bounds_sums(&s->running, s->bounds));
    TRY(ki_vector_get(values, sums));
    TRY(ki_vector_set(s->running, values));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_kmeans_resume(struct kmeans *s) {
    struct ki_run *run = &s->run;
    struct ki_arena arena = {0};
    kiln_matrix *sums = NULL;
    const int64_t rows = s->k * (s->n + 2);
    kiln_status status;
    if (waits_in_start(s)) return ki_run_look(run, TURN);
    TRY(ki_run_look(run, LOOKED_AT)); /* which decide what else there is */
    if (s->adding && s->bounds)
        TRY(ki_arena_take(&arena, &sums, kiln_matrix_dense(&sums, s->device, KILN_F64, rows, 1, NULL)));
    s->running = sums;
    TRY(ki_run_resume(run));
    s->running = NULL;
    if (!run->resumed) goto done;
    run->report.stopped_by = KILN_STOP_NONE; /* a start may have converged, and others follow */
    ki_kmeans_judge(s);
    if (sums) TRY(resume_bounds(s, sums));
done:
    return ki_arena_free(&arena, status);
}
