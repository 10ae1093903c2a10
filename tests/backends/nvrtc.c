/* Every kernel, in each variant that its lines "// build" name, compiles to machine code for an H100 or H200,
 * if there is an NVRTC. f32 takes the options that users' kernels do; f64, which has the same text, does
 * without ptxas's optimiser, a third of the time. */
#include "backends/nvrtc.h"

#include <stdio.h>
#include <string.h>

#include "core/kernels/kernel_source.h"
#include "core/kernels/kernels.h"
#include "core/matrix.h"
#include "core/seams.h"

enum { ARCHITECTURE = 90 };
static const char LINE[] = "\n// build";

static int compile(const char *file, const char *options, kiln_type type) {
    char *source = NULL;
    void *cubin = NULL;
    size_t bytes = 0;
    kiln_status status = ki_kernel_source(&source, "cuda", file, type);
    if (status == KILN_OK) status = ki_nvrtc_compile(&cubin, &bytes, source, options, ARCHITECTURE);
    if (status != KILN_OK)
        printf("%s %s (%s): %s\n", file, options, ki_type_name(type), kiln_last_error()->message);
    /* A cubin is an ELF file. */
    if (status == KILN_OK && (bytes < 4 || memcmp(cubin, "\177ELF", 4) != 0)) status = KILN_ERR_BUILD;
    ki_free(source);
    ki_free(cubin);
    return status != KILN_OK;
}

/* The options of "\n// build GROUP=128 INDEX64\n": "-DGROUP=128 -DINDEX64". */
static void options_of(char *options, size_t bytes, const char *line) {
    const size_t end = 1 + strcspn(line + 1, "\n");
    size_t used = 0;
    options[0] = '\0';
    for (size_t at = strlen(LINE); at < end;) {
        const size_t length = strcspn(line + at + 1, " \n");
        used += (size_t)snprintf(options + used, bytes - used, " -D%.*s", (int)length, line + at + 1);
        at += length + 1;
    }
}

/* Counts how many variants there were, and how many of them failed. */
static void compile_file(int *compiled, int *failed, const struct ki_source *source) {
    char file[64], options[256], plain[300];
    snprintf(file, sizeof file, "%.*s", (int)(strlen(source->name) - strlen(".cl")), source->name);
    const int before = *compiled;
    for (const char *line = strstr(source->text, LINE); line; line = strstr(line + 1, LINE)) {
        options_of(options, sizeof options, line);
        snprintf(plain, sizeof plain, "%s --ptxas-options=-O0", options);
        *failed += compile(file, options, KILN_F32) + compile(file, plain, KILN_F64);
        *compiled += 2;
    }
    if (*compiled > before) return;
    printf("%s names no variant\n", source->name);
    (*failed)++;
}

int main(void) {
    int compiled = 0, failed = 0;
    if (ki_nvrtc_load(ARCHITECTURE) != KILN_OK) {
        printf("skip: %s\n", kiln_last_error()->message);
        return 77;
    }
    for (const struct ki_source *source = ki_sources; source->name; source++)
        if (strstr(source->name, ".cl")) compile_file(&compiled, &failed, source);
    printf("NVRTC %s: %d of %d kernels failed\n", ki_nvrtc_version(), failed, compiled);
    return failed || !compiled;
}
