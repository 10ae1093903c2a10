/* JSON objects for --json, built with Jansson. A failure while building (memory, text that is not UTF-8) is
 * remembered and reported by json_print, so that no call in between needs checking and no key is lost
 * silently. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>
#include <stdint.h>

/* Before the first use: no memory for JSON, the library's included, ends the tool with the exit code that
 * says so. */
void json_begin(void);

/* Each puts one value under the key. NaN and infinity, which JSON cannot say, become null; so does a NULL
 * text. Bytes that are not UTF-8 become '?'. */
void json_put(json_t *object, const char *key, json_t *value); /* takes value over */
void json_put_text(json_t *object, const char *key, const char *text);
void json_put_number(json_t *object, const char *key, double number);
void json_put_count(json_t *object, const char *key, int64_t count);
void json_put_flag(json_t *object, const char *key, int flag);
/* The text as the JSON object or array that it holds, or as a string. */
void json_put_embedded(json_t *object, const char *key, const char *text);
void json_add(json_t *array, json_t *value); /* takes value over */
json_t *json_number_or_null(double number);
json_t *json_text(const char *text);

/* Text to free, or NULL if there was no memory. */
char *json_compact(const json_t *value);

/* Prints the object on standard output and frees it. Returns the exit code: 0, or what the reported failure
 * means. */
int json_print(json_t *object);

/* An array that may be long: its items are made one after the other, so that it takes no memory. */
struct json_list {
    const char *key;
    json_t *(*item)(const void *of, int64_t i); /* NULL: there is no item i */
    const void *of;                             /* NULL: the key's value is null */
};
/* The same with these keys behind those of the object, which has others already. */
int json_print_lists(json_t *object, const struct json_list *lists, int count);

#endif
