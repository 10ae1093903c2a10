/* Errors: a status code travels by return value, the detail waits in a per-thread record. */
#ifndef KI_STATUS_H
#define KI_STATUS_H

#include "kiln/base.h"

#if defined(__GNUC__)
#define KI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define KI_PRINTF(text, first)
#endif

/* Calls, and on failure jumps to the function's one clean-up label. */
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        status = (call);                                                                                     \
        if (status != KILN_OK) goto done;                                                                    \
    } while (0)

/* Each records the error for kiln_last_error() and returns its status, so that it can be returned or
 * TRYed. */
kiln_status ki_fail(kiln_status status, const char *format, ...) KI_PRINTF(2, 3);
kiln_status ki_fail_errno(kiln_status status, int code, const char *format, ...) KI_PRINTF(3, 4);
kiln_status ki_fail_native(kiln_status status, const char *subsystem, int code, const char *format, ...)
    KI_PRINTF(4, 5);
kiln_status ki_fail_nomem(size_t bytes, const char *what);

/* A place in an input file. file may be NULL; line and column 0 and offset -1 mean unknown. */
struct ki_place {
    const char *file;
    int64_t line, column, offset;
};
kiln_status ki_fail_at(kiln_status status, const struct ki_place *place, const char *format, ...)
    KI_PRINTF(3, 4);

/* Adds what to do about it to the error just recorded; returns its status. */
kiln_status ki_hint(const char *format, ...) KI_PRINTF(1, 2);

/* An error that another thread is to report: the one keeps the record that it has just made, the other renews
 * it. */
struct ki_error_copy {
    kiln_error error;
    char message[1024], hint[512], file[1024];
};
void ki_error_keep(struct ki_error_copy *copy);
kiln_status ki_error_renew(const struct ki_error_copy *copy);

#endif
