/* A zip archive is read from its end: end record -> central directory -> members. Only the directory is
 * believed, and only as far as it can be checked: members lie before it, do not overlap, and their bytes have
 * the checksum it states. (PKWARE APPNOTE 6.3.10, sections 4.3 and 4.5.3; zlib does the inflating.) */
#include "io/numpy/zip.h"

#include <stdlib.h>
#include <zlib.h>

enum {
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    COMMENT_LIMIT = 65535,
    PIECE = 1 << 20,
    BOMB_RATIO = 200,
    NAME_IN_FILE = 256,
    END_IN_FILE = 1 << 20
};
static const int64_t bomb_bytes = (int64_t)64 << 20; /* output below this is never taken for a bomb */

static uint32_t u16(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const unsigned char *p) {
    return u16(p) | u16(p + 2) << 16;
}

static uint64_t u64(const unsigned char *p) {
    return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
}

static kiln_status damaged(const struct ki_zip_archive *zip, int64_t offset, const char *reason) {
    struct ki_place place = {zip->file, 0, 0, offset};
    ki_fail_at(KILN_ERR_PARSE, &place, "the .npz archive is damaged: %s", reason);
    return ki_hint("the file was changed or cut off; copy it again");
}

static const unsigned char *at_offset(const struct ki_zip_archive *zip, int64_t offset) {
    return zip->bytes + (offset - zip->base);
}

/* -------------------------------------------------------------------------------------- directory */

struct directory {
    uint64_t offset, size, count;
};

/* The end record: the last one whose comment reaches exactly to the end of the file. */
static int64_t find_end(const struct ki_zip_archive *zip) {
    int64_t least = ki_max(zip->base, zip->size - END_SIZE - COMMENT_LIMIT);
    for (int64_t at = zip->size - END_SIZE; at >= least; at--) {
        const unsigned char *p = at_offset(zip, at);
        if (u32(p) == 0x06054b50 && at + END_SIZE + (int64_t)u16(p + 20) == zip->size) return at;
    }
    return -1;
}

static kiln_status find_directory(struct directory *directory, const struct ki_zip_archive *zip) {
    int64_t at = find_end(zip);
    if (at < 0) return damaged(zip, zip->size, "it has no end record");
    const unsigned char *p = at_offset(zip, at);
    if (u16(p + 4) != u16(p + 6)) return damaged(zip, at, "it is one of several volumes");
    *directory = (struct directory){u32(p + 16), u32(p + 12), u16(p + 10)};
    int64_t limit = at;
    const unsigned char *locator = at - zip->base >= LOCATOR_SIZE ? p - LOCATOR_SIZE : p;
    if (u32(locator) == 0x07064b50) {
        uint64_t at64 = u64(locator + 8);
        if (at64 > (uint64_t)at || (uint64_t)at - at64 < END64_SIZE + LOCATOR_SIZE)
            return damaged(zip, at, "its zip64 end record is elsewhere");
        if ((int64_t)at64 < zip->base) return damaged(zip, at, "its zip64 end record is far from its end");
        p = at_offset(zip, (int64_t)at64);
        if (u32(p) != 0x06064b50) return damaged(zip, (int64_t)at64, "its zip64 end record is damaged");
        *directory = (struct directory){u64(p + 48), u64(p + 40), u64(p + 32)};
        limit = (int64_t)at64;
    }
    if (directory->offset > (uint64_t)limit || directory->size != (uint64_t)limit - directory->offset)
        return damaged(zip, at, "its directory does not end where the end record begins");
    if ((int64_t)directory->offset < zip->base) return damaged(zip, at, "its directory is too long");
    if (directory->count > KI_ZIP_MEMBERS) {
        struct ki_place place = {zip->file, 0, 0, at};
        ki_fail_at(KILN_ERR_LIMIT, &place, "the archive has %llu members, %d are read at most",
                   (unsigned long long)directory->count, KI_ZIP_MEMBERS);
        return ki_hint("save the matrix alone, with scipy.sparse.save_npz");
    }
    return KILN_OK;
}

