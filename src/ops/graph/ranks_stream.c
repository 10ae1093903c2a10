/* Steps of PageRank where the links go by in panels: of an A that its device has no room for, or that lies
 * in a file.
 *
 * The links come as A has them, by where they lead from, so that nothing needs be put in another order first:
 * a step is W = A^T C, added up over the panels, and then the step in memory for a graph in which W is what
 * leads to each vertex, by one link from itself. Ranks, state and what stops a run are so the same. Sums
 * over links are of the ranks' type: their rounding grows with the number of links that lead to a vertex,
 * which ki_ranks_arrivals counts. */
#include "core/each.h"
#include "core/seams.h"
#include "dialect/scalar_math.h"
#include "ops/graph/ranks.h"
#include "ops/graph/ranks_error.h"
#include "pass/group.h"

/* ---- links ---- */

/* W = A^T C, where each link has its weight, or counts 1. */
struct gather {
    const kiln_matrix *A, *C;
    kiln_matrix *W;
    bool weighted, adds;
};

static const struct ki_rule gather_rules[] = {
    {offsetof(struct gather, W), KI_WRITES, {KI_SUM}},
    {offsetof(struct gather, C), KI_READS, {KI_ROW}},
};
static const struct ki_rules gather_table = KI_RULES(struct gather, A, 0, gather_rules);

static kiln_status gather_panel(const void *panel) {
    const struct gather *of = panel;
    kiln_matrix A = *of->A, *ones = NULL;
    kiln_status status = KILN_OK;
    A.view = true;
    A.slots = NULL;
    if (!of->weighted) {
        TRY(ki_matrix_new_held(&ones, A.device, A.type, A.nnz, 1));
        TRY(kiln_fill(ones, 1));
        A.values = ones->values;
    }
    TRY(kiln_multiply(of->W, 1, KILN_TRANSPOSED, &A, of->C, of->adds, of->adds ? of->W : NULL));
done:
    ki_slots_drop(&A);
    kiln_matrix_free(ones);
    return status;
}

static void gather_on(void *panel) {
    ((struct gather *)panel)->adds = true;
}

static kiln_status gather(kiln_matrix *W, const kiln_ranks *on, const kiln_matrix *C, bool weighted) {
    const struct gather all = {.A = on->A, .C = C, .W = W, .weighted = weighted};
    return ki_run_single(&(struct ki_single){.rules = &gather_table,
                                             .whole = &all,
                                             .walked = ki_matrix_bytes(W),
                                             .run = gather_panel,
                                             .go_on = gather_on});
}

/* ---- the beginning ---- */

static const struct ki_rule begin_rules[] = {
    {offsetof(struct ki_ranks, sums[0]), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_ranks, on.P), KI_READS, {KI_ROW}},
    {offsetof(struct ki_ranks, on.C), KI_WRITES, {KI_ROW}},
    {offsetof(struct ki_ranks, on.factor), KI_WRITES, {KI_ROW}},
};
static const struct ki_rules begin_table = KI_RULES(struct ki_ranks, on.A, 0, begin_rules);

static kiln_status begin_panel(const void *panel) {
    return ki_ranks_run(panel, 0, KI_RANKS_BEGIN);
}

static kiln_status begin(const struct ki_ranks *given) {
    struct ki_ranks ranks = *given;
    kiln_device *device = ranks.on.A->device;
    kiln_status status;
    TRY(ki_matrix_new_held(&ranks.sums[0], device, ki_wide_type(device), 1, 2 * ranks.on.P->cols));
    TRY(ki_run_single(&(struct ki_single){.rules = &begin_table, .whole = &ranks, .run = begin_panel}));
    TRY(ki_ranks_settle(&ranks, KI_RANKS_BEGIN));
done:
    kiln_matrix_free(ranks.sums[0]);
    return status;
}

/* ---- steps ---- */

