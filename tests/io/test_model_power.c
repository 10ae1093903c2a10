/* A power cut while a model is saved: whatever of the file calls had reached the disk, the file is the old
 * model or the new.
 *
 * The save's calls are recorded and replayed. A write is on the disk for certain once its file was
 * synchronised, a change of names once its folder was; before that it may be or not, each for itself. So
 * every prefix of the calls is tried with every subset of what is uncertain: a piece of a file that is
 * missing before one that is there reads as zeros. After the whole save, reported as done, only the new model
 * will do.
 *
 * To show that this would find a missing fsync, the recorder can ignore those of files or of folders. */
#define _GNU_SOURCE
#include "io/model_file.h"

enum { CALLS = 64, PIECES = 8, FILES = 4, BYTES = 4096 };

enum kind { CREATE, WRITE, SYNC_FILE, SYNC_FOLDER, RENAME, UNLINK };
static const int OLD = 0; /* the file that the name led to before */

struct call {
    enum kind kind;
    int file;
    size_t offset, size;       /* WRITE */
    char name[512], from[512]; /* what CREATE, RENAME and UNLINK change */
};

static struct {
    struct ki_seams real;
    struct call calls[CALLS];
    int count, files;
    char bytes[FILES][BYTES];
    size_t size[FILES];
    int file_of[1024]; /* of a descriptor that is written; -1: a folder */
    char name_of[FILES][512];
    size_t piece; /* bytes that one write takes */
} disk;

static struct call *record(enum kind kind, int file) {
    assert_true(disk.count < CALLS);
    struct call *call = &disk.calls[disk.count++];
    *call = (struct call){.kind = kind, .file = file};
    return call;
}

static int recorded_open(const char *path, int flags, unsigned mode) {
    const int fd = disk.real.open(path, flags, mode);
    assert_in_range(fd, 0, 1023);
    disk.file_of[fd] = -1;
    if (!(flags & O_CREAT)) return fd;
    assert_true(disk.files < FILES);
    const int file = disk.file_of[fd] = disk.files++;
    snprintf(record(CREATE, file)->name, sizeof disk.calls->name, "%s", path);
    snprintf(disk.name_of[file], sizeof disk.name_of[file], "%s", path);
    return fd;
}

static ssize_t recorded_write(int fd, const void *bytes, size_t size) {
    const int file = disk.file_of[fd];
    if (size > disk.piece) size = disk.piece;
    assert_true(file > OLD && disk.size[file] + size <= BYTES);
    struct call *call = record(WRITE, file);
    call->offset = disk.size[file];
    call->size = size;
    memcpy(disk.bytes[file] + call->offset, bytes, size);
    disk.size[file] += size;
    return disk.real.write(fd, bytes, size);
}

static int recorded_fsync(int fd) {
    record(disk.file_of[fd] < 0 ? SYNC_FOLDER : SYNC_FILE, disk.file_of[fd]);
    return disk.real.fsync(fd);
}

static int recorded_rename(const char *from, const char *to) {
    for (int file = 0; file < disk.files; file++) {
        if (strcmp(disk.name_of[file], from) != 0) continue;
        struct call *call = record(RENAME, file);
        snprintf(call->name, sizeof call->name, "%s", to);
        snprintf(call->from, sizeof call->from, "%s", from);
        snprintf(disk.name_of[file], sizeof disk.name_of[file], "%s", to);
    }
    return disk.real.rename(from, to);
}

static int recorded_unlink(const char *path) {
    snprintf(record(UNLINK, -1)->name, sizeof disk.calls->name, "%s", path);
    return disk.real.unlink(path);
}

/* Saves `new` over what stands at path, and keeps the calls. */
static void record_save(const kiln_model *new, const char *path) {
    memset(&disk, 0, sizeof disk);
    disk.files = 1;
    if (access(path, F_OK) == 0) {
        char *bytes = file_bytes(path, &disk.size[OLD]);
        assert_true(disk.size[OLD] <= BYTES);
        memcpy(disk.bytes[OLD], bytes, disk.size[OLD]);
        free(bytes);
        snprintf(disk.name_of[OLD], sizeof disk.name_of[OLD], "%s", path);
    }
    struct stat info;
    assert_int_equal(kiln_model_save(new, in_scratch("measured")), KILN_OK);
    assert_int_equal(stat(in_scratch("measured"), &info), 0);
    disk.piece = 1 + (size_t)info.st_size / PIECES;
    disk.real = ki_seams;
    ki_seams.open = recorded_open;
    ki_seams.write = recorded_write;
    ki_seams.fsync = recorded_fsync;
    ki_seams.rename = recorded_rename;
    ki_seams.unlink = recorded_unlink;
    const kiln_status status = kiln_model_save(new, path);
    ki_seams = disk.real;
    assert_int_equal(status, KILN_OK);
}

