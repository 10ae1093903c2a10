/* gzip and zstd streams. Both formats allow members one behind the other, which decode to the joined
 * contents; anything else behind a member is an error, since it is lost data more often than padding. */
#include "io/packed/decode.h"

#include <string.h>
#define ZLIB_CONST
#include <zlib.h>
#ifdef KILN_HAVE_ZSTD
#include <zstd.h>
#endif

#include "core/seams.h"

struct ki_decoder {
    const char *name;
    bool open; /* inside a member */
    const char *compression;
    kiln_status (*step)(struct ki_decoder *decoder, struct ki_step *step);
    bool (*member)(const unsigned char *in, size_t size, bool whole, size_t *bytes, int64_t *text);
    z_stream gzip;
    int64_t taken; /* compressed bytes of the steps before: near where the damage is */
#ifdef KILN_HAVE_ZSTD
    ZSTD_DStream *zstd;
    unsigned char header[18]; /* a frame's first bytes; no header has more */
    size_t header_size;
    uint64_t made; /* of the frame */
#endif
};

const char *ki_compression(const unsigned char *bytes, size_t size) {
    static const struct {
        const char *magic, *compression;
    } known[] = {
        {"\x1f\x8b", "gzip"},
        {"\x28\xb5\x2f\xfd", "zstd"},
        {"\3757zXZ", "xz"}, /* octal: the 7 is no digit of it */
        {"BZh", "bzip2"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].magic);
        if (size >= length && memcmp(bytes, known[i].magic, length) == 0) return known[i].compression;
    }
    return NULL;
}

/* used: compressed bytes of this step. */
static kiln_status damaged(const struct ki_decoder *decoder, size_t used, const char *format,
                           const char *why) {
    const struct ki_place place = {.file = decoder->name, .offset = decoder->taken + (int64_t)used};
    ki_fail_at(KILN_ERR_PARSE, &place, "damaged %s data: %s", format, why);
    return ki_hint("the file was changed or cut off after it was compressed: fetch it again");
}

static voidpf zlib_alloc(voidpf user, uInt count, uInt size) {
    (void)user;
    return ki_alloc((size_t)count * size);
}

static void zlib_release(voidpf user, voidpf memory) {
    (void)user;
    ki_free(memory);
}

static kiln_status gzip_step(struct ki_decoder *decoder, struct ki_step *step) {
    z_stream *z = &decoder->gzip;
    const size_t most = (size_t)1 << 30; /* zlib counts in unsigned int */
    if (!decoder->open && step->in_size > 0) {
        if (step->in[0] != 0x1f)
            return damaged(decoder, 0, "gzip", "bytes that are not gzip follow the last member");
        if (inflateReset(z) != Z_OK) return ki_fail(KILN_ERR_INTERNAL, "zlib: cannot begin a member");
        decoder->open = true;
    }
    z->next_in = step->in;
    z->avail_in = (uInt)(step->in_size < most ? step->in_size : most);
    z->next_out = step->out;
    z->avail_out = (uInt)(step->out_size < most ? step->out_size : most);
    int code = inflate(z, Z_NO_FLUSH);
    step->used = (size_t)(z->next_in - step->in);
    step->made = (size_t)(z->next_out - step->out);
    if (code == Z_STREAM_END) decoder->open = false;
    if (code == Z_MEM_ERROR) return ki_fail_nomem(1 << 15, "decompression");
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return KILN_OK;
    return damaged(decoder, step->used, "gzip", z->msg ? z->msg : "not a gzip stream");
}

/* Behind every member stands how long its text is, in 32 bits. */
static bool gzip_member(const unsigned char *in, size_t size, bool whole, size_t *bytes, int64_t *text) {
    enum { LEAST = 18, LARGEST_RATIO = 1032 };
    const unsigned char *const end = in + size, *next = in + LEAST;
    if (size < LEAST || in[0] != 0x1f || in[1] != 0x8b) return false;
    while (next < end && (next = memchr(next, 0x1f, (size_t)(end - next))) && end - next >= 4 &&
           (next[1] != 0x8b || next[2] != 8 || next[3] > 0x1f))
        next++;
    if (!next || end - next < 4) next = whole ? end : NULL;
    if (!next) return false;
    *bytes = (size_t)(next - in);
    *text = (int64_t)((uint32_t)next[-4] | (uint32_t)next[-3] << 8 | (uint32_t)next[-2] << 16 |
                      (uint32_t)next[-1] << 24);
    return *text / LARGEST_RATIO <= (int64_t)*bytes;
}

static kiln_status gzip_new(struct ki_decoder *decoder) {
    decoder->member = gzip_member;
    decoder->gzip.zalloc = zlib_alloc;
    decoder->gzip.zfree = zlib_release;
    decoder->step = gzip_step;
    int code = inflateInit2(&decoder->gzip, 15 + 16); /* 16: a gzip header and its CRC are required */
    if (code == Z_MEM_ERROR) return ki_fail_nomem(1 << 15, "decompression");
    return code == Z_OK ? KILN_OK : ki_fail(KILN_ERR_INTERNAL, "zlib cannot start (%d)", code);
}

