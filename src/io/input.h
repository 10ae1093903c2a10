/* Bytes of an input, decompressed: a file or standard input, plain, gzip or zstd by magic, read once and in
 * order. */
#ifndef KI_INPUT_H
#define KI_INPUT_H

#include "core/file.h"
#include "core/status.h"
#include "io/share.h"
#include "io/windows/window.h"

struct ki_input;

/* Whom reading tells how far it is, and who may stop it. */
struct ki_watch {
    const char *name; /* of what is read */
    kiln_control control;
    double start;
    int64_t total; /* bytes of the file, 0 = not known */
};
/* done: bytes of the file; bytes: after decompression. */
kiln_status ki_watch_tell(const struct ki_watch *watch, int64_t done, int64_t bytes);

/* The error of a system's call: it cannot, say, "open" the file of that name. */
kiln_status ki_input_fail(const char *name, int code, const char *what);

/* limit: bytes after decompression, 0 = none; the ratio guard against bombs (200:1 after 64 MiB out) always
 * holds.
 * path "-" is standard input. control (may be NULL) is polled for cancellation and told about the bytes
 * read. */
kiln_status ki_input_open(struct ki_input **input, const char *path, int64_t limit,
                          const kiln_control *control);
/* Bytes [begin, end) of a regular file that is not compressed. */
struct ki_input_piece {
    int64_t begin, end;
};
/* An input of these alone; lines and offsets count from the piece's beginning. */
kiln_status ki_input_open_piece(struct ki_input **input, const char *path, const struct ki_input_piece *piece,
                                const kiln_control *control);
/* An input of the lines of a share of a compressed file. limit: of all bytes from the file's beginning on. */
kiln_status ki_input_open_share(struct ki_input **input, const char *path, const struct ki_share *share,
                                int64_t limit, const kiln_control *control);
/* Bytes that are not in the file come before those that are next. */
kiln_status ki_input_put_before(struct ki_input *input, const char *bytes, int64_t size);
/* Reading ends with the first whole line, with quotes the first record, behind so many bytes, as if the input
 * did; places count on from window to window. */
kiln_status ki_input_window(struct ki_input *input, int64_t bytes, bool quotes);
/* Bytes that have been read once are to be read again before those that are next, and not counted. */
kiln_status ki_input_repeat(struct ki_input *input, const char *bytes, int64_t size);
/* Blocks are read by so many threads from now on, where the bytes are those of a regular file. */
void ki_input_use_threads(struct ki_input *input, int threads);
void ki_input_close(struct ki_input *input);
/* ERR_IO where the file is no longer what it was when it was opened. */
kiln_status ki_input_check(const struct ki_input *input);
const char *ki_input_name(const struct ki_input *input); /* for messages: the path, or "(stdin)" */
int64_t ki_input_offset(const struct ki_input *input);   /* decompressed bytes handed out so far */

/* Up to `bytes` bytes; *got < bytes only at the end of the input. */
kiln_status ki_input_read(struct ki_input *input, void *buffer, size_t bytes, size_t *got);
/* Copies up to `bytes` of the next bytes without consuming them (bytes <= 64 KiB), for telling formats
 * apart. */
kiln_status ki_input_peek(struct ki_input *input, void *buffer, size_t bytes, size_t *got);

/* For bytes that can be read in any order, those of a regular file that is not compressed: the file, in
 * which all `*bytes` are at their offsets, and which lives as long as the input. NULL otherwise. */
const struct ki_file *ki_input_file(const struct ki_input *input, int64_t *bytes);
/* Returns whether it is a regular file that is compressed. */
bool ki_input_compressed(const struct ki_input *input);
const struct ki_watch *ki_input_watch(const struct ki_input *input);
/* The bytes of that file count as handed out; ERR_LIMIT if they are more than allowed. */
kiln_status ki_input_take(struct ki_input *input);

/* The next block of whole lines, a few MiB for each thread, owned by the input and valid until the next
 * call; size 0 at the end. The last line of the input may lack its newline; text[size] is '\0' and may be
 * read. A leading UTF-8 BOM is skipped. */
struct ki_block {
    const char *text;
    size_t size;
    int64_t line;   /* number of the block's first line, from 1 */
    int64_t offset; /* of the block's first byte */
};
kiln_status ki_input_block(struct ki_input *input, struct ki_block *block);

#endif
