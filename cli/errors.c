/* Errors: kiln: FILE:LINE:COLUMN: MESSAGE, then hint: WHAT TO DO. */
#include "errors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "talk.h"
#include "wording.h"

/* Exit codes by status, and by what was being done. */
static const struct {
    kiln_status status;
    int code[ACTIVITIES];
} codes[] = {
    /*                          working  reading  model  writing */
    {KILN_OK, {0, 0, 0, 0}},
    {KILN_ERR_INTERNAL, {1, 1, 1, 1}},
    {KILN_ERR_ARGUMENT, {2, 2, 2, 2}},
    {KILN_ERR_PARSE, {3, 3, 7, 1}},
    {KILN_ERR_DATA, {3, 3, 7, 3}},
    {KILN_ERR_NOMEM, {6, 6, 6, 6}},
    {KILN_ERR_DEVICE_NOMEM, {6, 6, 6, 6}},
    {KILN_ERR_DEVICE, {5, 5, 5, 5}},
    {KILN_ERR_DEVICE_LOST, {5, 5, 5, 5}},
    {KILN_ERR_BUILD, {1, 1, 1, 1}},
    {KILN_ERR_IO, {3, 3, 7, 1}}, /* while working: data that stay in their file */
    {KILN_ERR_LIMIT, {3, 3, 7, 3}},
    {KILN_ERR_UNSUPPORTED, {2, 3, 7, 2}},
    {KILN_ERR_CANCELLED, {130, 130, 130, 130}},
    {KILN_ERR_MODEL, {7, 7, 7, 7}},
};

int exit_code(kiln_status status, enum activity activity) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status) return codes[i].code[activity];
    return 1;
}

json_t *error_json(const kiln_error *error) {
    json_t *object = json_object();
    json_put_text(object, "code", kiln_status_name(error->status));
    json_put_text(object, "message", error->message);
    json_put_text(object, "file", *error->file ? error->file : NULL);
    json_put(object, "line", error->line > 0 ? json_integer(error->line) : json_null());
    json_put(object, "column", error->column > 0 ? json_integer(error->column) : json_null());
    json_put(object, "offset", error->offset >= 0 ? json_integer(error->offset) : json_null());
    json_put_text(object, "hint", *error->hint ? error->hint : NULL);
    return object;
}

static int report(const kiln_error *error, enum activity activity) {
    char place[1100] = "";
    size_t length = 0;
    if (*error->file) length = (size_t)snprintf(place, sizeof place, "%.1000s:", error->file);
    if (*error->file && error->line > 0)
        length += (size_t)snprintf(place + length, sizeof place - length, "%" PRId64 ":", error->line);
    if (*error->file && error->line > 0 && error->column > 0)
        length += (size_t)snprintf(place + length, sizeof place - length, "%" PRId64 ":", error->column);
    if (*error->file && error->line <= 0 && error->offset > 0)
        length +=
            (size_t)snprintf(place + length, sizeof place - length, " byte %" PRId64 ":", error->offset);
    say_error("kiln: %s%s%s", place, length ? " " : "", error->message);
    if (*error->hint) say_error("hint: %s", error->hint);
    int code = exit_code(error->status, activity);
    if (!talk_json()) return code;
    json_t *object = json_object();
    json_put(object, "error", error_json(error));
    char *text = json_dumps(object, JSON_INDENT(2)); /* whole before it is printed: see memory_or_end */
    if (text) puts(text);
    free(text);
    json_decref(object);
    return code;
}

static const char *offered;

void offer_for_memory(const char *more) {
    offered = more;
}

int report_library(enum activity activity) {
    const kiln_error *error = kiln_last_error();
    /* A signal may surface as a failed system call as well as as a cancelled read. */
    if (!talk_interrupted() || error->status == KILN_ERR_MODEL) {
        char message[1024], hint[1024];
        kiln_error own = *error;
        own.message = wording(message, sizeof message, error->message);
        own.hint = wording(hint, sizeof hint, error->hint);
        const size_t used = strlen(hint);
        if (offered && used > 0 && error->status == KILN_ERR_NOMEM)
            snprintf(hint + used, sizeof hint - used, "%s", offered);
        return report(&own, activity);
    }
    return report_own(KILN_ERR_CANCELLED, activity, "", "interrupted; nothing was written");
}

int report_own(kiln_status status, enum activity activity, const char *hint, const char *format, ...) {
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const kiln_error error = {
        .status = status, .message = message, .hint = hint, .file = "", .offset = -1, .subsystem = ""};
    return report(&error, activity);
}
