/* Columns of a sparse matrix whose rows the processes have: each sends every other one the entries of its
 * rows that lie in the other's columns, all at once, after the leader has found out how long the columns are
 * and cut them.
 *
 * What a process gets from the others in their order are its columns row by row, so that nothing need be
 * sorted. As rows of the transposed matrix they are counted and placed, once. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "processes/processes.h"

struct rows { /* in host memory */
    int64_t *start;
    int32_t *col;
    char *values;
    void *copy[KI_PARTS];
};

struct columns {
    struct kiln_processes *p;
    const kiln_matrix *X; /* this process's rows */
    bool transposed;
    int64_t cols;
    int64_t *row;           /* process i has the rows [row[i], row[i + 1]) of X */
    int64_t *first, *entry; /* and will have these columns, and so many entries up to them */
    int64_t *out, *in;      /* entries for process i, and from it */
    struct rows rows;
    int32_t *lengths, *length; /* of the rows that go to each, process by process; that come */
    int32_t *to_col, *col;
    char *to_values, *values;
    int64_t *start; /* of the rows that come */
};

static int64_t processes(const struct columns *c) {
    return c->p->transport.count;
}

static int64_t own_rows(const struct columns *c) {
    return c->X->rows;
}

static int64_t all_rows(const struct columns *c) {
    return c->row[processes(c)];
}

static int64_t own_columns(const struct columns *c) {
    return c->first[c->p->transport.rank + 1] - c->first[c->p->transport.rank];
}

static kiln_status room(void *array, int64_t count, int64_t size) {
    const size_t bytes = (size_t)(ki_max(count, 1) * size);
    void *memory = ki_calloc(bytes);
    if (!memory) return ki_fail_nomem(bytes, "a process's columns");
    memcpy(array, &memory, sizeof memory);
    return KILN_OK;
}

static void free_columns(struct columns *c) {
    void *const all[] = {c->row,          c->out,          c->lengths,      c->length,
                         c->to_col,       c->col,          c->values,       c->start,
                         c->rows.copy[0], c->rows.copy[1], c->rows.copy[2], c->to_values};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ki_free(all[i]);
}

/* ------------------------------------------------------------------------------------ who gets what */

/* This process's rows as they lie, or a copy. */
static kiln_status take_rows(struct rows *rows, const kiln_matrix *X) {
    kiln_status status = KILN_OK;
    if (ki_on_cpu(X->device)) {
        rows->start = ki_host(&X->row_start);
        rows->col = ki_host(&X->col);
        rows->values = ki_host(&X->values);
        return KILN_OK;
    }
    TRY(room(&rows->copy[0], X->rows + 1, 8));
    TRY(room(&rows->copy[1], X->nnz, 4));
    TRY(room(&rows->copy[2], X->nnz, ki_type_bytes(X->type)));
    rows->start = rows->copy[0];
    rows->col = rows->copy[1];
    rows->values = rows->copy[2];
    TRY(kiln_matrix_get_csr(rows->start, rows->col, rows->values, X));
done:
    return status;
}

/* As many columns and entries each; as long as there are columns each has one. By counts, which doubles hold
 * exactly. */
static void cut(struct columns *c, const double *count) {
    const int64_t parts = processes(c);
    int64_t all = c->cols, before = 0, entries = 0, at = 0;
    for (int64_t j = 0; j < c->cols; j++) all += (int64_t)count[j];
    for (int64_t i = 1; i <= parts; i++) {
        const int64_t most = ki_max(c->cols - (parts - i), 0), least = ki_min(c->first[i - 1] + 1, c->cols),
                      goal = ki_part_begin(all, (int)i, (int)parts);
        for (; at < c->cols && (i == parts || at < least || (before < goal && at < most)); at++) {
            before += 1 + (int64_t)count[at];
            entries += (int64_t)count[at];
        }
        c->first[i] = at;
        c->entry[i] = entries;
    }
}

/* The leader's cut of the columns to all. */
static kiln_status cut_columns(struct columns *c) {
    double *count = NULL;
    kiln_status status;
    TRY(room(&count, c->cols, sizeof *count));
    for (int64_t e = 0; e < c->X->nnz; e++) count[c->rows.col[e]]++;
    TRY(ki_wire_sum(c->p, count, c->cols, false));
    if (ki_leads(c->p)) cut(c, count);
    TRY(ki_wire_broadcast(c->p, c->first, 2 * (processes(c) + 1) * (int64_t)sizeof *c->first));
done:
    ki_free(count);
    return status;
}

static int owner_of(const struct columns *c, int32_t col) {
    return ki_owner_of(c->first, c->p->transport.count, col);
}

/* ------------------------------------------------------------------------------------- the exchange */