/* Sizes and offset of 32 bits that are all ones stand in the extra field 1, in this order. */
static bool widen(uint64_t values[3], const unsigned char *extra, int64_t size) {
    for (int64_t at = 0; at + 4 <= size;) {
        int64_t length = (int64_t)u16(extra + at + 2);
        if (at + 4 + length > size) return false;
        if (u16(extra + at) == 1) {
            int64_t used = 0;
            for (int i = 0; i < 3; i++) {
                if (values[i] != UINT32_MAX) continue;
                if (used + 8 > length) return false;
                values[i] = u64(extra + at + 4 + used);
                used += 8;
            }
            return true;
        }
        at += 4 + length;
    }
    return values[0] != UINT32_MAX && values[1] != UINT32_MAX && values[2] != UINT32_MAX;
}

/* The local header repeats the name and says where the data begin. */
static kiln_status find_data(const struct ki_zip_archive *zip, struct ki_zip_member *member, int64_t limit) {
    unsigned char header[LOCAL_SIZE + NAME_IN_FILE];
    const unsigned char *local = zip->members_in ? header : at_offset(zip, member->header);
    if (limit - member->header < LOCAL_SIZE)
        return damaged(zip, member->header, "a member's header is damaged");
    if (zip->members_in) {
        if (member->name_size > NAME_IN_FILE)
            return damaged(zip, member->header, "a member's name is too long");
        const int64_t bytes = ki_min(limit - member->header, LOCAL_SIZE + member->name_size);
        kiln_status status = ki_file_read(zip->members_in, header, member->header, bytes);
        if (status != KILN_OK) return status;
    }
    if (u32(local) != 0x04034b50) return damaged(zip, member->header, "a member's header is damaged");
    int64_t name = (int64_t)u16(local + 26), lengths = name + (int64_t)u16(local + 28);
    if (limit - member->header - LOCAL_SIZE < lengths)
        return damaged(zip, member->header, "a member's header is cut off");
    if (name != member->name_size || memcmp(local + LOCAL_SIZE, member->name, (size_t)name) != 0)
        return damaged(zip, member->header, "a member has two names");
    if ((int)u16(local + 8) != member->method)
        return damaged(zip, member->header, "a member has two methods");
    member->begin = member->header + LOCAL_SIZE + lengths;
    if (limit - member->begin < member->packed) return damaged(zip, member->begin, "a member is cut off");
    return KILN_OK;
}

/* The directory's entry at `at`; limit: where the directory begins, next: its end. Moves *at behind the
 * entry. */
static kiln_status read_entry(const struct ki_zip_archive *zip, struct ki_zip_member *member, int64_t *at,
                              const struct directory *directory) {
    const unsigned char *p = at_offset(zip, *at);
    int64_t left = (int64_t)(directory->offset + directory->size) - *at;
    if (left < ENTRY_SIZE || u32(p) != 0x02014b50) return damaged(zip, *at, "its directory is damaged");
    int64_t name = (int64_t)u16(p + 28), extra = (int64_t)u16(p + 30);
    int64_t whole = ENTRY_SIZE + name + extra + (int64_t)u16(p + 32);
    if (left < whole) return damaged(zip, *at, "its directory is cut off");
    uint64_t values[3] = {u32(p + 24), u32(p + 20), u32(p + 42)};
    if (!widen(values, p + ENTRY_SIZE + name, extra)) return damaged(zip, *at, "a zip64 field is damaged");
    *member = (struct ki_zip_member){.name = (const char *)p + ENTRY_SIZE,
                                     .name_size = name,
                                     .method = (int)u16(p + 10),
                                     .crc = u32(p + 16)};
    struct ki_place place = {zip->file, 0, 0, *at};
    if (u16(p + 8) & 1) return ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "the .npz archive is encrypted");
    if (member->method != 0 && member->method != 8) {
        ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "zip method %d; stored and deflated members are read",
                   member->method);
        return ki_hint("write the file again with scipy.sparse.save_npz");
    }
    if (values[0] > INT64_MAX || values[1] > directory->offset || values[2] > directory->offset)
        return damaged(zip, *at, "a member lies outside the file");
    if (member->method == 0 && values[0] != values[1])
        return damaged(zip, *at, "a stored member has two sizes");
    member->size = (int64_t)values[0];
    member->packed = (int64_t)values[1];
    member->header = (int64_t)values[2];
    *at += whole;
    return find_data(zip, member, (int64_t)directory->offset);
}

