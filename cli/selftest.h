/* Small answers of a device, one of each kind of kernel, checked against plain loops. */
#ifndef CLI_SELFTEST_H
#define CLI_SELFTEST_H

#include <stdbool.h>

#include <kiln.h>

enum { SELFTESTS = 16 }; /* eight in f32 and f64 (selftest.c) */

struct selftest {
    const char *operation, *says; /* of the library; in a table */
    kiln_type type;
    kiln_format format;
    kiln_status status; /* of the calls; KILN_ERR_UNSUPPORTED: a device without f64 */
    double error;       /* largest |got - want| / sum |terms| */
    double allowed;     /* rounding can explain this much */
};

struct selftest selftest_run(kiln_device *device, int number);
/* Computed, and within the bound. */
bool selftest_passed(const struct selftest *test);

#endif