#ifdef KILN_HAVE_ZSTD
/* zstd itself does not look at the size of what it made where the last block of a frame is empty. */
static bool is_whole(const struct ki_decoder *decoder) {
    const unsigned long long size = ZSTD_getFrameContentSize(decoder->header, decoder->header_size);
    return size == ZSTD_CONTENTSIZE_UNKNOWN || size == decoder->made;
}

static kiln_status zstd_step(struct ki_decoder *decoder, struct ki_step *step) {
    ZSTD_inBuffer in = {step->in, step->in_size, 0};
    ZSTD_outBuffer out = {step->out, step->out_size, 0};
    size_t code = ZSTD_decompressStream(decoder->zstd, &out, &in);
    step->used = in.pos;
    step->made = out.pos;
    if (ZSTD_isError(code)) return damaged(decoder, in.pos, "zstd", ZSTD_getErrorName(code));
    if (in.pos == 0 && out.pos == 0) return KILN_OK;
    if (!decoder->open) decoder->header_size = decoder->made = 0;
    const size_t room = sizeof decoder->header - decoder->header_size, more = in.pos < room ? in.pos : room;
    memcpy(decoder->header + decoder->header_size, step->in, more);
    decoder->header_size += more;
    decoder->made += out.pos;
    decoder->open = code != 0;
    return decoder->open || is_whole(decoder)
               ? KILN_OK
               : damaged(decoder, in.pos, "zstd", "a frame is shorter than it says");
}

static bool zstd_member(const unsigned char *in, size_t size, bool whole, size_t *bytes, int64_t *text) {
    (void)whole;
    *bytes = ZSTD_findFrameCompressedSize(in, size);
    if (ZSTD_isError(*bytes)) return false;
    const unsigned long long made = ZSTD_getFrameContentSize(in, size);
    *text = (int64_t)made;
    return made < ZSTD_CONTENTSIZE_ERROR && made <= INT64_MAX;
}

static kiln_status zstd_new(struct ki_decoder *decoder) {
    decoder->member = zstd_member;
    decoder->step = zstd_step;
    decoder->zstd = ZSTD_createDStream();
    return decoder->zstd ? KILN_OK : ki_fail_nomem(ZSTD_DStreamInSize(), "decompression");
}
#endif

kiln_status ki_decoder_new(struct ki_decoder **decoder, const char *compression, const char *name) {
    kiln_status status = KILN_OK;
    struct ki_decoder *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "decompression");
    made->name = name;
    made->compression = compression;
    if (strcmp(compression, "gzip") == 0) {
        TRY(gzip_new(made));
#ifdef KILN_HAVE_ZSTD
    } else if (strcmp(compression, "zstd") == 0) {
        TRY(zstd_new(made));
#endif
    } else {
        const struct ki_place place = {.file = name, .offset = 0};
        status =
            ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "%s compression is not read by this build", compression);
        ki_hint("decompress it first: %s -dc FILE | kiln ... -", compression);
        goto done;
    }
    *decoder = made;
done:
    if (status != KILN_OK) ki_decoder_free(made);
    return status;
}

void ki_decoder_free(struct ki_decoder *decoder) {
    if (!decoder) return;
    if (decoder->gzip.state) inflateEnd(&decoder->gzip);
#ifdef KILN_HAVE_ZSTD
    ZSTD_freeDStream(decoder->zstd);
#endif
    ki_free(decoder);
}

kiln_status ki_decoder_again(struct ki_decoder **again, const struct ki_decoder *decoder) {
    return ki_decoder_new(again, decoder->compression, decoder->name);
}

bool ki_decoder_within(const struct ki_decoder *decoder) {
    return decoder->open;
}

void ki_decoder_restart(struct ki_decoder *decoder, int64_t at) {
#ifdef KILN_HAVE_ZSTD
    if (decoder->zstd) ZSTD_DCtx_reset(decoder->zstd, ZSTD_reset_session_only);
#endif
    decoder->open = false; /* gzip begins anew by itself */
    decoder->taken = at;
}

bool ki_decoder_member(const struct ki_decoder *decoder, const unsigned char *in, size_t size, bool whole,
                       size_t *bytes, int64_t *text) {
    return decoder->member(in, size, whole, bytes, text);
}

kiln_status ki_decoder_step(struct ki_decoder *decoder, struct ki_step *step) {
    step->used = step->made = 0;
    const kiln_status status = decoder->step(decoder, step);
    decoder->taken += (int64_t)step->used;
    return status;
}

kiln_status ki_decoder_end(const struct ki_decoder *decoder) {
    return decoder->open
               ? damaged(decoder, 0, decoder->step == gzip_step ? "gzip" : "zstd", "it ends too early")
               : KILN_OK;
}
