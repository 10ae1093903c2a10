/* Gives every file of the folders named on the command line to the fuzz target, where there is no libFuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    static uint8_t bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    int whole = feof(file) && !ferror(file);
    fclose(file);
    if (!whole) {
        fprintf(stderr, "%s: not read to its end\n", path);
        exit(1);
    }
    /* A copy of exactly that size, so that a sanitizer sees reads beyond it. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) exit(1);
    for (size_t i = 0; i < size; i++) copy[i] = bytes[i];
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 1;
}

int main(int count, char **arguments) {
    int files = 0;
    for (int i = 1; i < count; i++) {
        DIR *folder = opendir(arguments[i]);
        if (!folder) {
            perror(arguments[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[4096];
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", arguments[i], entry->d_name);
            files += replay_file(path);
        }
        closedir(folder);
    }
    printf("%d inputs replayed\n", files);
    return files > 0 ? 0 : 1;
}
