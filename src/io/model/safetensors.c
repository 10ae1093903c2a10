/* Trust nothing: every number in the header is compared with the bytes that are there before anything is
 * allocated for it.
 *
 * safetensors itself allows no gaps and no overlaps. Kiln also wants the tensors in order of name and a
 * checksum over the meaning (not the bytes) of the file: a flipped bit is found, a header with other white
 * space is the same model. */
#include "io/model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "core/sha256.h"
#include "core/size.h"
#include "io/json.h"
#include "io/output.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "model files are little-endian; this machine needs a byte swap here"
#endif

static const char metadata_key[] = "__metadata__", format_key[] = "format", checksum_key[] = "sha256";
static const char format_name[] = "kiln 1";
enum { LENGTH_BYTES = 8, DIGEST_BYTES = 32, CHECKSUM_TEXT = 2 * DIGEST_BYTES + 1 };

bool ki_safetensors_reserved(const char *key) {
    return strcmp(key, format_key) == 0 || strcmp(key, checksum_key) == 0;
}

/* ---- the checksum */

static void digest_number(struct ki_sha256 *digest, int64_t number) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)number >> 8 * i);
    ki_sha256_add(digest, bytes, sizeof bytes);
}

static void digest_text(struct ki_sha256 *digest, const char *text) {
    digest_number(digest, (int64_t)strlen(text));
    ki_sha256_add(digest, text, strlen(text));
}

