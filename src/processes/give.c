/* Rows of a matrix that lies in the leader's memory, to each process its part: as many entries each, once, at
 * the first operation on it. The leader keeps the whole, as a group does (pass/split.c), and its own rows are
 * the first of it. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "processes/processes.h"

void ki_cut_free(kiln_device *device, void *data) {
    struct ki_cut *cut = data;
    (void)device;
    ki_number_drop(cut->processes, cut->number);
    if (cut->here && cut->here->view)
        ki_free(cut->here);
    else
        kiln_matrix_free(cut->here);
    ki_free(cut->first);
    ki_free(cut);
}

static const struct ki_slot_kind kinds[] = {{.name = "the rows of processes", .drop = ki_cut_free},
                                            {.name = "the rows of processes by pairs", .drop = ki_cut_free}};

kiln_status ki_cut_new(struct ki_cut **cut, struct kiln_processes *p, int number) {
    const size_t count = (size_t)p->transport.count + 1;
    struct ki_cut *made = ki_calloc(sizeof *made);
    int64_t *first = made ? ki_calloc(2 * count * sizeof *first) : NULL;
    if (!first) {
        ki_free(made);
        return ki_fail_nomem(2 * count * sizeof *first, "the rows of processes");
    }
    *made = (struct ki_cut){.processes = p,
                            .number = number,
                            .identity = ++p->cuts,
                            .rows = p->cuts,
                            .first = first,
                            .entry = first + count};
    *cut = made;
    return KILN_OK;
}

kiln_status ki_cut_give(kiln_matrix *X, struct ki_cut *cut) {
    kiln_status status;
    TRY(ki_slot_put(X, &kinds[KI_BY_ROWS], cut, 0));
    X->rows = cut->first[cut->processes->transport.count];
    X->nnz = cut->entry[cut->processes->transport.count];
    X->here = cut->here;
done:
    return status;
}

void ki_cut_alike(const kiln_matrix *X, const struct ki_cut *other) {
    struct ki_cut *cut = ki_slot_get(X, &kinds[KI_BY_ROWS]);
    cut->rows = other->rows;
}

kiln_status ki_cut_keep(kiln_matrix *X, struct kiln_processes *p, int number, kiln_matrix *here,
                        const int64_t *rows, const int64_t *entries) {
    struct ki_cut *cut = NULL;
    kiln_status status;
    TRY(ki_cut_new(&cut, p, number));
    for (int i = 0; i < p->transport.count; i++) {
        cut->first[i + 1] = cut->first[i] + rows[i];
        cut->entry[i + 1] = cut->entry[i] + entries[i];
    }
    cut->here = here;
    TRY(ki_cut_give(X, cut));
    return KILN_OK;
done:
    if (cut) ki_free(cut->first);
    ki_free(cut);
    return status;
}

/* ------------------------------------------------------------------------------- what the leader has */

static const void *part_of(const kiln_matrix *X, int part) {
    if (ki_on_cpu(X->device)) return ki_host(ki_matrix_part((kiln_matrix *)(uintptr_t)X, part));
    return ki_matrix_host(X, part);
}

static int64_t entries_before(const kiln_matrix *X, int64_t row) {
    return X->format == KILN_CSR ? ((const int64_t *)part_of(X, KI_ROW_START))[row] : row * X->cols;
}

/* The first row at or behind which so many entries lie before. */
static int64_t row_of(const kiln_matrix *X, int64_t entries) {
    if (X->format == KILN_CSR) return ki_row_at(part_of(X, KI_ROW_START), X->rows, entries, 0);
    return X->cols ? ki_ceil_div(entries, X->cols) : 0;
}

