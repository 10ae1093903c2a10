/* A checkpoint says whose state it is, and has the state.
 *
 * Data are told apart by what they do to random vectors: u^T X' v for each band of rows X', with what
 * rounding may make of it. A changed number, a row in another place or a column shows in some band, and the
 * pass costs what any pass over X does, on every device and for an X that streams. */
#include <stdio.h>

#include "algorithms/run/parts.h"

enum { BANDS = 256, SEED = 0xc4e, LINE = 128, TRACE = 7 };
/* Roots of sums of squares may differ by so many roundings: another device's add up like that. */
static const double ROUNDINGS = 64;

/* ---- the container ---- */

static kiln_status put(struct ki_container *container, const char *name, int64_t rows, int64_t cols,
                       kiln_type type, const void *values) {
    const size_t bytes = (size_t)(rows * cols) * (type == KILN_F32 ? 4 : 8);
    struct ki_tensor tensor = {(char *)name, type, rows, cols, ki_alloc(bytes)};
    if (!tensor.values) return ki_fail_nomem(bytes, "a checkpoint");
    memcpy(tensor.values, values, bytes);
    const kiln_status status = ki_container_set_tensor(container, &tensor);
    if (status != KILN_OK) ki_free(tensor.values);
    return status;
}

kiln_status ki_state_copy(struct ki_container *to, const struct ki_container *from) {
    kiln_status status = KILN_OK;
    for (int64_t i = 0; i < from->text_count; i++)
        TRY(ki_container_set_text(to, from->texts[i].key, from->texts[i].value));
    for (int64_t i = 0; i < from->tensor_count; i++) {
        const struct ki_tensor *t = &from->tensors[i];
        TRY(put(to, t->name, t->rows, t->cols, t->type, t->values));
    }
done:
    return status;
}

/* A matrix's values as a part: those of a sparse one in a column. */
static struct ki_tensor part_of(const char *name, const kiln_matrix *A) {
    const bool dense = kiln_matrix_format(A) == KILN_DENSE;
    return (struct ki_tensor){(char *)name, kiln_matrix_type(A),
                              dense ? kiln_matrix_rows(A) : kiln_matrix_nnz(A),
                              dense ? kiln_matrix_cols(A) : 1, NULL};
}

static kiln_status put_matrix(struct ki_container *container, const char *name, const kiln_matrix *A) {
    kiln_status status;
    struct ki_tensor tensor = part_of(name, A);
    const size_t bytes = (size_t)kiln_matrix_nnz(A) * (tensor.type == KILN_F32 ? 4 : 8);
    if (!(tensor.values = ki_alloc(bytes))) return ki_fail_nomem(bytes, "a checkpoint");
    TRY(kiln_matrix_get(tensor.values, A));
    TRY(ki_container_set_tensor(container, &tensor));
    tensor.values = NULL;
done:
    ki_free(tensor.values);
    return status;
}

/* *tensor = the part of that name; ERR_MODEL unless it is there and of that shape and type. */
static kiln_status find(const struct ki_tensor **tensor, const struct ki_container *container,
                        const char *name, int64_t rows, int64_t cols, kiln_type type) {
    const struct ki_tensor *found = *tensor = ki_container_tensor(container, name);
    if (!found) return ki_fail(KILN_ERR_MODEL, "the checkpoint lacks the part '%s'", name);
    if (found->rows == rows && found->cols == cols && found->type == type) return KILN_OK;
    return ki_fail(KILN_ERR_MODEL,
                   "the checkpoint's part '%s' is %s, %lld x %lld, but the run's is %s, %lld x %lld", name,
                   found->type == KILN_F32 ? "f32" : "f64", (long long)found->rows, (long long)found->cols,
                   type == KILN_F32 ? "f32" : "f64", (long long)rows, (long long)cols);
}

/* ---- the state ---- */

static kiln_status put_integers(struct ki_container *container, const char *name, const int64_t *values,
                                int64_t count) {
    double *wide = ki_alloc((size_t)count * sizeof *wide);
    if (!wide) return ki_fail_nomem((size_t)count * sizeof *wide, "a checkpoint");
    for (int64_t i = 0; i < count; i++) wide[i] = (double)values[i];
    const kiln_status status = put(container, name, 1, count, KILN_F64, wide);
    ki_free(wide);
    return status;
}

static kiln_status take_integers(int64_t *values, int64_t count, const struct ki_tensor *tensor, double least,
                                 double most) {
    const double *wide = tensor->values;
    for (int64_t i = 0; i < count; i++) {
        if (!(wide[i] >= least && wide[i] <= most) || wide[i] != floor(wide[i]))
            return ki_fail(KILN_ERR_MODEL,
                           "the checkpoint's part '%s' holds %g, but must hold integers from %g to %g",
                           tensor->name, wide[i], least, most);
        values[i] = (int64_t)wide[i];
    }
    return KILN_OK;
}

