/* This file says what is wrong with a record of a CSV file as a whole, in words. What may be wrong with its
 * values: table/errors.c. */
#include "io/csv/csv.h"

kiln_status ki_csv_fail(const struct ki_table_error *error, int64_t fields, const char *name,
                        const struct ki_block *text) {
    struct ki_place place = ki_table_place(name, text, error->at);
    switch ((enum ki_csv_fault)error->fault) {
    case KI_CSV_BARE_QUOTE:
        ki_fail_at(KILN_ERR_PARSE, &place, "a quote inside a field that does not begin with one");
        return ki_hint("put the whole field in quotes and double the quotes in it: \"5\"\" pipe\"");
    case KI_CSV_AFTER_QUOTE:
        ki_fail_at(KILN_ERR_PARSE, &place, "text behind the closing quote of a field");
        return ki_hint("double the quotes within a quoted field");
    case KI_CSV_OPEN_QUOTE:
        ki_fail_at(KILN_ERR_PARSE, &place, "the quote that opens this field is not closed within %s",
                   text->size < KI_CSV_LARGEST_RECORD ? "the file" : "64 MiB");
        return ki_hint("close the quote, or remove it");
    case KI_CSV_LONE_CR:
        ki_fail_at(KILN_ERR_PARSE, &place, "a carriage return without line feed");
        return ki_hint("convert the line ends, or quote the field");
    case KI_CSV_FIELDS:
        ki_fail_at(KILN_ERR_PARSE, &place, "the row has %lld fields, the first line has %lld",
                   (long long)error->count, (long long)fields);
        return ki_hint("a delimiter within a field needs quotes around the field");
    default: return ki_fail(KILN_ERR_INTERNAL, "a CSV fault without words: %d", error->fault);
    }
}
