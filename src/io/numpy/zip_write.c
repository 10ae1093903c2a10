/* local header, contents, ..., directory, end (PKWARE APPNOTE 6.3). Sizes and offsets of 4 GiB and more do
 * not fit their 32 bits; these then are all ones, and an extra field, or a second end record, has 64 bits
 * (zip64). Dates are fixed: the same contents give the same bytes. */
#include "io/numpy/zip_write.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"
#include "io/output.h"

enum { FIELD_BYTES = 64 };
enum { VERSION = 20, VERSION_ZIP64 = 45, DATE_1980_01_01 = 0x21, EXTRA_ZIP64 = 1 };

/* Little-endian fields one behind the other. */
struct record {
    unsigned char bytes[2 * FIELD_BYTES];
    int size;
};

static void put(struct record *record, int bytes, uint64_t value) {
    for (int i = 0; i < bytes; i++) record->bytes[record->size++] = (unsigned char)(value >> 8 * i);
}

static bool wide(const struct ki_zip *zip, int64_t value) {
    return value > (zip->most ? zip->most : UINT32_MAX - 1);
}

static uint32_t narrow(const struct ki_zip *zip, int64_t value) {
    return wide(zip, value) ? UINT32_MAX : (uint32_t)value;
}

static kiln_status write_bytes(struct ki_zip *zip, const void *bytes, size_t size) {
    zip->offset += (int64_t)size;
    return ki_output_write(zip->output, bytes, size);
}

static kiln_status write_record(struct ki_zip *zip, const struct record *record) {
    return write_bytes(zip, record->bytes, (size_t)record->size);
}

/* Writes what local header and directory entry have in common, from the version on. */
static void put_member(struct record *record, const struct ki_zip *zip, const struct ki_zip_written *member,
                       int extra) {
    put(record, 2, extra ? VERSION_ZIP64 : VERSION);
    put(record, 2, 0); /* flags */
    put(record, 2, 0); /* stored */
    put(record, 2, 0); /* time */
    put(record, 2, DATE_1980_01_01);
    put(record, 4, member->crc);
    put(record, 4, narrow(zip, member->bytes));
    put(record, 4, narrow(zip, member->bytes));
    put(record, 2, strlen(member->name));
    put(record, 2, (uint64_t)extra);
}

static kiln_status write_local(struct ki_zip *zip, const struct ki_zip_written *member) {
    const bool large = wide(zip, member->bytes);
    struct record record = {.size = 0}, extra = {.size = 0};
    kiln_status status;
    put(&record, 4, 0x04034b50);
    put_member(&record, zip, member, large ? 20 : 0);
    if (large) {
        put(&extra, 2, EXTRA_ZIP64);
        put(&extra, 2, 16);
        put(&extra, 8, (uint64_t)member->bytes);
        put(&extra, 8, (uint64_t)member->bytes);
    }
    TRY(write_record(zip, &record));
    TRY(write_bytes(zip, member->name, strlen(member->name)));
    TRY(write_record(zip, &extra));
done:
    return status;
}

static kiln_status write_entry(struct ki_zip *zip, const struct ki_zip_written *member) {
    const bool wide_bytes = wide(zip, member->bytes), wide_offset = wide(zip, member->offset);
    int fields = 2 * wide_bytes + wide_offset;
    struct record record = {.size = 0}, extra = {.size = 0};
    kiln_status status;
    put(&record, 4, 0x02014b50);
    put(&record, 2, fields ? VERSION_ZIP64 : VERSION); /* made by */
    put_member(&record, zip, member, fields ? 4 + 8 * fields : 0);
    put(&record, 2, 0); /* comment */
    put(&record, 2, 0); /* disk */
    put(&record, 2, 0); /* internal attributes */
    put(&record, 4, 0); /* external attributes */
    put(&record, 4, narrow(zip, member->offset));
    if (fields) {
        put(&extra, 2, EXTRA_ZIP64);
        put(&extra, 2, 8 * (uint64_t)fields);
        if (wide_bytes) put(&extra, 8, (uint64_t)member->bytes);
        if (wide_bytes) put(&extra, 8, (uint64_t)member->bytes);
        if (wide_offset) put(&extra, 8, (uint64_t)member->offset);
    }
    TRY(write_record(zip, &record));
    TRY(write_bytes(zip, member->name, strlen(member->name)));
    TRY(write_record(zip, &extra));
done:
    return status;
}

