/* The header of an .npy file is the text of a Python dictionary,
 *   {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
 * and is read here by a parser that knows these three keys and four kinds of literal, and can do nothing
 * else. */
#include <string.h>

#include "io/numpy/npy.h"
#include "io/number.h"

static const char magic[] = "\x93NUMPY";

enum { MAGIC = 6, PREFIX = 10, PREFIX_LONG = 12, DESCR = 64 };

struct parser {
    const char *text, *end;
    char descr[DESCR];
    bool fortran, have_descr, have_fortran, have_shape;
    int dimensions;
    int64_t shape[2];
};

static kiln_status fail_header(const struct ki_place *place, const char *reason) {
    ki_fail_at(KILN_ERR_PARSE, place, "the .npy header is malformed: %s", reason);
    return ki_hint("write the file again with numpy.save");
}

kiln_status ki_npy_header_size(int64_t *size, const void *bytes, size_t available,
                               const struct ki_place *place) {
    const unsigned char *b = bytes;
    if (available < MAGIC || memcmp(b, magic, MAGIC) != 0) {
        ki_fail_at(KILN_ERR_PARSE, place, "not an .npy file: it does not begin with \\x93NUMPY");
        return ki_hint("name the file after its format, or convert it with numpy.save");
    }
    if (available < PREFIX) return fail_header(place, "the file ends in it");
    if (b[6] < 1 || b[6] > 3) {
        ki_fail_at(KILN_ERR_UNSUPPORTED, place, ".npy version %d.%d; 1.0 to 3.0 are read", b[6], b[7]);
        return ki_hint("write the file again with numpy.save");
    }
    int64_t length = b[8] | b[9] << 8, prefix = PREFIX;
    if (b[6] > 1) {
        if (available < PREFIX_LONG) return fail_header(place, "the file ends in it");
        prefix = PREFIX_LONG;
        length |= (int64_t)b[10] << 16 | (int64_t)b[11] << 24;
    }
    if (length > KI_NPY_HEADER_LIMIT - PREFIX_LONG) return fail_header(place, "it is longer than 64 KiB");
    *size = prefix + length;
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------------ literals */

static void skip_space(struct parser *p) {
    while (p->text < p->end && strchr(" \t\r\n", *p->text) && *p->text) p->text++;
}

static bool take(struct parser *p, char c) {
    skip_space(p);
    if (p->text == p->end || *p->text != c) return false;
    p->text++;
    return true;
}

static bool take_word(struct parser *p, const char *word) {
    size_t size = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->text) < size || memcmp(p->text, word, size) != 0) return false;
    p->text += size;
    return true;
}

/* A string in single or double quotes without escapes. */
static bool take_string(struct parser *p, char out[DESCR]) {
    char quote = take(p, '\'') ? '\'' : '"';
    if (quote == '"' && !take(p, '"')) return false;
    int64_t size = 0;
    for (; p->text < p->end && *p->text != quote; p->text++) {
        if (size == DESCR - 1 || *p->text < ' ' || *p->text == '\\' || *p->text > '~') return false;
        out[size++] = *p->text;
    }
    out[size] = '\0';
    return take(p, quote);
}

/* (), (n,), (n, m), with the L that Python 2 put behind long integers. More dimensions are counted, not kept.
 */
static bool take_shape(struct parser *p) {
    p->shape[0] = p->shape[1] = 1;
    p->dimensions = 0;
    if (!take(p, '(')) return false;
    bool comma = true;
    while (!take(p, ')')) {
        int64_t length;
        skip_space(p);
        if (!comma || p->text == p->end || *p->text < '0' || *p->text > '9') return false;
        if (!ki_parse_int64(&p->text, p->end, &length)) return false;
        take(p, 'L');
        if (p->dimensions < 2) p->shape[p->dimensions] = length;
        p->dimensions++;
        comma = take(p, ',');
    }
    return p->dimensions != 1 || comma;
}

/* ---------------------------------------------------------------------------------------- dictionary */