static const char *within(char key[LINE], const char *name, const char *what) {
    snprintf(key, LINE, "%s.%s", name, what);
    return key;
}

static kiln_status put_report(struct ki_container *container, const char *name, const kiln_report *report) {
    kiln_status status;
    char key[LINE];
    const int64_t counts[] = {report->iterations, report->passes, report->stopped_by, report->converged};
    const double figures[] = {report->residual, report->objective};
    double *trace = ki_alloc((size_t)ki_max(report->trace_count, 1) * TRACE * sizeof *trace), *to = trace;
    if (!trace) return ki_fail_nomem((size_t)report->trace_count * TRACE * sizeof *trace, "a checkpoint");
    for (int64_t i = 0; i < report->trace_count; i++, to += TRACE) {
        const kiln_trace_row *row = &report->trace[i];
        const double values[TRACE] = {(double)row->iteration, row->residual, row->objective, row->seconds,
                                      (double)row->inner,     row->radius,   row->test};
        memcpy(to, values, sizeof values);
    }
    TRY(put_integers(container, within(key, name, "counts"), counts, 4));
    TRY(put(container, within(key, name, "figures"), 1, 2, KILN_F64, figures));
    TRY(put(container, within(key, name, "trace"), report->trace_count, TRACE, KILN_F64, trace));
done:
    ki_free(trace);
    return status;
}

static kiln_status take_trace(kiln_report *report, const struct ki_container *container, const char *key) {
    kiln_status status;
    const struct ki_tensor *tensor = ki_container_tensor(container, key);
    TRY(find(&tensor, container, key, tensor ? tensor->rows : 0, TRACE, KILN_F64));
    report->trace_count = 0;
    const double *from = tensor->values;
    for (int64_t i = 0; i < tensor->rows; i++, from += TRACE) {
        const bool counts = fabs(from[0]) < 0x1p53 && fabs(from[4]) < 0x1p53;
        if (!counts) return ki_fail(KILN_ERR_MODEL, "the checkpoint's trace counts %g iterations", from[0]);
        TRY(ki_report_row(report, &(kiln_trace_row){.iteration = (int64_t)from[0],
                                                    .residual = from[1],
                                                    .objective = from[2],
                                                    .seconds = from[3],
                                                    .inner = (int64_t)from[4],
                                                    .radius = from[5],
                                                    .test = from[6]}));
    }
done:
    return status;
}

static kiln_status take_report(kiln_report *report, const struct ki_container *container, const char *name) {
    kiln_status status;
    char key[LINE];
    int64_t counts[4] = {0};
    const struct ki_tensor *tensor;
    TRY(find(&tensor, container, within(key, name, "counts"), 1, 4, KILN_F64));
    TRY(take_integers(counts, 4, tensor, 0, 0x1p53));
    if (counts[2] > KILN_STOP_ROUNDING || counts[3] > 1)
        return ki_fail(KILN_ERR_MODEL, "the checkpoint's report ended in a way that there is not");
    TRY(find(&tensor, container, within(key, name, "figures"), 1, 2, KILN_F64));
    const double *figures = tensor->values;
    TRY(take_trace(report, container, within(key, name, "trace")));
    report->iterations = counts[0];
    report->passes = counts[1];
    report->stopped_by = (kiln_stop)counts[2];
    report->converged = (int)counts[3];
    report->residual = figures[0];
    report->objective = figures[1];
done:
    return status;
}

kiln_status ki_state_put(struct ki_container *container, const struct ki_state *state, int count) {
    kiln_status status = KILN_OK;
    for (const struct ki_state *s = state; s < state + count; s++) {
        const int64_t size = ki_max(s->count, 1), flag = s->flag && *s->flag;
        if (s->matrix && *s->matrix) TRY(put_matrix(container, s->name, *s->matrix));
        if (s->reals) TRY(put(container, s->name, 1, size, KILN_F64, s->reals));
        if (s->integers) TRY(put_integers(container, s->name, s->integers, size));
        if (s->flag) TRY(put_integers(container, s->name, &flag, 1));
        if (s->report) TRY(put_report(container, s->name, s->report));
    }
done:
    return status;
}

static kiln_status take_matrix(kiln_matrix *A, const struct ki_container *container, const char *name) {
    const struct ki_tensor wanted = part_of(name, A), *tensor;
    const kiln_status status = find(&tensor, container, name, wanted.rows, wanted.cols, wanted.type);
    return status == KILN_OK ? kiln_matrix_set(A, tensor->values) : status;
}

