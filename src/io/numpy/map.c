/* An .npy file whose elements lie as a matrix of ours would, or are narrower numbers: the header is read, the
 * elements are checked where they are. */
#include "io/numpy/map.h"

#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "io/numpy/npy.h"

enum { MARK = 6 };

kiln_status ki_mapping_refuse(const struct ki_mapping *m, const char *why, const char *hint) {
    const struct ki_place place = {m->file->name, 0, 0, -1};
    ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "the rows cannot stay in the file: %s", why);
    return ki_hint("%s", hint);
}

static kiln_status read_header(struct ki_npy *npy, int64_t *header, struct ki_mapping *m) {
    const struct ki_place place = {m->file->name, 0, 0, 0};
    const int64_t most = ki_min(m->bytes, KI_NPY_HEADER_LIMIT);
    char *begin = ki_alloc((size_t)most);
    kiln_status status;
    if (!begin) return ki_fail_nomem((size_t)most, "the .npy header");
    TRY(ki_file_read(m->file, begin, 0, most));
    TRY(ki_npy_header_size(header, begin, (size_t)most, &place));
    TRY(ki_npy_header(npy, begin, (size_t)ki_min(most, *header), &place));
done:
    ki_free(begin);
    return status;
}

static kiln_status check_layout(const struct ki_npy *npy, int64_t header, const struct ki_mapping *m) {
    const int64_t element = m->options->type == KILN_F32 ? 4 : 8;
    const struct ki_place place = {m->file->name, 0, 0, m->bytes};
    if (npy->fortran && npy->shape[0] > 1 && npy->shape[1] > 1)
        return ki_mapping_refuse(m, "they are stored by columns",
                                 "save numpy.ascontiguousarray(X), or leave --map out");
    m->file->element = ki_npy_element(npy, m->options->type);
    if (!m->file->element && !ki_npy_native(npy, m->options->type))
        return ki_mapping_refuse(m,
                                 element == 4 ? "its elements are no f32 of this machine"
                                              : "its elements are no f64 of this machine",
                                 ki_npy_remedy(npy, m->options->type));
    if (m->bytes != header + npy->bytes) {
        ki_fail_at(KILN_ERR_PARSE, &place, "the header promises %lld bytes of data, the file has %lld",
                   (long long)npy->bytes, (long long)(m->bytes - header));
        return ki_hint("the file is cut off or longer than its array; save it again with numpy.save");
    }
    return KILN_OK;
}

static kiln_status check_elements(const struct ki_npy *npy, int64_t header, struct ki_mapping *m) {
    const kiln_read_options *options = m->options;
    const int64_t count = npy->shape[0] * npy->shape[1];
    struct ki_numbers numbers = {npy, options->type, NULL, 0, count, false, INT64_MAX, false};
    struct ki_chunks chunks = {.file = m->file,
                               .offset = header,
                               .count = count,
                               .element = npy->itemsize,
                               .threads = options->threads,
                               .use = ki_numbers_use,
                               .of = &numbers,
                               .watch = &m->watch};
    unsigned char raw[8];
    kiln_status status = KILN_OK;
    if (options->allow_nonfinite || npy->kind != 'f') return KILN_OK;
    TRY(ki_chunks_run(&chunks));
    if (numbers.bad == INT64_MAX) goto done;
    TRY(ki_file_read(m->file, raw, header + numbers.bad * npy->itemsize, npy->itemsize));
    TRY(ki_npy_fail_nonfinite(npy, m->file->name, header, numbers.bad, ki_npy_number(npy, raw),
                              options->type));
done:
    return status;
}

static kiln_status map_npy(struct ki_table *table, struct ki_mapping *m) {
    struct ki_npy npy;
    int64_t header;
    kiln_status status;
    TRY(read_header(&npy, &header, m));
    TRY(ki_npy_check_matrix(&npy, m->file->name));
    TRY(check_layout(&npy, header, m));
    TRY(check_elements(&npy, header, m));
    table->format = KILN_DENSE;
    table->rows = npy.shape[0];
    table->cols = npy.shape[1];
    table->nnz = table->rows * table->cols;
    m->file->at[KI_VALUES] = header;
done:
    return status;
}

kiln_status ki_map_table(struct ki_table *table, kiln_file_format *format, int64_t *bytes, const char *path,
                         const kiln_read_options *options) {
    struct ki_mapping m = {.options = options, .watch = {.name = path, .control = options->control}};
    char mark[MARK] = "";
    kiln_status status;
    if (strcmp(path, "-") == 0) {
        ki_fail(KILN_ERR_ARGUMENT, "standard input cannot be read again whenever its rows are needed");
        return ki_hint("name a file, or leave --map out");
    }
    TRY(ki_file_open(&m.file, &m.bytes, path));
    if (options->limit > 0 && m.bytes > options->limit)
        TRY(ki_fail(KILN_ERR_LIMIT, "%s has %lld bytes, more than the allowed %lld", path, (long long)m.bytes,
                    (long long)options->limit));
    m.watch.start = ki_clock();
    m.watch.total = m.bytes;
    TRY(ki_file_read(m.file, mark, 0, ki_min(m.bytes, MARK)));
    if (m.bytes >= MARK && memcmp(mark, "\x93NUMPY", 6) == 0)
        *format = KILN_FILE_NPY;
    else if (m.bytes >= MARK && memcmp(mark, "PK\3\4", 4) == 0)
        *format = KILN_FILE_NPZ;
    else if (memcmp(mark, "\x1f\x8b", 2) == 0 || memcmp(mark, "\x28\xb5\x2f\xfd", 4) == 0)
        TRY(ki_mapping_refuse(&m, "it is compressed", "decompress it, or leave --map out"));
    else if (*format != KILN_FILE_PACKED)
        TRY(ki_mapping_refuse(&m, "it is no uncompressed .npy or .npz, and no packed file",
                              "convert it, or leave --map out"));
    TRY(*format == KILN_FILE_NPY   ? map_npy(table, &m)
        : *format == KILN_FILE_NPZ ? ki_map_npz(table, &m)
                                   : ki_map_panels(table, &m));
    TRY(ki_file_check(m.file));
    *bytes = m.bytes;
    table->file = m.file;
    m.file = NULL;
done:
    ki_file_close(m.file);
    return status;
}
