/* Model files when something fails: file calls, memory, and the process itself, killed while it saves. What
 * stood under the name before, or what was to stand there, is there, whole. */
#define _GNU_SOURCE
#include "io/model_file.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void file_faults_keep_the_old_model(void **state) {
    (void)state;
    static const int codes[] = {EIO, ENOSPC, EDQUOT, EINTR};
    kiln_model *old = small_model(1), *new = small_model(2);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        int failures = 0;
        bool hit = true;
        for (int k = 1; hit; k++) {
            assert_int_equal(kiln_model_save(old, in_scratch("m")), KILN_OK);
            faults_begin(k, codes[c], 0);
            kiln_status status = kiln_model_save(new, in_scratch("m"));
            hit = faults_end();
            assert_int_equal(scratch_files(false), 1);
            bool folder = status != KILN_OK && strstr(kiln_last_error()->message, "flush the folder");
            assert_true(first_weight(in_scratch("m")) == (status == KILN_OK || folder ? 2 : 1));
            if (status != KILN_OK) assert_int_equal(status, KILN_ERR_IO);
            failures += status != KILN_OK;
        }
        assert_true(codes[c] == EINTR ? failures == 0 : failures == 7);
    }
    faults_begin(0, 0, 5); /* short writes */
    assert_int_equal(kiln_model_save(new, in_scratch("m")), KILN_OK);
    faults_end();
    assert_true(first_weight(in_scratch("m")) == 2);
    kiln_model_free(old);
    kiln_model_free(new);
}

/* One byte at a time, and every second call is interrupted. */
static ssize_t dripping_read(int fd, void *buffer, size_t bytes) {
    static int calls;
    errno = EINTR;
    return calls++ % 2 ? -1 : faults.real.read(fd, buffer, bytes > 0);
}

static ssize_t failing_read(int fd, void *buffer, size_t bytes) {
    (void)fd;
    (void)buffer;
    (void)bytes;
    errno = EIO;
    return -1;
}

static void read_faults_are_reported_or_survived(void **state) {
    (void)state;
    kiln_model *model = small_model(1), *none = NULL;
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_OK);
    faults.real = ki_seams;
    ki_seams.read = dripping_read;
    double weight = first_weight(in_scratch("m"));
    ki_seams.read = failing_read;
    kiln_status status = kiln_model_load(&none, in_scratch("m"));
    ki_seams = faults.real;
    assert_true(weight == 1);
    assert_int_equal(status, KILN_ERR_IO);
    assert_int_equal(kiln_last_error()->native_code, EIO);
    kiln_model_free(model);
}

/* KILN_TEST_KILLS: of a writer; 3,000 without a torn file bound the rate of tearing by 0.1 % (95 %
 * confidence). */
static int kills_wanted(void) {
    const char *text = getenv("KILN_TEST_KILLS");
    const int wanted = text ? atoi(text) : 300;
    if (wanted < 100) fail_msg("KILN_TEST_KILLS=%s: at least 100, else chance decides", text);
    return wanted;
}

/* The child saves two models in turn until it is killed, at a random instant; the file is always one of the
 * two. */
static void killing_the_writer_leaves_a_whole_model(void **state) {
    (void)state;
    const int kills = kills_wanted();
    int loaded[3] = {0}, torn = 0;
    srand(7);
    kiln_model *models[2] = {small_model(1), small_model(2)};
    double begin = ki_clock();
    for (int i = 0; i < 8; i++) assert_int_equal(kiln_model_save(models[i % 2], in_scratch("m")), KILN_OK);
    /* Up to two saves' time on this disk, a millisecond to start the child, and less than a second. */
    int wait = (int)fmin(1e9 * (ki_clock() - begin) / 4 + 1e6, 9e8);
    for (int round = 0; round < kills; round++) {
        pid_t child = fork();
        if (child == 0)
            for (int i = round;; i++)
                if (kiln_model_save(models[i % 2], in_scratch("m")) != KILN_OK) _exit(1);
        nanosleep(&(struct timespec){0, rand() % wait}, NULL);
        kill(child, SIGKILL);
        int code;
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_true(WIFSIGNALED(code));
        int weight = (int)first_weight(in_scratch("m"));
        assert_in_range(weight, 1, 2);
        loaded[weight]++;
        torn += scratch_files(false) > 1; /* killed between creating the temporary file and the rename */
        DIR *folder = opendir(scratch);
        for (struct dirent *entry; (entry = readdir(folder));)
            if (strstr(entry->d_name, ".tmp")) unlink(in_scratch(entry->d_name));
        closedir(folder);
    }
    print_message("    %d kills: %d and %d times the one and the other model, %d saves under way\n", kills,
                  loaded[1], loaded[2], torn);
    assert_true(loaded[1] > 0 && loaded[2] > 0);
    assert_true(torn > 0); /* the kills did hit saves under way */
    kiln_model_free(models[0]);
    kiln_model_free(models[1]);
}

static int alloc_countdown;
static long alive;

static void *failing_alloc(size_t bytes, size_t align) {
    if (alloc_countdown > 0 && --alloc_countdown == 0) return NULL;
    alive++;
    return faults.real.alloc(bytes, align);
}

static void *failing_resize(void *memory, size_t bytes) {
    if (alloc_countdown > 0 && --alloc_countdown == 0) return NULL;
    alive += memory == NULL;
    return faults.real.resize(memory, bytes);
}

static void counting_release(void *memory) {
    alive--;
    faults.real.release(memory);
}

static kiln_status create_save_load(void) {
    kiln_model *model = NULL, *back = NULL;
    kiln_status status = kiln_model_create(&model, "linreg");
    if (status == KILN_OK) status = kiln_model_set_text(model, "key", "value");
    if (status == KILN_OK) status = kiln_model_save(model, in_scratch("unused"));
    if (status == KILN_ERR_MODEL) status = KILN_OK; /* it has no W, and that was the place to say so */
    if (status == KILN_OK) status = kiln_model_load(&back, in_scratch("m"));
    if (status == KILN_OK) status = kiln_model_save(back, in_scratch("copy"));
    kiln_model_free(model);
    kiln_model_free(back);
    return status;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    kiln_model *model = small_model(1);
    assert_int_equal(kiln_model_save(model, in_scratch("m")), KILN_OK);
    kiln_model_free(model);
    kiln_status status = KILN_ERR_NOMEM;
    int k = 0;
    for (; status != KILN_OK; k++) {
        faults.real = ki_seams;
        alive = 0;
        alloc_countdown = k + 1;
        ki_seams.alloc = failing_alloc;
        ki_seams.resize = failing_resize;
        ki_seams.release = counting_release;
        status = create_save_load();
        ki_seams = faults.real;
        assert_int_equal(alive, 0);
        if (status != KILN_OK) assert_int_equal(status, KILN_ERR_NOMEM);
    }
    assert_true(k > 30);
    assert_same_bytes(in_scratch("m"), in_scratch("copy"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, scratch_empty)
    const struct CMUnitTest tests[] = {
        TEST(file_faults_keep_the_old_model),
        TEST(read_faults_are_reported_or_survived),
        TEST(killing_the_writer_leaves_a_whole_model),
        TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
