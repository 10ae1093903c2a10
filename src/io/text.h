/* Blocks of lines cut into parts, which threads parse side by side, and what they find wrong. */
#ifndef KI_TEXT_H
#define KI_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "io/input.h"

/* The error record belongs to the calling thread, so a worker notes its finding here. */
struct ki_fault {
    kiln_status status; /* KILN_OK: none */
    const char *at;     /* in the block's text; NULL if it has no place */
    const char *hint;
    char message[320];
};
/* Notes a fault; returns false, so that parsers can return it. hint may be NULL, and must outlive the fault.
 */
bool ki_fault(struct ki_fault *fault, kiln_status status, const char *at, const char *hint,
              const char *format, ...) KI_PRINTF(5, 6);
bool ki_fault_nomem(struct ki_fault *fault);
/* The error that the fault in the block stands for. */
kiln_status ki_report_fault(const struct ki_input *input, const struct ki_block *block,
                            const struct ki_fault *fault);

/* Cuts the block behind line ends into at most `most` parts worth a thread's while; part i is
 * cuts[i]..cuts[i+1]. Returns their number. */
int ki_cut_block(const char **cuts, const struct ki_block *block, int most);

/* Returns how often the byte stands in the text. */
int64_t ki_count_byte(const char *text, size_t size, char byte, int threads);

struct ki_excerpt {
    char text[44];
};
/* The word at `at`, made printable and short, for messages. */
struct ki_excerpt ki_word(const char *at, const char *end);

/* The fault "expected WHAT, found ...", with words for a blank, the end of a line and NUL; returns false.
 */
bool ki_expected(struct ki_fault *fault, const char *at, const char *end, const char *what);

static inline bool ki_is_digit(char c) {
    return (unsigned char)(c - '0') < 10;
}

static inline const char *ki_skip_blanks(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    return p;
}

/* Whether a line ends here: at a line feed, at a carriage return before one, at the end of the text. */
static inline bool ki_at_line_end(const char *p, const char *end) {
    return p == end || *p == '\n' || (*p == '\r' && (p + 1 == end || p[1] == '\n'));
}

static inline bool ki_is_finite(double value, kiln_type type) {
    return type == KILN_F32 ? __builtin_isfinite((float)value) : __builtin_isfinite(value);
}

/* Sorts a row by column (none below 0); entries of one column keep their order. values may be NULL. scratch
 * is grown as needed and reused; false if there is no memory for it. */
struct ki_bytes;
bool ki_sort_row(int32_t *col, double *values, int64_t count, struct ki_bytes *scratch);

/* Eight bytes, the first one lowest, whatever the machine's order. */
static inline uint64_t ki_text_word(const char *text) {
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
}

#endif
