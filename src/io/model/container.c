/* Sorted arrays: a model has a handful of entries, and the order makes two saves of one model the same bytes.
 */
#include "io/model/container.h"

#include <string.h>

#include "core/seams.h"
#include "io/utf8.h"

static bool is_utf8(const char *text, bool printable) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        uint32_t code;
        int length = ki_utf8_length(at, &code);
        if (length == 0) return false;
        if (printable && (code < 0x20 || (code >= 0x7f && code < 0xa0))) return false;
        at += length;
    }
    return true;
}

bool ki_is_name(const char *text) {
    size_t length = strlen(text);
    return length > 0 && length <= KI_NAME_LIMIT && is_utf8(text, true);
}

static void clear_tensor(struct ki_tensor *tensor) {
    ki_free(tensor->name);
    ki_free(tensor->values);
}

static void clear_text(struct ki_text *text) {
    ki_free(text->key);
    ki_free(text->value);
}

void ki_container_clear(struct ki_container *container) {
    for (int64_t i = 0; i < container->tensor_count; i++) clear_tensor(&container->tensors[i]);
    for (int64_t i = 0; i < container->text_count; i++) clear_text(&container->texts[i]);
    ki_free(container->tensors);
    ki_free(container->texts);
    memset(container, 0, sizeof *container);
}

/* Every list's elements begin with the pointer to their name. The place of `name`: the first element not
 * below it. */
static int64_t find(bool *found, const void *list, int64_t count, size_t size, const char *name) {
    *found = false;
    for (int64_t i = 0; i < count; i++) {
        const char *const *element = (const void *)((const char *)list + (size_t)i * size);
        int order = strcmp(*element, name);
        *found = order == 0;
        if (order >= 0) return i;
    }
    return count;
}

/* Grows the list by one and opens a gap at `place`; NULL if out of memory, the list is then as before. */
static void *insert(void **list, int64_t *count, size_t size, int64_t place) {
    char *grown = ki_resize(*list, (size_t)(*count + 1) * size);
    if (!grown) return NULL;
    *list = grown;
    char *gap = grown + (size_t)place * size;
    memmove(gap + size, gap, (size_t)(*count - place) * size);
    memset(gap, 0, size);
    ++*count;
    return gap;
}

static kiln_status check_name(const char *name) {
    if (ki_is_name(name)) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "a model's names are 1 to %d bytes of printable UTF-8", KI_NAME_LIMIT);
}

kiln_status ki_container_set_text(struct ki_container *container, const char *key, const char *value) {
    bool found;
    struct ki_text text = {0}, *place;
    kiln_status status = check_name(key);
    if (status != KILN_OK) return status;
    if (!is_utf8(value, false)) return ki_fail(KILN_ERR_ARGUMENT, "the text of '%s' is not UTF-8", key);
    int64_t at = find(&found, container->texts, container->text_count, sizeof text, key);
    if (!found && container->text_count == KI_TEXT_LIMIT)
        return ki_fail(KILN_ERR_LIMIT, "a model holds at most %d texts", KI_TEXT_LIMIT);
    text.key = ki_strdup(key);
    text.value = ki_strdup(value);
    if (!text.key || !text.value) goto nomem;
    if (found) {
        place = &container->texts[at];
        clear_text(place);
    } else {
        void *list = container->texts;
        place = insert(&list, &container->text_count, sizeof text, at);
        if (!place) goto nomem;
        container->texts = list;
    }
    *place = text;
    return KILN_OK;
nomem:
    clear_text(&text);
    return ki_fail_nomem(strlen(key) + strlen(value), "a model's text");
}

kiln_status ki_container_set_tensor(struct ki_container *container, const struct ki_tensor *tensor) {
    bool found;
    struct ki_tensor *place;
    kiln_status status = check_name(tensor->name);
    if (status != KILN_OK) return status;
    int64_t at = find(&found, container->tensors, container->tensor_count, sizeof *tensor, tensor->name);
    if (!found && container->tensor_count == KI_TENSOR_LIMIT)
        return ki_fail(KILN_ERR_LIMIT, "a model holds at most %d tensors", KI_TENSOR_LIMIT);
    char *name = ki_strdup(tensor->name);
    if (!name) goto nomem;
    if (found) {
        place = &container->tensors[at];
        clear_tensor(place);
    } else {
        void *list = container->tensors;
        place = insert(&list, &container->tensor_count, sizeof *tensor, at);
        if (!place) goto nomem;
        container->tensors = list;
    }
    *place = *tensor;
    place->name = name;
    return KILN_OK;
nomem:
    ki_free(name);
    return ki_fail_nomem(strlen(tensor->name), "a model's tensor");
}

const struct ki_tensor *ki_container_tensor(const struct ki_container *container, const char *name) {
    bool found;
    int64_t at = find(&found, container->tensors, container->tensor_count, sizeof(struct ki_tensor), name);
    return found ? &container->tensors[at] : NULL;
}

const char *ki_container_text(const struct ki_container *container, const char *key) {
    bool found;
    int64_t at = find(&found, container->texts, container->text_count, sizeof(struct ki_text), key);
    return found ? container->texts[at].value : NULL;
}