static bool same_name(const struct ki_zip_member *a, const struct ki_zip_member *b) {
    return a->name_size == b->name_size && memcmp(a->name, b->name, (size_t)a->name_size) == 0;
}

static kiln_status read_directory(struct ki_zip_archive *zip) {
    kiln_status status = KILN_OK;
    struct directory directory = {0};
    TRY(find_directory(&directory, zip));
    int64_t at = (int64_t)directory.offset;
    for (uint64_t i = 0; i < directory.count; i++) {
        struct ki_zip_member *member = &zip->members[zip->count];
        TRY(read_entry(zip, member, &at, &directory));
        for (int64_t j = 0; j < zip->count; j++) {
            const struct ki_zip_member *other = &zip->members[j];
            if (same_name(member, other)) TRY(damaged(zip, at, "two members have one name"));
            bool apart = member->begin + member->packed <= other->header ||
                         other->begin + other->packed <= member->header;
            if (!apart) TRY(damaged(zip, at, "two members overlap"));
        }
        zip->count++;
    }
    if (at != (int64_t)(directory.offset + directory.size))
        TRY(damaged(zip, at, "its directory is longer than its members"));
done:
    return status;
}

kiln_status ki_zip_open(struct ki_zip_archive *zip, const unsigned char *bytes, int64_t size,
                        const char *file) {
    *zip = (struct ki_zip_archive){.bytes = bytes, .size = size, .file = file};
    return read_directory(zip);
}

kiln_status ki_zip_open_file(struct ki_zip_archive *zip, struct ki_bytes *room, const struct ki_file *from,
                             int64_t size) {
    const int64_t end = ki_min(size, END_IN_FILE);
    if (!ki_bytes_room(room, end)) return ki_fail_nomem((size_t)end, "the end of a zip archive");
    kiln_status status = ki_file_read(from, room->data, size - end, end);
    if (status != KILN_OK) return status;
    room->size = end;
    *zip = (struct ki_zip_archive){.bytes = (const unsigned char *)room->data,
                                   .base = size - end,
                                   .size = size,
                                   .file = from->name,
                                   .members_in = from};
    return read_directory(zip);
}

const struct ki_zip_member *ki_zip_find(const struct ki_zip_archive *zip, const char *name) {
    struct ki_zip_member sought = {.name = name, .name_size = (int64_t)strlen(name)};
    for (int64_t i = 0; i < zip->count; i++)
        if (same_name(&zip->members[i], &sought)) return &zip->members[i];
    return NULL;
}

/* ---------------------------------------------------------------------------------------- members */

static kiln_status too_long(const struct ki_zip_archive *zip, const struct ki_zip_member *member,
                            int64_t left) {
    struct ki_place place = {zip->file, 0, 0, member->begin};
    if (left <= 0) {
        ki_fail_at(KILN_ERR_LIMIT, &place, "the archive unpacks to more bytes than the limit allows");
        return ki_hint("raise the byte limit if the file is trusted");
    }
    ki_fail_at(KILN_ERR_LIMIT, &place, "a member of the archive unpacks to more than %d times its size",
               BOMB_RATIO);
    return ki_hint("is it a zip bomb? if not, unpack it and save the matrix uncompressed");
}

/* Inflates the next bytes to the end of room, at most `most`. zlib counts in 32 bits, so the input is fed in
 * pieces. */
