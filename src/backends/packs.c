/* kiln_kernels_build: each program for each architecture through NVRTC, as devices build it, and all of them
 * in one file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/nvrtc.h"
#include "backends/usual.h"
#include "core/kernels/kernel_source.h"
#include "core/kernels/kernels.h"
#include "core/kernels/pack.h"
#include "core/seams.h"
#include "core/sha256.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/threads.h"

enum { ARCHITECTURES_MOST = 16, PROGRAMS_MOST = 1 << 16, FILE_NAME = 64 };

/* A line of the list. */
struct program {
    char *line, *source;
    const char *name, *options; /* in the line */
    int number;
    int architecture; /* that it is for; 0: for each */
};

/* A program for an architecture, and what came of it. */
struct part {
    const struct program *program;
    kiln_status status;
    struct ki_error_copy error;
};

struct order {
    int architectures[ARCHITECTURES_MOST], architecture_count;
    struct program *programs;
    int64_t count, room;
    struct part *parts; /* program by program, in each the architectures */
    struct ki_packed *packed;
    int64_t part_count;
};

/* The number that stands for "sm_90", "90", or, as PTX, "compute_90"; 0 for any other word. */
static int architecture_of(const char *word, size_t length) {
    static const char machine[] = "sm_", ptx[] = "compute_";
    char text[16], *end = text;
    snprintf(text, sizeof text, "%.*s", (int)ki_min((int64_t)length, 15), word);
    const bool portable = !strncmp(text, ptx, sizeof ptx - 1);
    const char *digits = text + (portable                                      ? sizeof ptx - 1
                                 : !strncmp(text, machine, sizeof machine - 1) ? sizeof machine - 1
                                                                               : 0);
    const long number = *digits >= '0' && *digits <= '9' ? strtol(digits, &end, 10) : 0;
    if (*end || length > 11 || number < 50 || number > 999) return 0;
    return (int)number + (portable ? KI_PACK_PTX : 0);
}

static kiln_status take_architecture(struct order *order, const char *word, size_t length) {
    const int number = architecture_of(word, length);
    if (!number) {
        ki_fail(KILN_ERR_ARGUMENT, "'%.*s' is no architecture of a GPU", (int)ki_min((int64_t)length, 40),
                word);
        return ki_hint("sm_90 for compute capability 9.0, compute_90 for PTX that later GPUs take; several "
                       "are separated by commas");
    }
    if (order->architecture_count == ARCHITECTURES_MOST)
        return ki_fail(KILN_ERR_ARGUMENT, "more than %d architectures", ARCHITECTURES_MOST);
    for (int i = 0; i < order->architecture_count; i++)
        if (order->architectures[i] == number) return KILN_OK;
    const kiln_status status = ki_nvrtc_load(number & ~KI_PACK_PTX);
    if (status == KILN_OK) order->architectures[order->architecture_count++] = number;
    return status;
}

/* Notebooks' T4 (75), A100, the RTX generations, H100 and H200 (90), B200, RTX of Blackwell (120), and PTX
 * for those that will come. */
static const int usual[] = {75, 80, 86, 89, 90, 100, 120, KI_PACK_PTX + 75};

