/* File -> raw bytes -> (decoder) -> look-ahead -> caller. Plain bytes are read straight into where they are
 * wanted; several threads decode ahead of the caller (unpack.c).
 *
 * The look-ahead serves peeks and blocks. It starts small and doubles from block to block, so a file costs
 * memory in proportion to what was read of it, and a large one still comes in blocks that keep all parsing
 * threads busy. */
#define _POSIX_C_SOURCE 200809L
#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/seams.h"
#include "core/size.h"
#include "io/chunks.h"
#include "io/packed/decode.h"
#include "io/text.h"
#include "io/packed/unpack.h"

enum {
    RAW_BYTES = 1 << 18,
    READ_BYTES = 1 << 22,   /* between two polls of the caller's control */
    SIDE_BY_SIDE = 1 << 20, /* bytes that are worth several threads */
    BLOCK_FIRST = 1 << 16,  /* size of the first block, doubled up to BLOCK_LAST */
    BLOCK_LAST = 1 << 23,
    BLOCK_THREAD = 1 << 21, /* of each thread, where these are more */
    BLOCK_MOST = 1 << 26,
    LINE_BYTES = 1 << 16,    /* read behind a window to find its end */
    UNPACKED_FROM = 1 << 18, /* bytes of a compressed file that are worth threads of their own */
    BOMB_RATIO = 200
};
static const int64_t bomb_bytes = (int64_t)64 << 20; /* output below this is never taken for a bomb */

struct ki_input {
    struct ki_file file;
    struct ki_watch watch;
    bool regular;
    bool piece; /* it is the file's bytes [at, end_at) */
    int64_t at, end_at, file_bytes;
    bool shares; /* it is some lines only of what is decoded */
    struct ki_share share;
    struct ki_window window;
    int64_t limit;
    struct ki_decoder *decoder; /* NULL for plain data */
    struct ki_unpack *unpack;   /* threads that decode in its place, or NULL */
    unsigned char *raw;         /* bytes of the file not yet decoded: raw[raw_begin..raw_end) */
    size_t raw_begin, raw_end;
    int64_t raw_total, produced; /* bytes read from the file; bytes after decompression */
    bool raw_over, over;
    char *ahead; /* bytes not yet handed out: ahead[begin..end) */
    size_t begin, end, capacity;
    size_t block_bytes, block_last;
    int threads;
    char *sealed; /* where a block's '\0' replaced the byte `kept` */
    char kept;
    int64_t offset, line;
};

/* Tells the caller how far we are; its answer may be to stop. */
static kiln_status poll_control(const struct ki_input *input) {
    return ki_watch_tell(&input->watch, input->raw_total - (int64_t)(input->raw_end - input->raw_begin),
                         input->produced);
}

/* One read of the file; *got = 0 at its end. */
static kiln_status read_file(struct ki_input *input, void *buffer, size_t bytes, size_t *got) {
    ssize_t n;
    const size_t some = input->piece ? (size_t)ki_min(input->end_at - input->at, (int64_t)bytes) : bytes;
    while ((n = input->piece ? ki_seams.pread(input->file.fd, buffer, some, (off_t)input->at)
                             : ki_seams.read(input->file.fd, buffer, some)) < 0) {
        if (errno != EINTR) return ki_input_fail(input->file.name, errno, "read");
        kiln_status status = poll_control(input);
        if (status != KILN_OK) return status;
    }
    *got = (size_t)n;
    input->at += n;
    input->raw_total += n;
    input->raw_over = n == 0;
    return n == 0 ? ki_file_check(&input->file) : KILN_OK;
}

static kiln_status check_limits(const struct ki_input *input) {
    const struct ki_place place = {.file = input->file.name, .offset = input->produced};
    if (input->limit > 0 && input->produced > input->limit) {
        ki_fail_at(KILN_ERR_LIMIT, &place, "more than the allowed %lld bytes", (long long)input->limit);
        return ki_hint("raise the byte limit if the input is meant to be that large");
    }
    int64_t taken = input->raw_total - (int64_t)(input->raw_end - input->raw_begin);
    if (input->decoder && input->produced > bomb_bytes && input->produced / BOMB_RATIO > taken) {
        ki_fail_at(KILN_ERR_LIMIT, &place,
                   "%lld compressed bytes became more than %lld, over %d times as many", (long long)taken,
                   (long long)input->produced, BOMB_RATIO);
        return ki_hint("a decompression bomb does this; if you trust the file, decompress it first");
    }
    return KILN_OK;
}

