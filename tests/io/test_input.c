/* Inputs: plain and compressed contents in one go, in pieces and in blocks; damage; bombs; failing calls. */
#define _DEFAULT_SOURCE
#include "io/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "io/bytes.h"

static void add_member(struct ki_bytes *out, const char *text, size_t size, int level) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)size};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const uLong bound = deflateBound(&z, (uLong)size);
    assert_true(ki_bytes_room(out, (int64_t)bound));
    z.next_out = (Bytef *)out->data + out->size;
    z.avail_out = (uInt)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->size += (int64_t)z.total_out;
    deflateEnd(&z);
}

/* `members` gzip members with the same contents. */
static struct ki_bytes compress_bytes(const void *bytes, size_t size, int members) {
    struct ki_bytes out = {0};
    for (int i = 0; i < members; i++) add_member(&out, bytes, size, 6);
    return out;
}

static char path[] = "/tmp/kiln-input-XXXXXX";

static int make_path(void **state) {
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

static void put(const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/* Reads all in pieces of `piece` bytes. */
static kiln_status read_all(struct ki_bytes *all, int64_t limit, size_t piece) {
    struct ki_input *input = NULL;
    all->size = 0;
    kiln_status status = ki_input_open(&input, path, limit, NULL);
    for (size_t got = piece; status == KILN_OK && got == piece;) {
        assert_true(ki_bytes_room(all, (int64_t)piece));
        status = ki_input_read(input, all->data + all->size, piece, &got);
        if (status == KILN_OK) all->size += (int64_t)got;
    }
    ki_input_close(input);
    return status;
}

static struct ki_bytes sample(int lines) {
    struct ki_bytes text = {0};
    char line[64];
    for (int i = 0; i < lines; i++) {
        int n = snprintf(line, sizeof line, "%d 1:%d.5 7:%d\n", i, i % 1000 * 7919 % 1000, i % 17);
        assert_true(ki_bytes_append(&text, line, n));
    }
    return text;
}

static void contents_in_pieces(void **state) {
    (void)state;
    struct ki_bytes text = sample(100000), all = {0},
                    packed = compress_bytes(text.data, (size_t)text.size, 1);
    static const size_t pieces[] = {997, 65536, 10000000};
    for (int compressed = 0; compressed < 2; compressed++) {
        put(compressed ? packed.data : text.data, (size_t)(compressed ? packed.size : text.size));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(read_all(&all, 0, pieces[i]), KILN_OK);
            assert_true(all.size == text.size);
            assert_memory_equal(all.data, text.data, (size_t)all.size);
        }
        assert_int_equal(read_all(&all, text.size, 4096), KILN_OK);
        assert_int_equal(read_all(&all, text.size - 1, 4096), KILN_ERR_LIMIT);
    }
    ki_bytes_free(&text);
    ki_bytes_free(&packed);
    ki_bytes_free(&all);
}

static void blocks_hold_whole_lines(void **state) {
    (void)state;
    struct ki_bytes text = sample(1500000);
    put(text.data, (size_t)text.size);
    struct ki_input *input = NULL;
    struct ki_block block;
    char peeked[100];
    size_t got;
    int64_t line = 1, offset = 0, count = 0;
    assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
    assert_int_equal(ki_input_peek(input, peeked, sizeof peeked, &got), KILN_OK);
    assert_memory_equal(peeked, text.data, sizeof peeked);
    for (;; count++) {
        assert_int_equal(ki_input_block(input, &block), KILN_OK);
        if (block.size == 0) break;
        assert_true(block.line == line && block.offset == offset);
        assert_memory_equal(block.text, text.data + offset, block.size);
        assert_true(block.text[block.size - 1] == '\n' && block.text[block.size] == '\0');
        for (size_t i = 0; i < block.size; i++) line += block.text[i] == '\n';
        offset += (int64_t)block.size;
        assert_true(ki_input_offset(input) == offset);
    }
    assert_true(offset == text.size && line == 1500001 && count > 3);
    ki_input_close(input);
    ki_bytes_free(&text);
}

/* Blocks that several threads read hold the same bytes and count the same lines; a file that grows or
 * loses its end meanwhile is an error. */
static void several_threads(void **state) {
    (void)state;
    struct ki_bytes text = sample(400000);
    struct ki_input *input = NULL;
    struct ki_block block;
    put(text.data, (size_t)text.size);
    for (int way = 0; way < 3; way++) {
        int64_t at = 0, lines = 0, want = text.size;
        assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
        ki_input_use_threads(input, 3);
        if (way == 1) {
            int fd = open(path, O_WRONLY | O_APPEND);
            assert_true(fd >= 0 && write(fd, "8 1:1\n", 6) == 6);
            close(fd);
            want += 6;
        }
        if (way == 2) assert_int_equal(truncate(path, text.size / 2), 0);
        kiln_status status;
        while ((status = ki_input_block(input, &block)) == KILN_OK && block.size > 0) {
            assert_int_equal(block.offset, at);
            assert_int_equal(block.line, lines + 1);
            if (at + (int64_t)block.size <= text.size)
                assert_memory_equal(block.text, text.data + at, block.size);
            at += (int64_t)block.size;
            for (size_t i = 0; i < block.size; i++) lines += block.text[i] == '\n';
        }
        if (way == 0) {
            assert_int_equal(status, KILN_OK);
            assert_int_equal(at, want);
        } else { /* it is no longer what it was when it was opened */
            assert_int_equal(status, KILN_ERR_IO);
        }
        ki_input_close(input);
        input = NULL;
        put(text.data, (size_t)text.size);
    }
    ki_bytes_free(&text);
}

static void long_lines_and_marks(void **state) {
    (void)state;
    struct ki_bytes text = {0};
    struct ki_input *input = NULL;
    struct ki_block block;
    assert_true(ki_bytes_room(&text, 3000010));
    memset(text.data, 'x', 3000010);
    memcpy(text.data,
           "\xef\xbb\xbf"
           "a\n",
           5);
    text.data[2999999] = '\n';
    put(text.data, 3000010); /* a mark, a short line, one of 3 MB, one without newline */
    assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
    assert_int_equal(ki_input_block(input, &block), KILN_OK);
    assert_true(block.size == 2 && block.offset == 3 && block.line == 1);
    assert_int_equal(ki_input_block(input, &block), KILN_OK);
    int64_t size = (int64_t)block.size;
    assert_true(block.offset == 5 && block.line == 2);
    while (block.size > 0) {
        assert_int_equal(ki_input_block(input, &block), KILN_OK);
        size += (int64_t)block.size;
    }
    assert_true(size == 3000005 && block.line == 3);
    ki_input_close(input);
    ki_bytes_free(&text);
}

static void members(void **state) {
    (void)state;
    struct ki_bytes all = {0}, packed = compress_bytes("one\n", 4, 1000),
                    empty = compress_bytes("", 0, 100000);
    put(packed.data, (size_t)packed.size);
    assert_int_equal(read_all(&all, 0, 100), KILN_OK);
    assert_true(all.size == 4000 && memcmp(all.data + 3996, "one\n", 4) == 0);
    put(empty.data, (size_t)empty.size);
    assert_int_equal(read_all(&all, 0, 100), KILN_OK);
    assert_true(all.size == 0);
    ki_bytes_free(&all);
    ki_bytes_free(&packed);
    ki_bytes_free(&empty);
}

static void damage(void **state) {
    (void)state;
    struct ki_bytes all = {0}, packed = compress_bytes("1 1:2 5:7\n2 1:4\n", 16, 1);
    for (int64_t size = 2; size < packed.size; size++) { /* cut off anywhere */
        put(packed.data, (size_t)size);
        assert_int_equal(read_all(&all, 0, 100), KILN_ERR_PARSE);
        assert_non_null(strstr(kiln_last_error()->message, "damaged gzip data"));
        assert_string_equal(kiln_last_error()->file, path);
    }
    for (int64_t i = 10; i < packed.size; i++) { /* behind the header every byte counts */
        packed.data[i] ^= 0x55;
        put(packed.data, (size_t)packed.size);
        assert_int_equal(read_all(&all, 0, 100), KILN_ERR_PARSE);
        packed.data[i] ^= 0x55;
    }
    assert_true(ki_bytes_append(&packed, "junk", 4));
    put(packed.data, (size_t)packed.size);
    assert_int_equal(read_all(&all, 0, 100), KILN_ERR_PARSE);
    assert_non_null(strstr(kiln_last_error()->message, "follow the last member"));
    ki_bytes_free(&all);
    ki_bytes_free(&packed);
}

/* ---------------------------------------------------------------------------- members side by side */

/* A zstd frame of raw blocks, which says how long it is. */
static void add_frame(struct ki_bytes *out, const char *text, size_t size) {
    enum { BLOCK = 1 << 17 };
    const unsigned char head[9] = {
        0x28, 0xb5, 0x2f, 0xfd, 0xa0, size & 255, size >> 8 & 255, size >> 16 & 255};
    assert_true(ki_bytes_append(out, head, sizeof head));
    for (size_t at = 0, some; at < size || at == 0; at += some) {
        some = size - at < BLOCK ? size - at : BLOCK;
        const size_t block = some << 3 | (at + some == size);
        const unsigned char b[3] = {block & 255, block >> 8 & 255, block >> 16 & 255};
        assert_true(ki_bytes_append(out, b, 3) && ki_bytes_append(out, text + at, (int64_t)some));
        if (size == 0) break;
    }
}

/* Words without a pattern, so that little is gained by compressing them. */
static struct ki_bytes noise(size_t size) {
    struct ki_bytes text = {0};
    uint64_t x = 1;
    assert_true(ki_bytes_room(&text, (int64_t)size));
    for (size_t i = 0; i < size; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        text.data[i] = (char)(i % 61 == 60 ? '\n' : ' ' + (x >> 40) % 95);
    }
    text.size = (int64_t)size;
    return text;
}

struct outcome {
    kiln_status status;
    int64_t size, lines;
    uLong check; /* of the text before an error, by whole blocks */
    char message[200];
};

static struct outcome read_by(int threads) {
    struct outcome seen = {.check = crc32(0, NULL, 0)};
    struct ki_input *input = NULL;
    struct ki_block block = {.size = 1};
    assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
    ki_input_use_threads(input, threads);
    while ((seen.status = ki_input_block(input, &block)) == KILN_OK && block.size > 0) {
        seen.check = crc32(seen.check, (const Bytef *)block.text, (uInt)block.size);
        seen.size += (int64_t)block.size;
        seen.lines = block.line;
    }
    if (seen.status != KILN_OK) snprintf(seen.message, sizeof seen.message, "%s", kiln_last_error()->message);
    ki_input_close(input);
    return seen;
}

/* Any number of threads sees what one sees. */
static struct outcome same_outcome(const struct ki_bytes *packed) {
    put(packed->data, (size_t)packed->size);
    const struct outcome one = read_by(1);
    for (int threads = 2; threads < 6; threads += 3) {
        const struct outcome more = read_by(threads);
        assert_int_equal(more.status, one.status);
        assert_string_equal(more.message, one.message);
        assert_true(one.status != KILN_OK || (more.size == one.size && more.check == one.check));
    }
    return one;
}

/* The text is cut into members of these lengths: even and odd lengths, none, one longer than a window. */
static const size_t lengths[] = {1, 700000, 0, 1000003, 6000000, 50, 9000000, 300000, 4000000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void members_side_by_side(void **state) {
    (void)state;
    struct ki_bytes text = noise(30000000);
    for (int zstd = 0; zstd < 2; zstd++) {
        struct ki_bytes packed = {0};
        int64_t begin[64];
        size_t at = 0;
        int count = 0;
        for (; at + lengths[count % LENGTHS] < (size_t)text.size && count < 63; count++) {
            const size_t size = lengths[count % LENGTHS];
            begin[count] = packed.size;
            if (zstd)
                add_frame(&packed, text.data + at, size);
            else
                add_member(&packed, text.data + at, size, count % 3);
            at += size;
        }
        begin[count] = packed.size;
        const struct outcome whole = same_outcome(&packed);
        if (zstd && whole.status == KILN_ERR_UNSUPPORTED) break; /* a build without it */
        assert_int_equal(whole.status, KILN_OK);
        assert_true(whole.size == (int64_t)at);
        assert_true(whole.check == crc32(crc32(0, NULL, 0), (const Bytef *)text.data, (uInt)at));
        for (int i = 0; i < count; i += 3) { /* a byte in the middle of a member is another one */
            if (zstd) break;                 /* raw blocks without a checksum take any */
            const int64_t middle = begin[i] + (begin[i + 1] - begin[i]) / 2;
            packed.data[middle] ^= 0x55;
            assert_int_equal(same_outcome(&packed).status, KILN_ERR_PARSE);
            packed.data[middle] ^= 0x55;
        }
        const int64_t size = packed.size;
        for (int i = 1; i < count; i += 3) { /* cut off within a member, and behind it */
            packed.size = begin[i + 1] - 3;
            assert_int_equal(same_outcome(&packed).status, KILN_ERR_PARSE);
            packed.size = begin[i + 1];
            assert_int_equal(same_outcome(&packed).status, KILN_OK);
        }
        packed.size = size;
        assert_true(ki_bytes_append(&packed, "junk", 4));
        assert_int_equal(same_outcome(&packed).status, KILN_ERR_PARSE);
        ki_bytes_free(&packed);
    }
    ki_bytes_free(&text);
}

/* Members whose text is members, stored as they are: what looks like a beginning is none. */
static void members_within_members(void **state) {
    (void)state;
    struct ki_bytes text = noise(50000), inner = {0}, packed = {0};
    for (int i = 0; i < 20; i++) add_member(&inner, text.data, 50000, 6);
    for (int i = 0; i < 3; i++) add_member(&packed, inner.data, (size_t)inner.size, 0);
    const struct outcome seen = same_outcome(&packed);
    assert_int_equal(seen.status, KILN_OK);
    assert_true(seen.size == 3 * inner.size);
    ki_bytes_free(&text);
    ki_bytes_free(&inner);
    ki_bytes_free(&packed);
}

/* Closed while threads still decode. */
static void closed_early(void **state) {
    (void)state;
    struct ki_bytes text = noise(20000000), packed = {0};
    struct ki_input *input = NULL;
    struct ki_block block;
    add_member(&packed, text.data, (size_t)text.size, 1);
    put(packed.data, (size_t)packed.size);
    for (int blocks = 0; blocks < 3; blocks++) {
        assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
        ki_input_use_threads(input, 3);
        for (int i = 0; i < blocks; i++) assert_int_equal(ki_input_block(input, &block), KILN_OK);
        ki_input_close(input);
        input = NULL;
    }
    ki_bytes_free(&text);
    ki_bytes_free(&packed);
}

static void bomb(void **state) {
    (void)state;
    const size_t size = (size_t)1 << 28;
    char *zeros = calloc(size, 1), buffer[4096];
    assert_non_null(zeros);
    struct ki_bytes packed = compress_bytes(zeros, size, 1);
    struct ki_input *input = NULL;
    kiln_status status = KILN_OK;
    put(packed.data, (size_t)packed.size);
    for (int threads = 1; threads < 4; threads += 2) {
        assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_OK);
        ki_input_use_threads(input, threads);
        status = KILN_OK;
        for (size_t got = 1; status == KILN_OK && got > 0;)
            status = ki_input_read(input, buffer, sizeof buffer, &got);
        assert_int_equal(status, KILN_ERR_LIMIT);
        assert_true(ki_input_offset(input) <= ((int64_t)64 << 20) + (int64_t)sizeof buffer);
        ki_input_close(input);
    }
    ki_bytes_free(&packed);
    free(zeros);
}

static void other_compressions(void **state) {
    (void)state;
    struct ki_bytes all = {0};
    put("BZh91AY", 7);
    assert_int_equal(read_all(&all, 0, 10), KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->message, "bzip2"));
    put("\xfd"
        "7zXZ",
        5);
    assert_int_equal(read_all(&all, 0, 10), KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->hint, "xz -dc"));
    ki_bytes_free(&all);
}

