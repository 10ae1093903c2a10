/* %%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric
 * % comments
 * rows cols [entries] */
#include <string.h>
#include <strings.h>

#include "core/size.h"
#include "io/coordinate/matrix_market.h"
#include "io/number.h"

/* The next word of the banner must be one of `words` (ends with NULL); *choice is its number. */
static bool banner_word(struct ki_fault *fault, const char **text, const char *end, const char *const *words,
                        int *choice) {
    const char *p = ki_skip_blanks(*text, end), *stop = p;
    while (stop < end && !strchr(" \t\r\n", *stop)) stop++;
    for (*choice = 0; words[*choice]; ++*choice) {
        size_t length = strlen(words[*choice]);
        if (length != (size_t)(stop - p) || strncasecmp(p, words[*choice], length) != 0) continue;
        *text = stop;
        return true;
    }
    if (stop == p) return ki_expected(fault, p, end, "the banner's next word");
    return ki_fault(fault, KILN_ERR_UNSUPPORTED, p,
                    "coordinate or array; real, integer or pattern; general, "
                    "symmetric or skew-symmetric",
                    "Matrix Market files with '%s' are not supported", ki_word(p, end).text);
}

static bool parse_banner(struct ki_market *header, struct ki_fault *fault, const char *p, const char *end) {
    static const char *const marks[] = {"%%MatrixMarket", NULL}, *const objects[] = {"matrix", NULL};
    static const char *const layouts[] = {"coordinate", "array", NULL};
    static const char *const fields[] = {"real", "integer", "pattern", "unsigned-integer", "double", NULL};
    static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", NULL};
    static const enum ki_symmetry meanings[] = {KI_GENERAL, KI_SYMMETRIC, KI_SKEW};
    const char *start = p;
    int choice, layout, field, symmetry;
    if (!banner_word(fault, &p, end, marks, &choice))
        return ki_fault(fault, KILN_ERR_PARSE, start, NULL,
                        "a Matrix Market file begins with %%%%MatrixMarket");
    if (!banner_word(fault, &p, end, objects, &choice) || !banner_word(fault, &p, end, layouts, &layout) ||
        !banner_word(fault, &p, end, fields, &field) || !banner_word(fault, &p, end, symmetries, &symmetry))
        return false;
    p = ki_skip_blanks(p, end);
    if (!ki_at_line_end(p, end)) return ki_expected(fault, p, end, "the end of the line");
    *header = (struct ki_market){.array = layout == 1,
                                 .pattern = field == 2,
                                 .integer = field == 1 || field == 3,
                                 .unsigned_integer = field == 3,
                                 .symmetry = meanings[symmetry]};
    if (field == 2 && (layout == 1 || symmetry == 2))
        return ki_fault(fault, KILN_ERR_PARSE, start, NULL, "a pattern has no values for %s",
                        layout == 1 ? "an array" : "a skew-symmetric matrix");
    return true;
}

/* Returns how many values an array holds; false if that overflows. */
static bool array_count(struct ki_market *header) {
    int64_t n = header->rows, all;
    if (!ki_mul(header->rows, header->cols, &all)) return false;
    header->count = all;
    if (header->symmetry == KI_SYMMETRIC) header->count = all / 2 + (n + 1) / 2; /* n (n+1) / 2 */
    if (header->symmetry == KI_SKEW) header->count = all / 2 - n / 2;            /* n (n-1) / 2 */
    return true;
}

static bool parse_sizes(struct ki_market *header, struct ki_fault *fault, const char *p, const char *end) {
    int64_t sizes[3] = {0, 0, 0};
    const char *start = p, *cols_at = p;
    for (int i = 0; i < (header->array ? 2 : 3); i++) {
        const char *at = p = ki_skip_blanks(p, end);
        if (i == 1) cols_at = at;
        if (!ki_parse_int64(&p, end, &sizes[i]) || sizes[i] < 0 ||
            !(ki_at_line_end(p, end) || *p == ' ' || *p == '\t'))
            return ki_expected(fault, at, end,
                               header->array ? "the size line 'rows cols'"
                                             : "the size line 'rows cols entries'");
    }
    p = ki_skip_blanks(p, end);
    if (!ki_at_line_end(p, end)) return ki_expected(fault, p, end, "the end of the size line");
    header->rows = sizes[0];
    header->cols = sizes[1];
    header->count = sizes[2];
    header->sized = true;
    if (header->cols > INT32_MAX || (!header->array && header->rows > UINT32_MAX))
        return ki_fault(fault, KILN_ERR_LIMIT, header->cols > INT32_MAX ? cols_at : start, NULL,
                        "%lld x %lld: at most %lld rows and %d columns are read", (long long)header->rows,
                        (long long)header->cols, (long long)UINT32_MAX, INT32_MAX);
    if (header->symmetry != KI_GENERAL && header->rows != header->cols)
        return ki_fault(fault, KILN_ERR_PARSE, start, NULL, "a symmetric matrix is square, not %lld x %lld",
                        (long long)header->rows, (long long)header->cols);
    if (header->array && !array_count(header))
        return ki_fault(fault, KILN_ERR_LIMIT, start, NULL, "%lld x %lld values are too many",
                        (long long)header->rows, (long long)header->cols);
    return true;
}

bool ki_market_header(struct ki_market *header, struct ki_fault *fault, const char **text, const char *end,
                      int64_t line) {
    for (const char *p = *text; p < end && !header->sized; line++) {
        const char *word = ki_skip_blanks(p, end), *newline = memchr(p, '\n', (size_t)(end - p));
        if (line == 1) {
            if (!parse_banner(header, fault, p, end)) return false;
        } else if (!ki_at_line_end(word, end) && *word != '%') {
            if (!parse_sizes(header, fault, word, end)) return false;
        }
        *text = p = newline ? newline + 1 : end;
    }
    return true;
}