/* Reading from the page cache is copying, which threads share. Of what the file had when it was opened:
 * who has appended to it since is noticed at its end. */
static kiln_status read_side_by_side(struct ki_input *input, char *to, int64_t bytes, size_t *got) {
    struct ki_chunks chunks = {.file = &input->file,
                               .offset = input->at,
                               .count = bytes,
                               .element = 1,
                               .threads = input->threads,
                               .straight = to};
    const kiln_status status = ki_chunks_run(&chunks);
    *got = status == KILN_OK ? (size_t)bytes : 0;
    input->at += (int64_t)*got;
    input->raw_total += (int64_t)*got;
    return status;
}

static kiln_status fill_plain(struct ki_input *input, char *to, size_t bytes, size_t *got) {
    size_t waiting = input->raw_end - input->raw_begin;
    const int64_t known = ki_min(input->end_at, input->file_bytes) - input->at;
    const int64_t some = ki_min((int64_t)bytes, known);
    if (waiting == 0 && input->threads > 1 && some >= SIDE_BY_SIDE)
        return read_side_by_side(input, to, some, got);
    if (waiting == 0) {
        kiln_status status = read_file(input, to, bytes, got);
        input->over = input->raw_over;
        return status;
    }
    *got = waiting < bytes ? waiting : bytes;
    memcpy(to, input->raw + input->raw_begin, *got);
    input->raw_begin += *got;
    return KILN_OK;
}

/* The next bytes to decode, up to a cut: before it is passed what was read is decoded to its end. */
static kiln_status fill_raw(struct ki_input *input) {
    const int64_t left = input->shares ? ki_share_left(&input->share, input->raw_total) : RAW_BYTES;
    size_t n = 0;
    kiln_status status = KILN_OK;
    if (input->raw_begin < input->raw_end || input->raw_over || left == 0) return KILN_OK;
    TRY(read_file(input, input->raw, (size_t)ki_min(left, RAW_BYTES), &n));
    input->raw_begin = 0;
    input->raw_end = n;
done:
    return status;
}

static kiln_status fill_decoded(struct ki_input *input, char *to, size_t bytes, size_t *got) {
    kiln_status status = KILN_OK;
    TRY(fill_raw(input));
    struct ki_step step = {.in = input->raw + input->raw_begin,
                           .in_size = input->raw_end - input->raw_begin,
                           .out = (unsigned char *)to,
                           .out_size = bytes};
    TRY(ki_decoder_step(input->decoder, &step));
    input->raw_begin += step.used;
    *got = step.made;
    if (step.used > 0 || step.made > 0 || step.in_size > 0) goto done;
    if (input->raw_over) {
        TRY(ki_decoder_end(input->decoder));
        input->over = true;
    } else if (input->shares) {
        input->share.passed++;
    }
done:
    return status;
}

/* Reads what threads have decoded. */
static kiln_status fill_unpacked(struct ki_input *input, char *to, size_t bytes, size_t *got) {
    kiln_status status;
    TRY(ki_unpack_take(input->unpack, to, bytes, got, &input->raw_total));
    input->over = *got == 0;
    if (input->over) status = ki_file_check(&input->file);
done:
    return status;
}

/* Returns whether nothing more comes, or nothing of the window. */
static bool ended(const struct ki_input *input) {
    return input->window.closed || (input->over && !ki_window_has_rest(&input->window));
}

static kiln_status fill_new(struct ki_input *input, char *to, size_t want, size_t *n) {
    kiln_status status;
    TRY((input->unpack ? fill_unpacked : input->decoder ? fill_decoded : fill_plain)(input, to, want, n));
    input->produced += (int64_t)*n;
    if (input->shares) *n = ki_share_keep(&input->share, to, *n, &input->over);
done:
    return status;
}

