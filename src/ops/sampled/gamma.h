/* digamma, trigamma and log gamma of x > 0 for the host: dialect/scalar_math.h's, which the bodies use. */
#ifndef KI_OPS_GAMMA_H
#define KI_OPS_GAMMA_H

double ki_digamma(double x);
double ki_trigamma(double x);
double ki_log_gamma(double x);

#endif
