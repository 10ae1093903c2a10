/* The library speaks to those who call it: "kiln_glm: ...", "kiln_glm_options.l2 is -1". Its convention
 * (kiln.h, kiln_error) makes both recognisable, so that one rule serves every message, also those yet to be
 * written. */
#include "wording.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

/* The length of "kiln_NAME: " at `at`, else 0. */
static size_t call_length(const char *at) {
    const size_t length = strspn(at, letters);
    return strncmp(at, "kiln_", 5) == 0 && strncmp(at + length, ": ", 2) == 0 ? length + 2 : 0;
}

/* The length of "kiln_NAME_options.FIELD" at `at`, and where in it FIELD begins; else 0. */
static size_t field_length(const char *at, size_t *begins) {
    static const char suffix[] = "_options";
    const size_t ends = sizeof suffix - 1, length = strspn(at, letters);
    if (strncmp(at, "kiln_", 5) != 0 || length < ends || at[length] != '.') return 0;
    if (strncmp(at + length - ends, suffix, ends) != 0) return 0;
    *begins = length + 1;
    const size_t field = strspn(at + *begins, letters);
    return field ? *begins + field : 0;
}

static const struct option *option_of(const char *field, size_t length) {
    char name[64];
    if (length >= sizeof name) return NULL;
    for (size_t i = 0; i < length; i++) name[i] = field[i] == '_' ? '-' : field[i];
    name[length] = '\0';
    for (int i = 0; i < option_count; i++)
        if (strcmp(option_table[i].name, name) == 0) return &option_table[i];
    return NULL;
}

/* " (kiln_NAME_options.FIELD)" is a remark for programs where the tool has no such option. */
static size_t remark_length(const char *at) {
    size_t begins = 0;
    const size_t length = strncmp(at, " (", 2) == 0 ? field_length(at + 2, &begins) : 0;
    if (!length || at[2 + length] != ')' || option_of(at + 2 + begins, length - begins)) return 0;
    return length + 3;
}

const char *wording(char *words, size_t room, const char *text) {
    size_t used = 0, begins;
    bool starts = true; /* the message, or one that it quotes behind ": " */
    for (const char *at = text; *at && used + 1 < room;) {
        const size_t call = starts ? call_length(at) : 0, remark = remark_length(at);
        const size_t field = field_length(at, &begins);
        const struct option *option = field ? option_of(at + begins, field - begins) : NULL;
        if (option) {
            const int written = snprintf(words + used, room - used, "--%s", option->name);
            used = used + (size_t)written < room ? used + (size_t)written : room - 1;
        } else if (!call && !remark) {
            words[used++] = *at;
        }
        starts = call || (at > text && at[-1] == ':' && *at == ' ');
        at += option ? field : call ? call : remark ? remark : 1;
    }
    words[used] = '\0';
    return words;
}
