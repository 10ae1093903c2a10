/* A text file written as a whole or not at all. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errors.h"
#include "text.h"

enum { TEMPORARIES = 8 }; /* more outputs are never open at once */

/* Those that exist, for a handler of signals. */
static _Atomic(const char *) temporaries[TEMPORARIES];

static void remember(const char *path) {
    const char *none = NULL;
    for (int i = 0; i < TEMPORARIES; i++, none = NULL)
        if (atomic_compare_exchange_strong(&temporaries[i], &none, path)) return;
}

static void forget(const char *path) {
    const char *own = path;
    for (int i = 0; path && i < TEMPORARIES; i++, own = path)
        if (atomic_compare_exchange_strong(&temporaries[i], &own, NULL)) return;
}

void output_abandon_all(void) {
    for (int i = 0; i < TEMPORARIES; i++) {
        const char *path = atomic_exchange(&temporaries[i], NULL);
        if (path) unlink(path);
    }
}

static int cannot_write(const char *path, int code) {
    if (code == ENOMEM) return fail_with(KILN_ERR_NOMEM, WRITING, "", "cannot write %s: out of memory", path);
    return fail_with(KILN_ERR_IO, WRITING, code == ENOSPC ? "the disk is full" : "", "cannot write %s: %s",
                     path, strerror(code));
}

static bool written_in_place(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static void release(struct output *output) {
    forget(output->temporary);
    free(output->path);
    free(output->temporary);
    *output = (struct output){0};
}

/* No signal comes between the making of the file and its being remembered. */
static int make_temporary(char *temporary) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const int fd = mkstemp(temporary);
    if (fd >= 0) remember(temporary);
    const int code = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return fd;
}

/* mkstemp makes files private; the result gets the mode that an ordinary new file would have. */
static FILE *open_temporary(char *temporary) {
    int fd = make_temporary(temporary);
    if (fd < 0) return NULL;
    mode_t mask = umask(0);
    umask(mask);
    FILE *file = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        close(fd);
        unlink(temporary);
    }
    return file;
}

int output_open(struct output *output, const char *path) {
    *output = (struct output){0};
    if (!path || strcmp(path, "-") == 0) {
        output->file = stdout;
        output->terminal = isatty(STDOUT_FILENO);
        return 0;
    }
    /* Behind a symbolic link it is the file that is replaced, not the link. */
    output->path = realpath(path, NULL);
    if (!output->path) output->path = strdup(path);
    if (output->path && written_in_place(output->path)) {
        output->file = fopen(output->path, "w");
    } else if (output->path && asprintf(&output->temporary, "%s.tmp-XXXXXX", output->path) > 0) {
        output->file = open_temporary(output->temporary);
    }
    if (output->file) {
        output->terminal = !output->temporary && isatty(fileno(output->file));
        return 0;
    }
    int code = errno;
    release(output);
    return cannot_write(path, code);
}

static int sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY) : -1;
    int result = fd < 0 ? -1 : fsync(fd);
    if (result != 0 && errno == EINVAL) result = 0; /* a file system that cannot sync folders */
    if (fd >= 0) close(fd);
    free(folder);
    return result;
}

int output_commit(struct output *output) {
    if (output->file == stdout) return 0; /* main closes it and reports what was lost */
    int code = 0;
    bool good = fflush(output->file) == 0 && !ferror(output->file);
    if (good && output->temporary) good = fsync(fileno(output->file)) == 0;
    if (!good) code = errno;
    if (fclose(output->file) != 0 && good) {
        good = false;
        code = errno;
    }
    if (good && output->temporary &&
        (rename(output->temporary, output->path) != 0 || sync_folder(output->path) != 0)) {
        good = false;
        code = errno;
    }
    if (!good && output->temporary) unlink(output->temporary);
    int result = good ? 0 : cannot_write(output->path, code);
    release(output);
    return result;
}

void output_abandon(struct output *output) {
    if (!output->file || output->file == stdout) return;
    fclose(output->file);
    if (output->temporary) unlink(output->temporary);
    release(output);
}

void output_text(const struct output *output, const char *text, const char *special) {
    const bool quoted = text[strcspn(text, special)] != '\0';
    if (quoted) fputc('"', output->file);
    if (output->terminal)
        text_put(output->file, text, 0);
    else if (!quoted)
        fputs(text, output->file);
    for (; quoted && !output->terminal && *text; text++)
        fprintf(output->file, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted) fputc('"', output->file);
}
