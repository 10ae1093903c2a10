/* This file computes how much memory this process may use: beyond it the kernel ends the process without a
 * word. The limits of all control groups from the process's own up to the root hold; version 2 has one tree
 * of groups, version 1 one for each kind of limit. */
#include "backends/cpu_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/size.h"

/* The number in a file, INT64_MAX where it says "max" or there is none. */
static int64_t number_in(const char *path) {
    char text[32] = "";
    FILE *file = fopen(path, "r");
    if (!file) return INT64_MAX;
    const char *line = fgets(text, sizeof text, file);
    fclose(file);
    char *end = text;
    const long long bytes = line ? strtoll(text, &end, 10) : 0;
    return end != text && bytes > 0 ? (int64_t)bytes : INT64_MAX;
}

/* The least limit from `group`, a path that begins with '/', up to the root. It is cut on the way. */
static int64_t least_above(char *group, const char *tree, const char *file) {
    int64_t least = INT64_MAX;
    for (char *slash;; *slash = '\0') {
        char path[1200];
        snprintf(path, sizeof path, "%s%s/%s", tree, group, file);
        least = ki_min(least, number_in(path));
        if (!(slash = strrchr(group, '/'))) return least;
    }
}

int64_t ki_memory_limit(const char *groups, const char *mounted) {
    int64_t least = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    char line[1024], tree[300];
    FILE *file = fopen(groups, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        const bool second = kinds[1] == '\0', first = strcmp(kinds + 1, "memory") == 0;
        snprintf(tree, sizeof tree, "%s%s", mounted, first ? "/memory" : "");
        if (second || first)
            least = ki_min(least, least_above(group, tree, second ? "memory.max" : "memory.limit_in_bytes"));
    }
    if (file) fclose(file);
    return least;
}
