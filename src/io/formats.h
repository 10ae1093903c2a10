/* The formats of files, one row each: what they are called, how they are told apart, who reads and writes
 * them. */
#ifndef KI_FORMATS_H
#define KI_FORMATS_H

#include "io/data.h"

/* Says how the parts of a file are cut that several processes read (io/part.c). */
enum ki_format_cut {
    KI_CUT_NONE,    /* not here: the first process reads all, or their entries are dealt out */
    KI_CUT_LINES,   /* each line by itself */
    KI_CUT_RECORDS, /* lines, unless they are within quotes */
    KI_CUT_ROWS,    /* by their number */
    KI_CUT_ARRAYS   /* of an archive */
};

struct ki_format {
    const char *name;     /* as options and reports have it; NULL: no format has the number */
    const char *title;    /* for messages: "this is ..." */
    const char *plural;   /* "... are read, not written" */
    const char *marks[2]; /* what its files begin with, at byte mark_at */
    int mark_at;
    const char *endings[3];
    const char *read_ending; /* of files that are read, and not written */
    const char *prefix;      /* what their names begin with */
    ki_reader *read;
    ki_writer *write; /* NULL: it is read alone */
    enum ki_format_cut cut;
    bool reads_all; /* the reader takes further files itself, as it numbers names or levels as they come */
    bool names_columns;  /* its files say which columns are targets, weights and groups */
    bool names_vertices; /* so with the names of rows and columns, which no part can number alone */
};

/* The number may be none of a format's: its name is NULL then. */
const struct ki_format *ki_format(kiln_file_format format);
/* The format with such a mark, or whose name the path has, compression's ending left out; AUTO: none.
 * writable: of those that are written. */
kiln_file_format ki_format_by_mark(const char *text, size_t size);
kiln_file_format ki_format_by_path(const char *path, bool writable);

bool ki_begins_with(const char *text, size_t size, const char *mark);
/* In any case, and with something before it. */
bool ki_ends_with(const char *name, size_t size, const char *ending);
/* Length of a file's name without the ending that compression has added. */
size_t ki_bare_length(const char *name);

#endif
