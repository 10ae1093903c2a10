/* Tiles of a wide sparse X on the CPU (derived/panels_cpu.h): when they are due, and making them.
 *
 * A block's entries stay where they are in X as a whole and change places within, so that threads make blocks
 * independently: one walk counts the entries of each panel, a second one moves them. */
#include "derived/panels_cpu.h"

#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

/* A build with a low limit for 32-bit offsets is one for tests: everything happens at small sizes there, and at once. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { ENTRIES = 64, WIDE = 32, EXACT_BYTES = 256, BITS = 4, CACHED_LINES = 8, DUE = 1 };
#else
enum {
    ENTRIES = 1 << 20,      /* fewer are multiplied in less time than is saved */
    WIDE = 1 << 18,         /* columns: the y and w of fewer are in the second-level cache often enough */
    EXACT_BYTES = 1 << 20,  /* of y: the copies of a w of less cost a deterministic device less than tiles */
    BITS = 15,              /* a panel of y or w and a block of products take some 600 KB in f64 */
    CACHED_LINES = 1 << 14, /* of y and w side by side that stay in the second-level cache */
    DUE = 2                 /* the pass that makes tiles: a matrix multiplied once would not gain by them */
};
#endif
enum {
    BLOCKS = 16, /* or more, for threads to share; the same for any number of threads, as are PIECES */
    PIECES = 32,
    BLOCK_ROWS = 1 << 16, /* at most */
    ROW_STEP = 256,       /* blocks begin at multiples: maps write whole vectors */
    PANEL_BYTES = 24,     /* of y, at most, that may be read for each entry of a block */
    SAMPLE = 1 << 20      /* entries looked at for the columns' frequencies */
};

/* Few entries to a tile would leave most of its panel's lines unused. */
static bool dense_enough(int64_t rows, int64_t cols, int64_t nnz, kiln_type type) {
    const double of_a_block = (double)nnz * (double)ki_min(BLOCK_ROWS, rows) / (double)ki_max(rows, 1);
    return (double)(cols * ki_type_bytes(type)) <= PANEL_BYTES * of_a_block;
}

bool ki_wide_fits(const kiln_work *work) {
    return work->nnz >= ENTRIES && dense_enough(work->rows, work->cols, work->nnz, work->type);
}

static bool worth_it(const kiln_matrix *X) {
    const bool wide =
        X->device->options.deterministic ? X->cols * ki_type_bytes(X->type) > EXACT_BYTES : X->cols > WIDE;
    return X->format == KILN_CSR && !X->view && X->nnz >= ENTRIES && wide &&
           dense_enough(X->rows, X->cols, X->nnz, X->type);
}

/* Whether half of the entries are in so few lines of y and w that the cache keeps them, as where some columns are far more
 * frequent than others: then a fused pass over the rows, which reads X once, is faster. Entries are looked at with random
 * gaps: even ones would see the same place in each row, where rows are equally long. */
