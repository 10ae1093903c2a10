/* Names lie in one piece of text, in the order of the lines. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "io/vocabulary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "io/table/table.h"
#include "io/text.h"

struct words {
    struct ki_bytes text;
    int64_t count;
};

static bool take_words(struct words *words, struct ki_fault *fault, const struct ki_block *block) {
    const char *p = block->text, *end = p + block->size;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
        const char *next = newline ? newline + 1 : end;
        if (stop > p && stop[-1] == '\r') stop--;
        if (stop == p)
            return ki_fault(fault, KILN_ERR_PARSE, p, "a vocabulary has one word a line", "an empty line");
        if (!ki_table_utf8(p, stop - p))
            return ki_fault(fault, KILN_ERR_PARSE, p,
                            "convert the file, for instance with iconv -f latin1 -t utf-8",
                            "a word is not UTF-8 text");
        if (!ki_bytes_append(&words->text, p, stop - p) || !ki_bytes_append(&words->text, "", 1))
            return ki_fault_nomem(fault);
        words->count++;
        p = next;
    }
    return true;
}

static kiln_status name_columns(struct ki_table *table, struct words *words, const char *path) {
    const struct ki_place place = {.file = path, .offset = -1};
    if (words->count < table->cols) {
        ki_fail_at(KILN_ERR_DATA, &place, "%lld words, but the data have %lld columns",
                   (long long)words->count, (long long)table->cols);
        return ki_hint("the vocabulary of the data has a line for each of their columns");
    }
    if (words->count > table->cols) {
        kiln_status status = ki_warn(&table->warnings, &place, "is it the vocabulary of these data?",
                                     "%lld words, of which the data have columns for the first %lld",
                                     (long long)words->count, (long long)table->cols);
        if (status != KILN_OK) return status;
    }
    const size_t bytes = (size_t)table->cols * sizeof *table->feature_names;
    table->feature_names = ki_alloc(bytes);
    if (!table->feature_names) return ki_fail_nomem(bytes, "the words' names");
    table->name_text = ki_bytes_take(&words->text);
    if (!table->name_text) return ki_fail_nomem(1, "the words' names");
    const char *word = table->name_text;
    for (int64_t j = 0; j < table->cols; j++, word += strlen(word) + 1)
        table->feature_names[j] = table->name_text + (word - table->name_text);
    return KILN_OK;
}

kiln_status ki_read_vocabulary(struct ki_table *table, const char *path, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_input *input = NULL;
    struct ki_block block;
    struct ki_fault fault = {.status = KILN_OK};
    struct words words = {.count = 0};
    if (table->feature_names) {
        ki_fail(KILN_ERR_ARGUMENT, "the data's columns have names, the vocabulary %s would replace them",
                path);
        return ki_hint("a vocabulary goes with a bag of words, LIBSVM, Matrix Market, .npy or .npz");
    }
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    for (;;) {
        TRY(ki_input_block(input, &block));
        if (block.size == 0) break;
        if (!take_words(&words, &fault, &block)) TRY(ki_report_fault(input, &block, &fault));
    }
    TRY(name_columns(table, &words, ki_input_name(input)));
done:
    ki_bytes_free(&words.text);
    ki_input_close(input);
    return status;
}

static bool exists(const char *path) {
    const int fd = ki_seams.open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) ki_seams.close(fd);
    return fd >= 0 || errno != ENOENT; /* one that is there and cannot be read is to be reported */
}

kiln_status ki_find_vocabulary(char **found, const char *path) {
    static const char mark[] = "docword.";
    static const char *const endings[] = {"", ".gz", ".zst"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    *found = NULL;
    if (strncmp(name, mark, sizeof mark - 1) != 0) return KILN_OK;
    const char *rest = name + sizeof mark - 1;
    size_t length = strlen(rest);
    for (int i = 1; i < 3; i++)
        if (length > strlen(endings[i]) && strcmp(rest + length - strlen(endings[i]), endings[i]) == 0)
            length -= strlen(endings[i]);
    const size_t room = strlen(path) + sizeof "vocab..zst";
    char *other = ki_alloc(room);
    if (!other) return ki_fail_nomem(room, "the name of the vocabulary");
    for (int i = 0; i < 3; i++) {
        snprintf(other, room, "%.*svocab.%.*s%s", (int)(name - path), path, (int)length, rest, endings[i]);
        if (!exists(other)) continue;
        *found = other;
        return KILN_OK;
    }
    ki_free(other);
    return KILN_OK;
}
