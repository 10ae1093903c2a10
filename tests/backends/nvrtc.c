/* Every variant of kernels.txt compiles to machine code for an H100 or H200, if there is an NVRTC. */
#include "backends/nvrtc.h"

#include <stdio.h>
#include <string.h>

#include "core/kernel_source.h"
#include "core/matrix.h"
#include "core/seams.h"

enum { ARCHITECTURE = 90 };

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

int main(void) {
    if (ki_nvrtc_load(ARCHITECTURE) != KILN_OK) {
        printf("skip: %s\n", kiln_last_error()->message);
        return 77;
    }
    FILE *table = fopen(KILN_TEST_DATA "/backends/kernels.txt", "r");
    if (!table) return 1;
    char line[256];
    int compiled = 0, failed = 0;
    while (fgets(line, sizeof line, table)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || !line[0]) continue;
        const size_t length = strcspn(line, " ");
        const char *options = line[length] ? line + length + 1 : "";
        line[length] = '\0';
        failed += compile(line, options, KILN_F32) + compile(line, options, KILN_F64);
        compiled += 2;
    }
    fclose(table);
    printf("NVRTC %s: %d of %d kernels failed\n", ki_nvrtc_version(), failed, compiled);
    return failed || !compiled;
}
