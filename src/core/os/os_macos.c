/* macOS: sysctl, and the load commands of Mach-O. A process cannot be bound to processors there. */
#include "core/os/os.h"

#include <dlfcn.h>
#include <mach-o/loader.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysctl.h>

static const char here; /* an address in the file that this code is in */

int ki_os_processors_of(pid_t process) {
    (void)process;
    return 0;
}

void ki_os_processor_name(char *name, size_t bytes) {
    char brand[100] = "";
    size_t length = sizeof brand - 1;
    if (sysctlbyname("machdep.cpu.brand_string", brand, &length, NULL, 0) == 0 && *brand)
        snprintf(name, bytes, "%s", brand);
}

void ki_os_own_file(char *file, size_t bytes) {
    Dl_info info;
    const int found = dladdr(&here, &info);
    snprintf(file, bytes, "%s", found && info.dli_fname && info.dli_fname[0] == '/' ? info.dli_fname : "");
}

void ki_os_library_file(char *file, size_t bytes, void *library) {
    (void)library;
    if (bytes) file[0] = '\0';
}

/* The linker makes a UUID of what it has linked. */
void ki_os_build(uint8_t digest[32]) {
    Dl_info info;
    memset(digest, 0, 32);
    if (!dladdr(&here, &info)) return;
    const struct mach_header_64 *header = info.dli_fbase;
    const char *at = (const char *)(header + 1);
    for (uint32_t i = 0; i < header->ncmds; i++) {
        const struct load_command *command = (const struct load_command *)at;
        if (command->cmd == LC_UUID)
            memcpy(digest, ((const struct uuid_command *)at)->uuid,
                   sizeof((const struct uuid_command *)at)->uuid);
        at += command->cmdsize;
    }
}