static uint32_t crc_of(const void *first, size_t first_bytes, const void *second, size_t second_bytes) {
    uLong crc = crc32_z(0, NULL, 0);
    crc = crc32_z(crc, first, first_bytes);
    return (uint32_t)(second_bytes ? crc32_z(crc, second, second_bytes) : crc);
}

kiln_status ki_zip_add(struct ki_zip *zip, const char *name, const void *first, size_t first_bytes,
                       const void *second, size_t second_bytes) {
    kiln_status status;
    if (zip->count == KI_ZIP_WRITTEN) return ki_fail(KILN_ERR_INTERNAL, "too many members in a zip archive");
    struct ki_zip_written *member = &zip->members[zip->count++];
    *member = (struct ki_zip_written){name, zip->offset, (int64_t)(first_bytes + second_bytes),
                                      crc_of(first, first_bytes, second, second_bytes)};
    TRY(write_local(zip, member));
    TRY(write_bytes(zip, first, first_bytes));
    TRY(write_bytes(zip, second, second_bytes));
done:
    return status;
}

static kiln_status add_to_crc(void *crc, const void *piece, size_t size) {
    *(uint32_t *)crc = (uint32_t)crc32_z(*(uint32_t *)crc, piece, size);
    return KILN_OK;
}

kiln_status ki_zip_add_file(struct ki_zip *zip, const char *name, const void *first, size_t first_bytes,
                            const struct ki_file *file, int part, kiln_type type, int64_t count) {
    const int64_t bytes = count * (part == KI_COL ? 4 : ki_type_bytes(type));
    kiln_status status;
    uint32_t crc = crc_of(first, first_bytes, NULL, 0);
    if (zip->count == KI_ZIP_WRITTEN) return ki_fail(KILN_ERR_INTERNAL, "too many members in a zip archive");
    TRY(ki_file_each(file, part, type, count, add_to_crc, &crc));
    struct ki_zip_written *member = &zip->members[zip->count++];
    *member = (struct ki_zip_written){name, zip->offset, (int64_t)first_bytes + bytes, crc};
    TRY(write_local(zip, member));
    TRY(write_bytes(zip, first, first_bytes));
    TRY(ki_output_copy(zip->output, file, part, type, count));
    zip->offset += bytes;
done:
    return status;
}

static void put_end64(struct record *record, const struct ki_zip *zip, int64_t begin, int64_t end) {
    put(record, 4, 0x06064b50);
    put(record, 8, 44); /* bytes that follow */
    put(record, 2, VERSION_ZIP64);
    put(record, 2, VERSION_ZIP64);
    put(record, 4, 0); /* disk */
    put(record, 4, 0);
    put(record, 8, (uint64_t)zip->count);
    put(record, 8, (uint64_t)zip->count);
    put(record, 8, (uint64_t)(end - begin));
    put(record, 8, (uint64_t)begin);
    put(record, 4, 0x07064b50); /* where this record is */
    put(record, 4, 0);
    put(record, 8, (uint64_t)end);
    put(record, 4, 1);
}

kiln_status ki_zip_finish(struct ki_zip *zip) {
    struct record record = {.size = 0};
    int64_t begin = zip->offset;
    kiln_status status;
    for (int i = 0; i < zip->count; i++) TRY(write_entry(zip, &zip->members[i]));
    if (wide(zip, begin)) put_end64(&record, zip, begin, zip->offset);
    int64_t end = zip->offset;
    put(&record, 4, 0x06054b50);
    put(&record, 2, 0); /* disk */
    put(&record, 2, 0);
    put(&record, 2, (uint64_t)zip->count);
    put(&record, 2, (uint64_t)zip->count);
    put(&record, 4, (uint64_t)(end - begin));
    put(&record, 4, narrow(zip, begin));
    put(&record, 2, 0); /* comment */
    TRY(write_record(zip, &record));
done:
    return status;
}