/* By the shape and the row starts alone. The leader has a row as long as there are any. */
static void cut_rows(struct ki_cut *cut, const kiln_matrix *X, enum ki_split_by by, int count) {
    for (int i = 1; i <= count; i++) {
        const int64_t row = i == count          ? X->rows
                            : by == KI_BY_PAIRS ? ki_row_of_pairs(X->rows, (double)i / count)
                                                : row_of(X, ki_part_begin(X->nnz, i, count));
        cut->first[i] = ki_max(row, ki_max(cut->first[i - 1], ki_min(X->rows, 1)));
        cut->entry[i] = entries_before(X, cut->first[i]);
    }
}

/* Rows [0, first[1]): on the CPU a view; elsewhere a matrix of its own, so that the device has no more of X
 * than these. */
static kiln_status take_own(struct ki_cut *cut, const kiln_matrix *X) {
    const int64_t rows = cut->first[1], nnz = cut->entry[1], real = ki_type_bytes(X->type);
    void *memory[KI_PARTS] = {NULL};
    kiln_matrix *here = NULL;
    kiln_status status = KILN_OK;
    if (ki_on_cpu(X->device)) {
        cut->here = here = ki_alloc(sizeof *here);
        if (!here) return ki_fail_nomem(sizeof *here, "rows of a matrix");
        *here = *X;
        here->view = true;
        here->slots = NULL;
        here->rows = rows;
        here->nnz = nnz;
        return KILN_OK;
    }
    TRY(ki_matrix_shell(&here, X->device, X->type, X->format, rows, X->cols));
    here->nnz = nnz;
    for (int part = 0; part < ki_matrix_parts(X); part++) {
        const int64_t bytes = part == KI_ROW_START ? (rows + 1) * 8 : nnz * (part == KI_COL ? 4 : real);
        if (!(memory[part] = ki_alloc((size_t)bytes))) TRY(ki_fail_nomem((size_t)bytes, "rows of a matrix"));
        memcpy(memory[part], part_of(X, part), (size_t)bytes);
    }
    TRY(ki_matrix_place(here, memory));
    here->given = false; /* it is not cut again */
    cut->here = here;
    return KILN_OK;
done:
    for (int part = 0; part < KI_PARTS; part++) ki_free(memory[part]);
    kiln_matrix_free(here);
    return status;
}

/* Process i's rows: how many, and their arrays. */
static kiln_status send_rows(struct kiln_processes *p, const kiln_matrix *X, const struct ki_cut *cut,
                             int i) {
    const int64_t first = cut->first[i], begin = cut->entry[i], real = ki_type_bytes(X->type);
    const int64_t shape[2] = {cut->first[i + 1] - first, cut->entry[i + 1] - begin};
    kiln_status status;
    TRY(ki_wire_send(p, i, shape, sizeof shape));
    TRY(ki_wire_send(p, i, (const char *)part_of(X, KI_VALUES) + begin * real, shape[1] * real));
    if (X->format != KILN_CSR) goto done;
    TRY(ki_wire_send(p, i, (const int64_t *)part_of(X, KI_ROW_START) + first, (shape[0] + 1) * 8));
    TRY(ki_wire_send(p, i, (const int32_t *)part_of(X, KI_COL) + begin, shape[1] * 4));
done:
    return status;
}

static kiln_status check_memory(const kiln_matrix *X) {
    if (!X->file) return KILN_OK;
    ki_fail(KILN_ERR_UNSUPPORTED, "the matrix lies in a file, but processes share what is in memory");
    return ki_hint("read the file without mapping it (--map)");
}

/* An order has gone out once anything is sent: from then on all get their rows, whatever this process can do
 * with its own. */
static kiln_status give(struct ki_cut *cut, struct kiln_processes *p, const kiln_matrix *X,
                        enum ki_split_by by) {
    struct ki_order order = {
        .kind = KI_ORDER_GIVE,
        .give = {.number = cut->number, .type = X->type, .format = X->format, .cols = X->cols}};
    kiln_status status;
    cut_rows(cut, X, by, p->transport.count);
    TRY(take_own(cut, X));
    TRY(ki_order_send(p, &order));
    for (int i = 1; i < p->transport.count; i++) TRY(send_rows(p, X, cut, i));
    TRY(ki_outcomes_take(p, KILN_OK));
done:
    return status;
}

