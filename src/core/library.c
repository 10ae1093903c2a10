/* Opening a vendor library from a list of places. */
#define _GNU_SOURCE
#include "core/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/os/os.h"

static void remember(struct ki_library *library, const char *place) {
    size_t room = sizeof library->tried - strlen(library->tried);
    const char *separator = *library->tried ? ", " : "";
    if (strlen(separator) + strlen(place) < room) {
        strcat(library->tried, separator);
        strcat(library->tried, place);
    }
    library->places++;
}

static bool opened(struct ki_library *library, void *handle, const char *place) {
    if (!handle) return false;
    library->handle = handle;
    snprintf(library->path, sizeof library->path, "%s", place);
    return true;
}

/* If it is in this process already. */
static bool take_loaded(struct ki_library *library, const char *name) {
    return library->handle || opened(library, dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD), name);
}

bool ki_library_name(struct ki_library *library, const char *name) {
    if (library->handle || opened(library, dlopen(name, RTLD_NOW | RTLD_LOCAL), name)) return true;
    const char *why = dlerror();
    /* "<name>: cannot open ..." is plain absence; anything else, such as a library that it needs, is worth
     * telling. */
    bool absent = why && strncmp(why, name, strlen(name)) == 0 && strstr(why, "No such file");
    if (why && !absent && !library->broken[0]) snprintf(library->broken, sizeof library->broken, "%s", why);
    remember(library, name);
    return false;
}

/* A path with *, tried from its last match down, so that newer versions come first. */
static KI_PRINTF(2, 3) bool take_pattern(struct ki_library *library, const char *format, ...) {
    if (library->handle) return true;
    char pattern[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(pattern, sizeof pattern, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof pattern) return false; /* no such path can be ours */
    glob_t found;
    int tried = 0;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = found.gl_pathc; i-- > 0 && !library->handle; tried++)
            ki_library_name(library, found.gl_pathv[i]);
        globfree(&found);
    }
    if (!tried) remember(library, pattern);
    return library->handle != NULL;
}

/* Environment variables that lead to an installation, and where in it libraries lie. The last match is tried
 * first, so a newer version wins. */
static const struct {
    const char *variable, *folder,
        *below; /* between folder and below stands the wheel, where there is a below */
} places[] = {
    {"CONDA_PREFIX", "lib", NULL},
    {"CUDA_HOME", "lib64", NULL},
    {"CUDA_PATH", "lib64", NULL},
    {NULL, "/usr/local/cuda*/lib64", NULL},
    {"VIRTUAL_ENV", "lib/python3.*/site-packages/nvidia/cu1*/lib", NULL},
    {"VIRTUAL_ENV", "lib/python3.*/site-packages/nvidia/", "/lib"},
    {"HOME", ".local/lib/python3.*/site-packages/nvidia/cu1*/lib", NULL},
    {"HOME", ".local/lib/python3.*/site-packages/nvidia/", "/lib"},
    {NULL, "/usr/local/lib/python3.*/*-packages/nvidia/cu1*/lib", NULL},
    {NULL, "/usr/local/lib/python3.*/*-packages/nvidia/", "/lib"},
};

bool ki_library_toolkit(struct ki_library *library, const char *const *sonames, const char *wheel) {
    for (int i = 0; sonames[i] && !library->handle; i++) take_loaded(library, sonames[i]);
    for (int i = 0; sonames[i] && !library->handle; i++) ki_library_name(library, sonames[i]);
    const int stem = (int)strcspn(sonames[0], "."); /* of "libnvrtc.so.13" */
    for (size_t i = 0; i < sizeof places / sizeof *places && !library->handle; i++) {
        const char *root = places[i].variable ? secure_getenv(places[i].variable) : "";
        if (!root || (*root != '/' && places[i].variable)) continue;
        take_pattern(library, "%s%s%s%s%s/%.*s.so.1*", root, *root ? "/" : "", places[i].folder,
                     places[i].below ? wheel : "", places[i].below ? places[i].below : "", stem, sonames[0]);
    }
    return library->handle != NULL;
}

bool ki_library_beside(struct ki_library *library, const char *name) {
    static const char *const folders[] = {"", "../lib/"};
    char path[512], file[512];
    ki_os_own_file(file, sizeof file);
    for (int i = 0; i < 2 && file[0] == '/' && !library->handle; i++) {
        const int folder = (int)(strrchr(file, '/') - file);
        const int length = snprintf(path, sizeof path, "%.*s/%s%s", folder, file, folders[i], name);
        if (length < (int)sizeof path && ki_library_name(library, path)) return true;
    }
    return ki_library_name(library, name);
}

bool ki_library_chosen(struct ki_library *library, const char *variable) {
    const char *path = secure_getenv(variable);
    if (!path || !*path) return false;
    if (*path == '/') ki_library_name(library, path);
    return true;
}

const char *ki_library_resolve(const struct ki_library *library, const struct ki_symbol *symbols, int count) {
    for (int i = 0; i < count; i++) {
        void *symbol = dlsym(library->handle, symbols[i].name);
        if (!symbol) return symbols[i].name;
        /* POSIX promises that a function pointer fits in a void *; C has no cast for it. */
        memcpy(symbols[i].pointer, &symbol, sizeof symbol);
    }
    return NULL;
}
