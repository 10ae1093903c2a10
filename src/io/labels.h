/* Labels as a file says them. */
#ifndef KI_LABELS_H
#define KI_LABELS_H

#include "io/data.h"

/* Returns whether a number of `type` says the same: 7, -1, +1 and 2.5, but neither 007 nor 1.0, nor an
 * integer beyond those that the type counts without a gap (2^24 in f32, 2^53 in f64). */
bool ki_label_is_plain(const char *text, int64_t size, kiln_type type);
/* Whether it is digits alone that a number of `type` would rewrite: 007, or an integer beyond those. */
bool ki_label_is_code(const char *text, int64_t size, kiln_type type);
/* Returns whether kiln_read_options.text_targets takes such a label for text. */
bool ki_label_is_odd(const char *text, int64_t size, const kiln_read_options *options);

/* All labels are text where one is odd: y becomes their numbers in the order of their bytes, and class_names
 * their texts. Frees table->label_text in any case. ERR_UNSUPPORTED: labels that are numbers and may have
 * been rounded before. */
kiln_status ki_labels_settle(struct ki_table *table, const kiln_read_options *options);

#endif
