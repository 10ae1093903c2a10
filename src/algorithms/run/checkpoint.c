/* When a run's state is written, and when it is read again.
 *
 * A checkpoint travels in a control: one whose callback is the function below and whose user is the
 * checkpoint, which asks the caller's own control. So every algorithm has it where it has its control, and
 * everything else that takes a control takes this one as any other. */
#include "algorithms/run/parts.h"

static const char call[] = "kiln_checkpoint_open";
static const double STANDARD_SECONDS = 600, MOST_SECONDS = 1e10;

struct kiln_checkpoint {
    kiln_control control; /* the caller's */
    char *path, *resume;  /* or NULL */
    double every, due;    /* seconds; on the clock */
    bool stop;            /* the caller has asked to */
    bool waits;           /* `found` is there to go on from */
    double *along;        /* the caller's numbers; NULL: there are none */
    int64_t along_count;
    struct ki_container found, described;
    kiln_report *report; /* the run's */
    double *start;
    int64_t most;
    kiln_checkpoint_info info;
    struct ki_error_copy problem; /* of info.failed */
};

static int progress(void *user, const kiln_progress *now) {
    kiln_checkpoint *c = user;
    if (c->control.progress && c->control.progress(c->control.user, now)) c->stop = true;
    return c->stop;
}

/* The same of a control that brings no checkpoint. */
static int progress_apart(void *user, const kiln_progress *now) {
    return progress(user, now);
}

static kiln_checkpoint *checkpoint_of(const kiln_control *control) {
    return control->progress == progress ? control->user : NULL;
}

/* ---- the caller's side ---- */

static kiln_status copy_path(char **to, const char *path) {
    if (!path) return KILN_OK;
    *to = ki_strdup(path);
    return *to ? KILN_OK : ki_fail_nomem(strlen(path) + 1, "a checkpoint");
}

static kiln_status read_state(kiln_checkpoint *c) {
    kiln_status status;
    TRY(ki_container_read(&c->found, c->resume));
    if (!ki_container_text(&c->found, KI_CHECKPOINT_TEXT)) {
        ki_fail(KILN_ERR_MODEL, "%s is a model, not a checkpoint", c->resume);
        TRY(ki_hint("a model is a start (--warm-start), or a result; --checkpoint writes what goes on"));
    }
    c->waits = true;
done:
    return status;
}

kiln_status kiln_checkpoint_open(kiln_checkpoint **checkpoint, const kiln_checkpoint_options *options) {
    kiln_status status;
    kiln_checkpoint_options own;
    kiln_checkpoint *c = NULL;
    if (!checkpoint) return ki_fail(KILN_ERR_ARGUMENT, "%s: checkpoint is NULL", call);
    TRY(KI_TAKE(kiln_checkpoint_options, &own, options));
    if (!(own.checkpoint_every >= 0) || isinf(own.checkpoint_every))
        return ki_fail(KILN_ERR_ARGUMENT,
                       "kiln_checkpoint_options.checkpoint_every is %g, but must be finite and not negative",
                       own.checkpoint_every);
    if (!(c = ki_calloc(sizeof *c))) return ki_fail_nomem(sizeof *c, "a checkpoint");
    c->every = own.checkpoint_every > 0 ? own.checkpoint_every : STANDARD_SECONDS;
    c->info.iteration = c->info.resumed = -1;
    TRY(copy_path(&c->path, own.checkpoint));
    TRY(copy_path(&c->resume, own.resume));
    if (c->resume) TRY(read_state(c));
    *checkpoint = c;
    c = NULL;
done:
    kiln_checkpoint_close(c);
    return status;
}

void kiln_checkpoint_close(kiln_checkpoint *c) {
    if (!c) return;
    ki_container_clear(&c->found);
    ki_container_clear(&c->described);
    ki_free(c->path);
    ki_free(c->resume);
    ki_free(c);
}

kiln_control kiln_checkpoint_control(kiln_checkpoint *checkpoint, kiln_control control) {
    if (!checkpoint) return control;
    checkpoint->control = control;
    return (kiln_control){progress, checkpoint};
}

kiln_status kiln_checkpoint_get_info(kiln_checkpoint_info *info, const kiln_checkpoint *checkpoint) {
    if (!info || !checkpoint)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_checkpoint_get_info: an argument is NULL");
    const kiln_status status = KI_CHECK_RESULT(kiln_checkpoint_info, info);
    if (status == KILN_OK) KI_GIVE(kiln_checkpoint_info, info, &checkpoint->info);
    return status;
}

/* ---- more than the run ---- */

static const char along_name[] = "along";

static struct ki_state along_state(const kiln_checkpoint *c) {
    return (struct ki_state){along_name, .reals = c->along, .count = c->along_count};
}

