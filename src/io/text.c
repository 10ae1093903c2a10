#include "io/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/size.h"
#include "core/threads.h"
#include "io/bytes.h"

enum { PART_LEAST = 1 << 15 }; /* bytes that outweigh starting a thread */

bool ki_fault(struct ki_fault *fault, kiln_status status, const char *at, const char *hint,
              const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
    fault->status = status;
    fault->at = at;
    fault->hint = hint;
    return false;
}

bool ki_fault_nomem(struct ki_fault *fault) {
    return ki_fault(fault, KILN_ERR_NOMEM, NULL, NULL, "out of memory while parsing");
}

kiln_status ki_report_fault(const struct ki_input *input, const struct ki_block *block,
                            const struct ki_fault *fault) {
    struct ki_place place = {.file = ki_input_name(input), .offset = -1};
    if (fault->at) {
        const char *start = block->text;
        place.line = block->line;
        for (const char *p = start; (p = memchr(p, '\n', (size_t)(fault->at - p))); start = ++p) place.line++;
        place.column = fault->at - start + 1;
        place.offset = block->offset + (fault->at - block->text);
    }
    ki_fail_at(fault->status, &place, "%s", fault->message);
    return fault->hint ? ki_hint("%s", fault->hint) : fault->status;
}

int ki_cut_block(const char **cuts, const struct ki_block *block, int most) {
    const char *end = block->text + block->size;
    size_t step = block->size / (size_t)most + 1;
    if (step < PART_LEAST) step = PART_LEAST;
    int count = 0;
    for (const char *p = block->text; p < end; count++) {
        cuts[count] = p;
        const char *next = (size_t)(end - p) > step ? memchr(p + step, '\n', (size_t)(end - p) - step) : NULL;
        p = next ? next + 1 : end;
    }
    cuts[count] = end;
    return count;
}

struct bytes_counted {
    const char *text;
    char byte;
    _Atomic int64_t count;
};

/* In short runs, whose count fits a byte: the compiler then counts by vectors. */
static void count_range(void *of, int64_t begin, int64_t end) {
    struct bytes_counted *c = of;
    int64_t count = 0;
    while (begin < end) {
        const int64_t stop = ki_min(end, begin + 255);
        unsigned char run = 0;
        for (; begin < stop; begin++) run = (unsigned char)(run + (c->text[begin] == c->byte));
        count += run;
    }
    atomic_fetch_add(&c->count, count);
}

int64_t ki_count_byte(const char *text, size_t size, char byte, int threads) {
    enum { WORTH_A_THREAD = 1 << 19 };
    struct bytes_counted c = {.text = text, .byte = byte};
    ki_parallel_ranges(threads > 1 ? threads : 1, (int64_t)size, WORTH_A_THREAD, count_range, &c);
    return c.count;
}

struct ki_excerpt ki_word(const char *at, const char *end) {
    struct ki_excerpt word;
    size_t n = 0;
    for (; at < end && n < sizeof word.text - 4 && !strchr(" \t\r\n", *at); at++)
        word.text[n++] = *at > ' ' && *at < 127 ? *at : '?';
    bool cut = at < end && !strchr(" \t\r\n", *at);
    snprintf(word.text + n, sizeof word.text - n, "%s", cut ? "..." : "");
    return word;
}

bool ki_expected(struct ki_fault *fault, const char *at, const char *end, const char *what) {
    if (at < end && *at == '\0')
        return ki_fault(fault, KILN_ERR_PARSE, at, "is this a text file?", "a NUL byte");
    if (ki_at_line_end(at, end))
        return ki_fault(fault, KILN_ERR_PARSE, at, NULL, "expected %s, found the end of the line", what);
    if (*at == ' ' || *at == '\t')
        return ki_fault(fault, KILN_ERR_PARSE, at, NULL, "expected %s, found a blank", what);
    return ki_fault(fault, KILN_ERR_PARSE, at, NULL, "expected %s, found '%s'", what, ki_word(at, end).text);
}

/* Few entries by insertion. */
static void sort_few(int32_t *col, double *values, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        const int32_t key = col[i];
        const double value = values ? values[i] : 0;
        int64_t at = i;
        for (; at > 0 && col[at - 1] > key; at--) {
            col[at] = col[at - 1];
            if (values) values[at] = values[at - 1];
        }
        col[at] = key;
        if (values) values[at] = value;
    }
}

/* Entries in the order of one byte of their columns, by counting; false if all have the same, and none has
 * moved. */
static bool sort_by_byte(int32_t *to_col, double *to, const int32_t *col, const double *values, int64_t count,
                         int shift) {
    int64_t at[256] = {0};
    for (int64_t i = 0; i < count; i++) at[col[i] >> shift & 255]++;
    if (at[col[0] >> shift & 255] == count) return false;
    for (int64_t d = 0, sum = 0; d < 256; d++) {
        const int64_t more = at[d];
        at[d] = sum;
        sum += more;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = at[col[i] >> shift & 255]++;
        to_col[place] = col[i];
        if (values) to[place] = values[i];
    }
    return true;
}

/* Byte by byte, the lowest first: each step keeps the order of the one before. */
bool ki_sort_row(int32_t *col, double *values, int64_t count, struct ki_bytes *scratch) {
    enum { FEW = 32 };
    int64_t bytes;
    int32_t all = 0;
    if (count <= FEW) {
        sort_few(col, values, count);
        return true;
    }
    scratch->size = 0;
    if (!ki_mul(count, sizeof(int32_t) + sizeof(double), &bytes) || !ki_bytes_room(scratch, bytes))
        return false;
    double *other = (double *)(void *)scratch->data, *to = values ? other : NULL, *from = values;
    int32_t *other_col = (int32_t *)(void *)(other + count), *to_col = other_col, *from_col = col;
    for (int64_t i = 0; i < count; i++) all |= col[i];
    for (int shift = 0; shift < 32 && all >> shift; shift += 8) {
        if (!sort_by_byte(to_col, to, from_col, from, count, shift)) continue;
        int32_t *const was_col = from_col;
        from_col = to_col;
        to_col = was_col;
        double *const was = from;
        from = to;
        to = was;
    }
    if (from_col == col) return true;
    memcpy(col, other_col, (size_t)count * sizeof *col);
    if (values) memcpy(values, other, (size_t)count * sizeof *values);
    return true;
}