static kiln_status look_for_skew(struct ki_wide *wide, const kiln_matrix *X) {
    enum { COUNTS = 256 };
    const int64_t columns = 64 / (2 * ki_type_bytes(X->type)), lines = ki_ceil_div(X->cols, columns);
    const uint64_t gaps = 2 * (uint64_t)ki_ceil_div(X->nnz, SAMPLE) - 1;
    const int32_t *col = ki_host(&X->col);
    int64_t with[COUNTS] = {0}, seen = 0, cached = 0, left = CACHED_LINES;
    uint64_t random = 1;
    uint8_t *count = ki_calloc((size_t)lines);
    if (!count) return ki_fail_nomem((size_t)lines, "frequencies of columns");
    for (int64_t e = 0; e < X->nnz; e += 1 + (int64_t)((random >> 33) % gaps), seen++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
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
    wide->skewed = 2 * cached > seen;
    ki_free(count);
    return KILN_OK;
}

static void release(kiln_device *device, struct ki_wide *wide) {
    device->statistics.layout_bytes -= wide->word.bytes + wide->value.bytes;
    ki_device_release(device, &wide->word);
    ki_device_release(device, &wide->value);
    ki_free(wide->row);
    ki_free(wide->piece);
    ki_free(wide->tile_end);
    *wide = (struct ki_wide){.passes = wide->passes, .looked = wide->looked, .skewed = wide->skewed};
}

static kiln_status drop(kiln_matrix *X, bool restore) {
    struct ki_wide *wide = X->layout;
    (void)restore; /* X is as it was */
    release(X->device, wide);
    X->layout = NULL;
    ki_free(wide);
    return KILN_OK;
}

static kiln_status start(const kiln_matrix *X) {
    struct ki_wide *wide = ki_calloc(sizeof *wide);
    if (!wide) return ki_fail_nomem(sizeof *wide, "tiles of a matrix");
    kiln_matrix *owner = (kiln_matrix *)(uintptr_t)X; /* its value stays as it is */
    owner->layout = wide;
    owner->layout_drop = drop;
    return KILN_OK;
}

/* ---- cutting ---- */

/* The first row from which on `goal` rows and entries have gone before. */
static int64_t row_at(const kiln_matrix *X, int64_t goal) {
    const int64_t *start = ki_host(&X->row_start);
    int64_t low = 0, high = X->rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (start[middle] + middle < goal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Blocks of about as many rows and entries each, as few as keeps reading y for each of them cheap. */
static kiln_status cut_blocks(struct ki_wide *wide, const kiln_matrix *X) {
    const int64_t *start = ki_host(&X->row_start);
    const int64_t work = X->nnz + X->rows;
    const int64_t goal = ki_max(work / BLOCKS, X->cols * ki_type_bytes(X->type) / PANEL_BYTES) + 1;
    const int64_t most = work / goal + X->rows / BLOCK_ROWS + 3;
    wide->row = ki_alloc((size_t)most * 8);
    if (!wide->row) return ki_fail_nomem((size_t)most * 8, "blocks of a matrix");
    for (int64_t row = 0; row < X->rows; wide->row[wide->blocks++] = row, row = wide->row[wide->blocks]) {
        int64_t next = row_at(X, start[row] + row + goal);
        next = ki_min(ki_ceil_div(ki_max(next, row + 1), ROW_STEP) * ROW_STEP, row + BLOCK_ROWS);
        wide->row[wide->blocks + 1] = ki_min(next, X->rows);
    }
    return KILN_OK;
}

static int64_t tile_length(const struct ki_wide *wide, const kiln_matrix *X, int64_t block, int64_t panel) {
    const int64_t *end = wide->tile_end + block * wide->panels + panel;
    const int64_t *start = ki_host(&X->row_start);
    return panel ? end[0] - end[-1] : end[0] - start[wide->row[block]];
}

/* A panel with many entries goes to several threads, block after block. */
static kiln_status cut_panels(struct ki_wide *wide, const kiln_matrix *X) {
    const int64_t goal = X->nnz / PIECES + 1;
    const size_t bytes = (size_t)(wide->panels + 2 * PIECES) * sizeof *wide->piece;
    wide->piece = ki_alloc(bytes);
    if (!wide->piece) return ki_fail_nomem(bytes, "panels of a matrix");
    for (int64_t panel = 0; panel < wide->panels; panel++) {
        struct ki_wide_piece *const begun = wide->piece + wide->pieces;
        int64_t all = 0, seen = 0, block = 0;
        for (int64_t b = 0; b < wide->blocks; b++) all += tile_length(wide, X, b, panel);
        const int64_t count = ki_max(1, (all + goal / 2) / goal);
        for (int64_t i = 0; i < count && block < wide->blocks; i++) {
            const int64_t first = block;
            for (; block < wide->blocks && (i == count - 1 || seen < all / count * (i + 1)); block++)
                seen += tile_length(wide, X, block, panel);
            wide->piece[wide->pieces++] = (struct ki_wide_piece){panel, first, block, false};
        }
        begun->whole = wide->piece + wide->pieces == begun + 1;
    }
    return KILN_OK;
}

/* ---- making ---- */

struct making {
    struct ki_wide *wide;
    const kiln_matrix *X;
};

/* Where the next entry of each of a block's tiles goes is counted up in tile_end, which so becomes what its name says. */
static inline __attribute__((always_inline)) void make_block(const struct making *making, int64_t block,
                                                             size_t size) {
    const struct ki_wide *wide = making->wide;
    const kiln_matrix *X = making->X;
    const int64_t *start = ki_host(&X->row_start), first = wide->row[block], end = wide->row[block + 1];
    const int32_t *col = ki_host(&X->col), mask = ((int32_t)1 << wide->bits) - 1;
    const char *value = ki_host(&X->values);
    uint32_t *word = ki_host(&wide->word);
    char *to = ki_host(&wide->value);
    int64_t *next = wide->tile_end + block * wide->panels, at = start[first];
    memset(next, 0, (size_t)wide->panels * sizeof *next);
    for (int64_t e = start[first]; e < start[end]; e++) next[col[e] >> wide->bits]++;
    for (int64_t panel = 0; panel < wide->panels; panel++) {
        const int64_t length = next[panel];
        next[panel] = at;
        at += length;
    }
    for (int64_t row = first; row < end; row++)
        for (int64_t e = start[row]; e < start[row + 1]; e++) {
            const int64_t place = next[col[e] >> wide->bits]++;
            word[place] = (uint32_t)(row - first) << wide->bits | (uint32_t)(col[e] & mask);
            memcpy(to + place * (int64_t)size, value + e * (int64_t)size, size);
        }
}

static void make_block_4(void *making, int block) {
    make_block(making, block, 4);
}

static void make_block_8(void *making, int block) {
    make_block(making, block, 8);
}

static kiln_status make(struct ki_wide *wide, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct making making = {wide, X};
    kiln_status status;
    wide->bits = BITS;
    wide->panels = ki_ceil_div(X->cols, (int64_t)1 << BITS);
    TRY(cut_blocks(wide, X));
    const size_t bytes = (size_t)(wide->blocks * wide->panels) * sizeof *wide->tile_end;
    wide->tile_end = ki_alloc(bytes);
    if (!wide->tile_end) TRY(ki_fail_nomem(bytes, "tiles of a matrix"));
    TRY(ki_device_alloc(device, &wide->word, X->nnz * 4));
    device->statistics.layout_bytes += wide->word.bytes;
    TRY(ki_device_alloc(device, &wide->value, X->nnz * ki_type_bytes(X->type)));
    device->statistics.layout_bytes += wide->value.bytes;
    ki_parallel(device->threads, (int)wide->blocks, X->type == KILN_F32 ? make_block_4 : make_block_8,
                &making);
    TRY(cut_panels(wide, X));
    wide->tiled = true;
done:
    if (status != KILN_OK) release(device, wide);
    return status;
}

/* Too little memory is no error: passes take the rows as before. */
static kiln_status make_and_tell(struct ki_wide *wide, const kiln_matrix *X) {
    const double began = ki_clock();
    const kiln_status status = make(wide, X);
    wide->tried = true;
    const double seconds = ki_clock() - began;
    X->device->statistics.layout_seconds += seconds;
    if (status == KILN_OK)
        ki_device_message(X->device, "tiles of a sparse matrix, %lld x %lld: %lld by %lld; %.3f s",
                          (long long)X->rows, (long long)X->cols, (long long)wide->blocks,
                          (long long)wide->panels, seconds);
    if (status != KILN_ERR_NOMEM) return status;
    ki_device_message(X->device, "no memory left for tiles of a sparse matrix: %s",
                      kiln_last_error()->message);
    return KILN_OK;
}

/* Tiles are made in the second pass that scatters, unless fused passes do without, or at once on a deterministic device, so
 * that the first pass adds up as the later ones do; products alone are taken from the rows there at all times. */
kiln_status ki_wide_get(const struct ki_wide **found, const kiln_matrix *X, bool scatters, bool fused) {
    const bool exact = X->device->options.deterministic;
    kiln_status status = KILN_OK;
    *found = NULL;
    if (!worth_it(X) || (exact && !scatters)) return KILN_OK;
    if (!X->layout) TRY(start(X));
    struct ki_wide *wide = X->layout;
    wide->passes += scatters;
    if (wide->passes < (exact ? 1 : DUE)) goto done;
    if (!wide->looked) TRY(look_for_skew(wide, X));
    wide->looked = true;
    if (wide->skewed && !exact && fused) goto done;
    if (!wide->tried && scatters) TRY(make_and_tell(wide, X));
    if (wide->tiled) *found = wide;
done:
    return status;
}