kiln_status kiln_checkpoint_along(kiln_checkpoint *c, double *numbers, int64_t count, int *found) {
    kiln_status status = KILN_OK;
    if (!c || !numbers || !found || count < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_checkpoint_along: an argument is NULL, or no numbers");
    *found = 0;
    c->along = numbers;
    c->along_count = count;
    if (!c->waits) return KILN_OK;
    const struct ki_state state = along_state(c);
    if (!ki_container_tensor(&c->found, along_name)) {
        ki_fail(KILN_ERR_MODEL, "%s is of a run alone, and this is one of several", c->resume);
        return ki_hint("go on with the same command");
    }
    *found = 1;
    TRY(ki_state_take(&c->found, &state, 1));
done:
    return status;
}

/* ---- the algorithm's side ---- */

bool ki_checkpoint_kept(const kiln_control *control) {
    return checkpoint_of(control) != NULL;
}

kiln_control ki_checkpoint_apart(const kiln_control *control) {
    return (kiln_control){ki_checkpoint_kept(control) ? progress_apart : control->progress, control->user};
}

bool ki_checkpoint_waits(const kiln_control *control) {
    const kiln_checkpoint *c = checkpoint_of(control);
    return c && c->waits;
}

bool ki_checkpoint_has(const kiln_control *control, const char *name) {
    const kiln_checkpoint *c = checkpoint_of(control);
    return c && c->waits && ki_container_tensor(&c->found, name) != NULL;
}

bool ki_checkpoint_lacks(const kiln_control *control, const char *name) {
    return ki_checkpoint_waits(control) && !ki_checkpoint_has(control, name);
}

/* Says what every run has. */
enum { OWN = 2 };
static void own_state(struct ki_state state[OWN], const kiln_checkpoint *c, double *seconds) {
    const struct ki_state parts[OWN] = {{"report", .report = c->report}, {"seconds", .reals = seconds}};
    memcpy(state, parts, sizeof parts);
}

kiln_status ki_checkpoint_begin(const struct ki_described *run) {
    kiln_status status = KILN_OK;
    kiln_checkpoint *c = checkpoint_of(run->control);
    if (!c || (!c->path && !c->waits)) return KILN_OK;
    if (c->waits && !c->along && ki_container_tensor(&c->found, along_name))
        return ki_fail(KILN_ERR_MODEL, "%s is of one of several runs, and this is a run alone", c->resume);
    c->report = run->report;
    c->start = run->start;
    c->most = run->most;
    ki_container_clear(&c->described);
    TRY(ki_state_describe(&c->described, run));
    if (c->waits) TRY(ki_state_compare(&c->found, &c->described, c->resume));
    c->due = ki_clock() + c->every;
done:
    return status;
}

kiln_status ki_checkpoint_look(const kiln_control *control, const struct ki_state *state, int count) {
    const kiln_checkpoint *c = checkpoint_of(control);
    return c && c->waits ? ki_state_take(&c->found, state, count) : KILN_OK;
}

kiln_status ki_checkpoint_resume(bool *resumed, const kiln_control *control, const struct ki_state *state,
                                 int count) {
    kiln_status status;
    double seconds;
    *resumed = ki_checkpoint_waits(control);
    if (!*resumed) return KILN_OK;
    kiln_checkpoint *c = checkpoint_of(control);
    struct ki_state own[OWN];
    TRY(ki_state_take(&c->found, state, count));
    own_state(own, c, &seconds);
    TRY(ki_state_take(&c->found, own, OWN));
    c->report->stopped_by = KILN_STOP_NONE;
    *c->start = ki_clock() - (seconds >= 0 && seconds < MOST_SECONDS ? seconds : 0);
    c->info.resumed = c->report->iterations;
    if (c->most > 0 && c->report->iterations >= c->most) c->report->stopped_by = KILN_STOP_ITERATIONS;
    c->waits = false;
    ki_container_clear(&c->found);
done:
    return status;
}

static kiln_status write_state(kiln_checkpoint *c, const struct ki_state *state, int count) {
    kiln_status status;
    struct ki_container whole = {0};
    struct ki_state own[OWN];
    double seconds = ki_clock() - *c->start;
    const struct ki_state along = along_state(c);
    own_state(own, c, &seconds);
    TRY(ki_state_copy(&whole, &c->described));
    if (c->along) TRY(ki_state_put(&whole, &along, 1));
    TRY(ki_state_put(&whole, state, count));
    TRY(ki_state_put(&whole, own, OWN));
    TRY(ki_container_write(&c->info.bytes, &whole, c->path));
    c->info.written++;
    c->info.iteration = c->report->iterations;
done:
    ki_container_clear(&whole);
    return status;
}

bool ki_checkpoint_due(const kiln_control *control, kiln_stop stop) {
    const kiln_checkpoint *c = checkpoint_of(control);
    if (!c || !c->path) return false;
    return stop == KILN_STOP_CANCELLED || stop == KILN_STOP_ITERATIONS ||
           (stop == KILN_STOP_NONE && ki_clock() >= c->due);
}

kiln_status ki_checkpoint_step(const kiln_control *control, const struct ki_state *state, int count,
                               kiln_stop stop) {
    kiln_checkpoint *c = checkpoint_of(control);
    const double began = ki_clock();
    if (!ki_checkpoint_due(control, stop)) return KILN_OK;
    kiln_status status = write_state(c, state, count);
    if (status == KILN_ERR_IO) { /* the run is worth more than its checkpoint */
        ki_error_keep(&c->problem);
        c->info.problem = c->problem.message;
        c->info.failed++;
        status = KILN_OK;
    }
    const double ended = ki_clock();
    c->info.seconds += ended - began;
    c->due = ended + c->every;
    return status;
}