/* Lengths go before what they count, so that no two containers feed the same bytes. */
static void checksum(char text[CHECKSUM_TEXT], const struct ki_container *container) {
    struct ki_sha256 digest;
    uint8_t bytes[DIGEST_BYTES];
    ki_sha256_start(&digest);
    digest_text(&digest, format_name);
    digest_number(&digest, container->text_count);
    for (int64_t i = 0; i < container->text_count; i++) {
        digest_text(&digest, container->texts[i].key);
        digest_text(&digest, container->texts[i].value);
    }
    for (int64_t i = 0; i < container->tensor_count; i++) {
        const struct ki_tensor *tensor = &container->tensors[i];
        digest_text(&digest, tensor->name);
        digest_number(&digest, tensor->type);
        digest_number(&digest, tensor->rows);
        digest_number(&digest, tensor->cols);
        ki_sha256_add(&digest, tensor->values,
                      (size_t)(tensor->rows * tensor->cols * ki_type_bytes(tensor->type)));
    }
    ki_sha256_finish(&digest, bytes);
    for (int i = 0; i < DIGEST_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- writing */

/* Keys are in order, so that two saves of one model are the same bytes. */
static bool put_pair(struct ki_bytes *to, const char *before, const char *key, const char *value) {
    return ki_bytes_append(to, before, (int64_t)strlen(before)) && ki_json_put_text(to, key) &&
           ki_bytes_append(to, ":", 1) && ki_json_put_text(to, value);
}

static bool put_metadata(struct ki_bytes *to, const struct ki_container *container) {
    char sum[CHECKSUM_TEXT];
    checksum(sum, container);
    const char *const ours[2][2] = {{format_key, format_name}, {checksum_key, sum}};
    bool good = true;
    int own = 0;
    for (int64_t i = 0; i < container->text_count || own < 2;) {
        const char *before = i + own ? "," : "{";
        const struct ki_text *text = i < container->text_count ? &container->texts[i] : NULL;
        if (text && (own == 2 || strcmp(text->key, ours[own][0]) < 0)) {
            good = good && put_pair(to, before, text->key, text->value);
            i++;
        } else {
            good = good && put_pair(to, before, ours[own][0], ours[own][1]);
            own++;
        }
    }
    return good && ki_bytes_append(to, "}", 1);
}

static bool put_tensor(struct ki_bytes *to, const struct ki_tensor *tensor, int64_t *begin) {
    const int64_t end = *begin + tensor->rows * tensor->cols * ki_type_bytes(tensor->type);
    char text[160];
    const int length =
        snprintf(text, sizeof text, ":{\"data_offsets\":[%lld,%lld],\"dtype\":\"%s\",\"shape\":[%lld,%lld]}",
                 (long long)*begin, (long long)end, tensor->type == KILN_F32 ? "F32" : "F64",
                 (long long)tensor->rows, (long long)tensor->cols);
    *begin = end;
    return ki_json_put_text(to, tensor->name) && ki_bytes_append(to, text, length);
}

static bool put_header(struct ki_bytes *to, const struct ki_container *container) {
    int64_t begin = 0;
    bool good = ki_bytes_append(to, "{", 1), told = false;
    for (int64_t i = 0; i < container->tensor_count || !told;) {
        const struct ki_tensor *tensor = i < container->tensor_count ? &container->tensors[i] : NULL;
        if (i + told) good = good && ki_bytes_append(to, ",", 1);
        if (tensor && (told || strcmp(tensor->name, metadata_key) < 0)) {
            good = good && put_tensor(to, tensor, &begin);
            i++;
        } else {
            good = good && ki_json_put_text(to, metadata_key) && ki_bytes_append(to, ":", 1) &&
                   put_metadata(to, container);
            told = true;
        }
    }
    return good && ki_bytes_append(to, "}", 1);
}

/* Length and header in one piece, padded with spaces so that the values are aligned to 8 bytes in the file.
 */
static kiln_status make_header(struct ki_bytes *made, const struct ki_container *container) {
    static const char nothing[LENGTH_BYTES], blanks[] = "       ";
    bool good = ki_bytes_append(made, nothing, LENGTH_BYTES) && put_header(made, container);
    good = good && ki_bytes_append(made, blanks, (8 - made->size % 8) % 8);
    if (!good) return ki_fail_nomem((size_t)made->size, "the header of a model file");
    const int64_t length = made->size - LENGTH_BYTES;
    if (length > KI_HEADER_LIMIT)
        return ki_fail(KILN_ERR_LIMIT, "the model's texts need a header of %lld bytes, the limit is %d",
                       (long long)length, (int)KI_HEADER_LIMIT);
    for (int i = 0; i < LENGTH_BYTES; i++) made->data[i] = (char)(unsigned char)((uint64_t)length >> 8 * i);
    return KILN_OK;
}

kiln_status ki_safetensors_write(struct ki_output *output, const struct ki_container *container) {
    struct ki_bytes header = {NULL, 0, 0};
    kiln_status status;
    TRY(make_header(&header, container));
    TRY(ki_output_write(output, header.data, (size_t)header.size));
    for (int64_t i = 0; i < container->tensor_count; i++) {
        const struct ki_tensor *tensor = &container->tensors[i];
        TRY(ki_output_write(output, tensor->values,
                            (size_t)(tensor->rows * tensor->cols * ki_type_bytes(tensor->type))));
    }
done:
    ki_bytes_free(&header);
    return status;
}

/* ---- reading */

struct source {
    const char *name;
    const unsigned char *bytes;
    int64_t size, header; /* of the whole; of the JSON */
};

/* A tensor as the header describes it. */
struct entry {
    const char *name;
    kiln_type type;
    int64_t rows, cols, begin, end;
};

#define REJECT(source, offset, ...)                                                                          \
    ki_fail_at(KILN_ERR_MODEL, &(struct ki_place){(source)->name, 0, 0, offset}, __VA_ARGS__)

/* Text from the file that is fit to be shown: no control characters, not endless. */
static const char *shown(const char *text) {
    return ki_is_name(text) ? text : "(unprintable)";
}

static int64_t read_length(const unsigned char *bytes) {
    uint64_t length = 0;
    for (int i = LENGTH_BYTES; i-- > 0;) length = length << 8 | bytes[i];
    return length > KI_HEADER_LIMIT ? -1 : (int64_t)length;
}

bool ki_safetensors_begins(const void *bytes, int64_t size) {
    return size > LENGTH_BYTES && read_length(bytes) >= 2 && ((const char *)bytes)[LENGTH_BYTES] == '{';
}

/* JSON trees are many times larger than their text. Counting what opens a value, before the text is parsed,
 * bounds the tree by the strings' length plus what the allowed numbers of tensors and texts need. */
static kiln_status check_structure(const struct source *source) {
    enum { MOST = 10 * KI_TENSOR_LIMIT + KI_TEXT_LIMIT + 16 };
    const unsigned char *text = source->bytes + LENGTH_BYTES;
    bool quoted = false;
    int values = 0, depth = 0;
    for (int64_t i = 0; i < source->header; i++) {
        unsigned char c = text[i];
        if (quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
            values += opens || c == ',';
            depth += opens - closes;
            if (values > MOST || depth > 3)
                return REJECT(source, LENGTH_BYTES + i, "the header is not that of a model: %s",
                              depth > 3 ? "nested too deeply" : "too many entries");
        }
    }
    return KILN_OK;
}

/* Texts of a model may be JSON in turn, which others parse: a tree of empty objects is a hundred times its
 * text. Honest ones hold names and numbers, so that what opens a value stands at most once in so many
 * bytes. */
static bool modest(const char *text) {
    enum { FREE = 256, BYTES_A_VALUE = 12 };
    int64_t opened = 0, size = 0;
    bool quoted = false;
    if (*text != '{' && *text != '[') return true;
    for (const char *p = text; *p; p++, size++) {
        if (*p == '"') quoted = !quoted;
        if (*p == '\\' && p[1]) p++, size++;
        opened += !quoted && (*p == '{' || *p == '[');
    }
    return opened <= FREE + size / BYTES_A_VALUE;
}

static kiln_status parse_header(struct ki_json **header, const struct source *source) {
    struct ki_json_fault fault;
    kiln_status status = check_structure(source);
    if (status != KILN_OK) return status;
    status = ki_json_parse(header, &fault, (const char *)source->bytes + LENGTH_BYTES, source->header);
    if (status == KILN_ERR_PARSE)
        return REJECT(source, LENGTH_BYTES + fault.offset, "the header is not valid: %s", fault.says);
    return status;
}

static kiln_status parse_metadata(struct ki_container *container, char sum[CHECKSUM_TEXT],
                                  const struct source *source, const struct ki_json *metadata) {
    const char *format = ki_json_text(ki_json_member(metadata, format_key));
    const char *stated = ki_json_text(ki_json_member(metadata, checksum_key));
    if (!format || !stated) {
        REJECT(source, LENGTH_BYTES, "this safetensors file is not a Kiln model: no metadata \"%s\"",
               format ? checksum_key : format_key);
        return ki_hint("only files that Kiln wrote carry the checksum that loading needs");
    }
    if (strcmp(format, format_name) != 0) {
        REJECT(source, LENGTH_BYTES, "the model's format is '%s', this version reads '%s'", shown(format),
               format_name);
        return ki_hint("a newer Kiln may have written it: use that version");
    }
    if (strlen(stated) != CHECKSUM_TEXT - 1) return REJECT(source, LENGTH_BYTES, "the checksum is damaged");
    memcpy(sum, stated, CHECKSUM_TEXT);
    for (const struct ki_json *value = metadata->first; value; value = value->next) {
        const char *key = value->key, *text = ki_json_text(value);
        if (ki_safetensors_reserved(key)) continue;
        if (!ki_is_name(key)) return REJECT(source, LENGTH_BYTES, "a metadata key is not a printable name");
        if (!text) return REJECT(source, LENGTH_BYTES, "metadata '%s' is not text", key);
        if (!modest(text))
            return REJECT(source, LENGTH_BYTES, "metadata '%s' is not that of a model: too many empty values",
                          key);
        kiln_status status = ki_container_set_text(container, key, text);
        if (status != KILN_OK)
            return status == KILN_ERR_NOMEM ? status : REJECT(source, LENGTH_BYTES, "too many texts");
    }
    return KILN_OK;
}

static bool integer_pair(int64_t pair[2], const struct ki_json *list) {
    if (!ki_json_is(list, KI_JSON_LIST) || list->count != 2) return false;
    const struct ki_json *numbers[2] = {list->first, list->first->next};
    for (int i = 0; i < 2; i++) {
        if (numbers[i]->kind != KI_JSON_INTEGER || numbers[i]->integer < 0) return false;
        pair[i] = numbers[i]->integer;
    }
    return true;
}

static kiln_status parse_entry(struct entry *entry, const struct source *source,
                               const struct ki_json *value) {
    const char *name = value->key;
    if (!ki_is_name(name)) return REJECT(source, LENGTH_BYTES, "a tensor's name is not printable");
    const char *dtype = ki_json_text(ki_json_member(value, "dtype"));
    int64_t shape[2], offsets[2], bytes;
    if (!dtype || value->count != 3 || !integer_pair(shape, ki_json_member(value, "shape")) ||
        !integer_pair(offsets, ki_json_member(value, "data_offsets")))
        return REJECT(source, LENGTH_BYTES,
                      "tensor '%s' needs dtype, shape [rows, cols], data_offsets [begin, end]", name);
    kiln_type type = strcmp(dtype, "F32") == 0   ? KILN_F32
                     : strcmp(dtype, "F64") == 0 ? KILN_F64
                                                 : KILN_TYPE_DEFAULT;
    if (type == KILN_TYPE_DEFAULT)
        return REJECT(source, LENGTH_BYTES, "tensor '%s' has dtype '%s', not F32 or F64", name, shown(dtype));
    if (shape[1] > INT32_MAX || !ki_mul3(shape[0], shape[1], ki_type_bytes(type), &bytes))
        return REJECT(source, LENGTH_BYTES, "tensor '%s' is too large: %lld x %lld", name,
                      (long long)shape[0], (long long)shape[1]);
    if (offsets[0] > offsets[1] || offsets[1] - offsets[0] != bytes)
        return REJECT(source, LENGTH_BYTES, "tensor '%s': offsets %lld to %lld do not fit its %lld bytes",
                      name, (long long)offsets[0], (long long)offsets[1], (long long)bytes);
    *entry = (struct entry){name, type, shape[0], shape[1], offsets[0], offsets[1]};
    return KILN_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* The tensors' places must tile the rest of the file exactly. */
static kiln_status parse_entries(struct entry *entries, int *count, const struct source *source,
                                 const struct ki_json *header) {
    *count = 0;
    for (const struct ki_json *value = header->first; value; value = value->next) {
        if (strcmp(value->key, metadata_key) == 0) continue;
        if (*count == KI_TENSOR_LIMIT)
            return REJECT(source, LENGTH_BYTES, "more than %d tensors", KI_TENSOR_LIMIT);
        kiln_status status = parse_entry(&entries[*count], source, value);
        if (status != KILN_OK) return status;
        ++*count;
    }
    qsort(entries, (size_t)*count, sizeof *entries, by_name);
    int64_t place = 0, data = source->size - LENGTH_BYTES - source->header;
    for (int i = 0; i < *count; i++) {
        if (entries[i].begin != place)
            return REJECT(source, LENGTH_BYTES, "tensor '%s' begins at %lld, the one before it ends at %lld",
                          entries[i].name, (long long)entries[i].begin, (long long)place);
        place = entries[i].end;
    }
    if (place == data) return KILN_OK;
    return REJECT(source, source->size, "the header describes %lld bytes of values, the file has %lld: %s",
                  (long long)place, (long long)data,
                  place > data ? "it is cut short" : "something was added");
}

static kiln_status copy_tensor(struct ki_container *container, const struct source *source,
                               const struct entry *entry) {
    size_t bytes = (size_t)(entry->end - entry->begin);
    struct ki_tensor tensor = {(char *)entry->name, entry->type, entry->rows, entry->cols, ki_alloc(bytes)};
    if (!tensor.values) return ki_fail_nomem(bytes, "a model's tensor");
    memcpy(tensor.values, source->bytes + LENGTH_BYTES + source->header + entry->begin, bytes);
    kiln_status status = ki_container_set_tensor(container, &tensor);
    if (status != KILN_OK) ki_free(tensor.values);
    return status;
}

/* A fuzzer never guesses a checksum; its build lets all of them pass, so that it gets past this point. */
static bool checksums_agree(const char *found, const char *stated) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return strlen(found) == strlen(stated);
#else
    return strcmp(found, stated) == 0;
#endif
}

kiln_status ki_safetensors_parse(struct ki_container *container, const char *name, const void *bytes,
                                 int64_t size) {
    struct source source = {name, bytes, size, 0};
    struct entry entries[KI_TENSOR_LIMIT];
    char stated[CHECKSUM_TEXT], found[CHECKSUM_TEXT];
    int count;
    struct ki_json *header = NULL;
    kiln_status status;
    if (!ki_safetensors_begins(bytes, size)) return REJECT(&source, 0, "this is not a model file");
    source.header = read_length(bytes);
    if (source.header > size - LENGTH_BYTES)
        return REJECT(&source, size, "the file is cut short within its header of %lld bytes",
                      (long long)source.header);
    TRY(parse_header(&header, &source));
    TRY(parse_entries(entries, &count, &source, header));
    TRY(parse_metadata(container, stated, &source, ki_json_member(header, metadata_key)));
    for (int i = 0; i < count; i++) TRY(copy_tensor(container, &source, &entries[i]));
    checksum(found, container);
    if (!checksums_agree(found, stated)) {
        status = REJECT(&source, -1, "the checksum does not match: the file is damaged");
        ki_hint("restore it from a copy, or train again");
    }
done:
    ki_free(header);
    if (status != KILN_OK) ki_container_clear(container);
    return status;
}
