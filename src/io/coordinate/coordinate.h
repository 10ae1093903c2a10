/* Entries (row, column, value) in any order become sorted rows. */
#ifndef KI_COORDINATE_H
#define KI_COORDINATE_H

#include "io/csv/csv.h"

/* Whether an entry off the diagonal stands for its mirror image too, and with which sign. */
enum ki_symmetry { KI_GENERAL = 0, KI_SYMMETRIC = 1, KI_SKEW = -1 };

struct ki_entries {
    struct ki_bytes row, col, value; /* uint32_t, int32_t, double */
    int64_t count;
    const char *file; /* for messages, as the vertices' names, which may be NULL */
    const struct ki_csv_levels *names;
};
void ki_entries_free(struct ki_entries *entries);

/* Fills a table, whose rows and cols are set, with CSR arrays. Entries at the same place are added up in
 * their order, or with options->strict are an error. Threads share the work by rows, so their number does not
 * show. */
kiln_status ki_entries_to_csr(struct ki_table *table, struct ki_entries *entries, enum ki_symmetry symmetry,
                              const kiln_read_options *options);

#endif
