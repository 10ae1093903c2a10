#define _GNU_SOURCE
/* kiln info FILE: a model or data, told apart by the first bytes. */
#include "info.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs.h"

/* A safetensors file begins with the length of its header, 8 bytes, little endian and at most 100 MB (so the
 * last four are 0), and the header with '{'. No text format does. Standard input and pipes are read once, so
 * they are not looked at: to open a FIFO and close it again would break its writer's pipe. */
static bool looks_like_model(const char *path) {
    unsigned char start[9];
    struct stat about;
    if (strcmp(path, "-") == 0 || stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool model = pread(fd, start, sizeof start, 0) == (ssize_t)sizeof start && start[8] == '{' &&
                 !(start[4] | start[5] | start[6] | start[7]);
    close(fd);
    return model;
}

int verb_info(struct run *run) {
    const char *path = run->arguments[0];
    return looks_like_model(path) ? info_model(run, path) : info_data(run, path);
}