static kiln_status make_room(struct columns *c) {
    const int64_t real = ki_type_bytes(c->X->type);
    int64_t come = 0;
    kiln_status status;
    for (int i = 0; i < c->p->transport.count; i++) come += c->in[i];
    TRY(room(&c->lengths, own_rows(c) * processes(c), sizeof *c->lengths));
    TRY(room(&c->length, all_rows(c), sizeof *c->length));
    TRY(room(&c->to_col, c->X->nnz, sizeof *c->to_col));
    TRY(room(&c->to_values, c->X->nnz, real));
    TRY(room(&c->col, come, sizeof *c->col));
    TRY(room(&c->values, come, real));
    TRY(room(&c->start, all_rows(c) + 1, sizeof *c->start));
done:
    return status;
}

/* Entries in the order of who gets them; columns count from the first of its own. */
static kiln_status sort_out(struct columns *c) {
    const int64_t real = ki_type_bytes(c->X->type);
    int64_t *at = NULL;
    kiln_status status;
    TRY(room(&at, processes(c), sizeof *at));
    for (int i = 1; i < c->p->transport.count; i++) at[i] = at[i - 1] + c->out[i - 1];
    for (int64_t r = 0; r < own_rows(c); r++)
        for (int64_t e = c->rows.start[r]; e < c->rows.start[r + 1]; e++) {
            const int to = owner_of(c, c->rows.col[e]);
            c->lengths[to * own_rows(c) + r]++;
            c->to_col[at[to]] = c->rows.col[e] - (int32_t)c->first[to];
            memcpy(c->to_values + at[to]++ * real, c->rows.values + e * real, (size_t)real);
        }
done:
    ki_free(at);
    return status;
}

/* One array: out and in lie process by process, so many elements each. */
static kiln_status exchange(struct columns *c, const void *out, void *in, int64_t size, const int64_t *gives,
                            const int64_t *gets) {
    const char *from = out;
    char *to = in;
    for (int i = 0; i < c->p->transport.count; i++) {
        c->p->exchange[i] = (struct ki_exchange){from, to, gives[i] * size, gets[i] * size};
        from += gives[i] * size;
        to += gets[i] * size;
    }
    return ki_wire_exchange(c->p);
}

/* `lengths` is a number for each of the own rows to all, and from each one for each of its rows. */
static kiln_status exchange_all(struct columns *c) {
    int64_t *own = NULL, *theirs = NULL;
    kiln_status status;
    TRY(room(&own, 2 * processes(c), sizeof *own));
    theirs = own + processes(c);
    for (int i = 0; i < c->p->transport.count; i++)
        own[i] = own_rows(c), theirs[i] = c->row[i + 1] - c->row[i];
    TRY(exchange(c, c->lengths, c->length, sizeof *c->length, own, theirs));
    TRY(exchange(c, c->to_col, c->col, sizeof *c->col, c->out, c->in));
    TRY(exchange(c, c->to_values, c->values, ki_type_bytes(c->X->type), c->out, c->in));
done:
    ki_free(own);
    return status;
}

/* ---------------------------------------------------------------------------------------- the result */

static kiln_status adopt(kiln_matrix **made, struct columns *c, int64_t rows, int64_t cols, int64_t **start,
                         int32_t **col, char **values) {
    kiln_status status;
    TRY(ki_matrix_adopt_csr(made, c->X->device, c->X->type, rows, cols, (*start)[rows], *start, *col,
                            *values));
    (*made)->given = false; /* it is not cut again */
    *start = NULL;
    *col = NULL;
    *values = NULL;
done:
    return status;
}

static kiln_status transpose(kiln_matrix **made, struct columns *c) {
    const int64_t real = ki_type_bytes(c->X->type), rows = own_columns(c), entries = c->start[all_rows(c)];
    int64_t *start = NULL;
    int32_t *col = NULL;
    char *values = NULL;
    kiln_status status;
    TRY(room(&start, rows + 1, sizeof *start));
    TRY(room(&col, entries, sizeof *col));
    TRY(room(&values, entries, real));
    for (int64_t e = 0; e < entries; e++) start[c->col[e] + 1]++;
    for (int64_t r = 0; r < rows; r++) start[r + 1] += start[r];
    for (int64_t r = 0; r < all_rows(c); r++)
        for (int64_t e = c->start[r]; e < c->start[r + 1]; e++) {
            const int64_t at = start[c->col[e]]++;
            col[at] = (int32_t)r;
            memcpy(values + at * real, c->values + e * real, (size_t)real);
        }
    for (int64_t r = rows; r > 0; r--) start[r] = start[r - 1];
    start[0] = 0;
    TRY(adopt(made, c, rows, all_rows(c), &start, &col, &values));
done:
    ki_free(start);
    ki_free(col);
    ki_free(values);
    return status;
}

static kiln_status make(kiln_matrix **made, struct columns *c) {
    for (int64_t r = 0; r < all_rows(c); r++) c->start[r + 1] = c->start[r] + c->length[r];
    return c->transposed ? transpose(made, c)
                         : adopt(made, c, all_rows(c), own_columns(c), &c->start, &c->col, &c->values);
}

/* Does the part of each process. *outcome: what went wrong in one of them. The status is of what ends all,
 * such as no memory for a vector. */
