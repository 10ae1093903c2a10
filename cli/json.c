/* JSON objects for --json. */
#include "json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

static bool incomplete;

void json_put(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) incomplete = true;
}

void json_add(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0) incomplete = true;
}

json_t *json_text(const char *text) {
    if (!text) return json_null();
    json_t *value = json_string(text);
    if (value) return value;
    char *plain = malloc(strlen(text) + 1);
    if (!plain) return NULL;
    size_t length = strlen(text);
    for (size_t i = 0; i <= length; i++) plain[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    value = json_string(plain);
    free(plain);
    return value;
}

json_t *json_number_or_null(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}

void json_put_text(json_t *object, const char *key, const char *text) {
    json_put(object, key, json_text(text));
}

void json_put_number(json_t *object, const char *key, double number) {
    json_put(object, key, json_number_or_null(number));
}

void json_put_count(json_t *object, const char *key, int64_t count) {
    json_put(object, key, json_integer(count));
}

void json_put_flag(json_t *object, const char *key, int flag) {
    json_put(object, key, json_boolean(flag));
}

void json_put_embedded(json_t *object, const char *key, const char *text) {
    json_t *value = text && (*text == '{' || *text == '[') ? json_loads(text, 0, NULL) : NULL;
    json_put(object, key, value ? value : json_text(text));
}

char *json_compact(const json_t *value) {
    return json_dumps(value, JSON_COMPACT);
}

int json_print(json_t *object) {
    bool good = object && !incomplete;
    if (!good) fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory while building the JSON result");
    int code = good ? 0 : exit_code(KILN_ERR_NOMEM, WORKING);
    /* A failed write is found and reported when standard output is closed. */
    if (good && json_dumpf(object, stdout, JSON_INDENT(2)) == 0) putchar('\n');
    json_decref(object);
    return code;
}
