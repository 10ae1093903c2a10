/* Included in front of each file on macOS (CMakeLists.txt): its names of what Linux has, too. */
#ifndef KI_MACOS_H
#define KI_MACOS_H

#define _DARWIN_C_SOURCE
#define _REENTRANT /* declares lgamma_r */

#include <sys/random.h> /* getentropy */

int issetugid(void); /* the system's header also declares read and the like, names that files of ours have */

#define secure_getenv(name) (issetugid() ? NULL : getenv(name))
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec

#endif