/* ------------------------------------------------------------------------------------- the replay */

/* Returns those of the first calls that a power cut may undo. */
static int uncertain(int open[CALLS], int calls, bool file_syncs, bool folder_syncs) {
    int count = 0;
    for (int i = 0; i < calls; i++) {
        const struct call *call = &disk.calls[i];
        if (call->kind == SYNC_FILE || call->kind == SYNC_FOLDER) continue;
        bool safe = false;
        for (int s = i + 1; s < calls; s++)
            safe = safe || (call->kind == WRITE ? file_syncs && disk.calls[s].kind == SYNC_FILE &&
                                                      disk.calls[s].file == call->file
                                                : folder_syncs && disk.calls[s].kind == SYNC_FOLDER);
        if (!safe) open[count++] = i;
    }
    return count;
}

/* Which file the name leads to after those calls that were not lost; -1: none. */
static int file_behind(const char *name, int calls, const bool lost[CALLS]) {
    int file = strcmp(disk.name_of[OLD], name) == 0 ? OLD : -1;
    for (int i = 0; i < calls; i++) {
        const struct call *call = &disk.calls[i];
        if (lost[i]) continue;
        if ((call->kind == CREATE || call->kind == RENAME) && strcmp(call->name, name) == 0)
            file = call->file;
        if (call->kind == UNLINK && strcmp(call->name, name) == 0) file = -1;
    }
    return file;
}

/* The model that the disk holds under the name: its first weight, 0 without a file, -1 if it is damaged. */
static int model_on_disk(const char *name, int calls, const bool lost[CALLS]) {
    const int file = file_behind(name, calls, lost);
    char bytes[BYTES] = {0};
    size_t size = file == OLD ? disk.size[OLD] : 0;
    if (file < 0) return 0;
    memcpy(bytes, disk.bytes[OLD], size);
    for (int i = 0; i < calls; i++) {
        const struct call *call = &disk.calls[i];
        if (lost[i] || call->kind != WRITE || call->file != file) continue;
        memcpy(bytes + call->offset, disk.bytes[file] + call->offset, call->size);
        if (size < call->offset + call->size) size = call->offset + call->size;
    }
    put_file(in_scratch("crashed"), bytes, size);
    return (int)first_weight(in_scratch("crashed"));
}

struct outcomes {
    int states, old, new, damaged, undone; /* undone: the old model after the save was reported as done */
};

static struct outcomes replay(const char *path, int old, bool file_syncs, bool folder_syncs) {
    struct outcomes all = {0};
    for (int calls = 0; calls <= disk.count; calls++) {
        int open[CALLS];
        const int count = uncertain(open, calls, file_syncs, folder_syncs);
        assert_true(count < 16);
        for (unsigned losses = 0; losses < 1u << count; losses++, all.states++) {
            bool lost[CALLS] = {false};
            for (int i = 0; i < count; i++) lost[open[i]] = losses >> i & 1;
            const int model = model_on_disk(path, calls, lost);
            all.old += model == old;
            all.new += model == 2;
            all.damaged += model != old && model != 2;
            all.undone += model == old && calls == disk.count;
        }
    }
    return all;
}

static void check_save(int old) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_scratch("m"));
    kiln_model *before = small_model(old), *new = small_model(2);
    if (old) assert_int_equal(kiln_model_save(before, path), KILN_OK);
    record_save(new, path);
    const struct outcomes sound = replay(path, old, true, true);
    print_message("    %d calls, %d states of the disk: %d old, %d new\n", disk.count, sound.states,
                  sound.old, sound.new);
    assert_int_equal(sound.damaged, 0);
    assert_int_equal(sound.undone, 0);
    assert_true(sound.states > 500 && sound.old > 0 && sound.new > 0);
    assert_true(replay(path, old, false, true).damaged > 0);
    assert_true(replay(path, old, true, false).undone > 0);
    kiln_model_free(before);
    kiln_model_free(new);
}

static void over_a_model(void **state) {
    (void)state;
    check_save(1);
}

static void where_there_was_none(void **state) {
    (void)state;
    check_save(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(over_a_model, scratch_empty),
        cmocka_unit_test_teardown(where_there_was_none, scratch_empty),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
