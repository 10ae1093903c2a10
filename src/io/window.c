/* A window closes at the first end of a line, or of a record, behind so many bytes. */
#include "io/window.h"

#include <string.h>

#include "core/size.h"

size_t ki_window_keep(struct ki_window *window, const char *text, size_t size) {
    size_t at = (size_t)ki_min((int64_t)size, window->left);
    const char *quote = text, *const end = text + at;
    for (; window->quotes && (quote = memchr(quote, '"', (size_t)(end - quote))); quote++)
        window->open = !window->open;
    window->left -= (int64_t)at;
    for (; at < size && !window->closed; at++) {
        window->open ^= window->quotes && text[at] == '"';
        window->closed = text[at] == '\n' && !window->open;
    }
    return at;
}
