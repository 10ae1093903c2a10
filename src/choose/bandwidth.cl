/* GPU body of the bandwidth measurement: sixteen bytes a load, four loads under way in each thread. */

#define ARGUMENTS_read(FIRST, NEXT)                                                                          \
    FIRST(OUT, float, sums)                                                                                  \
    NEXT(IN, float4, A)                                                                                      \
    NEXT(VALUE, long, count)

#ifndef KI_HOST
__kernel void read(PARAMETERS(read)) {
    const long step = (long)get_global_size(0);
    long i = (long)get_global_id(0);
    float sum = 0.0f;
    for (; i + 3 * step < count; i += 4 * step) {
        const float4 a = A[i], b = A[i + step], c = A[i + 2 * step], d = A[i + 3 * step];
        sum += (a.x + a.y + a.z + a.w) + (b.x + b.y + b.z + b.w);
        sum += (c.x + c.y + c.z + c.w) + (d.x + d.y + d.z + d.w);
    }
    for (; i < count; i += step) sum += A[i].x + A[i].y + A[i].z + A[i].w;
    sums[get_global_id(0)] = sum;
}

/* The variants that differ in text, as the tests build them. */
// build
#endif
