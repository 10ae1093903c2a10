/* Any bytes as a compressed file: read in one go, in blocks of lines, and by threads that decode ahead, it
 * has the same contents. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/input.h"
#include "io/packed/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void demand(int holds) {
    if (!holds) abort();
}

enum { LIMIT = 1 << 22 };

/* All of the input through ki_input_read, in pieces of odd sizes; its size, or -1 on an error. */
static int64_t read_pieces(const char *path, char *contents) {
    struct ki_input *input = NULL;
    size_t got = 1, total = 0, piece = 1;
    kiln_status status = ki_input_open(&input, path, LIMIT, NULL);
    while (status == KILN_OK && got > 0) {
        size_t want = piece < (size_t)LIMIT - total ? piece : (size_t)LIMIT - total;
        if (want == 0) want = 1; /* notices a longer input: an error, since LIMIT bytes are allowed */
        char beyond[1];
        status = ki_input_read(input, total < LIMIT ? contents + total : beyond, want, &got);
        if (status != KILN_OK) break;
        total += got;
        piece = piece * 3 + 1;
        demand(ki_input_offset(input) == (int64_t)total && total <= LIMIT);
    }
    ki_input_close(input);
    return status == KILN_OK ? (int64_t)total : -1;
}

/* The same through blocks, compared with the contents. */
static int64_t read_blocks(const char *path, const char *contents) {
    struct ki_input *input = NULL;
    struct ki_block block = {.size = 1};
    int64_t line = 1, total = 0;
    kiln_status status = ki_input_open(&input, path, LIMIT, NULL);
    while (status == KILN_OK && block.size > 0) {
        status = ki_input_block(input, &block);
        if (status != KILN_OK) break;
        if (total == 0 && block.offset == 3) total = 3; /* a byte order mark */
        demand(block.offset == total && block.line == line && block.text[block.size] == '\0');
        demand(!contents || memcmp(contents + total, block.text, block.size) == 0);
        for (size_t i = 0; i < block.size; i++) line += block.text[i] == '\n';
        total += (int64_t)block.size;
    }
    ki_input_close(input);
    return status == KILN_OK ? total : -1;
}

/* The same by threads, of which small files get none otherwise; an error comes behind the text before it. */
static void read_unpacked(const char *path, const uint8_t *bytes, size_t size, const char *contents,
                          int64_t total) {
    static char piece[1 << 16];
    const char *compression = ki_compression(bytes, size);
    struct ki_decoder *decoder = NULL;
    struct ki_file *file = NULL;
    int64_t file_bytes, taken = 0, at = 0;
    size_t got = 1;
    if (!compression || ki_decoder_new(&decoder, compression, path) != KILN_OK) return;
    demand(ki_file_open(&file, &file_bytes, path) == KILN_OK);
    struct ki_unpack *unpack = ki_unpack_start(file, decoder, 3);
    demand(unpack != NULL);
    kiln_status status = KILN_OK;
    while (status == KILN_OK && got > 0 && at <= LIMIT) {
        status = ki_unpack_take(unpack, piece, sizeof piece, &got, &taken);
        if (status != KILN_OK) break;
        demand(total < 0 || (at + (int64_t)got <= total && memcmp(contents + at, piece, got) == 0));
        at += (int64_t)got;
    }
    if (at <= LIMIT) demand(status == KILN_OK ? at == total && taken == file_bytes : total < 0);
    ki_unpack_stop(unpack);
    ki_decoder_free(decoder);
    ki_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static char contents[LIMIT], path[64];
    static int file = -1;
    if (file < 0) {
        file = memfd_create("input", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    demand(ftruncate(file, 0) == 0 && pwrite(file, bytes, size, 0) == (ssize_t)size);
    int64_t total = read_pieces(path, contents);
    demand(read_blocks(path, total < 0 ? NULL : contents) == total);
    read_unpacked(path, bytes, size, contents, total);
    return 0;
}
