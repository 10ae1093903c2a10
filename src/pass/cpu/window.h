/* Rows of a dense X for the passes over it: where they lie, or, of an X whose values are narrow
 * (core/narrow/narrow.h), in a window that comes along, with a few blocks of rows in X's type.
 *
 * The window stays in the cache for all walks over a block, so that memory is asked for narrow values alone.
 * What is done with a row does not depend on where it lies: results have the bits that they have of a wide
 * X. */

#include "core/narrow/widen.h"

enum { FN(WINDOW_BYTES) = 32768 }; /* at least, in type real, unless two blocks are more */

struct FN(window) {
    const kiln_matrix *X;
    real *room;                          /* NULL: X's values are wide */
    int64_t capacity, begin, end, limit; /* rows: of room for them, those in it, and where the walk ends */
};

/* The window moves on: it begins with `row`, what it already has of the rows from there on is moved, and the
 * rest is widened. Memory is asked for what comes next, so that it is busy while these rows are worked on. */
NEVER_INLINE void FN(window_move)(struct FN(window) * window, int64_t row) {
    enum { LINE = 64 };
    const kiln_matrix *X = window->X;
    const int64_t n = X->cols, element = ki_element_bytes(X->element);
    const int64_t kept = row >= window->begin ? ki_max(window->end - row, 0) : 0;
    const int64_t from = row + kept, end = ki_min(row + window->capacity, window->limit);
    const char *next = (const char *)ki_host(&X->values) + end * n * element;
    if (kept > 0)
        memmove(window->room, window->room + (row - window->begin) * n, (size_t)(kept * n) * sizeof(real));
    for (int64_t at = 0; at < (end - from) * n * element; at += LINE) __builtin_prefetch(next + at, 0, 2);
    FN(widen)(window->room + kept * n, X->element, ki_host(&X->values), from * n, (end - from) * n);
    window->begin = row;
    window->end = end;
}

/* `count` rows from `row` on, as they are valid until others are asked for. */
ALWAYS_INLINE const real *FN(rows_at)(struct FN(window) * window, int64_t row, int64_t count) {
    const int64_t n = window->X->cols;
    if (!window->room) return VALUES(window->X) + row * n;
    if (row < window->begin || row + count > window->end) FN(window_move)(window, row);
    return window->room + (row - window->begin) * n;
}
