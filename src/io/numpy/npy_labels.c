/* Whole numbers that may be labels, as text where doubles or floats would merge them. */
#include "io/labels.h"
#include "io/decimal.h"
#include "io/numpy/npy.h"

enum { PIECE = 8192 };

/* Appends the elements' decimals; *odd: one of them is none that a number of the type says. */
static bool print(struct ki_bytes *text, bool *odd, const struct ki_npy *npy, const unsigned char *raw,
                  int64_t count, const kiln_read_options *options) {
    int64_t values[PIECE];
    ki_npy_integers(values, npy, raw, count);
    for (int64_t i = 0; i < count; i++) {
        if (!ki_bytes_room(text, 24)) return false;
        char *begin = text->data + text->size;
        char *end =
            npy->kind == 'u' ? ki_print_uint64(begin, (uint64_t)values[i]) : ki_print_int64(begin, values[i]);
        *odd |= ki_label_is_odd(begin, end - begin, options);
        *end++ = '\0';
        text->size += end - begin;
    }
    return true;
}

kiln_status ki_npy_labels(struct ki_table *table, const struct ki_npy *npy, const struct ki_file *file,
                          int64_t header, const kiln_read_options *options) {
    unsigned char raw[8 * PIECE];
    const int64_t count = npy->shape[0], exact = options->type == KILN_F32 ? 4 : 8;
    kiln_status status = KILN_OK;
    const bool whole = npy->kind == 'i' || npy->kind == 'u';
    if (!options->text_targets || npy->shape[1] != 1 || !whole || npy->itemsize < exact) return KILN_OK;
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t some = ki_min(PIECE, count - i);
        TRY(ki_file_read(file, raw, header + i * npy->itemsize, some * npy->itemsize));
        if (!print(&table->label_text, &table->odd_labels, npy, raw, some, options))
            TRY(ki_fail_nomem((size_t)table->label_text.size, "the labels"));
    }
done:
    return status;
}
