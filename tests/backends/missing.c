/* This file says what is said when a vendor's library is not there or lacks something. The environment of the
 * test makes the case and names it: one process can load each library only once. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/check.h"

/* argv: device, then a word of the message and one of the hint. */
int main(int count, char **words) {
    if (count != 4) return 2;
    kiln_device *device = NULL;
    if (strcmp(words[2], "not found") == 0 && dlopen("libcuda.so.1", RTLD_NOW)) {
        printf("skip: this machine has a driver\n");
        return 77;
    }
    kiln_status status = kiln_device_open(&device, words[1], NULL);
    const kiln_error *error = kiln_last_error();
    printf("%s: %s\nhint: %s\n", kiln_status_name(status), error->message, error->hint);
    if (status != KILN_ERR_DEVICE || device) return 1;
    if (!strstr(error->message, words[2]) || !strstr(error->hint, words[3])) return 1;
    /* The list has a row that says the same, and "auto" goes on without it. */
    kiln_device_info *infos = NULL;
    int64_t rows = 0, unusable = 0;
    if (kiln_device_list(&infos, &rows, sizeof *infos) != KILN_OK) return 1;
    for (int64_t i = 0; i < rows; i++)
        if (strncmp(infos[i].name, words[1], strlen(words[1])) == 0)
            unusable +=
                !infos[i].usable && strstr(infos[i].reason, words[2]) && strstr(infos[i].hint, words[3]);
    kiln_free(infos);
    if (unusable < 1 || kiln_device_open(&device, "auto", NULL) != KILN_OK) return 1;
    kiln_device_close(device);
    return 0;
}
