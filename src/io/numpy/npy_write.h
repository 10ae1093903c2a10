/* The header of an .npy array, alone in its file or a member of an .npz. */
#ifndef KI_NPY_WRITE_H
#define KI_NPY_WRITE_H

#include "io/data.h"

enum { KI_NPY_HEADER_BYTES = 128 }; /* numpy wants a multiple of 64, so that the values are aligned */

/* dtype as numpy writes it ("<f8"), shape as a Python tuple ("(3, 2)"). Returns the header's bytes. */
size_t ki_npy_print_header(char header[KI_NPY_HEADER_BYTES], const char *dtype, const char *shape);
const char *ki_npy_dtype(kiln_type type);

#endif