/* A link from each vertex to itself. */
static kiln_status loops_new(kiln_matrix **loops, const kiln_matrix *P) {
    const int64_t n = P->rows;
    int64_t *start = ki_alloc((size_t)(n + 1) * sizeof *start);
    int32_t *vertex = ki_alloc((size_t)n * sizeof *vertex);
    void *ones = NULL;
    kiln_status status = KILN_OK;
    if (!start || !vertex) TRY(ki_fail_nomem((size_t)n * 12, "a link for each vertex"));
    for (int64_t v = 0; v <= n; v++) start[v] = v;
    for (int64_t v = 0; v < n; v++) vertex[v] = (int32_t)v;
    TRY(ki_values_copy(&ones, P->type, n, NULL));
    TRY(ki_matrix_adopt_csr(loops, P->device, P->type, n, n, n, start, vertex, ones));
    start = NULL;
    vertex = NULL;
    ones = NULL;
done:
    ki_free(start);
    ki_free(vertex);
    ki_free(ones);
    return status;
}

static kiln_status goes_on(bool *more, const kiln_matrix *S) {
    double active = 0;
    float narrow = 0;
    void *const to = S->type == KILN_F64 ? (void *)&active : &narrow;
    const kiln_status status = ki_elements_get(to, S, RANKS_ACTIVE * S->cols, 1);
    *more = (S->type == KILN_F64 ? active : (double)narrow) != 0;
    return status;
}

static kiln_status steps(const struct ki_ranks *given, int64_t first, int64_t count) {
    const kiln_ranks *on = &given->on;
    struct ki_ranks looped = *given;
    kiln_matrix *loops = NULL, *W = NULL;
    kiln_status status;
    bool more = true;
    TRY(ki_matrix_new(&W, on->P->device, on->P->type, on->P->rows, on->P->cols));
    TRY(loops_new(&loops, on->P));
    looped.on.A = loops;
    looped.on.weighted = 0;
    looped.on.layout = KILN_LAYOUT_CSR;
    for (int64_t number = first; number < first + count; number++) {
        TRY(goes_on(&more, on->S));
        if (!more) break;
        const bool odd = number % 2 != 0;
        TRY(gather(W, on, odd ? on->next : on->C, on->weighted != 0));
        *(odd ? &looped.on.next : &looped.on.C) = W;
        *(odd ? &looped.on.C : &looped.on.next) = odd ? on->C : on->next;
        TRY(ki_ranks_run(&looped, number, 1));
    }
done:
    kiln_matrix_free(loops);
    kiln_matrix_free(W);
    return status;
}

bool ki_ranks_streams(const kiln_ranks *on) {
    const kiln_matrix *A = on->A, *P = on->P;
    const int64_t links = A->nnz * (on->weighted ? 4 + ki_type_bytes(A->type) : 4) + A->rows * 12,
                  vectors = 3 * ki_matrix_bytes(P) + ki_matrix_bytes(on->factor);
    return ki_streams_beside(A, links + vectors);
}

kiln_status ki_ranks_stream(const struct ki_ranks *ranks, int64_t first, int64_t count) {
    return count == KI_RANKS_BEGIN ? begin(ranks) : steps(ranks, first, count);
}

/* ---- rounding ---- */

kiln_status ki_ranks_arrivals(kiln_matrix **arrivals, const kiln_ranks *on) {
    kiln_matrix *ones = NULL, *made = NULL;
    kiln_status status = KILN_OK;
    *arrivals = NULL;
    if (ki_is_split(on->A) || !ki_ranks_streams(on)) return KILN_OK;
    TRY(ki_matrix_new(&ones, on->P->device, on->P->type, on->P->rows, 1));
    TRY(ki_matrix_new(&made, on->P->device, on->P->type, on->P->rows, 1));
    TRY(kiln_fill(ones, 1));
    TRY(gather(made, on, ones, false));
    *arrivals = made;
    made = NULL;
done:
    kiln_matrix_free(ones);
    kiln_matrix_free(made);
    return status;
}
