/* A value opens the text, or stands behind a bracket that opens or a comma: counting these bounds the
 * values. Unescaped, a text takes no more room than in its quotes. */
#include "io/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/number.h"
#include "io/utf8.h"

enum { DEEPEST = 64, QUADRATIC = 16 };

static const char escapes[] = "\"\\/bfnrt", escaped[] = "\"\\/\b\f\n\r\t";

struct parser {
    const char *begin, *at, *end;
    struct ki_json *values; /* the tree's */
    int64_t value_count;
    const char **keys; /* room for those of the object that is checked */
    char *pool;        /* where the next text goes */
    struct ki_json_fault *fault;
};

static bool fail(struct parser *p, const char *says) {
    if (!p->fault->says) *p->fault = (struct ki_json_fault){says, p->at - p->begin};
    return false;
}

static void skip_blanks(struct parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

static bool takes(struct parser *p, char c) {
    skip_blanks(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* --------------------------------------------------------------------------------------- texts */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Behind \u. */
static bool take_hex(struct parser *p, uint32_t *code) {
    *code = 0;
    if (p->end - p->at < 4) return fail(p, "a \\u without four digits");
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(p->at[i]);
        if (digit < 0) return fail(p, "a \\u without four digits");
        *code = *code << 4 | (uint32_t)digit;
    }
    p->at += 4;
    return true;
}

static void put_code(struct parser *p, uint32_t code) {
    if (code < 0x80) {
        *p->pool++ = (char)code;
        return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint32_t first[] = {0, 0xc0, 0xe0, 0xf0};
    *p->pool++ = (char)(unsigned char)(first[more] | code >> 6 * more);
    for (int i = more; i-- > 0;) *p->pool++ = (char)(unsigned char)(0x80 | (code >> 6 * i & 0x3f));
}

/* Characters beyond 16 bits are pairs of surrogates. */
static bool take_code(struct parser *p) {
    uint32_t code, low;
    if (!take_hex(p, &code)) return false;
    if (code == 0) return fail(p, "\\u0000 within a text");
    if (code >= 0xdc00 && code < 0xe000) return fail(p, "half a surrogate pair");
    if (code >= 0xd800 && code < 0xdc00) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return fail(p, "half a surrogate pair");
        p->at += 2;
        if (!take_hex(p, &low)) return false;
        if (low < 0xdc00 || low >= 0xe000) return fail(p, "half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    }
    put_code(p, code);
    return true;
}

static bool take_escape(struct parser *p) {
    if (p->at == p->end) return fail(p, "a text without its end");
    const char c = *p->at;
    if (c == 'u') {
        p->at++;
        return take_code(p);
    }
    const char *found = c ? strchr(escapes, c) : NULL;
    if (!found) return fail(p, "an escape that JSON has not");
    p->at++;
    *p->pool++ = escaped[found - escapes];
    return true;
}

/* Behind the quote that opens it. The buffer's end is no continuation byte: a character that is cut off
 * there is found before. */
static bool take_text(struct parser *p, const char **text) {
    *text = p->pool;
    while (p->at < p->end) {
        const unsigned char c = (unsigned char)*p->at;
        uint32_t code;
        if (c == '"') {
            p->at++;
            *p->pool++ = '\0';
            return true;
        }
        if (c == '\\') {
            p->at++;
            if (!take_escape(p)) return false;
            continue;
        }
        if (c < ' ') return fail(p, "a control character within a text");
        const int wanted = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : 4;
        if (p->end - p->at < wanted || !ki_utf8_length((const unsigned char *)p->at, &code))
            return fail(p, "bytes that are no UTF-8");
        memcpy(p->pool, p->at, (size_t)wanted);
        p->pool += wanted;
        p->at += wanted;
    }
    return fail(p, "a text without its end");
}

/* ------------------------------------------------------------------------------------- numbers */

static bool skip_digits(struct parser *p) {
    const char *from = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
    return p->at > from;
}

static bool take_number(struct parser *p, struct ki_json *value) {
    const char *from = p->at, *again = from;
    p->at += *p->at == '-';
    const char *digits = p->at;
    if (!skip_digits(p) || (*digits == '0' && p->at - digits > 1))
        return fail(p, "a number that JSON has not");
    const char *whole = p->at;
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (!skip_digits(p)) return fail(p, "a number that JSON has not");
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        p->at += p->at < p->end && (*p->at == '+' || *p->at == '-');
        if (!skip_digits(p)) return fail(p, "a number that JSON has not");
    }
    value->kind = p->at == whole ? KI_JSON_INTEGER : KI_JSON_REAL;
    if (value->kind == KI_JSON_INTEGER) {
        if (!ki_parse_int64(&again, p->at, &value->integer)) return fail(p, "too big an integer");
        value->real = (double)value->integer;
        return true;
    }
    if (!ki_parse_double(&again, p->at, &value->real) || again != p->at || !isfinite(value->real))
        return fail(p, "too big a number");
    return true;
}

/* -------------------------------------------------------------------------------------- values */

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_keys(struct parser *p, const struct ki_json *object) {
    int64_t count = 0;
    bool twice = false;
    for (const struct ki_json *member = object->first; member; member = member->next)
        p->keys[count++] = member->key;
    if (count <= QUADRATIC) {
        for (int64_t i = 1; i < count; i++)
            for (int64_t k = 0; k < i; k++) twice |= strcmp(p->keys[i], p->keys[k]) == 0;
    } else {
        qsort(p->keys, (size_t)count, sizeof *p->keys, compare_keys);
        for (int64_t i = 1; i < count; i++) twice |= strcmp(p->keys[i - 1], p->keys[i]) == 0;
    }
    return !twice || fail(p, "a duplicate key");
}

static bool take_value(struct parser *p, struct ki_json *value, int depth);

/* Behind the bracket that opens it. */
static bool take_members(struct parser *p, struct ki_json *of, int depth) {
    const char closes = of->kind == KI_JSON_LIST ? ']' : '}';
    const struct ki_json **link = &of->first;
    if (depth == DEEPEST) return fail(p, "nested too deeply");
    if (takes(p, closes)) return true;
    do {
        const char *key = NULL;
        if (of->kind == KI_JSON_OBJECT && (!takes(p, '"') || !take_text(p, &key) || !takes(p, ':')))
            return fail(p, "an object whose members are not \"key\": value");
        struct ki_json *value = &p->values[p->value_count++];
        if (!take_value(p, value, depth + 1)) return false;
        value->key = key;
        *link = value;
        link = (const struct ki_json **)&value->next;
        of->count++;
    } while (takes(p, ','));
    if (!takes(p, closes))
        return fail(p, closes == ']' ? "a list without its end" : "an object without its end");
    return of->kind == KI_JSON_LIST || check_keys(p, of);
}

static bool take_value(struct parser *p, struct ki_json *value, int depth) {
    static const char *const words[] = {
        [KI_JSON_NULL] = "null", [KI_JSON_TRUE] = "true", [KI_JSON_FALSE] = "false"};
    *value = (struct ki_json){.kind = KI_JSON_NULL};
    skip_blanks(p);
    if (p->at == p->end) return fail(p, "a value is missing");
    if (takes(p, '"')) {
        value->kind = KI_JSON_TEXT;
        return take_text(p, &value->text);
    }
    if (takes(p, '[')) {
        value->kind = KI_JSON_LIST;
        return take_members(p, value, depth);
    }
    if (takes(p, '{')) {
        value->kind = KI_JSON_OBJECT;
        return take_members(p, value, depth);
    }
    if (*p->at == '-' || (*p->at >= '0' && *p->at <= '9')) return take_number(p, value);
    for (int kind = KI_JSON_NULL; kind <= KI_JSON_FALSE; kind++) {
        const size_t length = strlen(words[kind]);
        if ((size_t)(p->end - p->at) < length || memcmp(p->at, words[kind], length) != 0) continue;
        value->kind = (enum ki_json_kind)kind;
        p->at += length;
        return true;
    }
    return fail(p, "this is no value");
}

/* At most so many values are in the text. */
static int64_t count_values(const char *text, int64_t length) {
    int64_t count = 1;
    bool quoted = false;
    for (int64_t i = 0; i < length; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    return count;
}

kiln_status ki_json_parse(struct ki_json **root, struct ki_json_fault *fault, const char *text,
                          int64_t length) {
    const int64_t most = count_values(text, length);
    int64_t bytes;
    *fault = (struct ki_json_fault){.says = NULL};
    if (!ki_mul(most, (int64_t)(sizeof(struct ki_json) + sizeof(char *)), &bytes) ||
        !ki_add(bytes, length + 1, &bytes))
        return ki_fail_nomem(SIZE_MAX, "JSON text");
    struct ki_json *values = ki_alloc((size_t)bytes);
    if (!values) return ki_fail_nomem((size_t)bytes, "JSON text");
    const char **keys = (const char **)(values + most);
    struct parser p = {.begin = text,
                       .at = text,
                       .end = text + length,
                       .values = values,
                       .value_count = 1,
                       .keys = keys,
                       .pool = (char *)(keys + most),
                       .fault = fault};
    bool good = take_value(&p, values, 0);
    skip_blanks(&p);
    if (good && p.at < p.end) good = fail(&p, "something behind the value");
    if (good) {
        *root = values;
        return KILN_OK;
    }
    ki_free(values);
    return KILN_ERR_PARSE;
}

const struct ki_json *ki_json_member(const struct ki_json *object, const char *key) {
    if (!ki_json_is(object, KI_JSON_OBJECT)) return NULL;
    const struct ki_json *member = object->first;
    while (member && strcmp(member->key, key) != 0) member = member->next;
    return member;
}

const char *ki_json_text(const struct ki_json *value) {
    return ki_json_is(value, KI_JSON_TEXT) ? value->text : NULL;
}

bool ki_json_is(const struct ki_json *value, enum ki_json_kind kind) {
    return value && value->kind == kind;
}

/* ------------------------------------------------------------------------------------- writing */

/* The escape's length: one of the short ones where there is one. */
static int escape_of(char escape[8], unsigned char c) {
    const char *found = strchr(escaped, c);
    if (found) return snprintf(escape, 8, "\\%c", escapes[found - escaped]);
    return snprintf(escape, 8, "\\u%04X", c);
}

bool ki_json_put_text(struct ki_bytes *to, const char *text) {
    bool good = ki_bytes_append(to, "\"", 1);
    for (const char *from = text; good; text++) {
        const unsigned char c = (unsigned char)*text;
        char escape[8];
        if (c >= ' ' && c != '"' && c != '\\') continue;
        good = ki_bytes_append(to, from, text - from);
        if (!c) break;
        good = good && ki_bytes_append(to, escape, escape_of(escape, c));
        from = text + 1;
    }
    return good && ki_bytes_append(to, "\"", 1);
}
