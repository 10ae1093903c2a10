/* This header says what the cases' refusals are made of: operands of the right shapes, and some that are
 * wrong in one thing. */
#ifndef CONFORMANCE_REFUSALS_H
#define CONFORMANCE_REFUSALS_H

#include "cases.h"

enum { REFUSAL_M = 6, REFUSAL_N = 4, REFUSAL_K = 2 };

/* With M, N and K as above: X M x N dense, S the same in CSR, w y z N x K, p q M x K, v M x 1, d N x 1; one
 * wrong thing each in the others. w, p, d and canary hold 4711 and must still do so after all refusals. */
struct refusal_set {
    kiln_device *device, *cpu;
    kiln_matrix *X, *S, *w, *y, *z, *p, *q, *v, *d;
    kiln_matrix *y_type, *y_device, *square, *none, *wide;
    kiln_matrix *scalars; /* 1 x K of the device's widest type */
    double canary[REFUSAL_N * REFUSAL_K + 1];
};
kiln_status refusal_set_make(struct refusal_set *set, kiln_device *device, kiln_type type);
void refusal_set_free(struct refusal_set *set);

/* The call must fail with ERR_ARGUMENT and a message that says `words`, and begins with the call's name if it
 * names a call. */
#define REFUSED_AS(words, call) refused(context, (call), #call, words)
#define REFUSED(call) REFUSED_AS("", call)
void refused(struct check_context *context, kiln_status status, const char *call, const char *words);

#endif