static int inflate_piece(z_stream *stream, int64_t *fed, const unsigned char *packed, int64_t packed_size,
                         struct ki_bytes *room, int64_t most) {
    if (stream->avail_in == 0) {
        int64_t piece = ki_min(packed_size - *fed, PIECE);
        stream->next_in = (unsigned char *)packed + *fed;
        stream->avail_in = (uInt)piece;
        *fed += piece;
    }
    stream->next_out = (unsigned char *)room->data + room->size;
    stream->avail_out = (uInt)most;
    int result = inflate(stream, Z_NO_FLUSH);
    room->size += most - (int64_t)stream->avail_out;
    return result;
}

static kiln_status unpack(const struct ki_zip_archive *zip, const struct ki_zip_member *member,
                          const unsigned char *packed, struct ki_bytes *room, int64_t left) {
    kiln_status status = KILN_OK;
    z_stream stream = {.zalloc = Z_NULL};
    int64_t fed = 0;
    if (inflateInit2(&stream, -15) != Z_OK) return ki_fail_nomem(48 << 10, "zlib");
    for (int result = Z_OK; result != Z_STREAM_END;) {
        int64_t most = ki_min(ki_max(room->size, 4096), PIECE);
        if (room->size > left) TRY(too_long(zip, member, 0));
        if (room->size > bomb_bytes && room->size / BOMB_RATIO > member->packed)
            TRY(too_long(zip, member, 1));
        if (room->size > member->size) TRY(damaged(zip, member->begin, "a member is longer than stated"));
        if (!ki_bytes_room(room, most)) TRY(ki_fail_nomem((size_t)room->size, "an unpacked member"));
        result = inflate_piece(&stream, &fed, packed, member->packed, room, most);
        bool more = result == Z_OK || (result == Z_BUF_ERROR && fed < member->packed);
        if (result == Z_MEM_ERROR) TRY(ki_fail_nomem(48 << 10, "zlib"));
        if (!more && result != Z_STREAM_END) TRY(damaged(zip, member->begin, "a member cannot be inflated"));
    }
    if (room->size != member->size) TRY(damaged(zip, member->begin, "a member has not the size stated"));
    if (fed != member->packed || stream.avail_in > 0)
        TRY(damaged(zip, member->begin, "bytes behind a member's end"));
done:
    inflateEnd(&stream);
    return status;
}

/* A fuzzer cannot guess checksums, so its build does without. */
kiln_status ki_zip_check(const struct ki_zip_archive *zip, const struct ki_zip_member *member, uint32_t crc) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    crc = member->crc;
#endif
    return crc == member->crc ? KILN_OK : damaged(zip, member->begin, "a member's checksum is wrong");
}

static uint32_t checksum(const unsigned char *bytes, int64_t size) {
    uLong crc = crc32(0, Z_NULL, 0);
    for (int64_t at = 0; at < size; at += PIECE) crc = crc32(crc, bytes + at, (uInt)ki_min(size - at, PIECE));
    return (uint32_t)crc;
}

/* Inflates a member to room; its packed bytes come to memory first if they lie in a file, which is longer. */
static kiln_status inflate_member(const struct ki_zip_archive *zip, const struct ki_zip_member *member,
                                  struct ki_bytes *room, int64_t left) {
    struct ki_bytes packed = {0};
    kiln_status status;
    if (zip->members_in) {
        if (!ki_bytes_room(&packed, ki_max(member->packed, 1)))
            return ki_fail_nomem((size_t)member->packed, "a packed member of an archive");
        TRY(ki_file_read(zip->members_in, packed.data, member->begin, member->packed));
    }
    room->size = 0;
    TRY(unpack(zip, member, zip->members_in ? (unsigned char *)packed.data : at_offset(zip, member->begin),
               room, left));
    TRY(ki_zip_check(zip, member, checksum((unsigned char *)room->data, room->size)));
done:
    ki_bytes_free(&packed);
    return status;
}

