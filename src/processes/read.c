/* Data of which each process reads a part (io/part.h): the rows of X stay where they were read, what belongs
 * to the rows besides, such as targets, goes to the leader, where vectors lie.
 *
 * Whether that can be is known once all have read: text has numbers of its levels that are counted over the
 * whole file, and an error is told with its place in the whole. Then nothing is kept, and the leader reads
 * the data alone. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "io/table/table.h"
#include "processes/reading.h"

/* ---------------------------------------------------------------------------------------- both sides */

/* Holds what all are to make of it. */
struct verdict {
    int keep;
    int64_t cols;
    kiln_format format;
};

/* A process without rows has an array of row starts with a 0 in it. */
static kiln_status no_rows(struct ki_table *table, kiln_format format) {
    void *const empty[] = {table->values, table->col,
                           table->row_start}; /* of a format whose reader makes arrays of nothing */
    for (int i = 0; i < 3; i++) ki_free(empty[i]);
    table->format = format;
    table->values = ki_alloc(1);
    table->col = format == KILN_CSR ? ki_alloc(1) : NULL;
    table->row_start = format == KILN_CSR ? ki_calloc(sizeof *table->row_start) : NULL;
    if (table->values && (format == KILN_DENSE || (table->col && table->row_start))) return KILN_OK;
    return ki_fail_nomem(1, "no rows");
}

/* The table's rows become a matrix; they are not cut again. */
static kiln_status make_rows(kiln_matrix **rows, kiln_device *device, struct ki_table *table, kiln_type type,
                             const struct verdict *verdict) {
    kiln_status status = KILN_OK;
    if (table->rows == 0) TRY(no_rows(table, verdict->format));
    if (verdict->format == KILN_CSR)
        TRY(ki_matrix_adopt_csr(rows, device, type, table->rows, verdict->cols, table->nnz, table->row_start,
                                table->col, table->values));
    else
        TRY(ki_matrix_adopt_dense(rows, device, type, table->rows, verdict->cols, table->values));
    (*rows)->given = false;
    table->row_start = NULL;
    table->col = NULL;
    table->values = NULL;
done:
    return status;
}

/* The options' texts in turn, the path first; further files come last. */
enum { TEXTS = 12 };
static const char **text_of(kiln_read_options *options, const char **path, int i) {
    const char **const texts[TEXTS] = {path,
                                       &options->target,
                                       &options->weights,
                                       &options->offset,
                                       &options->groups,
                                       &options->features,
                                       &options->ignore,
                                       &options->categorical,
                                       &options->numeric,
                                       &options->reference,
                                       &options->missing_words,
                                       &options->interact};
    return texts[i];
}

/* -------------------------------------------------------------------------------------------- leader */

struct reading {
    struct kiln_processes *p;
    const char *path;
    const kiln_read_options *options;
    struct ki_order order;
    struct ki_table *table;
    struct ki_summary *parts; /* of all processes */
    int64_t *rows, *entries;
    struct verdict verdict;
    int64_t total;
    int differs, unread,
        bad; /* the first process that sees other files; that could not read its part; as the data are
                                 wrong; or -1 */
};

/* NUL-terminated each, a text that is not given as "\1". */
static kiln_status append_text(struct ki_bytes *all, const char *text) {
    if (!text) text = "\1";
    return ki_bytes_append(all, text, (int64_t)strlen(text) + 1) ? KILN_OK
                                                                 : ki_fail_nomem(strlen(text), "texts");
}