static kiln_status run(kiln_matrix **made, struct columns *c, kiln_status *outcome) {
    const size_t one = sizeof(int64_t);
    int64_t *ones = NULL;
    kiln_status status;
    TRY(room(&ones, processes(c), (int64_t)one));
    TRY(room(&c->out, 2 * processes(c), (int64_t)one));
    c->in = c->out + processes(c);
    for (int i = 0; i < c->p->transport.count; i++) ones[i] = 1;
    TRY(ki_wire_broadcast(c->p, c->row, (processes(c) + 1) * (int64_t)one));
    TRY(take_rows(&c->rows, c->X));
    TRY(cut_columns(c));
    for (int64_t e = 0; e < c->X->nnz; e++) c->out[owner_of(c, c->rows.col[e])]++;
    TRY(exchange(c, c->out, c->in, (int64_t)one, ones, ones));
    *outcome = make_room(c);
    TRY(ki_agree(outcome, c->p));
    if (*outcome != KILN_OK) goto done;
    TRY(sort_out(c));
    TRY(exchange_all(c));
    *outcome = make(made, c);
    TRY(ki_agree(outcome, c->p));
done:
    ki_free(ones);
    return status;
}

static kiln_status begin(struct columns *c, struct kiln_processes *p, const kiln_matrix *X, bool transposed) {
    const int64_t places = (int64_t)p->transport.count + 1;
    kiln_status status;
    *c = (struct columns){.p = p, .X = X, .transposed = transposed, .cols = X->cols};
    TRY(room(&c->row, 3 * places, sizeof *c->row));
    c->first = c->row + places;
    c->entry = c->first + places;
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- leader */

/* A cut without an owner of X's columns; its `here` are the leader's, or NULL after an error. */
static kiln_status lead(struct ki_cut **cut, const kiln_matrix *X, bool transposed) {
    struct kiln_processes *p = (struct kiln_processes *)X->device->processes;
    struct columns c = {.p = p};
    struct ki_order order = {.kind = KI_ORDER_COLUMNS, .columns.transposed = transposed};
    struct ki_cut *made = NULL;
    const struct ki_cut *rows;
    kiln_status status, outcome;
    TRY(ki_cut_of(&rows, X, KI_BY_ROWS));
    TRY(begin(&c, p, rows->here, transposed));
    memcpy(c.row, rows->first, (size_t)(p->transport.count + 1) * sizeof *c.row);
    TRY(ki_number_take(&order.columns.number, p));
    status = ki_cut_new(&made, p, order.columns.number);
    if (status != KILN_OK) ki_number_drop(p, order.columns.number);
    if (status != KILN_OK) goto done;
    order.columns.X = rows->number;
    TRY(ki_order_send(p, &order));
    status = run(&made->here, &c, &outcome);
    p->broken = p->broken || status != KILN_OK;
    if (status == KILN_OK) status = outcome;
    if (status != KILN_OK) goto done;
    memcpy(made->first, c.first, 2 * (size_t)(p->transport.count + 1) * sizeof *c.first);
    *cut = made;
    made = NULL;
done:
    if (made) ki_cut_free(X->device, made);
    free_columns(&c);
    return status;
}

static const struct ki_slot_kind kind = {.name = "the columns of processes", .drop = ki_cut_free};

kiln_status ki_cut_columns_of(const struct ki_cut **cut, const kiln_matrix *X) {
    struct ki_cut *made = ki_slot_get(X, &kind);
    kiln_status status = KILN_OK;
    *cut = made;
    if (made) return KILN_OK;
    TRY(lead(&made, X, false));
    status = ki_slot_put(X, &kind, made, 0);
    if (status != KILN_OK) ki_cut_free(X->device, made);
    if (status == KILN_OK) *cut = made;
done:
    return status;
}

void ki_cut_columns_drop(const kiln_matrix *X) {
    ki_slot_drop(X, &kind);
}

kiln_status ki_processes_transpose(kiln_matrix **T, const kiln_matrix *X) {
    struct ki_cut *cut = NULL;
    kiln_matrix *made = NULL;
    kiln_status status;
    TRY(lead(&cut, X, true));
    TRY(ki_matrix_shell(&made, X->device, X->type, KILN_CSR, 0, X->rows));
    made->given = true;
    TRY(ki_cut_give(made, cut));
    cut = NULL;
    *T = made;
    made = NULL;
done:
    if (cut) ki_cut_free(X->device, cut);
    kiln_matrix_free(made);
    return status;
}

/* ---------------------------------------------------------------------------------------- the others */

kiln_status ki_serve_columns(struct kiln_processes *p, const struct ki_order *order) {
    struct columns c;
    kiln_matrix *made = NULL;
    kiln_status status, outcome = KILN_OK;
    TRY(begin(&c, p, ki_kept(p, order->columns.X), order->columns.transposed));
    TRY(run(&made, &c, &outcome));
    if (outcome == KILN_OK) {
        kiln_matrix *kept = made;
        made = NULL;
        TRY(ki_keep(p, order->columns.number, kept));
    }
done:
    kiln_matrix_free(made);
    free_columns(&c);
    return status;
}
