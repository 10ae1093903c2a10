/* Linux: /proc, and the tables of the ELF loader. */
#define _GNU_SOURCE
#include "core/os/os.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/sha256.h"

static const char here; /* an address in the file that this code is in */

int ki_os_processors_of(pid_t process) {
    cpu_set_t set;
    return sched_getaffinity(process, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

void ki_os_processor_name(char *name, size_t bytes) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(name, bytes, "%.90s", colon + 2);
            break;
        }
    }
    fclose(file);
}

/* The linker calls the program itself by whatever it was called with, such as ./kiln from a folder of
 * somebody else's: the kernel knows better. */
void ki_os_own_file(char *file, size_t bytes) {
    Dl_info own, program;
    file[0] = '\0';
    if (!dladdr(&here, &own) || !dladdr((const void *)getauxval(AT_PHDR), &program)) return;
    if (own.dli_fbase != program.dli_fbase) {
        if (own.dli_fname[0] == '/') snprintf(file, bytes, "%s", own.dli_fname);
        return;
    }
    const ssize_t length = readlink("/proc/self/exe", file, bytes - 1);
    file[length > 0 ? length : 0] = '\0';
}

void ki_os_library_file(char *file, size_t bytes, void *library) {
    struct link_map *map = NULL;
    snprintf(file, bytes, "%s", dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "");
}

static const void *segment_at(const struct dl_phdr_info *info, int i) {
    return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
}

static bool has_this_code(const struct dl_phdr_info *info) {
    const uintptr_t place = (uintptr_t)&here;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t begin = (uintptr_t)segment_at(info, i);
        if (info->dlpi_phdr[i].p_type == PT_LOAD && place >= begin &&
            place < begin + info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

/* The linker leaves a digest of its own among the notes (--build-id). The code where it lies would not do:
 * UCX patches what allocates memory. */
static int digest_notes(struct dl_phdr_info *info, size_t size, void *digest) {
    struct ki_sha256 sum;
    (void)size;
    if (!has_this_code(info)) return 0;
    ki_sha256_start(&sum);
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            ki_sha256_add(&sum, segment_at(info, i), info->dlpi_phdr[i].p_memsz);
    ki_sha256_finish(&sum, digest);
    return 1;
}

void ki_os_build(uint8_t digest[32]) {
    memset(digest, 0, 32);
    dl_iterate_phdr(digest_notes, digest);
}