static void unopenable(void **state) {
    (void)state;
    struct ki_input *input = NULL;
    assert_int_equal(ki_input_open(&input, "/tmp/kiln-no-such-file", 0, NULL), KILN_ERR_IO);
    assert_int_equal(kiln_last_error()->native_code, ENOENT);
    assert_string_equal(kiln_last_error()->subsystem, "errno");
    assert_non_null(strstr(kiln_last_error()->message, "No such file"));
    assert_int_equal(ki_input_open(&input, "/tmp", 0, NULL), KILN_ERR_IO);
    assert_int_equal(kiln_last_error()->native_code, EISDIR);
    assert_true(kiln_last_error()->hint[0] != '\0');
    chmod(path, 0);
    if (geteuid() != 0) {
        assert_int_equal(ki_input_open(&input, path, 0, NULL), KILN_ERR_IO);
        assert_int_equal(kiln_last_error()->native_code, EACCES);
    } else {
        print_message("skip: root may read everything\n");
    }
    chmod(path, 0600);
    assert_null(input);
}

/* Every second read is interrupted, and every read gives one byte; the n-th fails. */
static struct {
    struct ki_seams real;
    int calls, failing;
} reads;

static ssize_t slow_read(int fd, void *buffer, size_t bytes) {
    reads.calls++;
    if (reads.calls == reads.failing) errno = EIO;
    if (reads.calls == reads.failing) return -1;
    if (reads.calls % 2) {
        errno = EINTR;
        return -1;
    }
    return reads.real.read(fd, buffer, bytes > 0);
}

