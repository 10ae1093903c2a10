/* A kernel file's lines
 *   // pack [ARCHITECTURE] TYPE WORD WORD ...
 *   //      MORE WORDS
 * name the programs of it that serve every shape, or shapes that are often met. A word begins with '-', or
 * stands for "-DWORD"; {a|b|c} stands for each of a, b and c in turn, which may have braces themselves. */
#include "backends/usual.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "core/seams.h"

enum { LINE = 2048 };
static const char begins[] = "// pack ", goes_on[] = "//  ";

struct list {
    char *text;
    size_t size, room;
};

static kiln_status append(struct list *list, const char *piece, size_t bytes) {
    if (list->size + bytes + 1 > list->room) {
        const size_t room = 2 * (list->size + bytes + LINE);
        char *grown = ki_resize(list->text, room);
        if (!grown) return ki_fail_nomem(room, "the usual programs");
        list->text = grown;
        list->room = room;
    }
    memcpy(list->text + list->size, piece, bytes);
    list->size += bytes;
    list->text[list->size] = '\0';
    return KILN_OK;
}

/* One program: the file's name goes before its type. */
static kiln_status add(struct list *list, const char *file, size_t length, const char *words) {
    char line[2 * LINE] = "";
    size_t at = 0;
    for (const char *word = words + strspn(words, " "); *word;) {
        const size_t size = strcspn(word, " ");
        const bool type = size == 3 && (!strncmp(word, "f32", 3) || !strncmp(word, "f64", 3));
        const bool whole = type || *word == '-' || !strncmp(word, "sm_", 3);
        at += (size_t)snprintf(line + at, sizeof line - at, "%.*s%s%s%.*s", type ? (int)length : 0, file,
                               type ? " " : "", whole ? "" : "-D", (int)size, word);
        word += size;
        word += strspn(word, " ");
        if (*word) line[at++] = ' ';
    }
    line[at++] = '\n';
    return append(list, line, at);
}

/* The end of the alternative that begins at `from`: a '|' or '}' that is in no further braces. */
static const char *end_of(const char *from) {
    int depth = 0;
    for (; *from && (depth || (*from != '|' && *from != '}')); from++)
        depth += (*from == '{') - (*from == '}');
    return from;
}

static kiln_status expand(struct list *list, const char *file, size_t length, const char *words) {
    const char *open = strchr(words, '{'), *close = open;
    kiln_status status = KILN_OK;
    if (!open) return add(list, file, length, words);
    do close = end_of(close + 1);
    while (*close == '|');
    if (!*close) return ki_fail(KILN_ERR_INTERNAL, "%.*s.cl: '%.100s' has no '}'", (int)length, file, words);
    for (const char *from = open + 1, *to; from <= close && status == KILN_OK; from = to + 1) {
        char one[LINE];
        to = end_of(from);
        snprintf(one, sizeof one, "%.*s%.*s%s", (int)(open - words), words, (int)(to - from), from,
                 close + 1);
        status = expand(list, file, length, one);
    }
    return status;
}

/* The words of the line at `at` and of those that go on with it; where the next one begins. */
static const char *words_of(char words[LINE], const char *at) {
    size_t used = 0;
    at += sizeof begins - 1;
    for (;;) {
        const size_t length = strcspn(at, "\n");
        used += (size_t)snprintf(words + used, LINE - used, " %.*s", (int)length, at);
        at += length + (at[length] == '\n');
        if (used >= LINE || strncmp(at, goes_on, sizeof goes_on - 1) != 0) return at;
        at += sizeof goes_on - 1;
    }
}

static kiln_status add_file(struct list *list, const struct ki_source *source, size_t length) {
    kiln_status status = KILN_OK;
    char words[LINE];
    for (const char *at = source->text; *at && status == KILN_OK;) {
        if (strncmp(at, begins, sizeof begins - 1) == 0) {
            at = words_of(words, at);
            status = expand(list, source->name, length, words);
        } else {
            at += strcspn(at, "\n");
            at += *at == '\n';
        }
    }
    return status;
}

kiln_status ki_usual_programs(char **programs) {
    struct list list = {0};
    kiln_status status = append(&list, "", 0);
    for (const struct ki_source *source = ki_sources; source->name && status == KILN_OK; source++) {
        const char *dot = strrchr(source->name, '.');
        if (dot && !strcmp(dot, ".cl")) status = add_file(&list, source, (size_t)(dot - source->name));
    }
    if (status != KILN_OK) {
        ki_free(list.text);
        return status;
    }
    *programs = list.text;
    return KILN_OK;
}
