/* The header of a packed file, which is written, and read with as little trust as any input. */
#include "io/panels/layout.h"

#include <inttypes.h>
#include <stdio.h>

#include "io/json.h"
#include "io/number.h"

static const char format_name[] = "kiln data 1", format_kind[] = "kiln data ";
enum { LENGTH_BYTES = 8 };

static const struct ki_panels_type types[] = {
    {"F64", 'f', 8, KILN_ELEMENT_TYPE}, {"F32", 'f', 4, KILN_ELEMENT_F32},
    {"F16", 'f', 2, KILN_ELEMENT_F16},  {"BF16", 'B', 2, KILN_ELEMENT_BF16},
    {"U8", 'u', 1, KILN_ELEMENT_U8},    {"I8", 'i', 1, KILN_ELEMENT_I8},
    {"U16", 'u', 2, KILN_ELEMENT_U16},  {"I16", 'i', 2, KILN_ELEMENT_I16},
    {"I64", 'i', 8, KILN_ELEMENT_TYPE}, {"I32", 'i', 4, KILN_ELEMENT_TYPE},
    {"U32", 'u', 4, KILN_ELEMENT_TYPE}};
enum { TYPES = sizeof types / sizeof *types, REALS = 8 };

/* Each array has values of any element, or a type of its own. */
static const struct {
    const char *name, *type;
} arrays[KI_PANELS_ARRAYS] = {
    [KI_PANELS_VALUES] = {"X.values", NULL},          [KI_PANELS_ROW_START] = {"X.row_start", "I64"},
    [KI_PANELS_COLUMNS] = {"X.columns", "I32"},       [KI_PANELS_CODES] = {"X.codes", "U8"},
    [KI_PANELS_CATEGORIES] = {"X.categories", "I64"}, [KI_PANELS_Y] = {"y", NULL},
    [KI_PANELS_WEIGHTS] = {"weights", NULL},          [KI_PANELS_OFFSET] = {"offset", NULL},
    [KI_PANELS_GROUPS] = {"groups", "I64"},           [KI_PANELS_FILLED] = {"filled", "I64"},
    [KI_PANELS_LEFT_OUT] = {"left_out", "I64"},       [KI_PANELS_FEATURE_NAMES] = {"names.features", "U8"},
    [KI_PANELS_ROW_NAMES] = {"names.rows", "U8"},     [KI_PANELS_TARGET_NAMES] = {"names.targets", "U8"},
    [KI_PANELS_CLASS_COUNTS] = {"classes", "I64"},    [KI_PANELS_CLASS_NAMES] = {"names.classes", "U8"},
    [KI_PANELS_ROLE_NAMES] = {"names.roles", "U8"},   [KI_PANELS_SCHEMA] = {"schema", "U8"},
    [KI_PANELS_CHECKSUMS] = {"checksums", "U32"}};

