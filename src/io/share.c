/* A line, or record, is the part's if its first byte lies in the share. So that byte alone decides, and a
 * line goes on beyond the share. */
#include "io/share.h"

#include <string.h>

#include "core/size.h"

int64_t ki_share_left(const struct ki_share *share, int64_t decoded) {
    return share->passed < 2 ? ki_max(share->cut[share->passed] - decoded, 0) : INT64_MAX;
}

/* Goes on to the next beginning of a line; the size if there is none. */
static size_t next_line(struct ki_share *share, const char *text, size_t size) {
    size_t at = 0;
    while (at < size && share->within) {
        share->open ^= share->quotes && text[at] == '"';
        share->within = text[at++] != '\n' || share->open;
    }
    return at;
}

/* Goes over text that is known to be the part's, or not to be. */
static void pass(struct ki_share *share, const char *text, size_t size) {
    const char *const end = text + size;
    if (size == 0) return;
    for (const char *at = text; share->quotes && (at = memchr(at, '"', (size_t)(end - at))); at++)
        share->open = !share->open;
    share->within = end[-1] != '\n' || share->open;
}

size_t ki_share_keep(struct ki_share *share, char *text, size_t size, bool *over) {
    size_t from = (size_t)ki_min((int64_t)size, share->skipped), to = size;
    share->skipped -= (int64_t)from;
    pass(share, text, from);
    if (share->passed == 1 && !share->keeps) {
        from += next_line(share, text + from, size - from);
        share->keeps = from < size;
    }
    if (share->passed == 2) {
        to = from + next_line(share, text + from, size - from);
        *over = *over || !share->keeps || to < size;
    } else {
        pass(share, text + from, size - from);
    }
    if (!share->keeps) return 0;
    memmove(text, text + from, to - from);
    return to - from;
}
