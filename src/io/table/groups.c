/* Groups of rows: a column's texts, of which no more is kept than a hash of 64 bits, numbered as they come.
 * Two different texts share a number once in 2^64 pairs; the key of the hash is random, so that no file can
 * bring that about. */
#include "io/table/table.h"

/* The slot of the hash in a table of `slots`, a power of two. 0 is free, so that no hash is 0. */
static int64_t slot_of(const uint64_t *keys, int64_t slots, uint64_t key) {
    int64_t at = (int64_t)(key & (uint64_t)(slots - 1));
    while (keys[at] && keys[at] != key) at = (at + 1) & (slots - 1);
    return at;
}

kiln_status ki_table_number_groups(int64_t *groups, int64_t rows) {
    int64_t slots = 16, count = 0;
    while (slots < 2 * rows) slots *= 2;
    uint64_t *keys = ki_calloc((size_t)slots * sizeof *keys);
    int64_t *numbers = ki_alloc((size_t)slots * sizeof *numbers);
    kiln_status status = keys && numbers ? KILN_OK : ki_fail_nomem((size_t)slots * 16, "the groups");
    for (int64_t i = 0; status == KILN_OK && i < rows; i++) {
        const uint64_t key = (uint64_t)groups[i];
        const int64_t at = slot_of(keys, slots, key);
        if (!keys[at]) {
            keys[at] = key;
            numbers[at] = count++;
        }
        groups[i] = numbers[at];
    }
    ki_free(keys);
    ki_free(numbers);
    return status;
}
