/* Each system tells this in its own way: os_linux.c and os_macos.c define the same functions. */
#ifndef KI_OS_H
#define KI_OS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Processors that a process is bound to (0: this one); 0 where the system does not tell. */
int ki_os_processors_of(pid_t process);
/* The processor's name on the market; unchanged where the system does not tell. */
void ki_os_processor_name(char *name, size_t bytes);
/* The file that this code is in; "" where nobody knows its whole path. */
void ki_os_own_file(char *file, size_t bytes);
/* The file of a library that dlopen has opened; "" where the system does not tell. */
void ki_os_library_file(char *file, size_t bytes, void *library);
/* Tells one build of this code from another, by what the linker has left in the file. */
void ki_os_build(uint8_t digest[32]);

#endif
