/* Student's t distribution, as standard errors of coefficients take it: with a dispersion that is estimated
 * the coefficients' errors are, too. An infinite number of degrees of freedom, that of a dispersion which is
 * known, is the normal distribution. */
#ifndef CLI_STUDENT_H
#define CLI_STUDENT_H

/* The probability of both tails beyond |t|, to 12 digits; NaN where degrees or t are. */
double student_p(double t, double degrees);
/* This many standard errors to each side hold 95 %. */
double student_95(double degrees);

#endif