static void interrupted_and_failing(void **state) {
    (void)state;
    struct ki_bytes all = {0}, packed = compress_bytes("1 1:2 5:7\n2 1:4\n", 16, 2);
    put(packed.data, (size_t)packed.size);
    reads.real = ki_seams;
    ki_seams.read = slow_read;
    for (reads.failing = 0; reads.failing < 1000; reads.failing++) {
        reads.calls = 0;
        kiln_status status = read_all(&all, 0, 7);
        if (reads.failing == 0 || reads.calls < reads.failing) assert_int_equal(status, KILN_OK);
        if (reads.failing == 0 || reads.calls < reads.failing) assert_true(all.size == 32);
        if (reads.failing > 0 && reads.calls < reads.failing) break;
        if (reads.failing > 0) assert_int_equal(status, KILN_ERR_IO);
    }
    ki_seams = reads.real;
    assert_in_range(reads.failing, 100, 900);
    ki_bytes_free(&all);
    ki_bytes_free(&packed);
}

static int stop_after(void *user, const kiln_progress *now) {
    assert_string_equal(now->phase, "read");
    assert_true(now->done <= now->total && now->bytes >= 0);
    return --*(int *)user == 0;
}

static void cancelled(void **state) {
    (void)state;
    struct ki_bytes text = sample(400000);
    int polls = 2;
    const kiln_control control = {.progress = stop_after, .user = &polls};
    struct ki_input *input = NULL;
    struct ki_block block = {.size = 1};
    kiln_status status;
    put(text.data, (size_t)text.size);
    assert_int_equal(ki_input_open(&input, path, 0, &control), KILN_OK);
    do status = ki_input_block(input, &block);
    while (status == KILN_OK && block.size > 0);
    assert_int_equal(status, KILN_ERR_CANCELLED);
    ki_input_close(input);
    ki_bytes_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(contents_in_pieces),
                                       cmocka_unit_test(blocks_hold_whole_lines),
                                       cmocka_unit_test(long_lines_and_marks),
                                       cmocka_unit_test(several_threads),
                                       cmocka_unit_test(members),
                                       cmocka_unit_test(damage),
                                       cmocka_unit_test(members_side_by_side),
                                       cmocka_unit_test(members_within_members),
                                       cmocka_unit_test(closed_early),
                                       cmocka_unit_test(bomb),
                                       cmocka_unit_test(other_compressions),
                                       cmocka_unit_test(unopenable),
                                       cmocka_unit_test(interrupted_and_failing),
                                       cmocka_unit_test(cancelled)};
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
