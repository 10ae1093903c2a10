#include "io/formats.h"

#include <string.h>
#include <strings.h>

static const struct ki_format formats[] = {
    [KILN_FILE_AUTO] = {.name = "auto", .title = "data"},
    [KILN_FILE_LIBSVM] = {.name = "libsvm",
                          .title = "LIBSVM",
                          .endings = {".svm", ".libsvm", ".svmlight"},
                          .read = ki_read_libsvm,
                          .write = ki_write_libsvm,
                          .cut = KI_CUT_LINES},
    [KILN_FILE_MATRIX_MARKET] = {.name = "mtx",
                                 .title = "Matrix Market",
                                 .marks = {"%%MatrixMarket"},
                                 .endings = {".mtx"},
                                 .read = ki_read_matrix_market,
                                 .write = ki_write_matrix_market},
    [KILN_FILE_CSV] = {.name = "csv",
                       .title = "CSV",
                       .endings = {".csv"},
                       .read_ending = ".tsv",
                       .read = ki_read_csv,
                       .write = ki_write_csv,
                       .cut = KI_CUT_RECORDS,
                       .names_columns = true,
                       .reads_all = true},
    [KILN_FILE_NPY] = {.name = "npy",
                       .title = ".npy",
                       .marks = {"\x93NUMPY"},
                       .endings = {".npy"},
                       .read = ki_read_npy,
                       .write = ki_write_npy,
                       .cut = KI_CUT_ROWS},
    [KILN_FILE_NPZ] = {.name = "npz",
                       .title = ".npz",
                       .marks = {"PK\3\4", "PK\5\6"},
                       .endings = {".npz"},
                       .read = ki_read_npz,
                       .write = ki_write_npz,
                       .cut = KI_CUT_ARRAYS},
    [KILN_FILE_EDGES] = {.name = "edges",
                         .title = "an edge list",
                         .plural = "edge lists",
                         .endings = {".edges"},
                         .read = ki_read_edges,
                         .reads_all = true,
                         .names_vertices = true},
    [KILN_FILE_BAG_OF_WORDS] = {.name = "docword",
                                .title = "a bag of words",
                                .plural = "bags of words",
                                .prefix = "docword.",
                                .read = ki_read_bag_of_words},
    [KILN_FILE_RATINGS] = {.name = "ratings",
                           .title = "a list of ratings",
                           .plural = "lists of ratings",
                           .read = ki_read_ratings,
                           .reads_all = true,
                           .names_vertices = true},
    [KILN_FILE_PACKED] = {.name = "packed",
                          .title = "a packed file",
                          .marks = {"{\"__metadata__\":{\"format\":\"kiln data "},
                          .mark_at = 8,
                          .endings = {".kiln-data"},
                          .read = ki_read_panels,
                          .write = ki_write_panels,
                          .cut = KI_CUT_ROWS,
                          .names_columns = true},
};
enum { FORMATS = sizeof formats / sizeof *formats };

const struct ki_format *ki_format(kiln_file_format format) {
    static const struct ki_format none = {.name = NULL};
    return (unsigned)format < FORMATS ? &formats[format] : &none;
}

const char *kiln_format_name(kiln_file_format format) {
    return ki_format(format)->name;
}

bool ki_begins_with(const char *text, size_t size, const char *mark) {
    const size_t length = strlen(mark);
    return size >= length && memcmp(text, mark, length) == 0;
}

bool ki_ends_with(const char *name, size_t size, const char *ending) {
    const size_t length = strlen(ending);
    return size > length && strncasecmp(name + size - length, ending, length) == 0;
}

size_t ki_bare_length(const char *name) {
    size_t size = strlen(name);
    if (ki_ends_with(name, size, ".gz")) size -= 3;
    if (ki_ends_with(name, size, ".zst")) size -= 4;
    return size;
}

kiln_file_format ki_format_by_mark(const char *text, size_t size) {
    for (int i = 0; i < FORMATS; i++)
        for (int k = 0; k < 2 && formats[i].marks[k]; k++)
            if (size > (size_t)formats[i].mark_at &&
                ki_begins_with(text + formats[i].mark_at, size - (size_t)formats[i].mark_at,
                               formats[i].marks[k]))
                return (kiln_file_format)i;
    return KILN_FILE_AUTO;
}

kiln_file_format ki_format_by_path(const char *path, bool writable) {
    const size_t size = ki_bare_length(path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < FORMATS && !writable; i++)
        if (formats[i].prefix && strncmp(name, formats[i].prefix, strlen(formats[i].prefix)) == 0)
            return (kiln_file_format)i;
    for (int i = 0; i < FORMATS; i++) {
        const char *other = formats[i].read_ending;
        if (writable && !formats[i].write) continue;
        if (!writable && other && ki_ends_with(path, size, other)) return (kiln_file_format)i;
        for (int k = 0; k < 3 && formats[i].endings[k]; k++)
            if (ki_ends_with(path, size, formats[i].endings[k])) return (kiln_file_format)i;
    }
    return KILN_FILE_AUTO;
}
