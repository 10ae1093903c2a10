#include "io/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Keys of column and position are all different, which makes any sort a stable one. */
bool ki_sort_row(int32_t *col, double *values, int64_t count, struct ki_bytes *scratch) {
    int64_t bytes;
    scratch->size = 0;
    if (!ki_mul(count, sizeof(uint64_t) + sizeof(double), &bytes) || !ki_bytes_room(scratch, bytes))
        return false;
    uint64_t *keys = (uint64_t *)(void *)scratch->data;
    double *copy = (double *)(void *)(keys + count);
    for (int64_t i = 0; i < count; i++) keys[i] = (uint64_t)col[i] << 32 | (uint32_t)i;
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    memcpy(copy, values, (size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        col[i] = (int32_t)(keys[i] >> 32);
        values[i] = copy[(uint32_t)keys[i]];
    }
    return true;
}