/* Up to `bytes` further bytes of the decompressed stream; fewer only at its end, or the window's. */
static kiln_status fill(struct ki_input *input, char *to, size_t bytes, size_t *got) {
    kiln_status status = KILN_OK;
    *got = 0;
    while (*got < bytes && !ended(input)) {
        const size_t most = input->threads > 1 ? BLOCK_MOST : READ_BYTES;
        const bool again = ki_window_has_rest(&input->window);
        size_t want = bytes - *got < most ? bytes - *got : most, n = 0;
        if (input->window.on) want = (size_t)ki_min((int64_t)want, ki_max(input->window.left, LINE_BYTES));
        if (again)
            n = ki_window_take(&input->window, to + *got, want);
        else
            TRY(fill_new(input, to + *got, want, &n));
        if (input->window.on) TRY(ki_window_keep(&input->window, to + *got, &n, again));
        *got += n;
        TRY(check_limits(input));
        TRY(poll_control(input));
    }
done:
    return status;
}

/* Makes room for `bytes` in the look-ahead, whose contents move to its start. */
static kiln_status reserve(struct ki_input *input, size_t bytes) {
    if (input->begin > 0) memmove(input->ahead, input->ahead + input->begin, input->end - input->begin);
    input->end -= input->begin;
    input->begin = 0;
    if (bytes < input->capacity) return KILN_OK;
    char *larger = ki_resize(input->ahead, bytes + 1); /* 1: the '\0' behind a block */
    if (!larger) return ki_fail_nomem(bytes + 1, "the input buffer");
    input->ahead = larger;
    input->capacity = bytes + 1;
    return KILN_OK;
}

/* Fills the look-ahead up to `bytes`. */
static kiln_status look_ahead(struct ki_input *input, size_t bytes) {
    kiln_status status = KILN_OK;
    size_t got = 0;
    if (input->end - input->begin >= bytes) return KILN_OK;
    TRY(reserve(input, bytes));
    TRY(fill(input, input->ahead + input->end, bytes - input->end, &got));
    input->end += got;
done:
    return status;
}

static void unseal(struct ki_input *input) {
    if (input->sealed) *input->sealed = input->kept;
    input->sealed = NULL;
}

static kiln_status open_file(struct ki_input *input, const char *path) {
    kiln_status status = KILN_OK;
    if (strcmp(path, "-") == 0) {
        input->file.fd = STDIN_FILENO;
    } else {
        /* A FIFO without a writer waits here: a signal is the caller's chance to stop. */
        while ((input->file.fd = ki_seams.open(path, O_RDONLY | O_CLOEXEC, 0)) < 0) {
            if (errno != EINTR) return ki_input_fail(input->file.name, errno, "open");
            TRY(poll_control(input));
        }
    }
    struct stat about;
    if (fstat(input->file.fd, &about) == 0 && S_ISREG(about.st_mode)) {
        input->regular = input->file.fd != STDIN_FILENO; /* which may stand anywhere in its file */
        input->watch.total = input->file_bytes = about.st_size;
        if (input->regular) TRY(ki_file_note(&input->file));
    }

    size_t n = 1;
    while (n > 0 && input->raw_end < 8) { /* a pipe may deliver its first bytes one by one */
        TRY(read_file(input, input->raw + input->raw_end, RAW_BYTES - input->raw_end, &n));
        input->raw_end += n;
    }
    const char *compression = ki_compression(input->raw, input->raw_end);
    if (compression) TRY(ki_decoder_new(&input->decoder, compression, input->file.name));
done:
    return status;
}

kiln_status ki_input_open(struct ki_input **input, const char *path, int64_t limit,
                          const kiln_control *control) {
    kiln_status status = KILN_OK;
    struct ki_input *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "the input");
    made->file.fd = -1;
    made->limit = limit;
    made->line = 1;
    made->block_bytes = BLOCK_FIRST;
    made->block_last = BLOCK_LAST;
    made->watch.start = ki_clock();
    if (control) made->watch.control = *control;
    made->file.name = ki_strdup(strcmp(path, "-") == 0 ? "(stdin)" : path);
    made->raw = ki_alloc(RAW_BYTES);
    if (!made->file.name || !made->raw) {
        status = ki_fail_nomem(RAW_BYTES, "the input buffer");
        goto done;
    }
    made->watch.name = made->file.name;
    TRY(open_file(made, path));
    *input = made;
