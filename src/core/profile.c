/* The machine's profile: lines "name<TAB>m*2^e" in the cache folder's file "profile".
 *
 * A figure is written as two integers, mantissa and exponent: exact, and the same in every locale. Whoever
 * writes last wins; a figure lost that way is measured again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/cache.h"
#include "core/seams.h"

enum { PROFILE_MAX = 1 << 16 };

/* The lines, *size bytes with a '\0' for the last newline; NULL if there is no profile. */
static kiln_status read_profile(char **text, size_t *size, struct ki_cache *cache, kiln_device *device) {
    char *content = NULL;
    kiln_status status = ki_cache_read_file(&content, size, cache, device, "profile", PROFILE_MAX);
    if (status != KILN_OK || !content) return status;
    if (*size == 0 || content[*size - 1] != '\n' || memchr(content, '\0', *size)) {
        ki_free(content);
        ki_cache_drop_file(cache, device, "profile", "damaged");
        return KILN_OK;
    }
    content[*size - 1] = '\0';
    *text = content;
    return KILN_OK;
}

/* strtoll would skip the end of the line before a number. */
static bool begins_number(const char *text) {
    return *text == '-' || (*text >= '0' && *text <= '9');
}

static bool parse_figure(const char *text, double *value) {
    char *end;
    if (!begins_number(text)) return false;
    long long mantissa = strtoll(text, &end, 10);
    if (end == text || strncmp(end, "*2^", 3) != 0 || !begins_number(end + 3)) return false;
    text = end + 3;
    long exponent = strtol(text, &end, 10);
    if (end == text || (*end != '\n' && *end != '\0') || exponent < -2000 || exponent > 2000) return false;
    *value = ldexp((double)mantissa, (int)exponent);
    return isfinite(*value);
}

/* The last line of `name`, which is the newest, or NULL. */
static const char *find_line(const char *text, const char *name) {
    const size_t length = strlen(name);
    const char *found = NULL, *end;
    for (; text; text = end ? end + 1 : NULL) {
        if (strncmp(text, name, length) == 0 && text[length] == '\t') found = text;
        end = strchr(text, '\n');
    }
    return found;
}

void ki_figures_owner(char owner[KI_FIGURE_OWNER], const kiln_device_info *info) {
    snprintf(owner, KI_FIGURE_OWNER, "%s %s", info->name, info->description);
}

kiln_status ki_cache_profile_get(bool *found, double *value, kiln_device *device, const char *name) {
    struct ki_cache *cache;
    char *text = NULL;
    size_t size = 0;
    double figure;
    *found = false;
    kiln_status status = ki_cache_of(&cache, device);
    if (status == KILN_OK) status = read_profile(&text, &size, cache, device);
    if (status != KILN_OK || !text) return status;
    const char *line = find_line(text, name);
    if (line && parse_figure(line + strlen(name) + 1, &figure)) {
        *value = figure;
        *found = true;
    }
    ki_free(text);
    return KILN_OK;
}

/* All lines but the one that a new figure replaces. */
static int other_lines(struct ki_piece pieces[2], char *text, size_t size, const char *name) {
    if (!text) return 0;
    text[size - 1] = '\n';
    const size_t length = strlen(name);
    const char *old = NULL, *line = text, *next = text;
    for (; line < text + size && !old; line = next) {
        next = (const char *)memchr(line, '\n', (size_t)(text + size - line)) + 1;
        if ((size_t)(next - line) > length && memcmp(line, name, length) == 0 && line[length] == '\t')
            old = line; /* no NUL ends the text */
    }
    pieces[0] = (struct ki_piece){text, old ? (size_t)(old - text) : size};
    pieces[1] = (struct ki_piece){next, old ? (size_t)(text + size - next) : 0};
    return 2;
}

kiln_status ki_cache_profile_put(kiln_device *device, const char *name, double value) {
    struct ki_cache *cache;
    char *text = NULL, figure[64];
    size_t size = 0;
    int exponent;
    if (!isfinite(value)) return ki_fail(KILN_ERR_ARGUMENT, "the figure '%s' is not finite", name);
    kiln_status status = ki_cache_of(&cache, device);
    if (status == KILN_OK) status = read_profile(&text, &size, cache, device);
    if (status != KILN_OK) return status;
    long long mantissa = (long long)ldexp(frexp(value, &exponent), 53);
    int length = snprintf(figure, sizeof figure, "\t%lld*2^%d\n", mantissa, exponent - 53);
    struct ki_piece pieces[4];
    int count = other_lines(pieces, text, size, name);
    /* A full file is full of old machines' figures: start anew. */
    if (size + strlen(name) + (size_t)length > PROFILE_MAX) count = 0;
    pieces[count++] = (struct ki_piece){name, strlen(name)};
    pieces[count++] = (struct ki_piece){figure, (size_t)length};
    ki_cache_write_file(cache, device, "profile", pieces, count);
    ki_free(text);
    return KILN_OK;
}