static kiln_status take_numbers(const struct ki_state *s, const struct ki_container *container) {
    kiln_status status;
    const struct ki_tensor *tensor;
    const int64_t size = ki_max(s->count, 1);
    const bool any = s->least == 0 && s->most == 0;
    int64_t flag = 0;
    TRY(find(&tensor, container, s->name, 1, size, KILN_F64));
    if (s->reals) memcpy(s->reals, tensor->values, (size_t)size * sizeof *s->reals);
    if (s->integers)
        TRY(take_integers(s->integers, size, tensor, any ? -0x1p53 : (double)s->least,
                          any ? 0x1p53 : (double)s->most));
    if (s->flag) TRY(take_integers(&flag, 1, tensor, 0, 1));
    if (s->flag) *s->flag = flag != 0;
done:
    return status;
}

kiln_status ki_state_take(const struct ki_container *container, const struct ki_state *state, int count) {
    kiln_status status = KILN_OK;
    for (const struct ki_state *s = state; s < state + count; s++) {
        if (s->matrix && *s->matrix) TRY(take_matrix(*s->matrix, container, s->name));
        if (s->report) TRY(take_report(s->report, container, s->name));
        if (s->reals || s->integers || s->flag) TRY(take_numbers(s, container));
    }
done:
    return status;
}

/* ---- whose it is ---- */

/* Settings that say when to stop, and so may change. */
static bool may_differ(const char *option) {
    static const char *const names[] = {"tolerance", "max_iterations", "iterations"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option, names[i]) == 0) return true;
    return false;
}