done:
    if (status != KILN_OK) ki_input_close(made);
    return status;
}

/* The file's bytes [begin, end) alone are read from now on. */
static void restrict_to(struct ki_input *input, int64_t begin, int64_t end) {
    input->piece = true;
    input->regular = false; /* what is read is not all of it */
    input->at = begin;
    input->end_at = end;
    input->raw_begin = input->raw_end = 0;
    input->raw_total = 0;
    input->raw_over = false;
    input->watch.total = end - begin;
}

kiln_status ki_input_open_piece(struct ki_input **input, const char *path, const struct ki_input_piece *piece,
                                const kiln_control *control) {
    struct ki_input *made = NULL;
    kiln_status status;
    TRY(ki_input_open(&made, path, 0, control));
    if (!made->regular || made->decoder)
        TRY(ki_fail(KILN_ERR_UNSUPPORTED, "%s is no plain file, of which a part can be read", path));
    restrict_to(made, piece->begin, piece->end);
    *input = made;
    made = NULL;
done:
    ki_input_close(made);
    return status;
}

kiln_status ki_input_open_share(struct ki_input **input, const char *path, const struct ki_share *share,
                                int64_t limit, const kiln_control *control) {
    struct ki_input *made = NULL;
    kiln_status status;
    TRY(ki_input_open(&made, path, limit, control));
    if (!ki_input_compressed(made)) TRY(ki_fail(KILN_ERR_UNSUPPORTED, "%s is no compressed file", path));
    restrict_to(made, 0, made->watch.total);
    made->shares = true;
    made->share = *share;
    made->share.passed = share->cut[0] == 0;
    *input = made;
    made = NULL;
done:
    ki_input_close(made);
    return status;
}

kiln_status ki_input_put_before(struct ki_input *input, const char *bytes, int64_t size) {
    const size_t behind = input->end - input->begin;
    kiln_status status;
    TRY(reserve(input, behind + (size_t)size));
    if (size == 0) goto done;
    memmove(input->ahead + size, input->ahead, behind);
    memcpy(input->ahead, bytes, (size_t)size);
    input->end += (size_t)size;
done:
    return status;
}

kiln_status ki_input_window(struct ki_input *input, int64_t bytes, bool quotes) {
    unseal(input);
    const char *ahead = input->ahead ? input->ahead + input->begin : NULL;
    const kiln_status status = ki_window_return(&input->window, ahead, input->end - input->begin);
    if (status != KILN_OK) return status;
    input->begin = input->end = 0;
    ki_window_open(&input->window, bytes, quotes);
    return KILN_OK;
}

kiln_status ki_input_repeat(struct ki_input *input, const char *bytes, int64_t size) {
    kiln_status status;
    TRY(ki_input_put_before(input, bytes, size));
    input->offset -= size;
    input->line -= ki_count_byte(bytes, (size_t)size, '\n', 1);
done:
    return status;
}

void ki_input_close(struct ki_input *input) {
    if (!input) return;
    ki_unpack_stop(input->unpack);
    if (input->file.fd > STDIN_FILENO)
        ki_seams.close(input->file.fd); /* nothing was written, so nothing can be lost */
    ki_decoder_free(input->decoder);
    ki_free(input->raw);
    ki_free(input->ahead);
    ki_window_free(&input->window);
    ki_free(input->file.name);
    ki_free(input);
}

kiln_status ki_input_check(const struct ki_input *input) {
    return ki_file_check(&input->file);
}

const char *ki_input_name(const struct ki_input *input) {
    return input->file.name;
}

int64_t ki_input_offset(const struct ki_input *input) {
    return input->offset;
}