kiln_status ki_cut_of(const struct ki_cut **cut, const kiln_matrix *X, enum ki_split_by by) {
    struct kiln_processes *p = (struct kiln_processes *)X->device->processes;
    if (by == KI_BY_COLUMNS) return ki_cut_columns_of(cut, X);
    const struct ki_slot_kind *kind = &kinds[X->here ? KI_BY_ROWS : by];
    struct ki_cut *made = ki_slot_get(X, kind);
    kiln_status status;
    int number = 0;
    *cut = made;
    if (made) return KILN_OK;
    TRY(check_memory(X));
    if (!ki_on_cpu(X->device)) TRY(ki_matrix_to_stream((kiln_matrix *)(uintptr_t)X));
    TRY(ki_number_take(&number, p));
    status = ki_cut_new(&made, p, number);
    if (status != KILN_OK) {
        ki_number_drop(p, number);
        return status;
    }
    TRY(give(made, p, X, by));
    TRY(ki_slot_put(X, kind, made, 0));
    *cut = made;
    made = NULL;
done:
    if (made) ki_cut_free(X->device, made);
    return status;
}

/* ------------------------------------------------------------------------------- what another gets */

/* Memory for an array of the part; NULL, and the outcome says so, if there is none. */
static void *room(int64_t bytes, kiln_status *outcome) {
    void *memory = *outcome == KILN_OK ? ki_alloc((size_t)bytes) : NULL;
    if (!memory && *outcome == KILN_OK) *outcome = ki_fail_nomem((size_t)bytes, "a process's rows");
    return memory;
}

/* Finds what is sent, or where there is no memory for it, its pieces one over the other. */
static kiln_status receive(struct kiln_processes *p, void *memory, int64_t bytes) {
    kiln_status status = KILN_OK;
    if (memory) return ki_wire_receive(p, 0, memory, bytes);
    for (int64_t at = 0; at < bytes; at += KI_TRANSPORT_MOST)
        TRY(ki_wire_receive(p, 0, p->piece, ki_min(bytes - at, KI_TRANSPORT_MOST)));
done:
    return status;
}

static kiln_status place(struct kiln_processes *p, const struct ki_order *order, void *memory[KI_PARTS],
                         const int64_t shape[2]) {
    kiln_matrix *made = NULL;
    int64_t *start = memory[KI_ROW_START];
    kiln_status status;
    for (int64_t r = shape[0]; start && r >= 0; r--) start[r] -= start[0];
    TRY(ki_matrix_shell(&made, p->device, order->give.type, order->give.format, shape[0], order->give.cols));
    made->nnz = shape[1];
    TRY(ki_matrix_place(made, memory));
    memset(memory, 0, KI_PARTS * sizeof *memory);
    return ki_keep(p, order->give.number, made);
done:
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_serve_give(struct kiln_processes *p, const struct ki_order *order) {
    void *memory[KI_PARTS] = {NULL};
    int64_t shape[2], bytes[KI_PARTS];
    kiln_status status, outcome = KILN_OK;
    TRY(ki_wire_receive(p, 0, shape, sizeof shape));
    bytes[KI_VALUES] = shape[1] * ki_type_bytes(order->give.type);
    bytes[KI_ROW_START] = (shape[0] + 1) * 8;
    bytes[KI_COL] = shape[1] * 4;
    for (int part = 0; part < (order->give.format == KILN_CSR ? KI_PARTS : 1); part++) {
        memory[part] = room(bytes[part], &outcome);
        TRY(receive(p, memory[part], bytes[part]));
    }
    if (outcome == KILN_OK) outcome = place(p, order, memory, shape);
    TRY(ki_outcome_send(p, outcome));
done:
    for (int part = 0; part < KI_PARTS; part++) ki_free(memory[part]);
    return status;
}
