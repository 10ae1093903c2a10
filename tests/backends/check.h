/* cmocka and the headers that it wants before it. */
#ifndef BACKENDS_CHECK_H
#define BACKENDS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln.h"
#include "core/device.h"
#include "core/seams.h"

#define assert_contains(text, part)                                                                          \
    do {                                                                                                     \
        if (!strstr(text, part)) fail_msg("'%s' has no '%s'", text, part);                                   \
    } while (0)

#define assert_fails(expected, call)                                                                         \
    do {                                                                                                     \
        assert_int_equal(call, expected);                                                                    \
        assert_int_equal(kiln_last_error()->status, expected);                                               \
        assert_true(kiln_last_error()->message[0]);                                                          \
    } while (0)

#endif
