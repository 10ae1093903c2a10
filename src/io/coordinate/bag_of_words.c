/* UCI's bags of words: the numbers of documents, words and entries, a line each, then "document word count"
 * lines.
 *
 * Behind its head the file is what a Matrix Market file of integers is, so one parser reads both. */
#include "core/size.h"
#include "io/coordinate/matrix_market.h"
#include "io/number.h"

static bool parse_size(struct ki_market *header, struct ki_fault *fault, const char *p, const char *end) {
    static const char *const titles[] = {"the number of documents", "the number of words",
                                         "the number of entries"};
    static const int64_t most[] = {UINT32_MAX, INT32_MAX, INT64_MAX};
    int64_t *const sizes[] = {&header->rows, &header->cols, &header->count};
    const int i = header->lines++;
    const char *at = p;
    if (!ki_parse_int64(&p, end, sizes[i]) || *sizes[i] < 0) return ki_expected(fault, at, end, titles[i]);
    p = ki_skip_blanks(p, end);
    if (!ki_at_line_end(p, end))
        return ki_fault(fault, KILN_ERR_PARSE, p, "the first three lines hold one number each",
                        "expected the end of the line behind %s", titles[i]);
    if (*sizes[i] > most[i])
        return ki_fault(fault, KILN_ERR_LIMIT, at, NULL, "%s is %lld, but %lld is the most that is read",
                        titles[i], (long long)*sizes[i], (long long)most[i]);
    header->sized = header->lines == 3;
    return true;
}

static bool parse_head(struct ki_market *header, struct ki_fault *fault, const char **text, const char *end,
                       int64_t line) {
    (void)line;
    for (const char *p = *text; p < end && !header->sized;) {
        const char *word = ki_skip_blanks(p, end), *newline = memchr(p, '\n', (size_t)(end - p));
        if (!ki_at_line_end(word, end) && *word != '%' && !parse_size(header, fault, word, end)) return false;
        *text = p = newline ? newline + 1 : end;
    }
    return true;
}

kiln_status ki_read_bag_of_words(struct ki_table *table, struct ki_input *input,
                                 const kiln_read_options *options) {
    return ki_read_entries(table, input, parse_head, true, options);
}
