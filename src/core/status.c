/* The per-thread error record. Fixed buffers: reporting "out of memory" must not need memory. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct ki_error_copy last = {
    .error = {.status = KILN_OK, .message = "", .hint = "", .file = "", .offset = -1, .subsystem = ""}};

static kiln_status record(kiln_status status, const struct ki_place *place, const char *subsystem, int code,
                          const char *format, va_list args) {
    static const struct ki_place nowhere = {NULL, 0, 0, -1};
    if (!place) place = &nowhere;
    char message[sizeof last.message];
    vsnprintf(message, sizeof message, format, args); /* the arguments may point into the old record */
    memcpy(last.message, message, sizeof message);
    snprintf(last.file, sizeof last.file, "%s", place->file ? place->file : "");
    last.hint[0] = '\0';
    last.error = (kiln_error){status,        last.message,  last.hint, last.file, place->line,
                              place->column, place->offset, subsystem, code};
    return status;
}

#define RECORD(place, subsystem, code)                                                                       \
    va_list args;                                                                                            \
    va_start(args, format);                                                                                  \
    record(status, place, subsystem, code, format, args);                                                    \
    va_end(args);                                                                                            \
    return status

kiln_status ki_fail(kiln_status status, const char *format, ...) {
    RECORD(NULL, "", 0);
}

kiln_status ki_fail_errno(kiln_status status, int code, const char *format, ...) {
    RECORD(NULL, "errno", code);
}

kiln_status ki_fail_native(kiln_status status, const char *subsystem, int code, const char *format, ...) {
    RECORD(NULL, subsystem, code);
}

kiln_status ki_fail_at(kiln_status status, const struct ki_place *place, const char *format, ...) {
    RECORD(place, "", 0);
}

kiln_status ki_fail_nomem(size_t bytes, const char *what) {
    return ki_fail(KILN_ERR_NOMEM, "out of memory: %s needs %zu bytes", what, bytes);
}

kiln_status ki_hint(const char *format, ...) {
    char hint[sizeof last.hint];
    va_list args;
    va_start(args, format);
    vsnprintf(hint, sizeof hint, format, args);
    va_end(args);
    memcpy(last.hint, hint, sizeof hint);
    return last.error.status;
}

const kiln_error *kiln_last_error(void) {
    return &last.error;
}

static const struct {
    kiln_status status;
    const char *name, *text;
} statuses[] = {
#define ROW(name, code, text) {KILN_##name, "KILN_" #name, text},
    KILN_STATUS_LIST(ROW)
#undef ROW
};

const char *kiln_status_name(kiln_status status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status) return statuses[i].name;
    return "KILN_ERR_UNKNOWN";
}

const char *kiln_status_text(kiln_status status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status) return statuses[i].text;
    return "unknown status";
}

void ki_error_keep(struct ki_error_copy *copy) {
    *copy = last;
}

kiln_status ki_error_renew(const struct ki_error_copy *copy) {
    last = *copy;
    last.error.message = last.message;
    last.error.hint = last.hint;
    last.error.file = last.file;
    return last.error.status;
}
