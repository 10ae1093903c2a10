/* Vendor libraries, found at run time: open the first of many places, and remember where was looked. */
#ifndef KI_LIBRARY_H
#define KI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

/* Zeroed at first. An opened library is never closed: vendor libraries leave threads behind. */
struct ki_library {
    void *handle;
    char path[512];   /* what was opened */
    char tried[400];  /* places where it was not, "a, b, c"; the first few in full */
    int places;       /* how many those are */
    char broken[200]; /* why a file that is there would not load; "" if there was none */
};

/* Each returns whether the library is open now, and does nothing if it already was. A name goes through the
 * system's search path. */
bool ki_library_name(struct ki_library *library, const char *name);
/* A library of the CUDA toolkit, by its sonames (newest first, then NULL): a copy in this process (PyTorch's,
 * CuPy's), then the system's own search, then where CUDA, conda and pip install it. `wheel` is its folder in
 * pip's packages. */
bool ki_library_toolkit(struct ki_library *library, const char *const *sonames, const char *wheel);
/* One of ours: beside the library or the tool, as where they were built, or in the lib folder beside the
 * tool's; then as a name. */
bool ki_library_beside(struct ki_library *library, const char *name);
/* The file that the environment variable names by its absolute path, and no other. False if the variable is
 * not set; else library->handle tells. */
bool ki_library_chosen(struct ki_library *library, const char *variable);

/* One row for each function of an API's list: where its pointer goes. */
struct ki_symbol {
    const char *name;
    void *pointer; /* of type void (**)(void) in effect */
};
/* Fills all pointers; on failure the name of the first function that is missing, else NULL. */
const char *ki_library_resolve(const struct ki_library *library, const struct ki_symbol *symbols, int count);

#endif
