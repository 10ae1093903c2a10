/* kiln_kernels_build: each program for each architecture through NVRTC, as devices build it, and all of them
 * in one file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/nvrtc.h"
#include "core/kernels/kernel_source.h"
#include "core/kernels/kernels.h"
#include "core/kernels/pack.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/threads.h"

enum { ARCHITECTURES_MOST = 16, PROGRAMS_MOST = 1 << 16, FILE_NAME = 64 };

/* A line of the list. */
struct program {
    char *line, *source;
    const char *options; /* in the line */
    int number;
};

struct order {
    int architectures[ARCHITECTURES_MOST], architecture_count;
    struct program *programs;
    int64_t count;
    struct ki_packed *packed; /* program by program, in each the architectures */
    kiln_status *status;
    struct ki_error_copy *errors;
};

/* "sm_90" or "90". */
static kiln_status take_architecture(struct order *order, const char *word, size_t length) {
    char text[16], *end = text;
    snprintf(text, sizeof text, "%.*s", (int)ki_min((int64_t)length, 15), word);
    const long number = strtol(strncmp(text, "sm_", 3) ? text : text + 3, &end, 10);
    if (*end || length > 6 || number < 50 || number > 999) {
        ki_fail(KILN_ERR_ARGUMENT, "'%.*s' is no architecture of a GPU", (int)ki_min((int64_t)length, 40),
                word);
        return ki_hint("sm_90 for compute capability 9.0; several are separated by commas");
    }
    if (order->architecture_count == ARCHITECTURES_MOST)
        return ki_fail(KILN_ERR_ARGUMENT, "more than %d architectures", ARCHITECTURES_MOST);
    for (int i = 0; i < order->architecture_count; i++)
        if (order->architectures[i] == number) return KILN_OK;
    const kiln_status status = ki_nvrtc_load((int)number);
    if (status == KILN_OK) order->architectures[order->architecture_count++] = (int)number;
    return status;
}

/* Notebooks' T4 (75), A100, the RTX generations, H100 and H200 (90), B200, RTX of Blackwell (120). */
static const int usual[] = {75, 80, 86, 89, 90, 100, 120};

static kiln_status take_architectures(struct order *order, const char *list) {
    kiln_status status = KILN_OK;
    for (size_t i = 0; !list && i < sizeof usual / sizeof *usual; i++)
        if ((status = ki_nvrtc_load(usual[i])) == KILN_OK)
            order->architectures[order->architecture_count++] = usual[i];
    if (!list) return order->architecture_count ? KILN_OK : status;
    for (const char *word = list;;) {
        const size_t length = strcspn(word, ",");
        if ((status = take_architecture(order, word, length)) != KILN_OK || !word[length]) return status;
        word += length + 1;
    }
}

static kiln_status bad_line(const struct program *program, const char *why) {
    const struct ki_place place = {.line = program->number, .offset = -1};
    ki_fail_at(KILN_ERR_ARGUMENT, &place, "line %d: '%.200s' %s", program->number, program->line, why);
    return ki_hint("'kiln kernels list' writes such lines: FILE TYPE -DNAME=VALUE...");
}

static bool known_file(const char *file) {
    char name[FILE_NAME + 4];
    snprintf(name, sizeof name, "%s.cl", file);
    for (const struct ki_source *source = ki_sources; source->name; source++)
        if (!strcmp(source->name, name)) return true;
    return false;
}

/* FILE TYPE DEFINES */
static kiln_status read_line(struct program *program) {
    char file[FILE_NAME], type[4];
    int used = 0;
    const bool two = sscanf(program->line, "%63s %3s%n", file, type, &used) == 2;
    if (!two || (strcmp(type, "f32") != 0 && strcmp(type, "f64") != 0) ||
        (program->line[used] && program->line[used] != ' '))
        return bad_line(program, "does not name a program");
    program->options = program->line + used + (program->line[used] == ' ');
    for (const char *word = program->options + strspn(program->options, " "); *word;
         word += strcspn(word, " "), word += strspn(word, " "))
        if (*word != '-') return bad_line(program, "has an option that does not begin with '-'");
    if (!known_file(file)) return bad_line(program, "names a kernel that this library does not have");
    return ki_kernel_source(&program->source, "cuda", file, strcmp(type, "f32") == 0 ? KILN_F32 : KILN_F64);
}

