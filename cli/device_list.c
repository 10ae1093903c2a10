/* The devices of this machine. A driver that crashes or hangs while it is asked hides neither the
 * processor nor other kinds of drivers: each kind is asked in a child process. All OpenCL drivers are
 * loaded by one loader in one process, so that where that fails, each is loaded alone (OCL_ICD_VENDORS
 * names a folder with its file), and those that fail are named. */
#define _GNU_SOURCE
#include "device_list.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Asks for the devices of one kind. */
struct look {
    struct child child;
    const char *kind;    /* "cuda" */
    const char *vendors; /* the folder of OpenCL drivers; NULL: as the environment says */
    kiln_device_info rows[DEVICES_MOST];
    int64_t count;
};

static const char *const kinds[] = {"cuda", "opencl", "cpu"}; /* best first, as the library lists them */
enum { KINDS = sizeof kinds / sizeof *kinds };

static void leave_others_out(const char *kind) {
    char names[300];
    const char *given = getenv("KILN_WITHOUT");
    snprintf(names, sizeof names, "%.200s", given ? given : "");
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i], kind) != 0) strcat(strcat(names, ","), kinds[i]);
    setenv("KILN_WITHOUT", names, 1);
}

static kiln_status ask_for_devices(void *shared) {
    struct look *look = shared;
    kiln_device_info *infos = NULL;
    int64_t count = 0;
    leave_others_out(look->kind);
    if (look->vendors) setenv("OCL_ICD_VENDORS", look->vendors, 1);
    const kiln_status status = kiln_device_list(&infos, &count, sizeof *infos);
    for (int64_t i = 0; status == KILN_OK && i < count && look->count < DEVICES_MOST; i++)
        if (strncmp(infos[i].name, look->kind, strlen(look->kind)) == 0) look->rows[look->count++] = infos[i];
    kiln_free(infos);
    return status;
}

static bool ask(char fate[FATE_ROOM], struct look *look, const char *vendors, double seconds) {
    look->count = 0;
    look->vendors = vendors;
    child_step(&look->child, "devices were listed");
    return child_run(fate, &look->child, seconds, ask_for_devices);
}

static struct listed *add(struct listing *listing) {
    static struct listed beyond;
    return listing->count < DEVICES_MOST ? &listing->rows[listing->count++] : &beyond;
}

static void add_all(struct listing *listing, const struct look *look) {
    for (int64_t i = 0; i < look->count; i++) *add(listing) = (struct listed){.info = look->rows[i]};
}

static kiln_device_info *add_failed(struct listing *listing, const char *kind, const char *reason) {
    struct listed *row = add(listing);
    *row = (struct listed){.failed = true};
    snprintf(row->info.name, sizeof row->info.name, "%s", kind);
    snprintf(row->info.reason, sizeof row->info.reason, "%.250s", reason);
    return &row->info;
}

/* ------------------------------------------------------------------------- OpenCL drivers one by one */

static const char *vendors_folder(void) {
    const char *given = secure_getenv("OCL_ICD_VENDORS");
    return given && *given ? given : "/etc/OpenCL/vendors";
}

static int is_driver(const struct dirent *file) {
    const size_t length = strlen(file->d_name);
    return length > 4 && strcmp(file->d_name + length - 4, ".icd") == 0;
}

struct search {
    struct listing *listing;
    struct look *look;
    double seconds;
    char alone[64];   /* a folder of ours, for one driver's file at a time */
    char failed[150]; /* names of the files whose drivers fail alone */
    kiln_device_info *good[DEVICES_MOST];
    int good_count;
};

static void ask_driver(struct search *search, const char *folder, const char *name) {
    char fate[FATE_ROOM], reason[FATE_ROOM + 300], from[4200], to[400];
    char *whole = realpath(folder, NULL);
    snprintf(from, sizeof from, "%s/%s", whole ? whole : folder, name);
    snprintf(to, sizeof to, "%s/%s", search->alone, name);
    free(whole);
    if (symlink(from, to) != 0) return;
    if (ask(fate, search->look, search->alone, search->seconds)) {
        const int64_t first = search->listing->count;
        add_all(search->listing, search->look);
        for (int64_t i = first; i < search->listing->count; i++)
            search->good[search->good_count++] = &search->listing->rows[i].info;
    } else {
        const size_t used = strlen(search->failed);
        snprintf(search->failed + used, sizeof search->failed - used, "%s%.60s", used ? ", " : "", name);
        snprintf(reason, sizeof reason, "%.60s: %s", name, fate);
        snprintf(add_failed(search->listing, "opencl", reason)->hint, 255,
                 "OCL_ICD_VENDORS=FOLDER with the other files of %.80s leaves it out; KILN_WITHOUT=opencl "
                 "all of OpenCL",
                 folder);
    }
    unlink(to);
}

/* False if that does not tell which driver it is: all is well with each alone, or bad without any. */
static bool ask_each_driver(struct listing *listing, struct look *look, double seconds) {
    struct search search = {.listing = listing, .look = look, .seconds = seconds};
    const int64_t before = listing->count;
    const char *folder = vendors_folder(), *place = secure_getenv("TMPDIR");
    char fate[FATE_ROOM];
    struct dirent **files = NULL;
    snprintf(search.alone, sizeof search.alone, "%.40s/kiln-XXXXXX", place && *place == '/' ? place : "/tmp");
    if (!mkdtemp(search.alone)) return false;
    const bool loader_works = ask(fate, look, search.alone, seconds);
    const int count = loader_works ? scandir(folder, &files, is_driver, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        ask_driver(&search, folder, files[i]->d_name);
        free(files[i]);
    }
    free(files);
    rmdir(search.alone);
    for (int i = 0; i < search.good_count; i++) {
        search.good[i]->usable = 0;
        snprintf(search.good[i]->reason, sizeof search.good[i]->reason,
                 "%.90s: works, but not beside %.90s, as all OpenCL drivers are loaded together",
                 search.good[i]->description, search.failed);
    }
    if (*search.failed) return true;
    listing->count = before;
    return false;
}

int listing_make(struct run *run, struct listing *listing) {
    struct look *look = child_share(sizeof *look);
    const double seconds = run->settings->time_limit > 0 ? run->settings->time_limit : DRIVER_SECONDS;
    int code = look ? 0 : fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the list of devices");
    listing->count = 0;
    for (int i = 0; !code && i < KINDS; i++) {
        char fate[FATE_ROOM];
        look->kind = kinds[i];
        const bool answered = ask(fate, look, NULL, seconds);
        if (answered && look->child.status != KILN_OK)
            code = fail_with(look->child.status, WORKING, look->child.hint, "%s", look->child.message);
        else if (answered)
            add_all(listing, look);
        else if (strcmp(kinds[i], "opencl") != 0 || !ask_each_driver(listing, look, seconds))
            snprintf(add_failed(listing, kinds[i], fate)->hint, 255, "KILN_WITHOUT=%s leaves it out",
                     kinds[i]);
    }
    child_unshare(look, sizeof *look);
    return code;
}
