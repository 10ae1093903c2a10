/* A batch is one piece of text a thread: the pieces' room is allocated first, so that printing itself cannot
 * fail. */
#include "io/print.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/output.h"
#include "io/windows/rows.h"

enum { PIECE_BYTES = 1 << 20, PIECES_MOST = 64 };

struct piece {
    int64_t begin, end; /* items */
    char *text, *behind;
    int64_t capacity;
};

/* Takes items from `begin` on until the piece is full; at least one, if any is left. */
static kiln_status plan(struct piece *piece, const struct ki_printer *printer, int64_t begin) {
    int64_t bytes = 0;
    piece->begin = piece->end = begin;
    while (piece->end < printer->count && bytes < PIECE_BYTES) bytes += printer->bound(printer, piece->end++);
    if (bytes <= piece->capacity) return KILN_OK;
    char *grown = ki_resize(piece->text, (size_t)bytes);
    if (!grown) return ki_fail_nomem((size_t)bytes, "text to write");
    piece->text = grown;
    piece->capacity = bytes;
    return KILN_OK;
}

struct batch {
    const struct ki_printer *printer;
    struct piece pieces[PIECES_MOST];
};

static void print_piece(void *of, int part) {
    struct batch *batch = of;
    struct piece *piece = &batch->pieces[part];
    const struct ki_printer *printer = batch->printer;
    piece->behind = piece->text;
    for (int64_t i = piece->begin; i < piece->end; i++)
        piece->behind = printer->print(printer, piece->behind, i);
}

static kiln_status print_all(struct ki_output *output, const struct ki_printer *printer) {
    struct batch batch = {.printer = printer};
    struct piece *pieces = batch.pieces;
    const int count = (int)ki_min(printer->threads, PIECES_MOST);
    kiln_status status = KILN_OK;
    for (int64_t next = 0; next < printer->count;) {
        for (int p = 0; p < count; p++) {
            TRY(plan(&pieces[p], printer, next));
            next = pieces[p].end;
        }
        ki_parallel(printer->threads, count, print_piece, &batch);
        for (int p = 0; p < count; p++)
            TRY(ki_output_write(output, pieces[p].text, (size_t)(pieces[p].behind - pieces[p].text)));
    }
done:
    for (int p = 0; p < count; p++) ki_free(pieces[p].text);
    return status;
}

kiln_status ki_print_items(struct ki_output *output, const struct ki_printer *printer) {
    const struct ki_table *table = printer->table;
    struct ki_printer some = *printer;
    struct ki_rows rows = {.first = 0};
    kiln_status status = KILN_OK;
    if (!table->file) return print_all(output, printer);
    some.table = &rows.part;
    for (;;) {
        TRY(ki_rows_next(&rows, table, printer->type));
        if (rows.part.rows == 0) break;
        some.count = rows.part.rows;
        some.first = rows.first;
        TRY(print_all(output, &some));
    }
done:
    ki_rows_free(&rows);
    return status;
}

kiln_status ki_print_header(struct ki_output *output, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0 || length >= (int)sizeof text)
        return ki_fail(KILN_ERR_INTERNAL, "a header line is too long");
    return ki_output_write(output, text, (size_t)length);
}
