/* A window closes at the first end of a line, or of a record, behind so many bytes. */
#include "io/windows/window.h"

#include <string.h>

#include "core/seams.h"
#include "core/size.h"

void ki_window_open(struct ki_window *window, int64_t bytes, bool quotes) {
    window->on = true;
    window->left = bytes;
    window->quotes = quotes;
    window->open = window->closed = false;
}

/* Returns how many of the next bytes are the window's. */
static size_t own(struct ki_window *window, const char *text, size_t size) {
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

kiln_status ki_window_keep(struct ki_window *window, const char *text, size_t *n, bool again) {
    const size_t kept = own(window, text, *n), left = *n - kept;
    *n = kept;
    if (left == 0) return KILN_OK;
    if (!again) return ki_window_return(window, text + kept, left);
    window->begin -= left; /* they are there */
    return KILN_OK;
}

size_t ki_window_take(struct ki_window *window, char *to, size_t want) {
    const size_t waiting = window->end - window->begin, n = waiting < want ? waiting : want;
    memcpy(to, window->rest + window->begin, n);
    window->begin += n;
    return n;
}

kiln_status ki_window_return(struct ki_window *window, const char *bytes, size_t size) {
    const size_t left = window->end - window->begin;
    if (size == 0) return KILN_OK;
    char *rest = ki_alloc(size + left);
    if (!rest) return ki_fail_nomem(size + left, "the input buffer");
    memcpy(rest, bytes, size);
    if (left) memcpy(rest + size, window->rest + window->begin, left);
    ki_free(window->rest);
    window->rest = rest;
    window->begin = 0;
    window->end = size + left;
    return KILN_OK;
}

void ki_window_free(struct ki_window *window) {
    ki_free(window->rest);
    window->rest = NULL;
}
