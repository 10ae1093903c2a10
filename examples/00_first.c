/* The smallest program: a line through four points. Build it with cc 00_first.c $(pkg-config --cflags --libs
 * kiln) */
#include <kiln.h>
#include <stdio.h>

int main(void) {
    double x[] = {1, 2, 3, 4}, y[] = {3.1, 4.9, 7.1, 8.9}, slope, intercept;
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *Y = NULL, *w = NULL, *b = NULL;
    int failed = kiln_device_open(&device, "cpu", NULL) || kiln_matrix_dense(&X, device, KILN_F64, 4, 1, x) ||
                 kiln_matrix_dense(&Y, device, KILN_F64, 4, 1, y) ||
                 kiln_matrix_dense(&w, device, KILN_F64, 1, 1, NULL) ||
                 kiln_matrix_dense(&b, device, KILN_F64, 1, 1, NULL) || kiln_linreg(w, b, X, Y, NULL, NULL) ||
                 kiln_matrix_get(&slope, w) || kiln_matrix_get(&intercept, b);
    if (failed)
        fprintf(stderr, "%s\n", kiln_last_error()->message);
    else
        printf("y = %.2f x + %.2f\n", slope, intercept);
    kiln_matrix_free(X), kiln_matrix_free(Y), kiln_matrix_free(w), kiln_matrix_free(b);
    kiln_device_close(device);
    return failed;
}