static kiln_status take_architectures(struct order *order, const char *list) {
    kiln_status status = KILN_OK;
    for (size_t i = 0; !list && i < sizeof usual / sizeof *usual; i++)
        if ((status = ki_nvrtc_load(usual[i] & ~KI_PACK_PTX)) == KILN_OK)
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

/* [ARCHITECTURE] FILE TYPE DEFINES */
static kiln_status read_line(struct program *program) {
    char file[FILE_NAME], type[4];
    int used = 0;
    const size_t first = strcspn(program->line, " ");
    program->architecture = architecture_of(program->line, first);
    program->name = program->line + (program->architecture ? first + (program->line[first] == ' ') : 0);
    const bool two = sscanf(program->name, "%63s %3s%n", file, type, &used) == 2;
    if (!two || (strcmp(type, "f32") != 0 && strcmp(type, "f64") != 0) ||
        (program->name[used] && program->name[used] != ' '))
        return bad_line(program, "does not name a program");
    program->options = program->name + used + (program->name[used] == ' ');
    for (const char *word = program->options + strspn(program->options, " "); *word;
         word += strcspn(word, " "), word += strspn(word, " "))
        if (*word != '-') return bad_line(program, "has an option that does not begin with '-'");
    if (!known_file(file)) return bad_line(program, "names a kernel that this library does not have");
    return ki_kernel_source(&program->source, "cuda", file, strcmp(type, "f32") == 0 ? KILN_F32 : KILN_F64);
}

static kiln_status take_line(struct order *order, const char *line, size_t length, int number) {
    if (order->count == order->room) {
        order->room = order->room ? 2 * order->room : 64;
        if (order->room > PROGRAMS_MOST)
            return ki_fail(KILN_ERR_ARGUMENT, "more than %d lines of programs", PROGRAMS_MOST);
        struct program *grown = ki_resize(order->programs, (size_t)order->room * sizeof *grown);
        if (!grown) return ki_fail_nomem((size_t)order->room * sizeof *grown, "the list of programs");
        order->programs = grown;
    }
    struct program *program = &order->programs[order->count];
    *program = (struct program){.number = number, .line = ki_resize(NULL, length + 1)};
    if (!program->line) return ki_fail_nomem(length + 1, "the list of programs");
    order->count++;
    memcpy(program->line, line, length);
    program->line[length] = '\0';
    return read_line(program);
}

static kiln_status take_usual(struct order *order);

static kiln_status take_list(struct order *order, const char *list) {
    static const char usual_ones[] = "usual";
    kiln_status status = KILN_OK;
    int number = 1;
    for (const char *line = list; *line && status == KILN_OK; number++) {
        const size_t length = strcspn(line, "\n"),
                     used = length && line[length - 1] == '\r' ? length - 1 : length;
        if (used == sizeof usual_ones - 1 && !strncmp(line, usual_ones, used))
            status = take_usual(order);
        else if (used && *line != '#')
            status = take_line(order, line, used, number);
        line += length + (line[length] == '\n');
    }
    return status;
}

static kiln_status take_usual(struct order *order) {
    char *list = NULL;
    kiln_status status = ki_usual_programs(&list);
    if (status == KILN_OK) status = take_list(order, list);
    ki_free(list);
    return status;
}

static kiln_status take_programs(struct order *order, const char *list) {
    const kiln_status status = list ? take_list(order, list) : take_usual(order);
    if (status != KILN_OK || order->count) return status;
    ki_fail(KILN_ERR_ARGUMENT, "there is no program to build");
    return ki_hint("a line 'usual' stands for what serves most work; 'kiln kernels list' writes what this "
                   "machine has built");
}

static void build_one(void *arg, int number) {
    struct order *order = arg;
    struct part *part = &order->parts[number];
    struct ki_packed *packed = &order->packed[number];
    const struct program *program = part->program;
    char hash[65];
    ki_sha256_hex(hash, program->source, strlen(program->source));
    ki_pack_key(packed->key, hash, program->options);
    part->status = ki_nvrtc_compile(&packed->code, &packed->bytes, program->source, program->options,
                                    packed->architecture);
    if (part->status != KILN_OK) ki_error_keep(&part->error);
}

/* The first failure is told with its program. */
static kiln_status first_failure(const struct order *order) {
    for (int64_t i = 0; i < order->part_count; i++) {
        const struct part *part = &order->parts[i];
        const int architecture = order->packed[i].architecture;
        if (part->status == KILN_ERR_BUILD)
            return ki_fail(KILN_ERR_BUILD, "'%.200s' for %s_%d: %.600s", order->packed[i].name,
                           architecture & KI_PACK_PTX ? "compute" : "sm", architecture & ~KI_PACK_PTX,
                           part->error.message);
        if (part->status != KILN_OK) return ki_error_renew(&part->error);
    }
    return KILN_OK;
}

static kiln_status build_all(struct order *order, int threads) {
    const int64_t most = order->count * order->architecture_count;
    order->packed = ki_calloc((size_t)most * sizeof *order->packed);
    order->parts = ki_calloc((size_t)most * sizeof *order->parts);
    if (!order->packed || !order->parts)
        return ki_fail_nomem((size_t)most * sizeof *order->parts, "the programs' code");
    for (int64_t i = 0; i < most; i++) {
        const struct program *program = &order->programs[i / order->architecture_count];
        const int architecture = order->architectures[i % order->architecture_count];
        if (program->architecture && program->architecture != architecture) continue;
        order->packed[order->part_count].architecture = architecture;
        order->packed[order->part_count].name = program->name;
        order->parts[order->part_count++].program = program;
    }
    if (!order->part_count)
        return ki_fail(KILN_ERR_ARGUMENT, "no program of the list is for any of these architectures");
    ki_parallel(threads, (int)order->part_count, build_one, order);
    return first_failure(order);
}

static void free_order(struct order *order) {
    for (int64_t i = 0; i < order->part_count; i++) ki_free(order->packed[i].code);
    for (int64_t i = 0; i < order->count; i++) {
        ki_free(order->programs[i].line);
        ki_free(order->programs[i].source);
    }
    ki_free(order->programs);
    ki_free(order->packed);
    ki_free(order->parts);
}

kiln_status kiln_kernels_build(const char *path, const kiln_pack_options *options, int64_t *built) {
    struct order order = {.count = 0};
    kiln_pack_options own;
    kiln_status status;
    if (!path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_kernels_build: path is NULL");
    TRY(KI_TAKE(kiln_pack_options, &own, options));
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    TRY(take_architectures(&order, own.architectures));
    TRY(take_programs(&order, own.programs));
    TRY(build_all(&order, own.threads > 0 ? own.threads : (int)ki_max(processors, 1)));
    int64_t count = order.part_count;
    TRY(ki_pack_write(path, order.packed, &count));
    if (built) *built = count;
done:
    free_order(&order);
    return status;
}
