/* Small answers of a device, one case of each kind of kernel, checked against plain loops. */
#ifndef CLI_SELFTEST_H
#define CLI_SELFTEST_H

#include <stdbool.h>

#include <kiln.h>

enum { SELFTESTS_MOST = 128 };

struct selftest {
    const char *operation, *says; /* of the library; in a table */
    kiln_type type;
    kiln_format format;
    kiln_status status; /* of the calls; KILN_ERR_UNSUPPORTED: a device without f64 */
    double error;       /* largest |got - want| / sum |terms| */
    double allowed;     /* rounding can explain this much */
};

int selftest_count(void);
/* Says what the test of this number, from 0, is about; status and error are not there yet. */
struct selftest selftest_named(int number);
/* The same with its outcome. */
struct selftest selftest_run(kiln_device *device, int number);
/* Computed, and within the bound. */
bool selftest_passed(const struct selftest *test);

#endif
