/* Files of entries behind a head that says how many: Matrix Market, and UCI's bags of words. */
#ifndef KI_MATRIX_MARKET_H
#define KI_MATRIX_MARKET_H

#include "io/coordinate/coordinate.h"
#include "io/text.h"

struct ki_market {
    bool array, pattern, integer, unsigned_integer;
    bool counts; /* how often a word stands in a document: an integer of at least 0 */
    int lines;   /* of a bag of words' head, so far */
    bool sized;  /* all sizes have been read */
    enum ki_symmetry symmetry;
    int64_t rows, cols, count; /* count: values or entries that the file must hold */
};

/* Returns what messages call the parts of the file. */
static inline const char *ki_market_head(const struct ki_market *header) {
    return header->counts ? "head" : "size line";
}

/* Reads whole lines, the first of which is the file's line `line`, until the header has its sizes. *text is
 * then behind them, or at the end of the block, behind which the head goes on. */
typedef bool ki_head_parser(struct ki_market *header, struct ki_fault *fault, const char **text,
                            const char *end, int64_t line);
ki_head_parser ki_market_header;

/* The head, by `parse`, and the entries. counts: those of a bag of words. */
kiln_status ki_read_entries(struct ki_table *table, struct ki_input *input, ki_head_parser *parse,
                            bool counts, const kiln_read_options *options);
/* Entries, of an array only the values, of an input that stands behind the head, and has not all of them: the
 * caller knows how many there should be. */
kiln_status ki_read_more_entries(struct ki_entries *entries, struct ki_input *input,
                                 const struct ki_market *header, const kiln_read_options *options);
/* ERR_LIMIT: more rows than a file of so many bytes may have. */
kiln_status ki_market_check_rows(const struct ki_market *header, int64_t bytes, const struct ki_place *place);

#endif
