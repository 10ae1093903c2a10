/* A table of texts that a reader must refuse, and where it must point. */
#ifndef BAD_FILE_H
#define BAD_FILE_H

#include "io/reading.h"

struct bad_file {
    const char *text;
    int64_t line, column; /* 0: not known */
    kiln_status status;
    const char *message, *hint; /* parts of them; NULL: any */
};

static inline void assert_bad_file(ki_reader *reader, const struct bad_file *bad, size_t size,
                                   const kiln_read_options *options) {
    struct reading r = read_bytes(reader, bad->text, size, options);
    const kiln_error *error = kiln_last_error();
    bool right = r.status == bad->status && error->line == bad->line && error->column == bad->column &&
                 strstr(error->message, bad->message) && (!bad->hint || strstr(error->hint, bad->hint));
    if (!right)
        print_error("'%s': status %d at %lld:%lld, '%s', hint '%s'\n", bad->text, (int)r.status,
                    (long long)error->line, (long long)error->column, error->message, error->hint);
    assert_true(right);
    if (bad->line > 0) assert_string_equal(error->file, r.path);
    assert_null(r.table.values);
}

/* Each prefix of the text and each change of one byte gives an error or a table; nothing else happens.
 * Returns how many were accepted. */
static inline int damage_text(ki_reader *reader, const char *text, const kiln_read_options *options) {
    static const unsigned char flips[] = {0x00, 0xff, 0x01, 0x80};
    const size_t size = strlen(text);
    int accepted = 0;
    for (size_t cut = 0; cut <= size; cut++) {
        struct reading r = read_bytes(reader, text, cut, options);
        if (r.status == KILN_OK) accepted++;
        if (r.status != KILN_OK) assert_true(kiln_last_error()->message[0] != '\0');
        ki_table_clear(&r.table);
    }
    char *copy = malloc(size);
    assert_non_null(copy);
    for (size_t i = 0; i < 4 * size; i++) {
        memcpy(copy, text, size);
        const unsigned char flip = flips[i % 4];
        copy[i / 4] = (char)(i % 4 < 2 ? flip : (unsigned char)copy[i / 4] ^ flip);
        struct reading r = read_bytes(reader, copy, size, options);
        if (r.status == KILN_OK) accepted++;
        ki_table_clear(&r.table);
    }
    free(copy);
    return accepted;
}

/* Texts that mean the same line by line: the same table, or the same error at the same place. */
static inline void assert_same_outcome(ki_reader *reader, const char *one, const char *other,
                                       const kiln_read_options *options) {
    char message[400] = "";
    struct kiln_error error = {.line = 0};
    struct reading a = read_bytes(reader, one, strlen(one), options);
    if (a.status != KILN_OK) {
        error = *kiln_last_error();
        snprintf(message, sizeof message, "%s", error.message);
    }
    struct reading b = read_bytes(reader, other, strlen(other), options);
    assert_int_equal(a.status, b.status);
    if (a.status == KILN_OK) {
        assert_same_reals(&a.table, &b.table, options->type == KILN_F32 ? sizeof(float) : sizeof(double));
    } else {
        assert_string_equal(message, kiln_last_error()->message);
        assert_true(error.line == kiln_last_error()->line && error.column == kiln_last_error()->column);
    }
    ki_table_clear(&a.table);
    ki_table_clear(&b.table);
}

#endif
