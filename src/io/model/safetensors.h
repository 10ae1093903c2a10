/* The safetensors file: a container's bytes, checked in full before any of them is used.
 *
 *   8 bytes   little-endian length of the header
 *   header    JSON: {"__metadata__":{KEY:TEXT,...},
 * NAME:{"dtype":"F64","shape":[rows,cols],"data_offsets":[begin,end]},...} data      the tensors' values,
 * row-major, little-endian, without gaps, in order of name
 *
 * Kiln adds to the metadata "format" (the version of these rules) and "sha256", a checksum of all that the
 * file says: of every key and text, and of every tensor's name, type, shape and values. The two are not shown
 * as texts. */
#ifndef KI_SAFETENSORS_H
#define KI_SAFETENSORS_H

#include "io/model/container.h"

enum { KI_HEADER_LIMIT = 1 << 24 }; /* bytes; a schema with many categories is long */

/* Is this a key that the file keeps for itself? */
bool ki_safetensors_reserved(const char *key);

/* Appends the file's bytes to an output (io/output.h). The same container gives the same bytes. */
struct ki_output;
kiln_status ki_safetensors_write(struct ki_output *output, const struct ki_container *container);

/* Could these first bytes (at least 9) begin such a file? */
bool ki_safetensors_begins(const void *bytes, int64_t size);
/* The whole file in memory; `name` is for messages. Fills a zeroed container; on failure it stays empty. */
kiln_status ki_safetensors_parse(struct ki_container *container, const char *name, const void *bytes,
                                 int64_t size);

#endif
