/* This header says what PoCL cannot do side by side. */
#ifndef KI_POCL_H
#define KI_POCL_H

#include "backends/opencl_library.h"

/* The launch that comes next may begin; until end_turn no other one does. */
void ki_pocl_begin_turn(cl_object queue, const void *function, int64_t threads);
void ki_pocl_end_turn(void);

/* Before a queue or a kernel goes: another one may get its address. */
void ki_pocl_leave_turn(cl_object queue);

#endif