static kiln_status send_order(struct reading *r) {
    kiln_read_options options = *r->options;
    const char *path = r->path;
    struct ki_bytes all = {NULL, 0, 0};
    kiln_status status = KILN_OK;
    for (int i = 0; i < TEXTS; i++) TRY(append_text(&all, *text_of(&options, &path, i)));
    for (int64_t i = 0; i < options.more_count; i++) TRY(append_text(&all, options.more[i]));
    const char *schema = options.model ? kiln_model_text(options.model, "schema") : NULL;
    r->order.read.schema = schema && *schema ? schema : NULL;
    TRY(append_text(&all, schema ? schema : ""));
    ki_table_new_key(r->order.read.key);
    r->order.kind = KI_ORDER_READ;
    r->order.read.options = options;
    if (options.target_range) r->order.read.target_range = *options.target_range;
    r->order.read.texts = all.size;
    TRY(ki_order_send(r->p, &r->order));
    TRY(ki_wire_broadcast(r->p, all.data, all.size));
done:
    ki_bytes_free(&all);
    return status;
}

static kiln_status new_reading(struct reading *r) {
    const size_t count = (size_t)r->p->transport.count;
    r->parts = ki_calloc(count * sizeof *r->parts);
    r->rows = ki_calloc(2 * count * sizeof *r->rows);
    if (!r->parts || !r->rows) return ki_fail_nomem(count * sizeof *r->parts, "what processes read");
    r->entries = r->rows + count;
    return KILN_OK;
}

static bool alike(const struct ki_summary *a, const struct ki_summary *b) {
    return a->format == b->format && a->targets == b->targets && a->weights == b->weights &&
           a->offset == b->offset && a->groups == b->groups && a->names == b->names &&
           (a->format == KILN_CSR || a->cols == b->cols);
}

/* *failed: the first process with an error of its own, or -1. */
static void judge(struct reading *r, int *failed) {
    const struct ki_summary *own = &r->parts[0];
    *failed = r->differs = r->unread = r->bad = -1;
    r->verdict = (struct verdict){.keep = own->rows > 0, .cols = r->options->cols, .format = own->format};
    if (own->format == KILN_DENSE) r->verdict.cols = own->cols;
    for (int i = 0; i < r->p->transport.count; i++) {
        const struct ki_summary *part = &r->parts[i];
        if (part->status != KILN_OK && *failed < 0) *failed = i;
        if (part->unread && r->unread < 0) r->unread = i;
        if (part->bad && r->bad < 0) r->bad = i;
        if (part->files && own->files && part->files != own->files && r->differs < 0) r->differs = i;
        if (part->whole || (part->rows > 0 && !alike(part, own))) r->verdict.keep = false;
        if (part->format == KILN_CSR) r->verdict.cols = ki_max(r->verdict.cols, part->cols);
        r->rows[i] = part->rows;
        r->entries[i] = part->entries;
        r->total += part->rows;
    }
    const bool named = own->format == KILN_DENSE || r->table->feature_names;
    if (r->options->model && !named && r->options->cols > 0 && r->verdict.cols > r->options->cols)
        r->verdict.keep = false; /* the leader narrows them */
    if (*failed >= 0 || r->differs >= 0) r->verdict.keep = false;
}

/* Room for what all have beside X, the leader's own at its beginning. */
static kiln_status widen(void **array, int64_t own, int64_t all) {
    void *wide = *array ? ki_alloc((size_t)all) : NULL;
    if (!*array) return KILN_OK;
    if (!wide) return ki_fail_nomem((size_t)all, "the rows of all processes");
    memcpy(wide, *array, (size_t)own);
    ki_free(*array);
    *array = wide;
    return KILN_OK;
}

enum { GROUP = sizeof(int64_t) };

static kiln_status widen_list(int64_t **list, int64_t count) {
    int64_t *wide = count > 0 ? ki_resize(*list, (size_t)count * sizeof *wide) : NULL;
    if (count == 0) return KILN_OK;
    if (!wide) return ki_fail_nomem((size_t)count * sizeof *wide, "which values were missing");
    *list = wide;
    return KILN_OK;
}

/* For the entries that were missing, and the rows that were left out, in all parts. */
static kiln_status make_list_room(struct reading *r) {
    int64_t filled = 0, left_out = 0;
    kiln_status status;
    for (int i = 0; i < r->p->transport.count; i++) {
        filled += r->parts[i].filled;
        left_out += r->parts[i].left_out;
    }
    TRY(widen_list(&r->table->filled, filled));
    TRY(widen_list(&r->table->left_out, left_out));
done:
    return status;
}

