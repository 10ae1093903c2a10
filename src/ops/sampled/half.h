/* Factors of half precision. */
#ifndef KI_HALF_H
#define KI_HALF_H

#include "kiln/half.h"
#include "core/matrix.h"

/* Two numbers lie in each element of a matrix of f32, whose memory is looked after as that of any other. */
struct kiln_half {
    kiln_half_type type;
    int64_t rows, cols;
    kiln_matrix *words; /* rows*cols numbers, and one more where that is odd */
};

/* The nearest one, of two as near the even one; too large a number becomes infinity. */
uint16_t ki_half_of_double(double x, kiln_half_type type);
uint16_t ki_half_of_float(float x, kiln_half_type type); /* ten times as fast */

#endif
