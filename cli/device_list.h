/* The devices of this machine, each kind of driver asked in a process of its own. */
#ifndef CLI_DEVICE_LIST_H
#define CLI_DEVICE_LIST_H

#include "child.h"
#include "common.h"

enum { DEVICES_MOST = 256 };

struct listing {
    struct listed {
        kiln_device_info info;
        bool failed; /* its driver did: a row that stands for what it would have offered */
    } rows[DEVICES_MOST];
    int64_t count;
};

/* Returns 0 or the exit code of an error that it has reported. A driver that fails is a row, not an error. */
int listing_make(struct run *run, struct listing *listing);

#endif