static kiln_status make_room(struct reading *r) {
    const int64_t real = ki_type_bytes(r->options->type), own = r->table->rows * real, all = r->total * real;
    kiln_status status;
    TRY(widen(&r->table->y, own * r->table->targets, all * r->table->targets));
    TRY(widen(&r->table->weights, own, all));
    TRY(widen(&r->table->offset, own, all));
    TRY(widen((void **)&r->table->groups, r->table->rows * GROUP, r->total * GROUP));
    TRY(make_list_room(r));
done:
    return status;
}

static kiln_status take_columns(struct reading *r) {
    const int64_t real = ki_type_bytes(r->options->type);
    struct ki_table *t = r->table;
    int64_t first = t->rows;
    kiln_status status = KILN_OK;
    for (int i = 1; i < r->p->transport.count; first += r->rows[i++]) {
        const int64_t at = first * real, bytes = r->rows[i] * real;
        if (t->y) TRY(ki_wire_receive(r->p, i, (char *)t->y + at * t->targets, bytes * t->targets));
        if (t->weights) TRY(ki_wire_receive(r->p, i, (char *)t->weights + at, bytes));
        if (t->offset) TRY(ki_wire_receive(r->p, i, (char *)t->offset + at, bytes));
        if (t->groups) TRY(ki_wire_receive(r->p, i, t->groups + first, r->rows[i] * GROUP));
    }
done:
    return status;
}

/* A list of process i's, which counts from its first entry or row on. */
static kiln_status take_list(int64_t *list, int64_t *size, struct reading *r, int i, int64_t count,
                             int64_t before) {
    kiln_status status = KILN_OK;
    if (count == 0) return KILN_OK; /* nobody may have a list */
    int64_t *theirs = list + *size;
    TRY(ki_wire_receive(r->p, i, theirs, count * (int64_t)sizeof *theirs));
    for (int64_t e = 0; e < count; e++) theirs[e] += before;
    *size += count;
done:
    return status;
}

static kiln_status take_lists(struct reading *r) {
    struct ki_table *t = r->table;
    int64_t entries = r->entries[0], rows = r->rows[0] + t->left_out_count;
    kiln_status status = KILN_OK;
    for (int i = 1; i < r->p->transport.count; i++) {
        const struct ki_summary *part = &r->parts[i];
        TRY(take_list(t->filled, &t->filled_count, r, i, part->filled, entries));
        TRY(take_list(t->left_out, &t->left_out_count, r, i, part->left_out, rows));
        entries += part->entries;
        rows += part->rows + part->left_out;
    }
done:
    return status;
}

static kiln_status fail_differs(const struct reading *r) {
    ki_fail(KILN_ERR_IO,
            "process %d of %d sees another %s than process 1: its size, beginning or end is another",
            r->differs + 1, r->p->transport.count, r->path);
    return ki_hint("a folder that all processes share, or the same files on every machine, all written "
                   "before the start");
}

/* All have read: who has what, what is to become of it, and the error of one that could not read. */
static kiln_status agree(struct reading *r) {
    struct kiln_processes *p = r->p;
    kiln_status status, own = KILN_OK;
    int failed;
    for (int i = 1; i < p->transport.count; i++) TRY(ki_wire_receive(p, i, &r->parts[i], sizeof *r->parts));
    judge(r, &failed);
    if (r->verdict.keep) own = make_room(r);
    if (own != KILN_OK) r->verdict.keep = false;
    if (own != KILN_OK) ki_error_keep(&p->error);
    TRY(ki_wire_broadcast(p, &r->verdict, sizeof r->verdict));
    if (own != KILN_OK || failed == 0) return ki_error_renew(&p->error);
    if (failed > 0) TRY(ki_error_fetch(p, failed));
    if (r->differs > 0) TRY(fail_differs(r));
done:
    return status;
}

