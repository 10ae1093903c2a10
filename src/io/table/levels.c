/* The levels of text columns in one hash table: (column, text) -> number, in order of arrival.
 *
 * The text comes from a file that may want to make all its levels collide, so the hash is SipHash-1-3
 * (Aumasson and Bernstein, 2012) under a key that the file cannot know. Numbers do not depend on the key, so
 * results do not either. */
#include "io/table/table.h"

#include <string.h>

static uint64_t rotate(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static uint64_t hash(const uint64_t key[2], int32_t column, const char *text, int64_t size) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                     key[1] ^ 0x7465646279746573u};
    sip_word(v, (uint64_t)(uint32_t)column << 32 | (uint64_t)(size & 0xFFFFFFFF));
    for (; size > 0; text += 8, size -= 8) {
        uint64_t word = 0;
        memcpy(&word, text, size < 8 ? (size_t)size : 8);
        sip_word(v, word);
    }
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t ki_table_hash(const struct ki_table_levels *levels, const char *text, int64_t size) {
    const uint64_t found = hash(levels->key, -1, text, size);
    return found ? found : 1;
}

void ki_table_new_key(uint64_t key[2]) {
    double now = ki_clock();
    memcpy(&key[0], &now, sizeof now);
    key[1] = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u; /* the stack's place is random */
}

void ki_table_levels_init(struct ki_table_levels *levels) {
    *levels = (struct ki_table_levels){0};
    ki_table_new_key(levels->key);
}

void ki_table_levels_free(struct ki_table_levels *levels) {
    ki_bytes_free(&levels->levels);
    ki_bytes_free(&levels->text);
    ki_free(levels->slots);
    *levels = (struct ki_table_levels){0};
}

const struct ki_table_level *ki_table_level(const struct ki_table_levels *levels, int64_t i) {
    return (const struct ki_table_level *)(const void *)levels->levels.data + i;
}

int32_t ki_table_levels_find(const struct ki_table_levels *levels, int32_t column, const char *text,
                             int64_t size) {
    if (levels->slot_count == 0) return -1;
    uint64_t mask = (uint64_t)levels->slot_count - 1, sought = hash(levels->key, column, text, size);
    for (uint64_t slot = sought & mask; levels->slots[slot]; slot = (slot + 1) & mask) {
        int32_t number = levels->slots[slot] - 1;
        const struct ki_table_level *level = ki_table_level(levels, number);
        if (level->hash == sought && level->column == column && level->size == size &&
            memcmp(levels->text.data + level->text, text, (size_t)size) == 0)
            return number;
    }
    return -1;
}

static void put(int32_t *slots, int64_t slot_count, uint64_t hashed, int32_t number) {
    uint64_t mask = (uint64_t)slot_count - 1, slot = hashed & mask;
    while (slots[slot]) slot = (slot + 1) & mask;
    slots[slot] = number + 1;
}

/* Keeps the table at most half full. */
static bool grow(struct ki_table_levels *levels) {
    if (2 * (levels->count + 1) <= levels->slot_count) return true;
    int64_t slot_count = ki_max(64, 2 * levels->slot_count);
    int32_t *slots = ki_calloc((size_t)slot_count * sizeof *slots);
    if (!slots) return false;
    for (int64_t i = 0; i < levels->count; i++)
        put(slots, slot_count, ki_table_level(levels, i)->hash, (int32_t)i);
    ki_free(levels->slots);
    levels->slots = slots;
    levels->slot_count = slot_count;
    return true;
}

int32_t ki_table_levels_add(struct ki_table_levels *levels, int32_t column, const char *text, int64_t size) {
    struct ki_table_level level = {hash(levels->key, column, text, size), levels->text.size, (int32_t)size,
                                   column};
    if (levels->count == INT32_MAX - 1 || !grow(levels)) return -1;
    if (!ki_bytes_room(&levels->levels, sizeof level) || !ki_bytes_room(&levels->text, size + 1)) return -1;
    ki_bytes_append(&levels->levels, &level, sizeof level);
    ki_bytes_append(&levels->text, text, size);
    ki_bytes_append(&levels->text, "", 1);
    put(levels->slots, levels->slot_count, level.hash, (int32_t)levels->count);
    return (int32_t)levels->count++;
}
