/* JSON text as a tree, in one piece of memory whose size is known before a byte is parsed: memory that is
 * short is then one error at one place, and nothing is half there. */
#ifndef KI_JSON_H
#define KI_JSON_H

#include "core/status.h"
#include "io/bytes.h"

enum ki_json_kind {
    KI_JSON_NULL,
    KI_JSON_TRUE,
    KI_JSON_FALSE,
    KI_JSON_INTEGER,
    KI_JSON_REAL,
    KI_JSON_TEXT,
    KI_JSON_LIST,
    KI_JSON_OBJECT
};

struct ki_json {
    enum ki_json_kind kind;
    const char *key;  /* within an object, else NULL */
    const char *text; /* UTF-8 without a NUL */
    int64_t integer;
    double real;   /* of an integer, too */
    int64_t count; /* members of a list or an object */
    const struct ki_json *first, *next;
};

/* Holds what is wrong with a text, and where. */
struct ki_json_fault {
    const char *says;
    int64_t offset;
};

/* *root, to be freed by ki_free, is the value that `length` bytes at text are, blanks around it left out.
 * ERR_PARSE: they are none, and *fault says why: RFC 8259 without \u0000, integers within int64, nested 64
 * deep at most, no key twice in an object. That is the caller's to report; ERR_NOMEM is reported. Cost: 72
 * bytes for each comma and opening bracket, and the text once more. */
kiln_status ki_json_parse(struct ki_json **root, struct ki_json_fault *fault, const char *text,
                          int64_t length);

/* NULL counts as no value: no member, no text. */
const struct ki_json *ki_json_member(const struct ki_json *object, const char *key);
const char *ki_json_text(const struct ki_json *value);
bool ki_json_is(const struct ki_json *value, enum ki_json_kind kind);

/* Appends text in quotes, with what JSON escapes escaped; false: out of memory. */
bool ki_json_put_text(struct ki_bytes *to, const char *text);

#endif
