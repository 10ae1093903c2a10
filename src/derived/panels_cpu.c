/* Panels of a sparse X on the CPU (derived/panels_cpu.h): when they are due, and making them.
 *
 * A block's entries stay where they are in X as a whole and change places within, so that threads make blocks
 * independently: one walk counts the entries of each panel, a second one moves them. */
#include "derived/panels_cpu.h"

#include <string.h>

#include "core/limits.h"
#include "core/random.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

enum {
    BLOCKS = 16, /* or more, for threads to share; the same for any number of threads, as are PIECES */
    PIECES = 32,
    BLOCK_ROWS = 1 << 16, /* at most */
    ROW_STEP = 256,       /* blocks begin at multiples: maps write whole vectors */
    PANEL_BYTES = 24,     /* of y, at most, that may be read for each entry of a block */
    SAMPLE = 1 << 20      /* entries looked at for the columns' frequencies */
};

/* Few entries of a block in a panel would leave most of the panel's lines unused. */
static bool dense_enough(int64_t rows, int64_t cols, int64_t nnz, kiln_type type) {
    const double of_a_block = (double)nnz * (double)ki_min(BLOCK_ROWS, rows) / (double)ki_max(rows, 1);
    return (double)(cols * ki_type_bytes(type)) <= PANEL_BYTES * of_a_block;
}

bool ki_cpu_panels_fit(const kiln_work *work) {
    return work->nnz >= ki_limits.columns_entries &&
           dense_enough(work->rows, work->cols, work->nnz, work->type);
}

static bool worth_it(const kiln_matrix *X) {
    const bool many = X->device->options.deterministic
                          ? X->cols * ki_type_bytes(X->type) > ki_limits.cpu_exact_bytes
                          : X->cols > ki_limits.cpu_columns;
    return X->format == KILN_CSR && !X->view && X->nnz >= ki_limits.columns_entries && many &&
           dense_enough(X->rows, X->cols, X->nnz, X->type);
}

/* Holds what is known of X. */
struct history {
    int64_t passes; /* that scattered */
    bool looked, skewed;
    bool short_of_memory;
};

static const struct ki_slot_kind slot_history = {.name = "what is known of a matrix",
                                                 .size = sizeof(struct history)};

/* Finds whether half of the entries are in so few lines of y and w that the cache keeps them, as where some
 * columns are far more frequent than others: then a fused pass over the rows, which reads X once, is faster.
 * Entries are looked at with random gaps: even ones would see the same place in each row, where rows are
 * equally long. */
static kiln_status look_for_skew(struct history *history, const kiln_matrix *X) {
    enum { COUNTS = 256 };
    const int64_t columns = 64 / (2 * ki_type_bytes(X->type)), lines = ki_ceil_div(X->cols, columns);
    const int64_t gaps = 2 * ki_ceil_div(X->nnz, SAMPLE) - 1;
    const int32_t *col = ki_host(&X->col);
    int64_t with[COUNTS] = {0}, seen = 0, cached = 0, left = ki_limits.cpu_cached_lines;
    struct ki_draws draws = {.stream = KI_STREAM_SAMPLE};
    uint8_t *count = ki_calloc((size_t)lines);
    if (!count) return ki_fail_nomem((size_t)lines, "frequencies of columns");
    for (int64_t e = 0; e < X->nnz; e += 1 + ki_draw_below(&draws, gaps), seen++) {
        uint8_t *line = &count[col[e] / columns];
        if (*line < COUNTS - 1)
            ++*line;
        else
            cached++;
    }
    for (int64_t line = 0; line < lines; line++) with[count[line]]++;
    for (int often = COUNTS - 1; often > 0; often--) {
        const int64_t taken = ki_min(left, with[often]);
        cached += taken * often;
        left -= taken;
    }
    history->looked = true;
    history->skewed = 2 * cached > seen;
    ki_free(count);
    return KILN_OK;
}

static void drop(kiln_device *device, void *data) {
    struct ki_cpu_panels *panels = data;
    ki_device_release(device, &panels->word);
    ki_device_release(device, &panels->value);
    ki_free(panels->row);
    ki_free(panels->piece);
    ki_free(panels->end);
    ki_free(panels);
}