static kiln_status make_X(kiln_matrix **X, struct reading *r, kiln_matrix *here) {
    kiln_matrix *made = NULL;
    kiln_status status;
    TRY(ki_matrix_shell(&made, r->p->device, r->options->type, r->verdict.format, 0, r->verdict.cols));
    made->given = true;
    TRY(ki_cut_keep(made, r->p, r->order.read.number, here, r->rows, r->entries));
    r->table->rows = made->rows;
    r->table->cols = made->cols;
    r->table->nnz = made->nnz;
    *X = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

static kiln_status keep_parts(kiln_matrix **X, struct reading *r, int64_t *bytes) {
    kiln_matrix *here = NULL;
    kiln_status status, outcome;
    outcome = make_rows(&here, r->p->device, r->table, r->options->type, &r->verdict);
    TRY(take_columns(r));
    TRY(take_lists(r));
    if (outcome == KILN_OK && r->table->groups) outcome = ki_table_number_groups(r->table->groups, r->total);
    TRY(ki_outcomes_take(r->p, outcome));
    TRY(make_X(X, r, here));
    here = NULL;
    for (int i = 0; i < r->p->transport.count; i++) *bytes += r->parts[i].bytes;
done:
    kiln_matrix_free(here);
    return status;
}

static kiln_status read_all(kiln_matrix **X, struct reading *r, int64_t *bytes) {
    kiln_status status;
    TRY(new_reading(r));
    TRY(ki_number_take(&r->order.read.number, r->p));
    TRY(send_order(r));
    TRY(ki_read_part(&r->parts[0], r->p, r->table, r->path, &r->order));
    TRY(agree(r));
    if (r->verdict.keep) TRY(keep_parts(X, r, bytes));
done:
    if (!*X) ki_number_drop(r->p, r->order.read.number);
    ki_free(r->parts);
    ki_free(r->rows);
    return status;
}

/* unread: the process that could not read its part, or -1. */
static kiln_status tell_whole(const kiln_device *device, const char *path, int unread) {
    if (unread >= 0)
        ki_device_message(device, "%s: process %d of %d cannot read its part by itself", path, unread + 1,
                          device->processes->count);
    ki_device_message(device, "%s: process 1 reads all of it, and the others get their rows from there",
                      path);
    return KILN_OK;
}

/* Data that are wrong in one part are wrong as a whole, where the first process finds the line. Where it
 * does not, it sees other data under that name. */
static kiln_status fail_bad(struct reading *r, kiln_file_format format) {
    struct ki_error_copy error;
    int64_t bytes = 0;
    kiln_status status = ki_table_read(r->table, &format, &bytes, r->path, r->options);
    if (status == KILN_OK) status = ki_take_named(r->table, format, r->path, r->options);
    ki_table_clear(r->table);
    if (status != KILN_OK) return status;
    if (r->bad == 0)
        ki_error_renew(&r->p->error);
    else
        ki_error_fetch(r->p, r->bad);
    ki_error_keep(&error);
    error.error.line = error.error.column = 0; /* counted from where the part begins */
    error.error.offset = -1;
    status = ki_error_renew(&error);
    ki_hint("process 1 can read all of %s: the other one has another file of that name, or it has changed; "
            "a row's number counts from where that process's part begins",
            r->path);
    return status;
}

kiln_status ki_processes_read(kiln_matrix **X, struct ki_table *table, kiln_file_format *format,
                              int64_t *bytes, kiln_device *device, const char *path,
                              const kiln_read_options *options) {
    struct reading r = {
        .p = (struct kiln_processes *)device->processes, .path = path, .options = options, .table = table};
    kiln_file_format found = *format;
    bool possible;
    /* An error is the leader's to tell when it reads. */
    if (ki_parts_possible(&possible, &found, path, options) != KILN_OK || !possible)
        return tell_whole(device, path, -1);
    r.order.read.format = found;
    kiln_status status = ki_check_model_format(found, path, options, &table->warnings);
    if (status == KILN_OK) status = read_all(X, &r, bytes);
    if (status != KILN_OK || !*X) {
        ki_table_clear(table);
        if (status == KILN_OK && r.bad >= 0) return fail_bad(&r, found);
        return status == KILN_OK ? tell_whole(device, path, r.unread) : status;
    }
    *format = found;
    ki_device_message(device, "%s: each of %d processes has read a part", path, r.p->transport.count);
    return KILN_OK;
}

/* ---------------------------------------------------------------------------------------- the others */

/* The texts back into the options, which point into `all` then; *schema: what stands behind them. */
static const char *read_texts(kiln_read_options *options, const char ***more, const char **schema,
                              const char *all) {
    const char *path = NULL, *at = all;
    for (int i = 0; i < TEXTS; i++, at += strlen(at) + 1)
        *text_of(options, &path, i) = *at == '\1' ? NULL : at;
    for (int64_t i = 0; i < options->more_count; i++, at += strlen(at) + 1) (*more)[i] = at;
    options->more = *more;
    *schema = at;
    return path;
}

static void set_options(struct kiln_processes *p, struct ki_order *order) {
    kiln_read_options *options = &order->read.options;
    if (options->target_range) { /* its hint is in the leader's memory, who tells of errors */
        order->read.target_range.hint = "";
        options->target_range = &order->read.target_range;
    }
    options->target_file = options->vocabulary = NULL;
    options->model = NULL;
    options->control = (kiln_control){NULL, NULL};
    options->threads = p->device->threads;
}

static kiln_status send_columns(struct kiln_processes *p, const struct ki_table *table, kiln_type type) {
    const int64_t bytes = table->rows * ki_type_bytes(type);
    kiln_status status = KILN_OK;
    if (table->y) TRY(ki_wire_send(p, 0, table->y, bytes * table->targets));
    if (table->weights) TRY(ki_wire_send(p, 0, table->weights, bytes));
    if (table->offset) TRY(ki_wire_send(p, 0, table->offset, bytes));
    if (table->groups) TRY(ki_wire_send(p, 0, table->groups, table->rows * GROUP));
    if (table->filled_count > 0)
        TRY(ki_wire_send(p, 0, table->filled, table->filled_count * (int64_t)sizeof *table->filled));
    if (table->left_out_count > 0)
        TRY(ki_wire_send(p, 0, table->left_out, table->left_out_count * (int64_t)sizeof *table->left_out));
done:
    return status;
}

static kiln_status serve(struct kiln_processes *p, struct ki_order *order, const char *path) {
    struct ki_table table = {.rows = 0};
    struct verdict verdict;
    kiln_matrix *rows = NULL;
    kiln_status status, outcome;
    struct ki_summary own;
    TRY(ki_read_part(&own, p, &table, path, order));
    TRY(ki_wire_send(p, 0, &own, sizeof own));
    TRY(ki_wire_broadcast(p, &verdict, sizeof verdict));
    if (!verdict.keep) goto done;
    outcome = make_rows(&rows, p->device, &table, order->read.options.type, &verdict);
    if (outcome == KILN_OK) outcome = ki_keep(p, order->read.number, rows);
    TRY(send_columns(p, &table, order->read.options.type));
    TRY(ki_outcome_send(p, outcome));
done:
    ki_table_clear(&table);
    return status;
}

kiln_status ki_serve_read(struct kiln_processes *p, struct ki_order *order) {
    const size_t files = (size_t)order->read.options.more_count;
    char *all = ki_alloc((size_t)order->read.texts);
    const char **more = ki_alloc((files + 1) * sizeof *more), *schema;
    kiln_status status;
    if (!all || !more) TRY(ki_fail_nomem((size_t)order->read.texts, "the names of files"));
    TRY(ki_wire_broadcast(p, all, order->read.texts));
    const char *path = read_texts(&order->read.options, &more, &schema, all);
    order->read.schema = *schema ? schema : NULL;
    set_options(p, order);
    TRY(serve(p, order, path));
done:
    ki_free(more);
    ki_free(all);
    return status;
}
