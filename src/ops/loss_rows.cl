/* GPU body of kiln_loss_mean and (DEVIANCE) kiln_loss_deviance: a thread an element or a row. Small beside a pass over X, so
 * that one build serves all losses: which one it is comes with the launch. The deviance has a build of its own, as its many
 * logarithms of the gamma function take a compiler half a second, for which who merely predicts need not wait. */

#define FOR_EACH(i, count)                                                                                   \
    for (index_t i = (index_t)get_global_id(0); i < (index_t)(count); i += (index_t)get_global_size(0))

#ifndef DEVIANCE
__kernel void loss_mean(__global real *M, __global const real *Eta, long count, int kind, int link, real power) {
    FOR_EACH(i, count) M[i] = mean_row(kind, link, power, Eta[i]);
}

__kernel void softmax_mean(__global real *M, __global const real *Eta, long rows, int k) {
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
__kernel void loss_deviance(__global real *D, __global const real *Eta, __global const real *y,
                            __global const real *weights, long rows, int family, int link, real parameter, real power) {
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