static const char *take_entry(struct parser *p) {
    char key[DESCR];
    if (!take_string(p, key) || !take(p, ':')) return "expected 'key': value";
    if (strcmp(key, "descr") == 0) {
        if (p->have_descr) return "two keys 'descr'";
        p->have_descr = true;
        if (take(p, '[')) return "'descr' is a list: structured arrays are not matrices";
        return take_string(p, p->descr) ? NULL : "'descr' is not a string";
    }
    if (strcmp(key, "fortran_order") == 0) {
        if (p->have_fortran) return "two keys 'fortran_order'";
        p->have_fortran = true;
        p->fortran = take_word(p, "True");
        return p->fortran || take_word(p, "False") ? NULL : "'fortran_order' is neither True nor False";
    }
    if (strcmp(key, "shape") != 0) return "an unknown key";
    if (p->have_shape) return "two keys 'shape'";
    p->have_shape = true;
    return take_shape(p) ? NULL : "'shape' is not a tuple of lengths";
}

static const char *take_dictionary(struct parser *p) {
    if (!take(p, '{')) return "it is not a dictionary";
    while (!take(p, '}')) {
        const char *problem = take_entry(p);
        if (problem) return problem;
        if (take(p, ',')) continue;
        if (!take(p, '}')) return "expected a comma or a brace";
        break;
    }
    skip_space(p);
    if (p->text != p->end) return "text behind the dictionary";
    if (!p->have_descr || !p->have_fortran || !p->have_shape)
        return "it lacks 'descr', 'fortran_order' or 'shape'";
    return NULL;
}

/* ---------------------------------------------------------------------------------------------- type */

static kiln_status unsupported(const struct ki_place *place, const char *descr, const char *hint) {
    ki_fail_at(KILN_ERR_UNSUPPORTED, place, "elements of type '%s'; f2, f4, f8, integers and bool are read",
               descr);
    return ki_hint("%s", hint);
}

/* "<f8": byte order, kind, bytes. */
static kiln_status read_descr(struct ki_npy *npy, const char *descr, const struct ki_place *place) {
    static const char sizes[][6] = {"f248", "i1248", "u1248", "b1"};
    const char *p = descr, *end = descr + strlen(descr);
    const int one = 1;
    bool little = *(const char *)&one == 1;
    char order = strchr("<>=|", *p) && *p ? *p++ : '=';
    npy->swapped = order == (little ? '>' : '<');
    npy->kind = *p;
    if (*p == 'O' || *p == 'V')
        return unsupported(place, descr,
                           *p == 'O' ? "it holds Python objects; save numbers: a.astype('f8')"
                                     : "it holds raw bytes; save numbers: a.astype('f8')");
    if (p < end) p++;
    if (!ki_parse_int64(&p, end, &npy->itemsize) || p != end || npy->itemsize < 0) npy->itemsize = -1;
    if (npy->kind == 'S' || npy->kind == 'U')
        return npy->itemsize < 0 ? fail_header(place, "bad 'descr'") : KILN_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (npy->kind == sizes[i][0] && npy->itemsize > 0 && npy->itemsize < 10 &&
            strchr(sizes[i] + 1, (int)('0' + npy->itemsize)))
            return KILN_OK;
    return unsupported(place, descr, "convert it: numpy.save(name, a.astype('f8'))");
}

kiln_status ki_npy_header(struct ki_npy *npy, const void *bytes, size_t size, const struct ki_place *place) {
    int64_t whole, items;
    kiln_status status = ki_npy_header_size(&whole, bytes, size, place);
    if (status != KILN_OK) return status;
    if ((size_t)whole > size) return fail_header(place, "the file ends in it");
    const char *text = bytes;
    struct parser p = {.text = text + (text[6] > 1 ? PREFIX_LONG : PREFIX), .end = text + whole};
    const char *problem = take_dictionary(&p);
    if (problem) return fail_header(place, problem);
    if (p.dimensions > 2) {
        ki_fail_at(KILN_ERR_UNSUPPORTED, place, "an array of %d dimensions; 1 and 2 are read", p.dimensions);
        return ki_hint("reshape it: a.reshape(len(a), -1)");
    }
    struct ki_npy result = {
        .fortran = p.fortran, .dimensions = p.dimensions, .shape = {p.shape[0], p.shape[1]}};
    status = read_descr(&result, p.descr, place);
    if (status != KILN_OK) return status;
    int64_t item = result.kind == 'U' ? 4 : 1;
    if (!ki_mul(result.shape[0], result.shape[1], &items) ||
        !ki_mul3(items, result.itemsize, item, &result.bytes))
        return fail_header(place, "the shape's product overflows");
    *npy = result;
    return KILN_OK;
}