static kiln_status take_programs(struct order *order, const char *list) {
    int64_t room = 1;
    for (const char *at = list; *at; at++) room += *at == '\n';
    if (room > PROGRAMS_MOST)
        return ki_fail(KILN_ERR_ARGUMENT, "more than %d lines of programs", PROGRAMS_MOST);
    order->programs = ki_calloc((size_t)room * sizeof *order->programs);
    if (!order->programs)
        return ki_fail_nomem((size_t)room * sizeof *order->programs, "the list of programs");
    int number = 1;
    for (const char *line = list; *line; number++) {
        const size_t length = strcspn(line, "\n"),
                     used = length && line[length - 1] == '\r' ? length - 1 : length;
        if (used && *line != '#') {
            struct program *program = &order->programs[order->count++];
            program->number = number;
            program->line = ki_resize(NULL, used + 1);
            if (!program->line) return ki_fail_nomem(used + 1, "the list of programs");
            memcpy(program->line, line, used);
            program->line[used] = '\0';
            const kiln_status status = read_line(program);
            if (status != KILN_OK) return status;
        }
        line += length + (line[length] == '\n');
    }
    if (order->count) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "there is no program to build");
    return ki_hint(
        "'kiln kernels list' writes those that this machine has built; run what you want to be fast first");
}

static void build_one(void *arg, int part) {
    struct order *order = arg;
    const struct program *program = &order->programs[part / order->architecture_count];
    struct ki_packed *packed = &order->packed[part];
    packed->architecture = order->architectures[part % order->architecture_count];
    packed->name = program->line;
    ki_pack_key(packed->key, program->source, program->options);
    order->status[part] = ki_nvrtc_compile(&packed->code, &packed->bytes, program->source, program->options,
                                           packed->architecture);
    if (order->status[part] != KILN_OK) ki_error_keep(&order->errors[part]);
}

/* The first failure is told with its program. */
static kiln_status first_failure(const struct order *order, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const struct ki_error_copy *error = &order->errors[i];
        if (order->status[i] == KILN_ERR_BUILD)
            return ki_fail(KILN_ERR_BUILD, "'%.200s' for sm_%d: %.600s", order->packed[i].name,
                           order->packed[i].architecture, error->message);
        if (order->status[i] != KILN_OK) return ki_error_renew(error);
    }
    return KILN_OK;
}

static kiln_status build_all(struct order *order, int threads) {
    const int64_t count = order->count * order->architecture_count;
    order->packed = ki_calloc((size_t)count * sizeof *order->packed);
    order->status = ki_calloc((size_t)count * sizeof *order->status);
    order->errors = ki_calloc((size_t)count * sizeof *order->errors);
    if (!order->packed || !order->status || !order->errors)
        return ki_fail_nomem((size_t)count * sizeof *order->errors, "the programs' code");
    ki_parallel(threads, (int)count, build_one, order);
    return first_failure(order, count);
}

static void free_order(struct order *order) {
    for (int64_t i = 0; order->packed && i < order->count * order->architecture_count; i++)
        ki_free(order->packed[i].code);
    for (int64_t i = 0; i < order->count; i++) {
        ki_free(order->programs[i].line);
        ki_free(order->programs[i].source);
    }
    ki_free(order->programs);
    ki_free(order->packed);
    ki_free(order->status);
    ki_free(order->errors);
}

kiln_status kiln_kernels_build(const char *path, const kiln_pack_options *options, int64_t *built) {
    struct order order = {.count = 0};
    kiln_pack_options own;
    kiln_status status;
    if (!path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_kernels_build: path is NULL");
    TRY(KI_TAKE(kiln_pack_options, &own, options));
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    TRY(take_architectures(&order, own.architectures));
    TRY(take_programs(&order, own.programs ? own.programs : ""));
    TRY(build_all(&order, own.threads > 0 ? own.threads : (int)ki_max(processors, 1)));
    int64_t count = order.count * order.architecture_count;
    TRY(ki_pack_write(path, order.packed, &count));
    if (built) *built = count;
done:
    free_order(&order);
    return status;
}
