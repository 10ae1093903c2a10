/* A table of which several processes read parts (struct ki_together). All decide by the same first rows
 * which columns are text, and tell each other the levels and classes that they have found. Features are
 * numbered in the order of the levels' bytes (features.c), so that it is enough for all to have the
 * same set, in whatever order. */
#include <string.h>

#include "core/seams.h"
#include "io/table/builder.h"

/* Holds what one process tells all: this, and behind it its levels and classes, so many bytes. */
struct told {
    int64_t rank, rows, bytes;
    struct ki_table_noticed unseen[2], dropped; /* their places count where they were found, or for all */
};
struct told_level {
    int32_t target, column, size; /* and behind it the text */
};

static bool tell_levels(struct ki_bytes *all, const struct ki_table_levels *levels, bool target) {
    bool room = true;
    for (int64_t i = 0; room && i < levels->count; i++) {
        const struct ki_table_level *level = ki_table_level(levels, i);
        const struct told_level told = {target, level->column, level->size};
        room = ki_bytes_append(all, &told, sizeof told) &&
               ki_bytes_append(all, levels->text.data + level->text, level->size);
    }
    return room;
}

static kiln_status tell(struct ki_bytes *all, const struct ki_table_builder *b,
                        const struct ki_together *together) {
    const char *name = together->name;
    struct told told = {.rank = together->rank,
                        .rows = b->rows,
                        .unseen = {b->unseen[0], b->unseen[1]},
                        .dropped = b->dropped};
    told.unseen[0].first.file = told.unseen[1].first.file = told.dropped.first.file = name;
    bool room = ki_bytes_append(all, &told, sizeof told);
    if (!b->schema.frozen) /* else all know a model's */
        room = room && tell_levels(all, &b->levels, false) && tell_levels(all, &b->classes, true);
    if (!room) return ki_fail_nomem((size_t)all->size, "the levels of a part");
    told.bytes = all->size - (int64_t)sizeof told;
    memcpy(all->data, &told, sizeof told);
    return KILN_OK;
}

static kiln_status take_level(struct ki_table_builder *b, const struct told_level *told, const char *text) {
    struct ki_table_levels *levels = told->target ? &b->classes : &b->levels;
    if (told->column >= (told->target ? b->schema.target_count : b->schema.count))
        return ki_fail(KILN_ERR_UNSUPPORTED, "the files of the parts have other columns");
    struct ki_table_column *column = (told->target ? b->schema.targets : b->schema.columns) + told->column;
    if (ki_table_levels_find(levels, told->column, text, told->size) >= 0) return KILN_OK;
    if (!ki_table_level_room(b, column))
        return ki_fail(KILN_ERR_LIMIT, "text column '%s' has too many levels", column->name);
    if (ki_table_levels_add(levels, told->column, text, told->size) < 0)
        return ki_fail_nomem((size_t)told->size, "the levels");
    column->levels++;
    return KILN_OK;
}

/* The first of all has a place only where this process has found it, or where it says in which file. */
static void add_noticed(struct ki_table_noticed *all, const struct ki_table_noticed *theirs, bool own,
                        const char *name) {
    const int64_t count = all->count + theirs->count;
    if (all->count == 0 && theirs->count > 0) {
        *all = *theirs;
        if (!theirs->first.file && own) all->first.file = name;
        if (!theirs->first.file && !own) all->first = (struct ki_place){name, 0, 0, -1};
    }
    all->count = count;
}

static kiln_status take_all(struct ki_table_builder *b, const struct ki_bytes *all, int rank) {
    struct ki_table_noticed unseen[2] = {{.count = 0}, {.count = 0}}, dropped = {.count = 0};
    const char *name = b->name;
    struct told told;
    kiln_status status = KILN_OK;
    b->all_rows = 0;
    for (const char *at = all->data, *end = at + all->size; at < end;) {
        memcpy(&told, at, sizeof told);
        b->all_rows += told.rows;
        for (int i = 0; i < 2; i++) add_noticed(&unseen[i], &told.unseen[i], told.rank == rank, name);
        add_noticed(&dropped, &told.dropped, told.rank == rank, name);
        at += sizeof told;
        for (const char *const last = at + told.bytes; at < last;) {
            struct told_level level;
            memcpy(&level, at, sizeof level);
            TRY(take_level(b, &level, at + sizeof level));
            at += sizeof level + (size_t)level.size;
        }
    }
    memcpy(b->unseen, unseen, sizeof unseen);
    b->dropped = dropped;
done:
    return status;
}

kiln_status ki_table_meet(struct ki_table_builder *b, const struct ki_together *together) {
    struct ki_bytes all = {NULL, 0, 0};
    kiln_status status;
    TRY(tell(&all, b, together));
    TRY(together->meet(together->of, &all));
    TRY(take_all(b, &all, together->rank));
done:
    ki_bytes_free(&all);
    return status;
}

/* Adds what one has told to what all have: levels and classes that are new. */
static kiln_status join(struct told *all, struct ki_table_levels sets[2], const struct told *told,
                        const char *levels) {
    all->rows += told->rows;
    for (int i = 0; i < 2; i++) add_noticed(&all->unseen[i], &told->unseen[i], true, NULL);
    add_noticed(&all->dropped, &told->dropped, true, NULL);
    for (const char *at = levels, *last = at + told->bytes; at < last;) {
        struct told_level level;
        memcpy(&level, at, sizeof level);
        struct ki_table_levels *set = &sets[level.target];
        const char *text = at + sizeof level;
        if (ki_table_levels_find(set, level.column, text, level.size) < 0 &&
            ki_table_levels_add(set, level.column, text, level.size) < 0)
            return ki_fail_nomem((size_t)level.size, "the levels");
        at = text + level.size;
    }
    return KILN_OK;
}

kiln_status ki_table_told_once(struct ki_bytes *told) {
    struct ki_table_levels sets[2] = {{.count = 0}, {.count = 0}};
    struct told all = {.rank = 0}, one;
    kiln_status status = KILN_OK;
    if (told->size == 0) return KILN_OK;
    for (int i = 0; i < 2; i++) ki_table_new_key(sets[i].key);
    for (const char *at = told->data, *end = at + told->size; at < end; at += one.bytes) {
        memcpy(&one, at, sizeof one);
        at += sizeof one;
        TRY(join(&all, sets, &one, at));
    }
    told->size = 0;
    if (!ki_bytes_append(told, &all, sizeof all) || !tell_levels(told, &sets[0], false) ||
        !tell_levels(told, &sets[1], true))
        TRY(ki_fail_nomem((size_t)told->size, "the levels"));
    all.bytes = told->size - (int64_t)sizeof all;
    memcpy(told->data, &all, sizeof all);
done:
    for (int i = 0; i < 2; i++) ki_table_levels_free(&sets[i]);
    return status;
}

kiln_status ki_table_meet_idly(const struct ki_together *together) {
    struct ki_bytes nothing = {NULL, 0, 0};
    const kiln_status status = together->meet(together->of, &nothing);
    ki_bytes_free(&nothing);
    return status;
}
