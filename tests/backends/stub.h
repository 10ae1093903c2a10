/* This header says what a stub library of a vendor's API lets a test control: the fail_at-th call from now (1
 * = the next) returns `code`, and so do all later ones if `sticky`. */
#ifndef STUB_H
#define STUB_H

#include <stdint.h>

/* A unit of the stub's GPU runs so much at once, which none of its compute capability does. */
enum { STUB_UNIT_THREADS = 1536, STUB_UNIT_GROUPS = 24 };

struct stub {
    _Atomic int calls; /* by any thread */
    int fail_at, code, sticky;
    const char *last_failed;
    _Atomic int64_t live; /* objects that are made and not yet destroyed */
    _Atomic int64_t
        used;    /* bytes of the stub's own memory: what a failed call did not free is no leak of the test */
    int machine; /* whose GPUs those are: a part of their UUIDs */
    /* The last launch. */
    unsigned groups, group_size, together;
    double first_argument;
};

static inline int stub_call(struct stub *stub, const char *name) {
    const int call = ++stub->calls;
    if (!stub->fail_at || call < stub->fail_at || (call > stub->fail_at && !stub->sticky)) return 0;
    stub->last_failed = name;
    return stub->code;
}

#define CALL(name)                                                                                           \
    do {                                                                                                     \
        int failed = stub_call(&STUB, name);                                                                 \
        if (failed) return failed;                                                                           \
    } while (0)

#endif
