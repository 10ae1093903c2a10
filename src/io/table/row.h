/* The steps from a record to a row, for those who read a record as they go instead of splitting it first
 * (csv/csv_quick.c). */
#ifndef KI_TABLE_ROW_H
#define KI_TABLE_ROW_H

#include "io/table/convert.h"

/* Says where the chunk's arrays ended before a row. */
struct ki_table_mark {
    int64_t values, ids, y, misses, roles[KI_TABLE_ROLES];
};
struct ki_table_mark ki_table_mark(const struct ki_table_chunk *chunk);
/* Takes the arrays back to there; what was noted stays. */
void ki_table_undo(struct ki_table_chunk *chunk, const struct ki_table_mark *mark);

/* Room for a row; false if there is no memory. */
bool ki_table_row_room(struct ki_table_chunk *chunk, const struct ki_table_layout *layout);
/* A field of the chunk's becomes a feature, the schema's column `index`; *drop becomes true where the row is
 * left out for it. In the schema's order. */
void ki_table_put_number(struct ki_table_chunk *chunk, const struct ki_table_layout *layout, int32_t index,
                         bool *drop);
enum ki_table_fault ki_table_put_level(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                       int32_t index, bool *drop);
/* Returns what comes behind the features: targets and roles from the chunk's fields, and the row's end. */
enum ki_table_fault ki_table_end_row(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                     const struct ki_table_mark *mark, bool drop);

/* The two places in the cache where a level may be, by a hash that is quick instead of safe: of levels that
 * share them all but two are looked up in the table, again and again. */
static inline struct ki_table_cached *ki_table_slots(struct ki_table_chunk *chunk,
                                                     const struct ki_table_cached *key) {
    uint64_t word[2];
    memcpy(word, key->text, sizeof word);
    const uint64_t mixed = (word[0] ^ word[1] * 0xC2B2AE3D27D4EB4Fu ^ (uint64_t)(uint32_t)key->column << 32) *
                           0x9E3779B97F4A7C15u;
    return &chunk->cache[mixed >> (64 - KI_TABLE_CACHE_BITS) & ~(uint64_t)1];
}

/* The number of a level that is remembered, or -1. */
static inline int32_t ki_table_recall(const struct ki_table_cached slots[2],
                                      const struct ki_table_cached *key) {
    for (int i = 0; i < 2; i++)
        if (slots[i].size == key->size && slots[i].column == key->column &&
            memcmp(slots[i].text, key->text, sizeof key->text) == 0 && slots[i].known > 0)
            return slots[i].known - 1;
    return -1;
}

#endif