static const struct ki_panels_type *type_of(const char *name) {
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

const struct ki_panels_type *ki_panels_values(kiln_element element, kiln_type type) {
    if (!element) return &types[type == KILN_F32];
    int i = 0;
    while (types[i].element != element) i++;
    return &types[i];
}

const char *ki_panels_name(enum ki_panels_name name) {
    return arrays[name].name;
}

void ki_panels_add(struct ki_panels *p, enum ki_panels_name name, const struct ki_panels_type *type,
                   int64_t rows, int64_t cols, int dimensions) {
    if (!type) type = type_of(arrays[name].type);
    p->array[name] =
        (struct ki_panels_array){type, dimensions, {rows, cols}, p->end, rows * cols * type->bytes};
    p->end += p->array[name].bytes;
}

int64_t ki_panels_checksums(const struct ki_panels *p) {
    int64_t sums = 2; /* of the header, and of the sums */
    for (int i = 0; i < KI_PANELS_CHECKSUMS; i++) sums += ki_ceil_div(p->array[i].bytes, KI_PANEL_BYTES);
    return sums;
}

/* ---------------------------------------------------------------------------------------------- writing */

kiln_status ki_panels_put_header(struct ki_bytes *to, const struct ki_panels *p) {
    static const char blanks[LENGTH_BYTES + 1] = "        ";
    char text[256];
    bool good = ki_bytes_append(to, blanks, LENGTH_BYTES);
    int length =
        snprintf(text, sizeof text,
                 "{\"__metadata__\":{\"format\":\"%s\",\"rows\":\"%" PRId64 "\",\"columns\":\"%" PRId64 "\"}",
                 format_name, p->rows, p->cols);
    good = good && ki_bytes_append(to, text, length);
    for (int i = 0; i < KI_PANELS_ARRAYS; i++) {
        const struct ki_panels_array *a = &p->array[i];
        char cols[32] = "";
        if (!a->type) continue;
        if (a->dimensions == 2) snprintf(cols, sizeof cols, ",%" PRId64, a->shape[1]);
        length = snprintf(text, sizeof text,
                          ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRId64 "%s],\"data_offsets\":[%" PRId64
                          ",%" PRId64 "]}",
                          arrays[i].name, a->type->name, a->shape[0], cols, a->begin, a->begin + a->bytes);
        good = good && ki_bytes_append(to, text, length);
    }
    good = good && ki_bytes_append(to, "}", 1);
    good = good && ki_bytes_append(to, blanks, (8 - to->size % 8) % 8);
    if (!good) return ki_fail_nomem((size_t)to->size, "the header of a packed file");
    for (int i = 0; i < LENGTH_BYTES; i++)
        to->data[i] = (char)(unsigned char)((uint64_t)(to->size - LENGTH_BYTES) >> 8 * i);
    return KILN_OK;
}

/* ---------------------------------------------------------------------------------------------- reading */

struct source {
    const char *name;
    struct ki_panels *p;
};

#define REJECT(s, ...)                                                                                       \
    ki_fail_at(KILN_ERR_PARSE, &(struct ki_place){(s)->name, 0, 0, LENGTH_BYTES}, __VA_ARGS__)

static kiln_status parse_count(int64_t *count, const struct source *s, const struct ki_json *metadata,
                               const char *key) {
    const char *text = ki_json_text(ki_json_member(metadata, key)), *at = text;
    if (!text || !ki_parse_int64(&at, text + strlen(text), count) || *at || *count < 0)
        return REJECT(s, "the header does not say how many %s there are", key);
    return KILN_OK;
}

static kiln_status parse_metadata(const struct source *s, const struct ki_json *metadata) {
    const char *format = ki_json_text(ki_json_member(metadata, "format"));
    kiln_status status;
    if (!format || strncmp(format, format_kind, strlen(format_kind)) != 0)
        return REJECT(s, "this safetensors file is none that kiln convert wrote");
    if (strcmp(format, format_name) != 0) {
        ki_fail_at(KILN_ERR_UNSUPPORTED, &(struct ki_place){s->name, 0, 0, LENGTH_BYTES},
                   "the file's format is not '%s', which this version reads", format_name);
        return ki_hint("a newer Kiln may have written it: use that version");
    }
    TRY(parse_count(&s->p->rows, s, metadata, "rows"));
    TRY(parse_count(&s->p->cols, s, metadata, "columns"));
    if (s->p->cols > INT32_MAX)
        status = REJECT(s, "%" PRId64 " columns, fewer than 2^31 are possible", s->p->cols);
done:
    return status;
}

/* Integers of a list of one or two that are not negative. */
static int parse_list(int64_t list[2], const struct ki_json *from) {
    int count = 0;
    if (!ki_json_is(from, KI_JSON_LIST) || from->count < 1 || from->count > 2) return 0;
    for (const struct ki_json *value = from->first; value; value = value->next) {
        if (value->kind != KI_JSON_INTEGER || value->integer < 0) return 0;
        list[count++] = value->integer;
    }
    return count;
}

static kiln_status parse_array(const struct source *s, const struct ki_json *object) {
    const char *type = ki_json_text(ki_json_member(object, "dtype"));
    struct ki_panels *p = s->p;
    int64_t shape[2] = {1, 1}, place[2], bytes;
    int i = 0;
    while (i < KI_PANELS_ARRAYS && strcmp(arrays[i].name, object->key) != 0) i++;
    if (i == KI_PANELS_ARRAYS) return REJECT(s, "the header has an array that this version does not know");
    const struct ki_panels_type *found = type ? type_of(type) : NULL;
    if (!found || (arrays[i].type ? strcmp(arrays[i].type, type) != 0 : found >= types + REALS))
        return REJECT(s, "%s has a type that it cannot have", arrays[i].name);
    const int dimensions = parse_list(shape, ki_json_member(object, "shape"));
    if (!dimensions || !ki_mul3(shape[0], shape[1], found->bytes, &bytes))
        return REJECT(s, "the shape of %s is none", arrays[i].name);
    if (parse_list(place, ki_json_member(object, "data_offsets")) != 2 || place[0] != p->end ||
        place[1] < place[0] || place[1] - place[0] != bytes)
        return REJECT(s, "%s does not lie behind the array before it, with as many bytes as its shape has",
                      arrays[i].name);
    ki_panels_add(p, (enum ki_panels_name)i, found, shape[0], shape[1], dimensions);
    return KILN_OK;
}

/* The array is there and has so many rows (-1: any) and dimensions, or it need not be there. */
static bool has(const struct ki_panels *p, enum ki_panels_name name, int64_t rows, int dimensions,
                bool needed) {
    const struct ki_panels_array *a = &p->array[name];
    if (!a->type) return !needed;
    return a->dimensions == dimensions && (rows < 0 || a->shape[0] == rows);
}

static bool any(const struct ki_panels *p, enum ki_panels_name name) {
    return p->array[name].type != NULL;
}

static kiln_status check_X(const struct source *s) {
    const struct ki_panels *p = s->p;
    const struct ki_panels_array *const a = p->array;
    const bool sparse = any(p, KI_PANELS_ROW_START), coded = any(p, KI_PANELS_CODES);
    bool good;
    if (p->rows == INT64_MAX) return REJECT(s, "too many rows");
    if (sparse)
        good = !coded && !any(p, KI_PANELS_CATEGORIES) && has(p, KI_PANELS_ROW_START, p->rows + 1, 1, true) &&
               has(p, KI_PANELS_COLUMNS, -1, 1, true) &&
               has(p, KI_PANELS_VALUES, a[KI_PANELS_COLUMNS].shape[0], 1, false);
    else
        good = !any(p, KI_PANELS_COLUMNS) && has(p, KI_PANELS_VALUES, p->rows, 2, true) &&
               coded == any(p, KI_PANELS_CATEGORIES) && has(p, KI_PANELS_CODES, p->rows, 2, false) &&
               has(p, KI_PANELS_CATEGORIES, -1, 2, false) &&
               (coded ? a[KI_PANELS_CATEGORIES].shape[1] == 2 : a[KI_PANELS_VALUES].shape[1] == p->cols);
    if (!good)
        return REJECT(s, "the arrays of X are not those of %" PRId64 " rows and %" PRId64 " columns", p->rows,
                      p->cols);
    if (!sparse && !coded && p->cols == 0 && p->rows > 0) return REJECT(s, "X has rows, but no columns");
    if (coded && (a[KI_PANELS_CODES].shape[1] == 0 || a[KI_PANELS_CATEGORIES].shape[0] == 0))
        return REJECT(s, "X has categories without codes");
    return KILN_OK;
}

static kiln_status check_shapes(const struct source *s) {
    const struct ki_panels *p = s->p;
    const struct ki_panels_array *y = &p->array[KI_PANELS_Y];
    const int64_t targets = y->type ? y->shape[1] : 0;
    const kiln_status status = check_X(s);
    if (status != KILN_OK) return status;
    bool good = has(p, KI_PANELS_Y, p->rows, 2, false) && (!y->type || targets > 0);
    for (int i = KI_PANELS_WEIGHTS; i <= KI_PANELS_GROUPS; i++)
        good = good && has(p, (enum ki_panels_name)i, p->rows, 1, false);
    for (int i = KI_PANELS_FILLED; i < KI_PANELS_CHECKSUMS; i++)
        good = good && has(p, (enum ki_panels_name)i, i == KI_PANELS_CLASS_COUNTS ? targets : -1, 1, false);
    good = good && any(p, KI_PANELS_CLASS_COUNTS) == any(p, KI_PANELS_CLASS_NAMES) &&
           (targets > 0 || (!any(p, KI_PANELS_CLASS_COUNTS) && !any(p, KI_PANELS_TARGET_NAMES)));
    if (!good) return REJECT(s, "an array does not have as many rows as X, or columns as there are targets");
    if (!has(p, KI_PANELS_CHECKSUMS, ki_panels_checksums(p), 1, true) ||
        p->array[KI_PANELS_CHECKSUMS].begin + p->array[KI_PANELS_CHECKSUMS].bytes != p->end)
        return REJECT(s, "the checksums are not those of the arrays, or not the last of them");
    return KILN_OK;
}

static kiln_status parse(const struct source *s, const struct ki_json *header) {
    kiln_status status;
    TRY(parse_metadata(s, ki_json_member(header, "__metadata__")));
    for (const struct ki_json *member = header->first; member; member = member->next)
        if (strcmp(member->key, "__metadata__") != 0) TRY(parse_array(s, member));
    TRY(check_shapes(s));
done:
    return status;
}

kiln_status ki_panels_parse(struct ki_panels *p, const char *name, const void *bytes, int64_t available,
                            int64_t size) {
    const struct source s = {name, p};
    const unsigned char *from = bytes;
    struct ki_json *header = NULL;
    struct ki_json_fault fault;
    uint64_t length = 0;
    kiln_status status;
    *p = (struct ki_panels){0};
    for (int i = LENGTH_BYTES; i-- > 0 && available >= LENGTH_BYTES;) length = length << 8 | from[i];
    if (available < LENGTH_BYTES || length > KI_PANELS_HEADER_LIMIT ||
        (int64_t)length > available - LENGTH_BYTES)
        return REJECT(&s, "the file ends within its header, or the header is too long");
    status = ki_json_parse(&header, &fault, (const char *)from + LENGTH_BYTES, (int64_t)length);
    if (status == KILN_ERR_PARSE) return REJECT(&s, "the header is not valid: %s", fault.says);
    TRY(status);
    if (!ki_json_is(header, KI_JSON_OBJECT)) TRY(REJECT(&s, "the header is no object"));
    TRY(parse(&s, header));
    p->data = LENGTH_BYTES + (int64_t)length;
    if (size - p->data != p->end) {
        ki_fail_at(KILN_ERR_PARSE, &(struct ki_place){name, 0, 0, size},
                   "the header promises %" PRId64 " bytes of data, the file has %" PRId64, p->end,
                   size - p->data);
        TRY(ki_hint("the file is cut off or longer than it was; convert the data again"));
    }
    for (int i = 0; i < KI_PANELS_ARRAYS; i++) p->array[i].begin += p->data;
done:
    ki_free(header);
    return status;
}
