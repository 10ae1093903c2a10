/* Members of a zip archive in memory or in a file, stored or deflated; zip64 or not. */
#ifndef KI_ZIP_H
#define KI_ZIP_H

#include "io/bytes.h"
#include "core/file.h"

enum { KI_ZIP_MEMBERS = 64 }; /* an .npz of a sparse matrix has five or six */

struct ki_zip_member {
    const char *name; /* in the archive; not terminated */
    int64_t name_size;
    int method; /* 0 stored, 8 deflated */
    uint32_t crc;
    int64_t packed, size;  /* bytes in the archive, and unpacked */
    int64_t header, begin; /* offsets of the local header and of the data */
};

struct ki_zip_archive {
    const unsigned char *bytes; /* from `base` on */
    int64_t base, size;
    const char *file;                 /* for messages */
    const struct ki_file *members_in; /* where what comes before `base` is read from; NULL: base is 0 */
    struct ki_zip_member members[KI_ZIP_MEMBERS];
    int64_t count;
};

/* Reads the central directory and checks it: bounds, overlaps, names. bytes and file must outlive zip. */
kiln_status ki_zip_open(struct ki_zip_archive *zip, const unsigned char *bytes, int64_t size,
                        const char *file);
/* The same for an archive in a file of `size` bytes, whose end goes to `room`. */
kiln_status ki_zip_open_file(struct ki_zip_archive *zip, struct ki_bytes *room, const struct ki_file *from,
                             int64_t size);
const struct ki_zip_member *ki_zip_find(const struct ki_zip_archive *zip, const char *name); /* or NULL */

/* Says where a member's bytes lie. */
struct ki_zip_bytes {
    const unsigned char *memory; /* NULL: */
    const struct ki_file *file;  /* there, from `offset` on */
    int64_t offset;
    bool checked; /* they have the member's checksum; if not, that is left to ki_zip_check */
};
/* A stored member's bytes are where they are; others are unpacked to `room`, which grows as they come. *left
 * is how many bytes members may still have; it is counted down. */
kiln_status ki_zip_open_member(struct ki_zip_bytes *bytes, const struct ki_zip_archive *zip,
                               const struct ki_zip_member *member, struct ki_bytes *room, int64_t *left);
/* Bytes [from, from + bytes) of a deflated member of an archive in a file, which has so many, to `to`. All
 * before them are inflated, too, but no more than 2 MiB are kept. *stream, NULL at first, goes on from where
 * the last call ended, and begins anew for what lies before that. Its checksum is looked at where the member
 * ends. */
struct ki_zip_stream;
kiln_status ki_zip_inflate(struct ki_zip_stream **stream, void *to, const struct ki_zip_archive *zip,
                           const struct ki_zip_member *member, int64_t from, int64_t bytes);
void ki_zip_stream_free(struct ki_zip_stream *stream); /* NULL is allowed */
/* Fails unless that is the member's checksum. */
kiln_status ki_zip_check(const struct ki_zip_archive *zip, const struct ki_zip_member *member, uint32_t crc);

#endif
