/* Uploads through staging memory: every byte arrives, and the first piece that cannot be had is the one that
 * is told. */
#include "core/upload.h"

#include <stdlib.h>

#include "backends/check.h"
#include "core/size.h"

enum { BYTES = (41 << 20) + 12344 }; /* several halves, the last one short */

struct pattern {
    int64_t bad; /* bytes from here on cannot be had */
    _Atomic int64_t filled;
};

static unsigned char byte_at(int64_t i) {
    return (unsigned char)(i * 7 + (i >> 13));
}

static kiln_status fill(void *of, void *to, int64_t offset, int64_t bytes) {
    struct pattern *p = of;
    if (offset + bytes > p->bad)
        return ki_fail_at(KILN_ERR_IO, &(struct ki_place){"pattern", 0, 0, ki_max(p->bad, offset)},
                          "no more");
    for (int64_t i = 0; i < bytes; i++) ((unsigned char *)to)[i] = byte_at(offset + i);
    p->filled += bytes;
    return KILN_OK;
}

static void uploads(void **state) {
    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        kiln_device *device = NULL;
        struct ki_buffer buffer = {0};
        struct pattern pattern = {.bad = BYTES};
        kiln_device_statistics statistics = {0};
        if (kiln_device_open(&device, "opencl:0.0", &(kiln_device_options){.threads = threads}) != KILN_OK) {
            print_message("    skip: %s\n", kiln_last_error()->message);
            skip();
        }
        unsigned char *back = malloc(BYTES);
        assert_non_null(back);
        assert_int_equal(ki_device_alloc(device, &buffer, BYTES), KILN_OK);
        assert_int_equal(ki_upload_filled(device, &buffer, BYTES, fill, &pattern), KILN_OK);
        assert_int_equal(pattern.filled, BYTES);
        assert_int_equal(ki_device_download(device, back, &buffer, 0, BYTES), KILN_OK);
        for (int64_t i = 0; i < BYTES; i++)
            if (back[i] != byte_at(i)) fail_msg("byte %lld", (long long)i);
        kiln_device_get_statistics(device, &statistics);
        assert_int_equal(statistics.bytes_up, BYTES);
        static const int64_t bad[] = {0, 5000001, BYTES / 2, BYTES - 1};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            pattern.bad = bad[i];
            assert_fails(KILN_ERR_IO, ki_upload_filled(device, &buffer, BYTES, fill, &pattern));
            assert_string_equal(kiln_last_error()->file, "pattern");
            assert_int_equal(kiln_last_error()->offset, bad[i]);
        }
        free(back);
        ki_device_release(device, &buffer);
        kiln_device_close(device);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(uploads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
