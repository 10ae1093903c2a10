/* JSON objects for --json. */
#include "json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "output.h"
#include "talk.h"

static bool incomplete, printing;

static const char no_memory[] = "out of memory while reading or building JSON";

/* An item of a list that is being printed may take this where there is no other memory, so that no JSON is
 * cut off. */
static _Alignas(16) char reserve[64 << 10];
static size_t reserve_used;

static void *from_reserve(size_t bytes) {
    const size_t rounded = (bytes + 15) / 16 * 16;
    if (!printing || bytes > sizeof reserve || rounded > sizeof reserve - reserve_used) return NULL;
    reserve_used += rounded;
    return reserve + reserve_used - rounded;
}

static void free_item(void *memory) {
    const uintptr_t at = (uintptr_t)memory, first = (uintptr_t)reserve;
    if (at < first || at >= first + sizeof reserve) free(memory);
}

/* Jansson that gets no memory takes a good text for a wrong one, or loses a key, and does not say which: the
 * tool ends then. */
static void *memory_or_end(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory || bytes == 0 || (memory = from_reserve(bytes))) return memory;
    say_error("kiln: %s", no_memory);
    if (talk_json() && !printing)
        printf(
            "{\n  \"error\": {\n    \"code\": \"%s\",\n    \"message\": \"%s\",\n    \"file\": null,\n"
            "    \"line\": null,\n    \"column\": null,\n    \"offset\": null,\n    \"hint\": null\n  }\n}\n",
            kiln_status_name(KILN_ERR_NOMEM), no_memory);
    kiln_abandon_files();
    output_abandon_all();
    exit(exit_code(KILN_ERR_NOMEM, WORKING));
}

void json_begin(void) {
    json_set_alloc_funcs(memory_or_end, free_item);
}

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

/* Text of several lines, each further one behind so many blanks. */
static void print_indented(const char *text, int blanks) {
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        printf("%.*s\n%*s", (int)(end - text), text, blanks, "");
    fputs(text, stdout);
}

/* false: out of memory. */
static bool print_list(const struct json_list *list) {
    json_t *item;
    printf(",\n  \"%s\": %s", list->key, list->of ? "[" : "null");
    for (int64_t i = 0; list->of && (item = list->item(list->of, i)); i++) {
        char *text = json_dumps(item, JSON_INDENT(2) | JSON_ENCODE_ANY);
        json_decref(item);
        if (!text) return false;
        fputs(i > 0 ? ",\n    " : "\n    ", stdout);
        print_indented(text, 4);
        free_item(text);
        reserve_used = 0;
    }
    if (list->of) fputs("\n  ]", stdout);
    return true;
}

int json_print_lists(json_t *object, const struct json_list *lists, int count) {
    char *text = object && !incomplete ? json_dumps(object, JSON_INDENT(2)) : NULL;
    bool good = text != NULL;
    json_decref(object);
    if (!good) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory while building the JSON result");
    printing = true;
    text[strlen(text) - 2] = '\0'; /* the line end and brace after the last key */
    /* A failed write is found and reported when standard output is closed. */
    fputs(text, stdout);
    free(text);
    for (int i = 0; good && i < count; i++) good = print_list(&lists[i]) && !incomplete;
    if (good) puts("\n}");
    if (!good) say_error("kiln: out of memory while building the JSON result, which is cut off");
    return good ? 0 : exit_code(KILN_ERR_NOMEM, WORKING);
}

int json_print(json_t *object) {
    return json_print_lists(object, NULL, 0);
}