#define AT(buffer) offsetof(struct ki_cpu_panels, buffer)
static const struct ki_slot_kind slot_panels = {
    .name = "panels of columns", KI_SLOT(struct ki_cpu_panels, AT(word), AT(value)), .drop = drop};
#undef AT

/* ---- cutting ---- */

/* Blocks of about as many rows and entries each, as few as keeps reading y for each of them cheap. */
static kiln_status cut_blocks(struct ki_cpu_panels *panels, const kiln_matrix *X) {
    const int64_t *start = ki_host(&X->row_start);
    const int64_t work = X->nnz + X->rows;
    const int64_t goal = ki_max(work / BLOCKS, X->cols * ki_type_bytes(X->type) / PANEL_BYTES) + 1;
    const int64_t most = work / goal + X->rows / BLOCK_ROWS + 3;
    panels->row = ki_alloc((size_t)most * 8);
    if (!panels->row) return ki_fail_nomem((size_t)most * 8, "blocks of a matrix");
    for (int64_t row = 0; row < X->rows;
         panels->row[panels->blocks++] = row, row = panels->row[panels->blocks]) {
        int64_t next = ki_row_at(start, X->rows, start[row] + row + goal, 1); /* a row counts as an entry */
        next = ki_min(ki_ceil_div(ki_max(next, row + 1), ROW_STEP) * ROW_STEP, row + BLOCK_ROWS);
        panels->row[panels->blocks + 1] = ki_min(next, X->rows);
    }
    return KILN_OK;
}

static int64_t part_length(const struct ki_cpu_panels *panels, const kiln_matrix *X, int64_t block,
                           int64_t panel) {
    const int64_t *end = panels->end + block * panels->count + panel;
    const int64_t *start = ki_host(&X->row_start);
    return panel ? end[0] - end[-1] : end[0] - start[panels->row[block]];
}

/* A panel with many entries goes to several threads, block after block. */
static kiln_status cut_panels(struct ki_cpu_panels *panels, const kiln_matrix *X) {
    const int64_t goal = X->nnz / PIECES + 1;
    const size_t bytes = (size_t)(panels->count + 2 * PIECES) * sizeof *panels->piece;
    panels->piece = ki_alloc(bytes);
    if (!panels->piece) return ki_fail_nomem(bytes, "panels of a matrix");
    for (int64_t panel = 0; panel < panels->count; panel++) {
        struct ki_cpu_piece *const begun = panels->piece + panels->pieces;
        int64_t all = 0, seen = 0, block = 0;
        for (int64_t b = 0; b < panels->blocks; b++) all += part_length(panels, X, b, panel);
        const int64_t count = ki_max(1, (all + goal / 2) / goal);
        for (int64_t i = 0; i < count && block < panels->blocks; i++) {
            const int64_t first = block;
            for (; block < panels->blocks && (i == count - 1 || seen < all / count * (i + 1)); block++)
                seen += part_length(panels, X, block, panel);
            panels->piece[panels->pieces++] = (struct ki_cpu_piece){panel, first, block, false};
        }
        begun->whole = panels->piece + panels->pieces == begun + 1;
    }
    return KILN_OK;
}

/* ---- making ---- */

struct making {
    struct ki_cpu_panels *panels;
    const kiln_matrix *X;
};

/* The place of each panel's next entry is counted up in `end`, which so becomes what its name says. */
static inline __attribute__((always_inline)) void make_block(const struct making *making, int64_t block,
                                                             size_t size) {
    const struct ki_cpu_panels *panels = making->panels;
    const kiln_matrix *X = making->X;
    const int64_t *start = ki_host(&X->row_start), first = panels->row[block], end = panels->row[block + 1];
    const int32_t *col = ki_host(&X->col), mask = ((int32_t)1 << panels->bits) - 1;
    const char *value = ki_host(&X->values);
    uint32_t *word = ki_host(&panels->word);
    char *to = size ? ki_host(&panels->value) : NULL;
    int64_t *next = panels->end + block * panels->count, at = start[first];
    memset(next, 0, (size_t)panels->count * sizeof *next);
    for (int64_t e = start[first]; e < start[end]; e++) next[col[e] >> panels->bits]++;
    for (int64_t panel = 0; panel < panels->count; panel++) {
        const int64_t length = next[panel];
        next[panel] = at;
        at += length;
    }
    for (int64_t row = first; row < end; row++)
        for (int64_t e = start[row]; e < start[row + 1]; e++) {
            const int64_t place = next[col[e] >> panels->bits]++;
            word[place] = (uint32_t)(row - first) << panels->bits | (uint32_t)(col[e] & mask);
            if (size) memcpy(to + place * (int64_t)size, value + e * (int64_t)size, size);
        }
}

