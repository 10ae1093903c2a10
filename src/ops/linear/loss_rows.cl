/* GPU body of kiln_loss_mean and (DEVIANCE) kiln_loss_deviance: a thread an element or a row. Small beside a
 * pass over X, so that one build serves all losses: which one it is comes with the launch. The deviance has a
 * build of its own, as its many logarithms of the gamma function take a compiler half a second, for which who
 * merely predicts need not wait. */

#define ARGUMENTS_loss_mean(FIRST, NEXT)                                                                     \
    FIRST(OUT, real, M)                                                                                      \
    NEXT(IN, real, Eta)                                                                                      \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, int, kind)                                                                                   \
    NEXT(VALUE, int, link)                                                                                   \
    NEXT(VALUE, real, power)

#define ARGUMENTS_softmax_mean(FIRST, NEXT)                                                                  \
    FIRST(OUT, real, M)                                                                                      \
    NEXT(IN, real, Eta)                                                                                      \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)

#define ARGUMENTS_loss_deviance(FIRST, NEXT)                                                                 \
    FIRST(OUT, real, D)                                                                                      \
    NEXT(IN, real, Eta)                                                                                      \
    NEXT(IN, real, y)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, family)                                                                                 \
    NEXT(VALUE, int, link)                                                                                   \
    NEXT(VALUE, real, parameter)                                                                             \
    NEXT(VALUE, real, power)

#ifndef KI_HOST
#include "dialect/losses.h"

#ifndef DEVIANCE
__kernel void loss_mean(PARAMETERS(loss_mean)) {
    FOR_EACH(i, count) M[i] = mean_row(kind, link, power, Eta[i]);
}

__kernel void softmax_mean(PARAMETERS(softmax_mean)) {
    FOR_EACH(row, rows) {
        real largest = Eta[row * k], sum = REAL(0.0);
        for (int c = 1; c < k; c++) largest = Eta[row * k + c] > largest ? Eta[row * k + c] : largest;
        for (int c = 0; c < k; c++) {
            const real e = exp(Eta[row * k + c] - largest);
            M[row * k + c] = e;
            sum += e;
        }
        for (int c = 0; c < k; c++) M[row * k + c] /= sum;
    }
}

#else
__kernel void loss_deviance(PARAMETERS(loss_deviance)) {
    FOR_EACH(row, rows) {
        real d[3];
        deviance_row(family, link, parameter, power, y[row], weights ? weights[row] : REAL(1.0), Eta[row], d);
        for (int c = 0; c < 3; c++) D[row * 3 + c] = d[c];
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build
// build DEVIANCE
// pack {f32|f64} DEVIANCE
#endif
