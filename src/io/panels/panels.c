/* Bytes of a packed file, which count for something once their panels' checksums agree. */
#include "io/panels/panels.h"

#include <inttypes.h>
#include <stdio.h>
#include <zlib.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/threads.h"

static kiln_status fetch(void *to, const struct ki_panels_reader *r, int64_t offset, int64_t bytes) {
    if (r->file) return ki_file_read(r->file, to, offset, bytes);
    memcpy(to, r->memory.data + offset, (size_t)bytes);
    return KILN_OK;
}

static bool agree(uint32_t one, uint32_t other) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)one, (void)other;
    return true;
#else
    return one == other;
#endif
}

kiln_status ki_panels_fail(const struct ki_panels_reader *r, enum ki_panels_name name, const char *reason) {
    ki_fail_at(KILN_ERR_PARSE, &(struct ki_place){r->name, 0, 0, r->p.array[name].begin}, "%s", reason);
    return ki_hint("kiln convert writes the file anew");
}

static kiln_status fail_damaged(const struct ki_panels_reader *r, const char *what, int64_t offset) {
    ki_fail_at(KILN_ERR_PARSE, &(struct ki_place){r->name, 0, 0, offset}, "%s", what);
    return ki_hint("the file is damaged: restore it from a copy, or convert the data again");
}

/* --------------------------------------------------------------------------------------------- opening */

kiln_status ki_panels_open(struct ki_panels_reader *r, int64_t bytes) {
    const int64_t most = ki_min(bytes, KI_PANELS_HEADER_LIMIT + 8);
    char *begin = ki_alloc((size_t)most);
    int64_t sum = 1;
    kiln_status status = KILN_OK;
    if (!begin) return ki_fail_nomem((size_t)most, "the header of a packed file");
    TRY(fetch(begin, r, 0, most));
    TRY(ki_panels_parse(&r->p, r->name, begin, most, bytes));
    const struct ki_panels_array *sums = &r->p.array[KI_PANELS_CHECKSUMS];
    const int64_t count = sums->shape[0];
    if (!(r->sums = ki_alloc((size_t)sums->bytes))) TRY(ki_fail_nomem((size_t)sums->bytes, "checksums"));
    TRY(fetch(r->sums, r, sums->begin, sums->bytes));
    if (!agree((uint32_t)crc32_z(0, (const unsigned char *)r->sums, (size_t)sums->bytes - sizeof *r->sums),
               r->sums[count - 1]))
        TRY(fail_damaged(r, "the checksums are damaged", sums->begin));
    if (!agree((uint32_t)crc32_z(0, (const unsigned char *)begin, (size_t)r->p.data), r->sums[0]))
        TRY(fail_damaged(r, "the header is damaged", 0));
    for (int i = 0; i < KI_PANELS_CHECKSUMS; i++) {
        r->sum[i] = sum;
        sum += ki_ceil_div(r->p.array[i].bytes, KI_PANEL_BYTES);
    }
done:
    ki_free(begin);
    return status;
}

void ki_panels_close(struct ki_panels_reader *r) {
    ki_free(r->sums);
    ki_bytes_free(&r->memory);
}

/* -------------------------------------------------------------------------------------------- panels */

struct checking {
    const uint32_t *sums; /* of the first chunk and those behind it */
    int64_t bytes;        /* of an element */
    _Atomic int64_t bad;  /* the first panel that is, INT64_MAX: none yet */
    void (*use)(void *of, const unsigned char *raw, int64_t first, int64_t count);
    void *of;
};

/* A chunk is a panel. */
static void check_chunk(void *of, const unsigned char *raw, int64_t first, int64_t count) {
    struct checking *c = of;
    const int64_t panel = first * c->bytes / KI_PANEL_BYTES;
    if (!agree((uint32_t)crc32_z(0, raw, (size_t)(count * c->bytes)), c->sums[panel]))
        ki_lower(&c->bad, panel);
    if (c->use) c->use(c->of, raw, first, count);
}

static kiln_status fail_panel(const struct ki_panels_reader *r, enum ki_panels_name name, int64_t panel) {
    const struct ki_panels_array *a = &r->p.array[name];
    const int64_t row = ki_max(a->bytes / ki_max(a->shape[0], 1), 1), begin = panel * KI_PANEL_BYTES,
                  end = ki_min(begin + KI_PANEL_BYTES, a->bytes);
    char text[160];
    snprintf(text, sizeof text, "panel %" PRId64 " of %s (%s %" PRId64 " to %" PRId64 ") is damaged",
             panel + 1, ki_panels_name(name), a->shape[0] == r->p.rows ? "rows" : "elements", begin / row + 1,
             ki_ceil_div(end, row));
    return fail_damaged(r, text, a->begin + begin);
}

