/* Losses of linear models and the middle steps that they put between X y and X^T: formulas over `real`, shared by CPU
 * bodies and GPU kernels like real_math.h.
 *
 * A loss is a function of a row's linear predictor eta = x.w + b + offset and of its target y. Each formula is written so
 * that no eta overflows it: exponentials are taken of numbers <= 0 only. */

/* log(1 + e^x) */
SCALAR_FN real FN(softplus)(real x) {
    return (x > 0 ? x : (real)0) + (real)log1p(exp(x > 0 ? -x : x));
}

/* 1 / (1 + e^-x) */
SCALAR_FN real FN(sigmoid)(real x) {
    const real e = (real)exp(x > 0 ? -x : x);
    return (x > 0 ? (real)1 : e) / ((real)1 + e);
}

/* The loss of one row, its derivative *g and its curvature *h >= 0 with respect to eta. kind, family and link are those
 * of kiln.h's kiln_loss, as are the parameters. Infinite where eta is out of the model's range. */
SCALAR_FN real FN(loss_row)(int kind, int family, int link, real parameter, real power, real y, real eta, real *g,
                            real *h) {
    (void)family, (void)link, (void)power;
    if (kind == 2) { /* logistic, y in [0, 1] */
        const real mu = FN(sigmoid)(eta);
        *g = mu - y;
        *h = mu * FN(sigmoid)(-eta);
        return FN(softplus)(eta) - y * eta;
    }
    if (kind == 4) { /* squared hinge, y > 0 or not */
        const real sign = y > 0 ? (real)1 : (real)-1, slack = (real)1 - sign * eta;
        *g = slack > 0 ? -sign * slack : (real)0;
        *h = slack > 0 ? (real)1 : (real)0;
        return slack > 0 ? (real)0.5 * slack * slack : (real)0;
    }
    if (kind == 5) { /* squared epsilon-insensitive */
        const real distance = eta - y, size = distance < 0 ? -distance : distance, slack = size - parameter;
        *g = slack > 0 ? (distance < 0 ? -slack : slack) : (real)0;
        *h = slack > 0 ? (real)1 : (real)0;
        return slack > 0 ? (real)0.5 * slack * slack : (real)0;
    }
    *g = eta - y; /* squared */
    *h = (real)1;
    return (real)0.5 * (eta - y) * (eta - y);
}

/* Softmax over a row's k predictors, in place: eta becomes the probabilities. Returns log(sum e^eta) - eta[label]. */
SCALAR_FN real FN(softmax_row)(real *eta, int k, int label) {
    real largest = eta[0], at_label = 0, sum = 0;
    for (int c = 1; c < k; c++) largest = eta[c] > largest ? eta[c] : largest;
    for (int c = 0; c < k; c++) {
        if (c == label) at_label = eta[c] - largest;
        eta[c] = (real)exp(eta[c] - largest);
        sum += eta[c];
    }
    for (int c = 0; c < k; c++) eta[c] /= sum;
    return (real)log(sum) - at_label;
}

/* The curvature of the softmax loss times q, in place: q_c = p_c * (q_c - sum_j p_j q_j). */
SCALAR_FN void FN(softmax_curve_row)(real *q, int k, const real *p) {
    real mean = 0;
    for (int c = 0; c < k; c++) mean += p[c] * q[c];
    for (int c = 0; c < k; c++) q[c] = p[c] * (q[c] - mean);
}
