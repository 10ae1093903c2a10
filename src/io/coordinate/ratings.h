/* The lines of a file of ratings, or of links in a table, are split here, and it is said what stands where in
 * them. */
#ifndef KI_RATINGS_H
#define KI_RATINGS_H

#include "kiln/data.h"

#include "io/coordinate/links.h"
#include "io/text.h"

enum { KI_RATING_USER, KI_RATING_ITEM, KI_RATING_VALUE, KI_RATING_ROLES };
enum { KI_RATING_FIELDS = 64 }; /* a line has at most */

struct ki_ratings_field {
    const char *text; /* without blanks around it, or what stands between the quotes */
    int64_t size;
    bool doubled; /* with "" for a quote */
};

struct ki_ratings_layout {
    const char *separator;     /* "::", "\t", ... or " ": blanks */
    int count;                 /* fields of a line; 0: not known yet */
    int role[KI_RATING_ROLES]; /* which field; of the rating -1: there is none, and each line counts 1 */
    bool named;                /* a header or an option names the first two */
    bool unnamed_value;        /* there is none because nothing names one, though there are further columns */
};
/* Holds what the columns may be called, in any case: names begin with a word, or are it where it ends with $;
 * and what a line is. */
struct ki_ratings_words {
    const char *role[KI_RATING_ROLES][9];
    const char *line;
};
/* From the first line that is neither blank nor a comment (# or %); *text is moved to the first rating.
 * Columns are those that the options' source, target and weight say (options may be NULL), then those that a
 * header names; else user, item and rating come in this order, and a first line whose rating is no number is
 * a header. count stays 0 if the text has no such line. false: fault. */
bool ki_ratings_layout(struct ki_ratings_layout *layout, struct ki_fault *fault, const char **text,
                       const char *end, const struct ki_ratings_words *words,
                       const kiln_read_options *options);
/* Returns which of the first line's fields stands where; *header: the line is one, for certain. */
bool ki_ratings_columns(struct ki_ratings_layout *layout, bool *header, struct ki_fault *fault,
                        const struct ki_ratings_field *fields, const struct ki_ratings_words *words,
                        const kiln_read_options *options);
/* Returns whether the options say where anything stands. */
static inline bool ki_ratings_told(const kiln_read_options *options) {
    return options && (options->source || options->target || options->weight);
}
bool ki_ratings_number(const struct ki_ratings_field *field); /* it is one, all of it */
/* Returns how a line looks that needs no splitting: .separator is 0 where the layout has no such lines. */
struct ki_links_form ki_ratings_form(const struct ki_ratings_layout *layout,
                                     const kiln_read_options *options);
/* Splits a line and moves *text to its end; the number of fields, or -1: fault. */
int ki_ratings_split(struct ki_fault *fault, struct ki_ratings_field fields[KI_RATING_FIELDS],
                     const char **text, const char *end, const char *separator);

#endif