static void make_block_0(void *making, int block) {
    make_block(making, block, 0);
}

static void make_block_4(void *making, int block) {
    make_block(making, block, 4);
}

static void make_block_8(void *making, int block) {
    make_block(making, block, 8);
}

static kiln_status fill(struct ki_cpu_panels *panels, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct making making = {panels, X};
    kiln_status status;
    panels->bits = ki_limits.cpu_panel_bits;
    panels->count = ki_ceil_div(X->cols, (int64_t)1 << panels->bits);
    TRY(cut_blocks(panels, X));
    const size_t bytes = (size_t)(panels->blocks * panels->count) * sizeof *panels->end;
    panels->end = ki_alloc(bytes);
    if (!panels->end) TRY(ki_fail_nomem(bytes, slot_panels.name));
    TRY(ki_device_alloc(device, &panels->word, X->nnz * 4));
    TRY(ki_device_alloc(device, &panels->value, X->nnz * ki_value_bytes(X)));
    ki_parallel(device->threads, (int)panels->blocks,
                X->element            ? make_block_0
                : X->type == KILN_F32 ? make_block_4
                                      : make_block_8,
                &making);
    TRY(cut_panels(panels, X));
done:
    return status;
}

static kiln_status make(const kiln_matrix *X) {
    struct ki_cpu_panels *panels = ki_slot_new(&slot_panels);
    if (!panels) return KILN_ERR_NOMEM;
    return ki_slot_keep(X, &slot_panels, panels, fill(panels, X));
}

/* Too little memory is no error: passes take the rows as before. */
static kiln_status make_and_tell(struct history *history, const kiln_matrix *X) {
    const double began = ki_clock();
    const kiln_status status = make(X);
    const struct ki_cpu_panels *panels = ki_slot_get(X, &slot_panels);
    const double seconds = ki_clock() - began;
    X->device->statistics.layout_seconds += seconds;
    if (status == KILN_OK)
        ki_device_message(X->device, "panels of a sparse matrix, %lld x %lld: %lld blocks of %lld; %.3f s",
                          (long long)X->rows, (long long)X->cols, (long long)panels->blocks,
                          (long long)panels->count, seconds);
    if (status != KILN_ERR_NOMEM) return status;
    history->short_of_memory = true;
    ki_device_message(X->device, "no memory left for panels of a sparse matrix: %s",
                      kiln_last_error()->message);
    return KILN_OK;
}

/* Panels are made in the second pass that scatters, unless fused passes do without, or at once on a
 * deterministic device, so that the first pass adds up as the later ones do; products alone are taken from
 * the rows there at all times. */
kiln_status ki_cpu_panels_get(const struct ki_cpu_panels **panels, const kiln_matrix *X, bool scatters,
                              bool fused) {
    const bool exact = X->device->options.deterministic;
    kiln_status status = KILN_OK;
    *panels = NULL;
    if (!worth_it(X) || (exact && !scatters)) return KILN_OK;
    struct history *history = ki_slot_record(X, &slot_history);
    if (!history) return KILN_ERR_NOMEM;
    history->passes += scatters;
    if (history->passes < (exact ? 1 : ki_limits.due)) goto done;
    if (!history->looked) TRY(look_for_skew(history, X));
    if (history->skewed && !exact && fused) goto done;
    if (!ki_slot_get(X, &slot_panels) && scatters && !history->short_of_memory)
        TRY(make_and_tell(history, X));
    *panels = ki_slot_get(X, &slot_panels);
done:
    return status;
}