kiln_status ki_input_read(struct ki_input *input, void *buffer, size_t bytes, size_t *got) {
    unseal(input);
    size_t waiting = input->end - input->begin, first = waiting < bytes ? waiting : bytes, rest = 0;
    if (first > 0) memcpy(buffer, input->ahead + input->begin, first);
    input->begin += first;
    kiln_status status = fill(input, (char *)buffer + first, bytes - first, &rest);
    input->offset += (int64_t)(first + rest);
    if (status == KILN_OK) *got = first + rest;
    return status;
}

const struct ki_file *ki_input_file(const struct ki_input *input, int64_t *bytes) {
    if (!input->regular || input->decoder || input->watch.total == 0) return NULL;
    *bytes = input->watch.total;
    return &input->file;
}

bool ki_input_compressed(const struct ki_input *input) {
    return input->regular && input->decoder;
}

const struct ki_watch *ki_input_watch(const struct ki_input *input) {
    return &input->watch;
}

kiln_status ki_input_take(struct ki_input *input) {
    input->produced = input->offset = input->watch.total;
    input->over = true;
    return check_limits(input);
}

kiln_status ki_input_peek(struct ki_input *input, void *buffer, size_t bytes, size_t *got) {
    unseal(input);
    kiln_status status = look_ahead(input, bytes);
    if (status != KILN_OK) return status;
    size_t waiting = input->end - input->begin;
    *got = waiting < bytes ? waiting : bytes;
    if (*got > 0) memcpy(buffer, input->ahead + input->begin, *got);
    return KILN_OK;
}

/* Threads decode what no one has begun to. */
static bool unpack(struct ki_input *input, int threads) {
    if (threads < 2 || input->produced > 0 || input->file_bytes < UNPACKED_FROM) return false;
    input->unpack = ki_unpack_start(&input->file, input->decoder, threads);
    if (!input->unpack) return false;
    input->raw_begin = input->raw_end = 0;
    input->raw_total = 0;
    return true;
}

void ki_input_use_threads(struct ki_input *input, int threads) {
    if (!input->regular && !input->piece) return;
    if (input->shares || (input->decoder && !unpack(input, threads))) return;
    if (!input->decoder && !input->piece) { /* all of the file, by its places: what comes behind its end is
                                             * looked for, too */
        input->piece = true;
        input->at = input->raw_total;
        input->end_at = INT64_MAX;
    }
    input->threads = threads;
    input->block_last = (size_t)ki_min(ki_max(BLOCK_LAST, (int64_t)threads * BLOCK_THREAD), BLOCK_MOST);
}

/* The position behind the last newline of ahead[from..end), or 0. */
static size_t last_line_end(const struct ki_input *input, size_t from) {
    for (size_t at = input->end; at > from; at--)
        if (input->ahead[at - 1] == '\n') return at;
    return 0;
}

kiln_status ki_input_block(struct ki_input *input, struct ki_block *block) {
    kiln_status status = KILN_OK;
    unseal(input);
    TRY(look_ahead(input, input->block_bytes));
    if (input->offset == 0 && input->end - input->begin >= 3 &&
        memcmp(input->ahead + input->begin, "\xef\xbb\xbf", 3) == 0) {
        input->begin += 3;
        input->offset = 3;
    }
    size_t stop, searched = input->begin;
    while ((stop = last_line_end(input, searched)) == 0 && !ended(input)) { /* a line longer than the block */
        size_t had = input->end - input->begin;
        if (had > SIZE_MAX / 4) return ki_fail(KILN_ERR_LIMIT, "a line of more than %zu bytes", had);
        TRY(look_ahead(input, 2 * (had > BLOCK_FIRST ? had : BLOCK_FIRST)));
        searched = input->begin + had;
    }
    if (ended(input)) stop = input->end; /* the last line may lack its newline */
    *block = (struct ki_block){.text = input->ahead + input->begin,
                               .size = stop - input->begin,
                               .line = input->line,
                               .offset = input->offset};
    input->sealed = input->ahead + stop;
    input->kept = *input->sealed;
    *input->sealed = '\0';
    input->line += ki_count_byte(block->text, block->size, '\n', input->threads);
    input->offset += (int64_t)block->size;
    input->begin = stop;
    if (input->block_bytes < input->block_last) input->block_bytes *= 2;
done:
    return status;
}