/* The name of choice `number`, from 1 on. */
static void choice_name(char text[LINE], const char *choices, int number) {
    for (; number > 1 && strchr(choices, '|'); number--) choices = strchr(choices, '|') + 1;
    snprintf(text, LINE, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void option_text(char text[LINE], const kiln_option *option, const void *options) {
    const void *field = (const char *)options + option->offset;
    switch (option->kind) {
    case KILN_OPTION_FLAG: snprintf(text, LINE, "%s", *(const int *)field ? "on" : "off"); break;
    case KILN_OPTION_INT: snprintf(text, LINE, "%d", *(const int *)field); break;
    case KILN_OPTION_INTEGER: snprintf(text, LINE, "%lld", (long long)*(const int64_t *)field); break;
    case KILN_OPTION_REAL:
    case KILN_OPTION_POSITIVE: snprintf(text, LINE, "%.17g", *(const double *)field); break;
    case KILN_OPTION_CHOICE: {
        const int number = *(const int *)field;
        if (number > 0)
            choice_name(text, option->choices, number);
        else
            snprintf(text, LINE, "not given");
    } break;
    }
}

static uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* bands = for each band of A's rows the sum of v_i (A u)_i and the sum of its terms' squares. */
static void add_bands(double *bands, int64_t count, const double *product, int64_t rows) {
    for (int64_t b = 0; b < count; b++) {
        double sum = 0, squares = 0;
        for (int64_t i = rows * b / count; i < rows * (b + 1) / count; i++) {
            const double v = 0.5 + (double)(mixed((uint64_t)i + 1) >> 11) * 0x1p-53, term = v * product[i];
            sum += term;
            squares += term * term;
        }
        bands[2 * b] = sum;
        bands[2 * b + 1] = squares;
    }
}

static int64_t bands_of(int64_t rows) {
    return ki_max(ki_min(rows, BANDS), 1);
}

static kiln_status describe_data(struct ki_container *container, const char *name, const kiln_matrix *A) {
    kiln_status status;
    const int64_t rows = kiln_matrix_rows(A), count = bands_of(rows);
    const kiln_type type = kiln_matrix_type(A);
    char key[LINE], shape[LINE];
    double bands[2 * BANDS] = {0}, *product = NULL;
    kiln_matrix *u = NULL, *w = NULL;
    snprintf(key, sizeof key, "data %s", name);
    snprintf(shape, sizeof shape, "%s %s, %lld x %lld, %lld entries", type == KILN_F32 ? "f32" : "f64",
             kiln_matrix_format(A) == KILN_DENSE ? "dense" : "sparse", (long long)rows,
             (long long)kiln_matrix_cols(A), (long long)kiln_matrix_nnz(A));
    TRY(ki_container_set_text(container, key, shape));
    TRY(kiln_matrix_dense(&u, kiln_matrix_device(A), type, kiln_matrix_cols(A), 1, NULL));
    TRY(kiln_matrix_dense(&w, kiln_matrix_device(A), type, rows, 1, NULL));
    TRY(kiln_fill_random(u, KILN_UNIFORM, SEED, 0));
    TRY(kiln_multiply(w, 1, KILN_PLAIN, A, u, 0, NULL));
    if (!(product = ki_alloc((size_t)ki_max(rows, 1) * sizeof *product)))
        TRY(ki_fail_nomem((size_t)rows * sizeof *product, "a look at the data"));
    TRY(ki_vector_get(product, w));
    add_bands(bands, count, product, rows);
    TRY(put(container, key, count, 2, KILN_F64, bands));
done:
    ki_free(product);
    kiln_matrix_free(u);
    kiln_matrix_free(w);
    return status;
}

kiln_status ki_state_describe(struct ki_container *container, const struct ki_described *run) {
    kiln_status status;
    const kiln_algorithm *algorithm = kiln_algorithm_named(run->algorithm);
    char key[LINE], text[LINE];
    TRY(ki_container_set_text(container, KI_CHECKPOINT_TEXT, algorithm->name));
    TRY(ki_container_set_text(container, "kiln_version", kiln_version()));
    snprintf(key, sizeof key, "kiln_%s_options.seed", algorithm->name);
    snprintf(text, sizeof text, "%lld", (long long)run->seed);
    TRY(ki_container_set_text(container, key, text));
    for (int64_t i = 0; i < algorithm->option_count; i++) {
        const kiln_option *option = &algorithm->options[i];
        if (may_differ(option->name)) continue;
        snprintf(key, sizeof key, "kiln_%s_options.%s", algorithm->name, option->name);
        option_text(text, option, run->options);
        TRY(ki_container_set_text(container, key, text));
    }
    TRY(describe_data(container, "X", run->X));
    for (int i = 0; i < KI_GIVEN && run->given[i].name; i++)
        if (run->given[i].matrix) TRY(describe_data(container, run->given[i].name, run->given[i].matrix));
done:
    return status;
}

static kiln_status differs(void) {
    return ki_hint("go on with the same data and options, or begin anew, without the checkpoint");
}

/* Each text that one of the two has. */
static kiln_status compare_texts(const struct ki_container *found, const struct ki_container *now,
                                 const char *path) {
    for (int side = 0; side < 2; side++) {
        const struct ki_container *one = side ? found : now;
        for (int64_t i = 0; i < one->text_count; i++) {
            const char *key = one->texts[i].key;
            const char *theirs = ki_container_text(found, key), *ours = ki_container_text(now, key);
            if (strcmp(key, "kiln_version") == 0 || (theirs && ours && strcmp(theirs, ours) == 0)) continue;
            const bool data = strncmp(key, "data ", 5) == 0;
            if (data && theirs && ours)
                ki_fail(KILN_ERR_MODEL, "%s is %s, but in %s it was %s", key + 5, ours, path, theirs);
            else if (data)
                ki_fail(KILN_ERR_MODEL, "%s was written %s %s, and this run is %s", path,
                        theirs ? "with" : "without", key + 5, ours ? "with them" : "without");
            else
                ki_fail(KILN_ERR_MODEL, "%s is %s, but in %s it was %s", key, ours ? ours : "not known", path,
                        theirs ? theirs : "not known");
            return differs();
        }
    }
    return KILN_OK;
}

static kiln_status compare_bands(const struct ki_tensor *ours, const struct ki_container *found,
                                 long long rows, double epsilon, const char *path) {
    kiln_status status;
    const struct ki_tensor *tensor;
    TRY(find(&tensor, found, ours->name, ours->rows, 2, KILN_F64));
    const double *a = ours->values, *b = tensor->values;
    for (long long i = 0; i < ours->rows; i++, a += 2, b += 2) {
        const long long first = rows * i / ours->rows + 1, last = rows * (i + 1) / ours->rows;
        if (fabs(a[0] - b[0]) <= ROUNDINGS * epsilon * sqrt(fmax(a[1], b[1])) || a[0] == b[0]) continue;
        ki_fail(KILN_ERR_MODEL, "rows %lld to %lld of %s are not those that %s was written for", first, last,
                ours->name + 5, path);
        return differs();
    }
done:
    return status;
}

kiln_status ki_state_compare(const struct ki_container *found, const struct ki_container *now,
                             const char *path) {
    kiln_status status;
    const char *theirs = ki_container_text(found, KI_CHECKPOINT_TEXT),
               *ours = ki_container_text(now, KI_CHECKPOINT_TEXT);
    if (strcmp(theirs, ours) != 0)
        return ki_fail(KILN_ERR_MODEL, "%s is a checkpoint of %s, and this run is one of %s", path,
                       ki_is_name(theirs) ? theirs : "?", ours);
    TRY(compare_texts(found, now, path));
    for (int64_t t = 0; t < now->tensor_count; t++) {
        const char *shape = ki_container_text(now, now->tensors[t].name);
        long long rows = 0;
        if (!shape || sscanf(shape, "%*s %*s %lld", &rows) != 1) continue;
        TRY(compare_bands(&now->tensors[t], found, rows,
                          strncmp(shape, "f32", 3) == 0 ? FLT_EPSILON : DBL_EPSILON, path));
    }
done:
    return status;
}