static kiln_status run(struct ki_panels_reader *r, enum ki_panels_name name, int64_t first, int64_t end,
                       struct checking *c, void *straight) {
    const struct ki_panels_array *a = &r->p.array[name];
    const int64_t begin = first * KI_PANEL_BYTES, bytes = ki_min(end * KI_PANEL_BYTES, a->bytes) - begin;
    struct ki_chunks chunks = {.file = r->file,
                               .offset = a->begin + begin,
                               .memory = ki_panels_memory(r, a->begin + begin),
                               .count = bytes / c->bytes,
                               .element = c->bytes,
                               .threads = r->options->threads,
                               .straight = straight,
                               .use = check_chunk,
                               .of = c,
                               .watch = r->watch};
    if (bytes <= 0) return KILN_OK;
    c->sums = r->sums + r->sum[name] + first;
    const kiln_status status = ki_chunks_run(&chunks);
    return status == KILN_OK && c->bad < INT64_MAX ? fail_panel(r, name, first + c->bad) : status;
}

kiln_status ki_panels_check(struct ki_panels_reader *r, enum ki_panels_name name, int64_t first,
                            int64_t end) {
    struct checking c = {.bytes = 1, .bad = INT64_MAX};
    return run(r, name, first, end, &c, NULL);
}

kiln_status ki_panels_run(struct ki_panels_reader *r, enum ki_panels_name name, void *straight,
                          void (*use)(void *of, const unsigned char *raw, int64_t first, int64_t count),
                          void *of) {
    const struct ki_panels_array *a = &r->p.array[name];
    struct checking c = {.bytes = a->type->bytes, .bad = INT64_MAX, .use = use, .of = of};
    return run(r, name, 0, ki_ceil_div(a->bytes, KI_PANEL_BYTES), &c, straight);
}

/* ------------------------------------------------------------------------------------------- elements */

struct ki_npy ki_panels_npy(const struct ki_panels_array *a) {
    return (struct ki_npy){.kind = a->type->kind,
                           .itemsize = a->type->bytes,
                           .dimensions = a->dimensions,
                           .shape = {a->shape[0], a->shape[1]},
                           .bytes = a->bytes};
}

kiln_status ki_panels_load(void **to, struct ki_panels_reader *r, enum ki_panels_name name, int64_t first,
                           int64_t bytes) {
    char *made = ki_alloc((size_t)bytes + 1);
    if (!made) return ki_fail_nomem((size_t)bytes, ki_panels_name(name));
    const kiln_status status = fetch(made, r, r->p.array[name].begin + first, bytes);
    made[bytes] = '\0';
    if (status == KILN_OK)
        *to = made;
    else
        ki_free(made);
    return status;
}

kiln_status ki_panels_starts(int64_t **to, struct ki_panels_reader *r) {
    const int64_t rows = r->p.rows;
    void *made = NULL;
    bool good = true;
    const kiln_status status = ki_panels_load(&made, r, KI_PANELS_ROW_START, 0, (rows + 1) * 8);
    if (status != KILN_OK) return status;
    const int64_t *start = *to = made;
    for (int64_t i = 0; i < rows; i++) good = good && start[i] <= start[i + 1];
    good = good && start[0] == 0 && start[rows] == r->p.array[KI_PANELS_COLUMNS].shape[0];
    return good ? KILN_OK
                : ki_panels_fail(r, KI_PANELS_ROW_START,
                                 "X.row_start does not ascend from 0 to the number of entries");
}

kiln_status ki_panels_nonfinite(const struct ki_panels_reader *r, enum ki_panels_name name, int64_t at) {
    const struct ki_panels_array *a = &r->p.array[name];
    const int64_t cols = ki_max(a->shape[1], 1);
    const struct ki_place place = {r->name, 0, 0, a->begin + at * a->type->bytes};
    ki_fail_at(KILN_ERR_PARSE, &place,
               "%s: the value at %s %" PRId64 ", column %" PRId64 " (counted from 1) is not a finite %s",
               ki_panels_name(name), a->shape[0] == r->p.rows ? "row" : "entry", at / cols + 1, at % cols + 1,
               r->options->type == KILN_F32 ? "f32" : "f64");
    return ki_hint("repair or remove the row; --allow-nonfinite accepts such values");
}
