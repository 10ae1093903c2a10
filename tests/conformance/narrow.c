/* A dense X whose values are numbers of fewer bytes: wide for the references, narrow on a device that keeps
 * such. Which numbers, the shape says. */
#include <string.h>

#include "cases.h"
#include "kiln/codes.h"

enum { STREAM_NARROW = 60, ELEMENTS = KILN_ELEMENT_F32 };

/* f32 is no narrower than itself. */
static kiln_element element_of(const struct problem *p, kiln_type type) {
    const kiln_element element =
        (kiln_element)(1 + (p->rows + p->cols + p->k + (int64_t)p->flags) % ELEMENTS);
    return element == KILN_ELEMENT_F32 && type == KILN_F32 ? KILN_ELEMENT_F16 : element;
}

/* A number of the element, small enough for exponentials: whole ones below 4, halves and singles below 1. */
static double number_of(kiln_element element, double u) {
    switch (element) {
    case KILN_ELEMENT_U8:
    case KILN_ELEMENT_U16: return (double)(int)(4 * u);
    case KILN_ELEMENT_I8:
    case KILN_ELEMENT_I16: return (double)(int)(4 * u) - 2;
    case KILN_ELEMENT_F16: return (double)((int)(2048 * u) - 1024) / 1024;
    default: return (double)(float)(2 * u - 1);
    }
}

kiln_status make_narrow(struct work *work) {
    const struct problem *p = work->problem;
    const kiln_element element = element_of(p, work->type);
    kiln_device_info info = {.size = sizeof info};
    int narrowed = 0;
    host_new(&work->X, work->type, p->rows, p->cols);
    for (int64_t e = 0; e < work->X.host.nnz; e++)
        host_set(&work->X.host, e, number_of(element, random_uniform(STREAM_NARROW, (uint64_t)e)));
    CHECK_OK(operand_upload(work, &work->X));
    CHECK_OK(kiln_matrix_narrow(work->X.matrix, element, &narrowed));
    CHECK_OK(kiln_device_get_info(work->device, &info));
    const bool keeps = !strcmp(info.name, "cpu") && p->rows > 0 && p->cols > 0;
    return narrowed == keeps ? KILN_OK : KILN_ERR_DATA;
}
