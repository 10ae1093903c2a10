/* A kernel that declares BYTES of on-chip memory and uses both ends of it: out[i] = groupsize - 1 - i. */

#define ARGUMENTS_local_declared(FIRST, NEXT) FIRST(SPACE, int, out)

#ifndef KI_HOST
__kernel void local_declared(PARAMETERS(local_declared)) {
    LOCAL int all[BYTES / 4];
    const int id = (int)get_local_id(0), size = (int)get_local_size(0);
    all[id] = id;
    barrier(CLK_LOCAL_MEM_FENCE);
    all[BYTES / 4 - 1 - id] = all[id];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[id] = all[BYTES / 4 - size + id];
}

/* The variants that differ in text, as the tests build them. */
// build BYTES=4096
#endif