/* A member, inflated by turns: what lies before `from` is thrown away. */
struct ki_zip_stream {
    z_stream stream;
    int64_t read, made; /* of the packed, and of the unpacked */
    uLong crc;          /* of these */
    unsigned char *to;
    int64_t from, end;
    unsigned char packed[PIECE]; /* the next of the member's bytes */
    unsigned char scratch[PIECE];
};

/* Up to PIECE further bytes of the member. */
static kiln_status inflate_next(struct ki_zip_stream *range, const struct ki_zip_archive *zip,
                                const struct ki_zip_member *member) {
    z_stream *stream = &range->stream;
    const bool wanted = range->made >= range->from;
    const int64_t most = ki_min(PIECE, (wanted ? range->end : range->from) - range->made);
    if (stream->avail_in == 0) {
        const int64_t some = ki_min(member->packed - range->read, PIECE);
        const kiln_status status =
            ki_file_read(zip->members_in, range->packed, member->begin + range->read, some);
        if (status != KILN_OK) return status;
        range->read += some;
        stream->next_in = range->packed;
        stream->avail_in = (uInt)some;
    }
    stream->next_out = wanted ? range->to + (range->made - range->from) : range->scratch;
    stream->avail_out = (uInt)most;
    const int result = inflate(stream, Z_NO_FLUSH);
    const int64_t made = most - (int64_t)stream->avail_out;
    range->made += made;
    if (range->made > bomb_bytes && range->made / BOMB_RATIO > member->packed)
        return too_long(zip, member, 1);
    range->crc = crc32(range->crc, stream->next_out - made, (uInt)made);
    if (result == Z_MEM_ERROR) return ki_fail_nomem(48 << 10, "zlib");
    const bool over = result == Z_STREAM_END && range->made < range->end;
    const bool stuck = made == 0 && stream->avail_in == 0 && range->read == member->packed;
    if ((result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) || over || stuck)
        return damaged(zip, member->begin, "a member cannot be inflated");
    return range->made == member->size ? ki_zip_check(zip, member, (uint32_t)range->crc) : KILN_OK;
}

static kiln_status open_stream(struct ki_zip_stream **stream) {
    struct ki_zip_stream *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "an unpacked member");
    if (inflateInit2(&made->stream, -15) != Z_OK) {
        ki_free(made);
        return ki_fail_nomem(48 << 10, "zlib");
    }
    *stream = made;
    return KILN_OK;
}

void ki_zip_stream_free(struct ki_zip_stream *stream) {
    if (!stream) return;
    inflateEnd(&stream->stream);
    ki_free(stream);
}

kiln_status ki_zip_inflate(struct ki_zip_stream **stream, void *to, const struct ki_zip_archive *zip,
                           const struct ki_zip_member *member, int64_t from, int64_t bytes) {
    kiln_status status = KILN_OK;
    if (*stream && (*stream)->made > from) {
        ki_zip_stream_free(*stream);
        *stream = NULL;
    }
    if (!*stream) TRY(open_stream(stream));
    (*stream)->to = to;
    (*stream)->from = from;
    (*stream)->end = from + bytes;
    while ((*stream)->made < (*stream)->end) TRY(inflate_next(*stream, zip, member));
done:
    return status;
}

kiln_status ki_zip_open_member(struct ki_zip_bytes *bytes, const struct ki_zip_archive *zip,
                               const struct ki_zip_member *member, struct ki_bytes *room, int64_t *left) {
    kiln_status status = KILN_OK;
    struct ki_zip_bytes found = {.offset = member->begin};
    if (member->method == 8) {
        TRY(inflate_member(zip, member, room, *left));
        found.memory = (unsigned char *)room->data;
        found.checked = true;
    } else if (zip->members_in) {
        found.file = zip->members_in;
    } else {
        found.memory = at_offset(zip, member->begin);
    }
    if (member->size > *left) return too_long(zip, member, 0);
    *left -= member->size;
    *bytes = found;
done:
    return status;
}
