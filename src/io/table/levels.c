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

static uint64_t word_at(const char *text) {
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return word;
}

/* One to seven bytes as a word, of which any two are different: without a loop, and with no byte behind
 * them. */
static uint64_t few_bytes(const char *text, int64_t size) {
    uint32_t first, last;
    if (size < 4)
        return (uint64_t)(unsigned char)text[0] | (uint64_t)(unsigned char)text[size / 2] << 8 |
               (uint64_t)(unsigned char)text[size - 1] << 16;
    memcpy(&first, text, sizeof first);
    memcpy(&last, text + size - 4, sizeof last);
    return (uint64_t)first | (uint64_t)last << 32;
}

static uint64_t hash(const uint64_t key[2], int32_t column, const char *text, int64_t size) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                     key[1] ^ 0x7465646279746573u};
    sip_word(v, (uint64_t)(uint32_t)column << 32 | (uint64_t)(size & 0xFFFFFFFF));
    for (; size >= 8; text += 8, size -= 8) sip_word(v, word_at(text));
    if (size > 0) sip_word(v, few_bytes(text, size));
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(v);
    const uint64_t mixed = v[0] ^ v[1] ^ v[2] ^ v[3];
    return mixed ? mixed : 1;
}

uint64_t ki_table_hash(const struct ki_table_levels *levels, const char *text, int64_t size) {
    return hash(levels->key, -1, text, size);
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

static int32_t find(const struct ki_table_levels *levels, uint64_t sought, int32_t column, const char *text,
                    int64_t size) {
    const uint64_t mask = (uint64_t)levels->slot_count - 1;
    for (uint64_t slot = sought & mask; levels->slots[slot]; slot = (slot + 1) & mask) {
        int32_t number = levels->slots[slot] - 1;
        const struct ki_table_level *level = ki_table_level(levels, number);
        if (level->hash == sought && level->column == column && level->size == size &&
            memcmp(levels->text.data + level->text, text, (size_t)size) == 0)
            return number;
    }
    return -1;
}

int32_t ki_table_levels_find(const struct ki_table_levels *levels, int32_t column, const char *text,
                             int64_t size) {
    return levels->slot_count > 0 ? find(levels, hash(levels->key, column, text, size), column, text, size)
                                  : -1;
}

/* The level that stands first where the text may be; NULL: none. */
static const struct ki_table_level *first_at(const struct ki_table_sought *sought) {
    const struct ki_table_levels *in = sought->in;
    const int32_t number = in->slot_count > 0 ? in->slots[sought->hash & (uint64_t)(in->slot_count - 1)] : 0;
    return number > 0 ? ki_table_level(in, number - 1) : NULL;
}

/* Each text takes three places in memory that no other has asked for, one behind the other; so those of all
 * are asked for first. */
void ki_table_levels_find_all(struct ki_table_sought *sought, int count) {
    for (int i = 0; i < count; i++) {
        const struct ki_table_levels *in = sought[i].in;
        sought[i].hash = hash(in->key, 0, sought[i].text, sought[i].size);
        if (in->slot_count > 0)
            __builtin_prefetch(&in->slots[sought[i].hash & (uint64_t)(in->slot_count - 1)]);
    }
    for (int i = 0; i < count; i++) __builtin_prefetch(first_at(&sought[i]));
    for (int i = 0; i < count; i++) {
        const struct ki_table_level *level = first_at(&sought[i]);
        if (level) __builtin_prefetch(sought[i].in->text.data + level->text);
    }
    for (int i = 0; i < count; i++)
        sought[i].number = sought[i].in->slot_count > 0
                               ? find(sought[i].in, sought[i].hash, 0, sought[i].text, sought[i].size)
                               : -1;
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
    for (int64_t i = 0; i < levels->count; i++) {
        const struct ki_table_level *level = ki_table_level(levels, i);
        if (level->hash) put(slots, slot_count, level->hash, (int32_t)i);
    }
    ki_free(levels->slots);
    levels->slots = slots;
    levels->slot_count = slot_count;
    return true;
}

static int32_t append(struct ki_table_levels *levels, uint64_t hashed, int32_t column, const char *text,
                      int64_t size) {
    const struct ki_table_level level = {hashed, levels->text.size, (int32_t)size, column};
    if (levels->count == INT32_MAX - 1) return -1;
    if (!ki_bytes_room(&levels->levels, sizeof level) || !ki_bytes_room(&levels->text, size + 1)) return -1;
    ki_bytes_append(&levels->levels, &level, sizeof level);
    ki_bytes_append(&levels->text, text, size);
    ki_bytes_append(&levels->text, "", 1);
    return (int32_t)levels->count++;
}

int32_t ki_table_levels_add(struct ki_table_levels *levels, int32_t column, const char *text, int64_t size) {
    const uint64_t hashed = hash(levels->key, column, text, size);
    const int32_t number = grow(levels) ? append(levels, hashed, column, text, size) : -1;
    if (number >= 0) put(levels->slots, levels->slot_count, hashed, number);
    return number;
}

int32_t ki_table_levels_add_unhashed(struct ki_table_levels *levels, int32_t column, const char *text,
                                     int64_t size) {
    return append(levels, 0, column, text, size);
}
